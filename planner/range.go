package planner

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
)

// A range is a part of a plan's tables, told by a predicate over a sink's key, and with it the part of the
// state and of the input that it is made from. The predicate is taken down from the sink through every step
// to the rows of the sources. A step passes it on only as a condition on what the step groups by, so that of
// a group either all rows are in the range or none is:
//
//   - the rows that are Needed, folded from empty, give every row of state and table in the range as it is
//     when all rows are folded. What else they give is of groups that have other rows too, and is no use;
//   - rows that are Inside make nothing but what lies in the range. When they change, nothing outside does.
//
// Several ways lead from the sinks to a source: branches of a union, aggregates of distinct values, other
// sinks. A row is needed when it is on one of them, and inside when it is on all that it takes part in.
// NULL is not in the range, as in a WHERE.

// Range is such a part. With Whole set it is everything, and there is nothing else in it.
type Range struct {
	Sinks  map[string]string // by Sink.Name: condition on the rows of the table, over its columns
	Steps  map[string]string // by Step.ID: condition on the rows of the state, over its columns
	Needed map[string]string // by Source.Name, for those that are read: condition on the rows
	Inside map[string]string // by Source.Name: condition on the rows
	Whole  string            // why it cannot be less than everything
	Keys   string            // of a range of time: the keys it is of
	// Widened: these keys have rows outside of the times too.
	Widened bool

	plan  *Plan
	paths map[string][]path
}

// path is one way from a source to a sink.
type path struct {
	guards []*Expr // over the source's columns: rows for which one is not true do not take it
	in     *Expr   // over the source's columns: the rows of the range
}

// pushing takes predicates down.
type pushing struct {
	plan  *Plan
	paths map[string][]path
	steps map[string][]string
}

func newPushing(p *Plan) *pushing {
	return &pushing{plan: p, paths: map[string][]path{}, steps: map[string][]string{}}
}

// push takes a predicate over the columns of n down to the sources. guards are the filters above n that
// decide which rows get to the next step: below a step they are of no matter, it keeps also what they leave
// out. The result says why it cannot be done; "" when it can.
func (p *pushing) push(n Node, e *Expr, guards []*Expr) string {
	switch n := n.(type) {
	case *Scan:
		return p.scan(n, e, guards)
	case *Filter:
		return p.push(n.In, e, append(slices.Clone(guards), n.Conjuncts...))
	case *Project:
		over := func(x *Expr) *Expr { return x.over(n.Exprs) }
		return p.push(n.In, over(e), mapExprs(guards, over))
	case *Union:
		for _, in := range n.Ins {
			if why := p.push(in, e, guards); why != "" {
				return why
			}
		}
		return ""
	case *Aggregate:
		return p.aggregate(n, e)
	case *Top:
		return p.top(n, e)
	}
	return "a step of the plan has no rule for ranges"
}

func (p *pushing) aggregate(n *Aggregate, e *Expr) string {
	if slices.ContainsFunc(refsOf(e), func(i int) bool { return i >= len(n.Groups) }) {
		return "it depends on an aggregate"
	}
	if why := keyTypes(n.Groups, e); why != "" {
		return why
	}
	column := "c"
	if n.needsRows() {
		column = "k"
	}
	p.step(n, e, column)
	below := e.substitute(func(r *Expr) *Expr { return groupValue(n.Groups[r.Ref]) })
	if why := p.push(n.In, below, nil); why != "" || n.needsRows() {
		return why
	}
	for _, v := range n.distincts() {
		if why := p.push(v.rows, e, nil); why != "" {
			return why
		}
	}
	return ""
}

func (p *pushing) top(n *Top, e *Expr) string {
	ofParts, ok := lifted(e, n.Parts)
	if !ok && len(n.Parts) == 0 {
		return "a LIMIT, or a window without PARTITION BY, looks at all rows"
	}
	if !ok {
		return "it depends on more than what the rows are partitioned by"
	}
	for _, i := range refsOf(ofParts) {
		if isFloat(n.Parts[i].Type) {
			return "rows are partitioned by a floating-point value"
		}
	}
	if why := keyTypes(n.Parts, ofParts); why != "" {
		return why
	}
	p.step(n, ofParts, "k")
	return p.push(n.In, ofParts.over(n.Parts), nil)
}

func (p *pushing) step(n Node, e *Expr, column string) {
	p.note(stepID(n), e.sql(func(i int) string { return fmt.Sprintf("%s%d", column, i) }))
}

func (p *pushing) note(id, cond string) {
	if !slices.Contains(p.steps[id], cond) {
		p.steps[id] = append(p.steps[id], cond)
	}
}

func (p *pushing) scan(n *Scan, e *Expr, guards []*Expr) string {
	source, at := p.plan.source(n)
	own := path{in: e.remap(at), guards: mapExprs(guards, func(g *Expr) *Expr { return g.remap(at) })}
	if n.Replaced { // a step keeps all rows, whatever filters are above
		own.guards = nil
		p.note(rowsStep(n.Source), own.in.sql(p.plan.keptRows(source)))
	}
	p.paths[source.Name] = append(p.paths[source.Name], own)
	return ""
}

// keptRows tells how the step that keeps a source's rows writes its columns.
func (p *Plan) keptRows(s Source) columns {
	c := &compiler{rows: map[string]*sourceRows{}}
	for _, sink := range p.Sinks {
		walkNodes(sink.root, func(n Node) {
			if scan, ok := n.(*Scan); ok && scan.Replaced {
				c.gatherRows(scan)
			}
		})
	}
	return func(i int) string {
		switch name := lower(s.Columns[i].Name); name {
		case placeFile:
			return "k0"
		case placeRow:
			return "k1"
		default:
			at, _ := slices.BinarySearch(c.rows[s.Name].cols, name)
			return fmt.Sprintf("c%d", at)
		}
	}
}

// source finds a scan's source, and its columns among those of it.
func (p *Plan) source(n *Scan) (Source, []int) {
	s := p.Sources[slices.IndexFunc(p.Sources, func(s Source) bool { return s.Name == lower(n.Source) })]
	at := make([]int, len(n.Cols))
	for i, name := range n.Cols {
		at[i] = slices.IndexFunc(s.Columns, func(c Column) bool { return lower(c.Name) == lower(name) })
	}
	return s, at
}

// keyTypes refuses conditions that could tell equal values of a group apart.
func keyTypes(keys []*Expr, e *Expr) string {
	for _, i := range refsOf(e) {
		if t := keys[i].Type; !oneLook(t) && !isFloat(t) {
			return fmt.Sprintf("equal values of type %s can look different", t)
		}
	}
	return ""
}

// groupValue is a grouping expression as the state keeps it (groupKey).
func groupValue(e *Expr) *Expr {
	if !isFloat(e.Type) {
		return e
	}
	c := &Expr{Op: opCase, Type: e.Type, Pos: -1}
	for _, value := range []string{"0", "'nan'"} {
		kept := &Expr{Op: opConst, Name: "CAST(" + value + " AS " + e.Type + ")", Type: e.Type, Pos: -1}
		is := &Expr{Op: opCompare, Name: "=", Type: "BOOLEAN", Args: []*Expr{e, kept}, Pos: -1}
		c.Args = append(c.Args, is, kept)
	}
	c.Args = append(c.Args, e)
	return c
}

// lifted writes e, which is over the same columns as the expressions, over these instead.
func lifted(e *Expr, exprs []*Expr) (*Expr, bool) {
	if e.constant() {
		return e, true
	}
	text := e.sql(cols(""))
	for i, x := range exprs {
		if x.Type == e.Type && x.sql(cols("")) == text {
			return ref(i, e.Type), true
		}
	}
	if len(e.Args) == 0 {
		return nil, false
	}
	c := *e
	c.Args = make([]*Expr, len(e.Args))
	for i, a := range e.Args {
		below, ok := lifted(a, exprs)
		if !ok {
			return nil, false
		}
		c.Args[i] = below
	}
	return &c, true
}

// result writes down what was pushed.
func (p *pushing) result(sinks map[string]string) *Range {
	r := &Range{Sinks: sinks, Steps: map[string]string{}, Needed: map[string]string{}, Inside: map[string]string{}, plan: p.plan, paths: p.paths}
	for _, s := range p.plan.Steps {
		r.Steps[s.ID] = anyOf(p.steps[s.ID])
	}
	for _, s := range p.plan.Sources {
		if s.Reads == 0 {
			continue
		}
		column := s.column
		var needed, inside []string
		for _, way := range p.paths[s.Name] {
			in := "coalesce(" + way.in.sql(column) + ", false)"
			needed = append(needed, guarded(way.guards, column, in, "false"))
			inside = append(inside, guarded(way.guards, column, in, "true"))
		}
		r.Needed[s.Name] = anyOf(needed)
		r.Inside[s.Name] = "(" + strings.Join(slices.Compact(sorted(inside)), " AND ") + ")"
		if len(inside) == 0 {
			r.Inside[s.Name] = "false" // nobody pushed anything to it: the range has none of its rows
		}
	}
	return r
}

// column writes a column of the source.
func (s Source) column(i int) string { return duck.Quote(s.Columns[i].Name) }

// guarded evaluates a condition only for rows that get as far.
func guarded(guards []*Expr, col columns, cond, otherwise string) string {
	if len(guards) == 0 {
		return cond
	}
	return fmt.Sprintf("CASE WHEN coalesce(%s, false) THEN %s ELSE %s END", conjunction(guards, col), cond, otherwise)
}

// anyOf is true when one of the conditions is; NULL is not.
func anyOf(conditions []string) string {
	if len(conditions) == 0 {
		return "false"
	}
	conditions = slices.Compact(sorted(conditions))
	for i, c := range conditions {
		conditions[i] = "coalesce(" + c + ", false)"
	}
	return "(" + strings.Join(conditions, " OR ") + ")"
}
