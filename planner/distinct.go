package planner

import (
	"slices"
	"strings"
)

// Distinct rows are an Aggregate of all columns without aggregates: SELECT DISTINCT a, b means what
// SELECT a, b … GROUP BY a, b means, and keeps the same.

// distinct binds SELECT DISTINCT, and the part of a UNION that is more than UNION ALL.
func (b *binder) distinct(n, in object) (Node, error) {
	below, err := b.node(in)
	if err != nil {
		return nil, err
	}
	var decide []any
	for _, target := range children(n, "distinct_targets") {
		decide = append(decide, compared([]any{target})...)
	}
	targets, err := b.exprs(decide)
	if err != nil {
		return nil, err
	}
	word := "DISTINCT"
	if text(in, "type") == "LOGICAL_UNION" {
		word = "UNION"
	}
	out := &Aggregate{In: below, Asked: &asked{word: word, pos: -1}}
	for i, typ := range below.Types() {
		at := slices.IndexFunc(targets, func(e *Expr) bool { return e.Op == opRef && e.Ref == i })
		if at < 0 {
			return nil, refuse(-1, "select what decides", "DISTINCT of other columns than those selected has no rule")
		}
		out.Groups = append(out.Groups, &Expr{Op: opRef, Ref: i, Type: typ, Name: targets[at].Name, Pos: -1})
	}
	if len(targets) != len(out.Groups) {
		return nil, refuse(-1, "select what decides", "DISTINCT of other columns than those selected has no rule")
	}
	return out, nil
}

// undoubled removes a DISTINCT where no row is there twice, and where whoever reads the rows gives the
// same for a row that is there twice: SELECT DISTINCT of a UNION, max over distinct rows. It tells
// whether there was one.
func undoubled(n Node) (Node, bool) {
	u := &undoubler{}
	return u.node(n, false, false), u.found
}

type undoubler struct{ found bool }

// node: once says that a row that is there twice counts once to whoever reads n; asIs that the columns
// get there as they are.
func (u *undoubler) node(n Node, once, asIs bool) Node {
	switch n := n.(type) {
	case *Filter:
		return &Filter{In: u.node(n.In, once, false), Conjuncts: n.Conjuncts}
	case *Project:
		return &Project{In: u.node(n.In, once, asIs && plain(n.Exprs)), Exprs: n.Exprs}
	case *Aggregate:
		once = once && len(n.Aggs) == 0 && len(n.Groups) > 0 && (asIs || !slices.ContainsFunc(n.Groups, floating))
		in := u.node(n.In, !slices.ContainsFunc(n.Aggs, (*Agg).counts), !slices.ContainsFunc(n.Aggs, (*Agg).computes) && plain(n.Groups))
		if once || len(n.Aggs) == 0 && len(n.Groups) > 0 && (facts{}).unique(in, plainRefs(n.Groups)) {
			u.found = true
			return &Project{In: in, Exprs: n.Groups}
		}
		return n.with(in, n.Groups, n.Aggs)
	case *Union:
		return mapInputs(n, func(in Node) Node { return u.node(in, once, asIs) })
	}
	return mapInputs(n, func(in Node) Node { return u.node(in, false, false) })
}

// sameDistinct: DISTINCT changes nothing in such an aggregate.
func sameDistinct(aggregate string) bool {
	_, first := firstForms[aggregate]
	return first || idempotent[aggregate]
}

// counts: a row more with the same values changes the result.
func (a *Agg) counts() bool { return !a.Distinct && !idempotent[a.Name] }

// computes: the aggregate reads more than columns as they are.
func (a *Agg) computes() bool { return a.Filter != nil || !plain(a.Args) }

// floating: of equal values DISTINCT shows one, and 1/x of 0.0 is not that of −0.0.
func floating(e *Expr) bool { return isFloat(e.Type) }

func plain(exprs []*Expr) bool { return len(plainRefs(exprs)) == len(exprs) }

func plainRefs(exprs []*Expr) []int {
	var out []int
	for _, e := range exprs {
		if e.Op == opRef {
			out = append(out, e.Ref)
		}
	}
	return out
}

// setOperation binds INTERSECT and EXCEPT: how many rows each side has of what both are grouped by.
func (b *binder) setOperation(n object, in []object) (Node, error) {
	word := strings.TrimPrefix(text(n, "type"), "LOGICAL_")
	if isSet(n, "setop_all") {
		return nil, refuse(-1, setAllHint, "%s ALL is not supported by this version", word)
	}
	left, err := b.node(in[0])
	if err != nil {
		return nil, err
	}
	right, err := b.node(in[1])
	if err != nil {
		return nil, err
	}
	left, right = repeated(left), repeated(right)
	types := left.Types()
	width := len(types)
	both := &Union{Ins: []Node{tagged(left, true), tagged(right, false)}, Type: append(slices.Clone(types), "BOOLEAN")}
	side := ref(width, "BOOLEAN")
	counted := &Aggregate{In: both, Asked: &asked{word: word, pos: -1}, Aggs: []*Agg{
		{Name: "count_star", Type: "BIGINT", Filter: side, Pos: -1},
		{Name: "count_star", Type: "BIGINT", Filter: &Expr{Op: opNot, Type: "BOOLEAN", Args: []*Expr{side}, Pos: -1}, Pos: -1},
	}}
	for i, typ := range types {
		column := ref(i, typ)
		if p, ok := left.(*Project); ok {
			column.Name = p.Exprs[i].Name
		}
		counted.Groups = append(counted.Groups, column)
	}
	compared := func(side int, op string) *Expr {
		zero := &Expr{Op: opConst, Name: "CAST('0' AS BIGINT)", Type: "BIGINT", Pos: -1}
		return &Expr{Op: opCompare, Name: op, Type: "BOOLEAN", Args: []*Expr{ref(width+side, "BIGINT"), zero}, Pos: -1}
	}
	kept := &Filter{In: counted, Conjuncts: []*Expr{compared(1, "=")}}
	if word == "INTERSECT" {
		kept.Conjuncts = []*Expr{compared(0, ">"), compared(1, ">")}
	}
	return &Project{In: kept, Exprs: counted.Groups}, nil
}

// repeated takes the DISTINCT from a side of a set operation, which does not ask how often a row is there.
func repeated(n Node) Node {
	if a, ok := n.(*Aggregate); ok && a.Asked != nil && len(a.Aggs) == 0 {
		return &Project{In: a.In, Exprs: a.Groups}
	}
	return n
}

const setAllHint = "count the rows of each side with GROUP BY, over a UNION ALL of both, and compare the counts"

// tagged adds the side of a set operation to its rows.
func tagged(n Node, left bool) Node {
	p := &Project{In: n}
	for i, typ := range n.Types() {
		p.Exprs = append(p.Exprs, ref(i, typ))
	}
	name := map[bool]string{true: "CAST('t' AS BOOLEAN)", false: "CAST('f' AS BOOLEAN)"}[left]
	p.Exprs = append(p.Exprs, &Expr{Op: opConst, Name: name, Type: "BOOLEAN", Pos: -1})
	return p
}
