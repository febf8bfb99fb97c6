package planner

import (
	"context"
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
	p.tables[lower(name)] = true
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
