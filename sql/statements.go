package sql

import "strings"

const aboutFile = "a pipeline file has ATTACH, CREATE SOURCE, CREATE VIEW, CREATE SINK, SET VARIABLE and CREATE PIPELINE"

func (p *parser) statement() {
	switch {
	case p.accept("ATTACH"):
		p.attach()
	case p.accept("SET"):
		p.setVariable()
	case p.accept("CREATE"):
		p.create()
	default:
		p.unknownStatement()
	}
	if p.failed {
		p.faults.lose(p.toks)
	}
}

func (p *parser) create() {
	switch {
	case p.accept("PIPELINE"):
		p.pipeline()
	case p.accept("SOURCE"):
		p.source()
	case p.accept("VIEW"):
		p.view()
	case p.accept("SINK"):
		p.sink()
	case p.accept("TEST"):
		p.later("CREATE TEST", "a test name", &p.script.Tests)
	case p.accept("AUDIT"):
		p.later("CREATE AUDIT", "an audit name", &p.script.Audits)
	case p.tok().is("TABLE"):
		p.unexpected("CREATE SINK makes the table and keeps it up to date")
	case p.tok().is("OR"):
		p.unexpected("a pipeline file says what is, not what to change: leave OR REPLACE out")
	default:
		p.unexpected("")
	}
}

func (p *parser) unknownStatement() {
	t := p.tok()
	if t.kind != word {
		p.fail(t.span, aboutFile, "expected a statement, found %s", t.describe())
		return
	}
	verb := strings.ToUpper(t.describe())
	hint := aboutFile
	switch {
	case t.is("SELECT"), t.is("WITH"), t.is("FROM"):
		hint = "a SELECT stands after AS in CREATE SINK or CREATE VIEW"
	case t.is("DETACH"): // one letter from ATTACH, and meant
	case Suggest(t.text, p.tried) != "":
		hint = keywordHint(t.text, p.tried)
	}
	p.fail(t.span, hint, "%s is not a pipeline statement", verb)
}

func (p *parser) pipeline() {
	n := &Pipeline{Name: p.name("a pipeline name"), With: p.with(), Span: p.span()}
	if !p.done() {
		return
	}
	if p.script.Pipeline != nil {
		p.fail(n.Name.Span, "", "a file is one pipeline: CREATE PIPELINE stands here a second time")
		return
	}
	p.script.Pipeline, p.script.Name = n, strings.ToLower(n.Name.Text)
}

var attachTypes = []string{"duckdb", "postgres"}

func (p *parser) attach() {
	n := &Attach{Type: "duckdb", Span: p.span()}
	n.Target = p.text("a path or address in quotes")
	p.keywords("AS")
	n.Name = p.name("a name for the database")
	if p.acceptPunct("(") {
		if !p.accept("TYPE") {
			p.unexpected("TYPE is the only option: the database of the sinks is opened for writing, any other read-only")
		}
		t := p.tok()
		n.typeSpan, n.Type = t.span, strings.ToLower(t.text)
		if t.kind != word || !p.accept("DUCKDB") && !p.accept("POSTGRES") {
			hint := keywordHint(n.Type, attachTypes)
			p.fail(t.span, hint, "expected TYPE duckdb or postgres, found %s", t.describe())
		}
		p.punct(")")
	}
	if p.done() {
		p.script.Attaches = append(p.script.Attaches, n)
	}
}

func (p *parser) setVariable() {
	if !p.accept("VARIABLE") {
		hint := ""
		if p.ahead(1).isPunct("=") {
			hint = "settings of the database are not part of a pipeline; a constant is SET VARIABLE name = value"
		}
		p.unexpected(hint)
	}
	n := &Variable{Name: p.name("a variable name"), Span: p.span()}
	p.punct("=")
	n.Value = p.raw(len(p.toks), "a constant", "a variable is part of the plan hash and is stored with it: write the constant here")
	if p.done() {
		p.script.Variables = append(p.script.Variables, n)
	}
}

func (p *parser) view() {
	n := &View{Name: p.name("a view name"), Span: p.span()}
	p.keywords("AS")
	n.Select = p.query()
	if p.done() {
		p.script.Views = append(p.script.Views, n)
	}
}

func (p *parser) sink() {
	n := &Sink{Name: p.qname("a table name"), Span: p.span(), Head: p.since(0)}
	if t := p.tok(); t.is("AS") || t.is("WITH") || t.is("EMIT") || t.kind == end {
		p.fail(n.Name.Span,
			"add PRIMARY KEY (columns that identify a row) after the name, or PRIMARY KEY () for a table of one row",
			"sink %s has no PRIMARY KEY", n.Name)
	}
	p.keywords("PRIMARY", "KEY")
	n.Key = p.nameList(true)
	emit := p.pos
	if p.accept("EMIT") {
		p.keywords("FINAL")
		n.EmitFinal, n.EmitSpan = true, p.since(emit)
	}
	n.With = p.with()
	p.keywords("AS")
	n.Select = p.query()
	if p.done() {
		p.script.Sinks = append(p.script.Sinks, n)
	}
}

// later takes a statement of a later version as a whole.
func (p *parser) later(kind, name string, list *[]*Later) {
	n := &Later{Kind: kind, Name: p.name(name), Span: p.span()}
	if !p.failed {
		p.pos = len(p.toks)
		*list = append(*list, n)
	}
}

// query takes the SELECT that ends the statement.
func (p *parser) query() Expr {
	t := p.tok()
	if !t.is("SELECT") && !t.is("WITH") && !t.is("FROM") && !t.is("VALUES") && !t.isPunct("(") {
		hint := keywordHint(t.text, []string{"SELECT", "WITH", "FROM", "VALUES"})
		p.want("a SELECT", hint)
	}
	return p.raw(len(p.toks), "a SELECT", resultHint)
}
