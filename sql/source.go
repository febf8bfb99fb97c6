package sql

import "strings"

// items are the words that begin an item of CREATE SOURCE other than a column.
var items = []string{"PRIMARY", "WATERMARK", "CONSTRAINT", "CHECK"}

func (p *parser) source() {
	n := &Source{Name: p.name("a source name"), Envelope: "NONE", Span: p.span(), Head: p.since(0)}
	if p.acceptPunct("(") {
		p.items(n)
		p.punct(")")
	}
	p.keywords("FROM")
	p.from(n)
	envelope := p.pos
	if p.accept("ENVELOPE") {
		p.envelope(n)
		n.EnvSpan = p.since(envelope)
	}
	n.With = p.with()
	if p.done() {
		p.script.Sources = append(p.script.Sources, n)
	}
}

// items takes the list in brackets. An item that cannot be read is left out, and the next is tried.
func (p *parser) items(n *Source) {
	for !p.failed {
		start := p.pos
		p.item(n)
		if !p.failed && p.pos != p.itemEnd() {
			p.tried = append(p.tried, ",", ")")
			p.unexpected(inlineHint(p.tok()))
		}
		if p.failed {
			p.hintItem(p.toks[start])
			p.failed, p.pos = false, start
			p.pos, p.tried = p.itemEnd(), p.tried[:0]
			n.partial = true
		}
		if !p.acceptPunct(",") {
			return
		}
	}
}

// hintItem improves the latest fault: an item that begins with a misspelled keyword was read as a
// column, and its fault lies elsewhere.
func (p *parser) hintItem(first token) {
	last := p.faults.list[len(p.faults.list)-1]
	if s := Suggest(first.text, items); s != "" && !first.is(s) {
		last.Hint = "did you mean " + s + "?"
	}
}

// inlineHint is for what other SQL allows after a column's type.
func inlineHint(t token) string {
	switch {
	case t.is("PRIMARY"):
		return "the key is an item of its own: PRIMARY KEY (column)"
	case t.is("CHECK"), t.is("CONSTRAINT"):
		return "a constraint is an item of its own, after a comma"
	case t.is("DEFAULT"):
		return "a source column has no default: use coalesce in the SELECT"
	case t.is("NULL"):
		return "a column may be NULL unless it says NOT NULL"
	}
	return ""
}

func (p *parser) item(n *Source) {
	start := p.pos
	switch t := p.tok(); {
	case t.is("PRIMARY"):
		p.keywords("PRIMARY", "KEY")
		key := p.nameList(false)
		if len(n.Key) > 0 {
			p.fail(p.since(start), "a key of several columns is one list", "source %s has a second PRIMARY KEY", n.Name.Text)
			return
		}
		if !p.failed {
			n.Key = key
		}
	case t.is("WATERMARK") && p.ahead(1).is("FOR"):
		p.keywords("WATERMARK", "FOR")
		w := &Watermark{Column: p.name("a column name")}
		p.keywords("AS")
		w.Expr = p.raw(p.itemEnd(), "an expression", resultHint)
		w.Span = p.since(start)
		if n.Watermark != nil {
			p.fail(w.Span, "", "source %s has a second WATERMARK", n.Name.Text)
			return
		}
		if !p.failed {
			n.Watermark = w
		}
	case t.is("CONSTRAINT"), t.is("CHECK"):
		p.check(n)
	default:
		p.column(n)
	}
}

func (p *parser) check(n *Source) {
	start := p.pos
	var c Check
	if p.accept("CONSTRAINT") {
		c.Name = p.name("a constraint name")
	}
	p.keywords("CHECK")
	c.Expr = p.inBrackets("a condition")
	if p.accept("ON") {
		p.keywords("VIOLATION")
		if c.Fail = p.accept("FAIL"); !c.Fail {
			p.keywords("REJECT")
		}
	}
	c.Span = p.since(start)
	if !p.failed {
		n.Checks = append(n.Checks, c)
	}
}

func (p *parser) column(n *Source) {
	start := p.pos
	c := Column{Name: p.name("a column name")}
	c.Type = p.typ()
	switch {
	case p.accept("NOT"):
		p.keywords("NULL")
		c.NotNull = true
	case p.accept("AS"):
		c.Kind, c.Expr = Computed, p.inBrackets("an expression")
	case p.accept("METADATA"):
		c.Kind, c.Metadata = Metadata, c.Name.Text
		c.metadataSpan = c.Name.Span
		if p.accept("FROM") {
			c.Metadata, c.metadataSpan = p.string("a metadata name in quotes")
		}
	}
	c.Span = p.since(start)
	if !p.failed {
		n.Columns = append(n.Columns, c)
	}
}

// typ takes a type: VARCHAR, main.mood, DECIMAL(12,2), STRUCT(a INT)[], TIMESTAMP WITH TIME ZONE.
// DuckDB decides later whether there is such a type. Only its shape is known here, and that is
// needed: what follows it has to be told from it.
func (p *parser) typ() Expr {
	start := p.pos
	t := p.tok()
	upper := strings.ToUpper(t.text)
	isType := t.kind == quoted || t.kind == word && (!reserved[upper] || typeWords[upper])
	if !isType || t.is("METADATA") || t.is("KEY") {
		p.want("a type", "")
		return Expr{}
	}
	p.advance()
	for p.acceptPunct(".") {
		p.name("a type")
	}
	switch {
	case t.is("DOUBLE"):
		p.accept("PRECISION")
	case t.is("CHARACTER"), t.is("CHAR"), t.is("BIT"):
		p.accept("VARYING")
	}
	if stop := p.tok().close; p.acceptPunct("(") {
		p.pos = stop
		p.punct(")")
	}
	if (t.is("TIME") || t.is("TIMESTAMP")) && (p.accept("WITH") || p.accept("WITHOUT")) {
		p.keywords("TIME", "ZONE")
	}
	for p.accept("ARRAY") || p.tok().isPunct("[") {
		if p.acceptPunct("[") {
			if p.tok().kind == number {
				p.advance()
			}
			p.punct("]")
		}
	}
	if p.failed {
		return Expr{}
	}
	stop := p.pos
	p.pos = start
	e := p.raw(stop, "a type", resultHint)
	p.tried = p.tried[:0] // a message that lists the rest of every type helps nobody
	return e
}

// from takes what a source reads: a path or address, or the name of a table.
func (p *parser) from(n *Source) {
	t := p.tok()
	switch {
	case t.kind == str, t.is("getenv") && p.ahead(1).isPunct("("):
		n.From = p.text("a string")
		if s, fixed := n.From.literal(); fixed && s == "" {
			p.fail(n.From.Span, "", "FROM of source %s is empty", n.Name.Text)
		}
	case t.kind == quoted, t.kind == word:
		q := p.qname("a table name")
		n.FromTable = &q
		if p.tok().isPunct("(") {
			p.fail(q.Span, "write FROM 'path', and the options of the reader in WITH (…)",
				"FROM takes a path in quotes or a table name, not a function")
		}
	case t.isPunct("("):
		p.want("a path in quotes or a table name", "a source is raw input: put a SELECT into CREATE VIEW")
	default:
		p.want("a path in quotes or a table name", "")
	}
}

func (p *parser) envelope(n *Source) {
	switch {
	case p.accept("NONE"):
		return
	case p.accept("UPSERT"):
		n.Envelope = "UPSERT"
	default:
		p.keywords("DEBEZIUM")
		n.Envelope = "DEBEZIUM"
	}
	if p.accept("SEQUENCE") {
		p.keywords("BY")
		p.punct("(")
		for !p.failed {
			n.Sequence = append(n.Sequence, p.raw(p.itemEnd(), "an expression", resultHint))
			if !p.acceptPunct(",") {
				break
			}
		}
		p.punct(")")
	}
	if p.accept("DELETE") {
		p.keywords("WHEN")
		e := p.inBrackets("a condition")
		n.Delete = &e
	}
}
