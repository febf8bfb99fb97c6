package planner

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"lockstep/sql"
)

// views checks every view by itself, so that what is wrong in one is said once, and also when no sink
// reads it.
func (p *planning) views(ctx context.Context, _ Infer) error {
	for _, v := range p.script.Views {
		name := strings.ToLower(v.Name.Text)
		known := len(p.faults)
		root, _, err := p.query(ctx, v.Select)
		if err != nil {
			return err
		}
		if root != nil {
			_, refusals := check(root)
			p.report(v.Select.Span, refusals)
		}
		delete(p.scope.later, name)
		columns, err := p.columnNames(ctx, v.Select, root)
		if err != nil {
			return err
		}
		p.scope.add(v.Name.Text, columns)
		if root == nil || len(p.faults) > known {
			p.scope.broken[name] = true
			continue
		}
		p.above = append(p.above, v)
	}
	return nil
}

// sinks binds and checks every SELECT.
func (p *planning) sinks(ctx context.Context, _ Infer) error {
	for _, s := range p.script.Sinks {
		for _, o := range s.With {
			p.fault(o.Name.Span, "remove it", "a sink has no option %s in this version", o.Name.Text)
		}
		root, g, err := p.query(ctx, s.Select)
		if err != nil {
			return err
		}
		if root == nil {
			continue
		}
		sink, err := p.sink(ctx, s, root, g)
		if err != nil {
			return err
		}
		if sink != nil {
			p.plan.Sinks = append(p.plan.Sinks, *sink)
		}
	}
	return nil
}

// query brings a SELECT to its normal form. It is nil when there were faults, or when the SELECT reads
// something that had.
func (p *planning) query(ctx context.Context, query sql.Expr) (Node, *gate, error) {
	q := compose(p.above, query)
	g, err := inspect(ctx, p.eng, q, p.script.Text, p.scope)
	if err != nil {
		return nil, nil, p.refused(query, nil, err)
	}
	if len(g.refusals) > 0 {
		p.report(query.Span, g.refusals)
		return nil, nil, nil
	}
	for name := range g.reads {
		if p.scope.broken[name] {
			return nil, nil, nil
		}
	}
	bound, err := bind(ctx, p.eng, p.tables, q)
	if err != nil {
		return nil, nil, p.refused(query, g, err)
	}
	g.locate(bound)
	root, err := foldNulls(ctx, p.eng, normalise(bound))
	if err != nil {
		return nil, nil, err
	}
	if err := settle(ctx, p.eng, root); err != nil {
		return nil, nil, err
	}
	if err := p.constants(ctx, root); err != nil {
		return nil, nil, p.refused(query, g, err)
	}
	return root, g, nil
}

// refused records a refusal at its place; another error is returned.
func (p *planning) refused(query sql.Expr, g *gate, err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	if g != nil {
		g.improve(r)
		for name := range g.reads {
			if r.about == "" && p.scope.guessed[name] {
				return nil // such as that there is no sum of the type that was guessed
			}
		}
	}
	if at := pivot.FindStringIndex(query.Text); at != nil && r.msg == notOneSelect {
		r.pos, r.msg, r.hint = query.Span.Start+at[0], clauseRefusals["PIVOT"][0], clauseRefusals["PIVOT"][1]
	}
	p.report(query.Span, []*refusal{r})
	return nil
}

var pivot = regexp.MustCompile(`(?i)\b(un)?pivot\b`)

// report points refusals at the author's text; those without a place at the start of the SELECT.
func (p *planning) report(query sql.Span, refusals []*refusal) {
	start := wordAt(p.script.Text, query.Start)
	for _, r := range refusals {
		p.faultOf(start, r)
	}
}

// constants refuses casts of constants that fail: they would fail with the first row.
func (p *planning) constants(ctx context.Context, root Node) error {
	var fault *refusal
	visit := func(e *Expr) {
		if e.Op != opCast || e.Args[0].Op != opConst || fault != nil {
			return
		}
		stmt := e.sql(cols(""))
		if _, known := p.casts[stmt]; !known {
			p.casts[stmt] = ""
			if err := p.eng.Exec(ctx, "SELECT "+stmt); err != nil {
				p.casts[stmt] = firstSentence(err)
			}
		}
		if msg := p.casts[stmt]; msg != "" {
			fault = refuse(e.position(), "", "%s", msg)
		}
	}
	walkNodes(root, func(n Node) { eachExpr(n, func(e *Expr) { e.walk(visit) }) })
	if fault != nil {
		return fault
	}
	return nil
}

// eachExpr visits the expressions of one node.
func eachExpr(n Node, visit func(*Expr)) {
	switch n := n.(type) {
	case *Filter:
		for _, e := range n.Conjuncts {
			visit(e)
		}
	case *Project:
		for _, e := range n.Exprs {
			visit(e)
		}
	case *Window:
		for _, c := range n.Calls {
			for _, e := range c.exprs() {
				visit(e)
			}
		}
	case *Top:
		for _, e := range n.exprs() {
			visit(e)
		}
	case *Aggregate:
		for _, e := range n.Groups {
			visit(e)
		}
		for _, a := range n.Aggs {
			for _, e := range a.exprs() {
				visit(e)
			}
		}
	}
}

// sink checks what a SELECT gives against the table it is for; nil after a fault.
func (p *planning) sink(ctx context.Context, s *sql.Sink, root Node, g *gate) (*Sink, error) {
	columns, refusals := check(root)
	sink, err := p.output(ctx, s, root, columns, len(refusals) > 0)
	if err != nil {
		return nil, err
	}
	if sink != nil {
		sink.OneShot = strings.TrimLeft(compose(p.above, s.Select).text, " ")
	}
	p.report(s.Select.Span, refusals)
	if sink == nil || len(refusals) > 0 {
		return nil, nil
	}
	if r := p.facts().proveKey(root, columnNames(sink.Columns), sink.key); r != nil {
		p.fault(keySpan(s), r.hint, "%s", r.msg)
		return nil, nil
	}
	if err := p.prove(ctx, s, root); err != nil {
		return nil, err
	}
	if !p.addPlaces(sink) {
		return nil, nil
	}
	p.name(s, sink, g)
	return sink, nil
}

// facts are those of all sources.
func (p *planning) facts() facts {
	f := facts{}
	for _, s := range p.plan.Sources {
		f[s.Name] = map[string]bool{}
		for _, c := range s.Columns {
			f[s.Name][lower(c.Name)] = c.NotNull
		}
	}
	return f
}

// prove renders the IR, binds that and compares: what is going to run means what DuckDB bound.
func (p *planning) prove(ctx context.Context, s *sql.Sink, root Node) error {
	again, err := bind(ctx, p.eng, p.tables, composed{text: query(root)})
	var r *refusal
	if err != nil && !errors.As(err, &r) {
		return err
	}
	detail := "it reads back as another SELECT"
	if r != nil {
		detail = r.msg
	} else if was, is := describe(root), describe(normalise(again)); was.rows == is.rows && slices.Equal(was.cols, is.cols) {
		return nil
	}
	p.fault(wordAt(p.script.Text, s.Select.Span.Start), "please report this SELECT", "the plan of this SELECT cannot be proven to mean what it says: %s", detail)
	return nil
}
