package planner

import (
	"context"
	"slices"
	"strings"

	"lockstep/engine/duck"
	"lockstep/sql"
)

// Check is a condition on every row of a source; NULL passes.
type Check struct {
	Name  string // "" when the author gave none
	SQL   string // over the source's columns
	Text  string // as written
	Fail  bool   // a violation stops the run instead of rejecting the row
	canon string
}

// rows makes the source's table, first without its computed columns, for their expressions, then with
// them, for the checks and the SELECTs. It fills in what the computed columns are.
func (p *planning) rows(ctx context.Context, s *sql.Source, columns []Column) ([]Check, error) {
	name := s.Name.Text
	var inputs []Column
	for i, c := range columns {
		if len(s.Columns) == 0 || s.Columns[i].Kind != sql.Computed {
			inputs = append(inputs, c)
		}
	}
	p.tables[lower(name)] = false
	ok, err := p.tableOf(ctx, s, inputs)
	if ok && len(inputs) < len(columns) {
		if err = p.computed(ctx, s, columns); err == nil {
			ok, err = p.tableOf(ctx, s, columns)
		}
	}
	if err != nil || !ok {
		return nil, err
	}
	return p.checks(ctx, s)
}

// computed binds the expressions of computed columns, over the table of the other columns. What the
// reader of the source evaluates is not the author's text but what it was bound to: variables are
// values in it.
func (p *planning) computed(ctx context.Context, s *sql.Source, columns []Column) error {
	for i, c := range s.Columns {
		if c.Kind != sql.Computed {
			continue
		}
		e, err := p.rowExpr(ctx, s, c.Expr, "a computed column")
		if err != nil {
			return err
		}
		if e != nil {
			columns[i].Computed, columns[i].canon = e.text, e.canon
		}
	}
	return nil
}

// checks binds the conditions of a source, over all of its columns.
func (p *planning) checks(ctx context.Context, s *sql.Source) ([]Check, error) {
	var out []Check
	for _, c := range s.Checks {
		e, err := p.rowExpr(ctx, s, c.Expr, "CHECK")
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		if e.typ != "BOOLEAN" {
			p.fault(c.Expr.Span, "compare it with something", "CHECK takes a condition, not a value of type %s", e.typ)
			continue
		}
		out = append(out, Check{Name: c.Name.Text, SQL: e.text, Text: strings.Join(strings.Fields(c.Expr.Text), " "), Fail: c.Fail, canon: e.canon})
	}
	return out, nil
}

// watermark binds WATERMARK FOR: the column that says when a row happened, and until when rows are expected
// to be late. Nothing is dropped for being late; the column tells which times a file holds.
func (p *planning) watermark(ctx context.Context, s *sql.Source, source *Source) error {
	w := s.Watermark
	if w == nil {
		return nil
	}
	at := slices.IndexFunc(source.Columns, func(c Column) bool { return lower(c.Name) == lower(w.Column.Text) })
	if at < 0 {
		return nil // said by the parser, or the columns are taken from the input
	}
	c := source.Columns[at]
	if !strings.HasPrefix(c.Type, "TIMESTAMP") && c.Type != "DATE" {
		p.fault(w.Column.Span, "name a column of type TIMESTAMP, TIMESTAMPTZ or DATE", "the watermark's column %s is %s, not a time", c.Name, c.Type)
		return nil
	}
	e, err := p.rowExpr(ctx, s, w.Expr, "WATERMARK")
	if err != nil || e == nil {
		return err
	}
	if !strings.HasPrefix(e.typ, "TIMESTAMP") && e.typ != "DATE" {
		p.fault(w.Expr.Span, "subtract how late rows may be: "+c.Name+" - INTERVAL '1 day'", "the watermark is %s, not a time", e.typ)
		return nil
	}
	source.EventTime, source.watermark = c.Name, canonName(c.Name)+" as "+e.canon
	return nil
}

// boundExpr is an expression over the columns of one source.
type boundExpr struct{ text, typ, canon string }

// rowExpr binds an expression over a source; nil after a fault.
func (p *planning) rowExpr(ctx context.Context, s *sql.Source, expr sql.Expr, what string) (*boundExpr, error) {
	const before = "SELECT ("
	query := sql.Expr{Text: before + expr.Text + "\n) FROM " + duck.Quote(s.Name.Text), Span: sql.Span{Start: expr.Span.Start - len(before), End: expr.Span.End}}
	known := len(p.faults)
	root, _, err := p.query(ctx, query)
	if err != nil {
		return nil, err
	}
	// What could not be placed lies in the words around the expression.
	for _, f := range p.faults[known:] {
		if f.Span.Start < expr.Span.Start || f.Span.Start > expr.Span.End {
			*f = *p.script.Errorf(expr.Span, f.Hint, "%s", f.Message)
		}
	}
	if root == nil {
		return nil, nil
	}
	project, scan := rowProject(root)
	if scan == nil {
		p.fault(expr.Span, "aggregate in the SELECT of a sink", "%s looks at one row", what)
		return nil, nil
	}
	e := project.Exprs[0]
	return &boundExpr{
		text:  e.sql(func(i int) string { return duck.Quote(scan.Cols[i]) }),
		typ:   e.Type,
		canon: e.canon(describe(scan).cols),
	}, nil
}

// rowProject takes apart what a SELECT of one expression over one table binds to.
func rowProject(root Node) (*Project, *Scan) {
	if scan, ok := root.(*Scan); ok {
		return &Project{In: scan, Exprs: []*Expr{ref(0, scan.Type[0])}}, scan
	}
	if project, ok := root.(*Project); ok {
		if scan, ok := project.In.(*Scan); ok {
			return project, scan
		}
	}
	return nil, nil
}

// tableOf makes the empty table that columns of a source are bound against; false after a fault.
func (p *planning) tableOf(ctx context.Context, s *sql.Source, columns []Column) (bool, error) {
	names, defs := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], defs[i] = c.Name, duck.Quote(c.Name)+" "+c.Type
	}
	p.scope.add(s.Name.Text, names)
	err := p.eng.Exec(ctx, "CREATE OR REPLACE TABLE "+duck.Quote(lower(s.Name.Text))+" ("+strings.Join(defs, ", ")+")")
	if err != nil && ctx.Err() == nil {
		p.fault(s.Head, "", "%s", firstSentence(err))
		p.scope.broken[strings.ToLower(s.Name.Text)] = true
		return false, nil
	}
	return err == nil, err
}
