package sql

import "strings"

// String is the name as written, without quotes, for messages.
func (q QName) String() string {
	parts := make([]string, len(q.Parts))
	for i, n := range q.Parts {
		parts[i] = n.Text
	}
	return strings.Join(parts, ".")
}

// name takes an identifier.
func (p *parser) name(what string) Name {
	t := p.tok()
	switch {
	case t.kind == quoted && len(t.text) > 2:
		p.advance()
		return Name{unquoteName(t.text), t.span}
	case t.kind == quoted:
		p.fail(t.span, "", "a quoted name may not be empty")
	case t.kind == word && !reserved[strings.ToUpper(t.text)]:
		p.advance()
		return Name{t.text, t.span}
	case t.kind == word && !clauses[strings.ToUpper(t.text)]:
		p.want(what, strings.ToUpper(t.text)+` is a reserved word; a name like that is written "`+t.text+`"`)
	default:
		p.want(what, "")
	}
	return Name{}
}

// label takes an identifier in a place where reserved words are unambiguous.
func (p *parser) label(what string) Name {
	if t := p.tok(); t.kind == word {
		p.advance()
		return Name{t.text, t.span}
	}
	return p.name(what)
}

func (p *parser) qname(what string) QName {
	start := p.pos
	q := QName{Parts: []Name{p.name(what)}}
	for p.tok().isPunct(".") {
		if len(q.Parts) == 3 {
			p.fail(p.since(start), "", "a table name has at most three parts: database.schema.table")
		}
		p.advance()
		q.Parts = append(q.Parts, p.label(what))
	}
	q.Span = p.since(start)
	return q
}

// nameList takes names in brackets.
func (p *parser) nameList(mayBeEmpty bool) []Name {
	var list []Name
	p.punct("(")
	if mayBeEmpty && p.acceptPunct(")") {
		return nil
	}
	for !p.failed {
		list = append(list, p.name("a column name"))
		if !p.acceptPunct(",") {
			break
		}
	}
	p.punct(")")
	return list
}

// text takes strings and getenv calls joined by ||.
func (p *parser) text(what string) Text {
	start := p.pos
	var t Text
	for !p.failed {
		if p.tok().is("getenv") {
			t.Parts = append(t.Parts, p.getenv())
		} else {
			value, span := p.string(what)
			t.Parts = append(t.Parts, TextPart{Literal: value, Span: span})
		}
		if !p.tok().isPunct("||") {
			break
		}
		p.advance()
	}
	t.Span = p.since(start)
	return t
}

func (p *parser) getenv() TextPart {
	start := p.pos
	p.advance()
	p.punct("(")
	env, span := p.string("the name of an environment variable in quotes")
	if env == "" {
		p.fail(span, "", "getenv needs the name of an environment variable")
	}
	part := TextPart{Env: env}
	if p.acceptPunct(",") {
		part.HasDefault = true
		part.Default, _ = p.string("a default in quotes")
	}
	p.punct(")")
	part.Span = p.since(start)
	return part
}

// string takes one string literal and returns what it stands for.
func (p *parser) string(what string) (string, Span) {
	t := p.tok()
	if t.kind != str {
		hint := ""
		if t.kind == quoted {
			hint = "double quotes are for names: a string stands in single quotes"
		}
		p.want(what, hint)
		return "", t.span
	}
	value, at, err := unquoteString(t.text)
	if err != nil {
		at += t.span.Start
		p.fail(Span{at, at + 2}, "", "%s", err)
	}
	p.advance()
	return value, t.span
}

// with takes an optional WITH list.
func (p *parser) with() []Option {
	if !p.accept("WITH") {
		return nil
	}
	var list []Option
	p.punct("(")
	for !p.failed {
		start := p.pos
		o := Option{Name: p.label("an option name")}
		p.punct("=")
		o.Value = p.value()
		o.Span = p.since(start)
		list = append(list, o)
		if !p.acceptPunct(",") {
			break
		}
	}
	p.punct(")")
	return list
}

func (p *parser) value() Value {
	const what = "a string, number, true, false or null"
	start := p.pos
	v := Value{}
	switch t := p.tok(); {
	case t.is("true"), t.is("false"):
		v.Kind = BoolValue
		p.advance()
	case t.is("null"):
		v.Kind = NullValue
		p.advance()
	case t.kind == number, t.isPunct("-") && p.ahead(1).kind == number:
		v.Kind = NumberValue
		if t.kind != number {
			p.advance()
		}
		p.advance()
	case t.kind == word && !t.is("getenv"):
		p.want(what, "a string stands in single quotes: '"+t.text+"'")
	default:
		v.Text = p.text(what)
	}
	v.Span = p.since(start)
	if v.Kind != StringValue {
		v.Raw = p.script.Text[v.Span.Start:v.Span.End]
	}
	return v
}

// resultHint says why a SELECT or an expression has no getenv.
const resultHint = "the result may depend on the input alone: give the constant with SET VARIABLE and read it with getvariable"

// raw takes the tokens up to index stop as untouched SQL. Its span has no comment at either end.
func (p *parser) raw(stop int, what, getenvHint string) Expr {
	if !p.failed && stop == p.pos {
		p.want(what, "")
	}
	if p.failed {
		return Expr{}
	}
	for i, t := range p.toks[p.pos:stop] {
		if (t.is("getenv") || t.kind == quoted && strings.EqualFold(t.text, `"getenv"`)) && p.ahead(i+1).isPunct("(") {
			p.faults.add(t.span, getenvHint, "getenv is allowed only in ATTACH, in FROM of a source and in WITH")
		}
	}
	span := Span{p.toks[p.pos].span.Start, p.toks[stop-1].span.End}
	p.pos, p.tried = stop, p.tried[:0]
	return Expr{Text: p.script.Text[span.Start:span.End], Span: span}
}

// inBrackets takes an expression in round brackets.
func (p *parser) inBrackets(what string) Expr {
	stop := p.tok().close
	p.punct("(")
	e := p.raw(stop, what, resultHint)
	p.punct(")")
	return e
}

// itemEnd is the index of the comma or closing bracket that ends the item at pos.
func (p *parser) itemEnd() int {
	for i := p.pos; i < len(p.toks); i++ {
		t := p.toks[i]
		if t.isPunct(",") || t.isPunct(")") {
			return i
		}
		if t.close > 0 {
			i = t.close
		}
	}
	return len(p.toks)
}
