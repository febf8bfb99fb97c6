package planner

import "slices"

// normalise brings a bound tree to one normal form, so that two ways of writing the same thing give
// the same steps and the same hash:
//
//   - grouping sets are a union of one aggregate each;
//   - projections are merged into what reads them; a projection stays only at the top, below a
//     UNION ALL and above an aggregate;
//   - filters sit below projections, their conjuncts in one list;
//   - the groups and aggregates of an Aggregate are sorted and without duplicates;
//   - columns nobody reads are gone, and those of a scan are sorted by name;
//   - a DISTINCT that takes nothing away, or that another one above makes good for, is gone.
//
// A common table expression stands where it is read. What it keeps is kept once all the same: steps that
// group the same rows are one step (share.go). Each pass is a pure function from tree to tree.
func normalise(n Node) Node {
	n = expanded(n)
	for doubled := true; doubled; {
		for _, pass := range []func(Node) Node{merge, dropUnread, merge, ordered} {
			n = pass(n)
		}
		n, doubled = undoubled(n)
	}
	return n
}

// mapInputs copies a node with f applied to its inputs.
func mapInputs(n Node, f func(Node) Node) Node {
	switch n := n.(type) {
	case *Scan:
		return n
	case *Filter:
		return &Filter{In: f(n.In), Conjuncts: n.Conjuncts}
	case *Project:
		return &Project{In: f(n.In), Exprs: n.Exprs}
	case *Aggregate:
		return n.with(f(n.In), n.Groups, n.Aggs)
	case *Window:
		return &Window{In: f(n.In), Calls: n.Calls}
	case *Top:
		return &Top{In: f(n.In), Over: n.Over, Rows: n.Rows}
	case *Union:
		u := &Union{Type: n.Type, Sets: n.Sets}
		for _, in := range n.Ins {
			u.Ins = append(u.Ins, f(in))
		}
		return u
	}
	panic("planner: mapInputs of a node it does not know")
}

// merge moves projections up and filters down until they meet what they belong to.
func merge(n Node) Node { return meet(mapInputs(n, merge)) }

// meet merges one node with its inputs, which are merged already.
func meet(n Node) Node {
	switch n := n.(type) {
	case *Filter:
		conjuncts := flattened(opAnd, n.Conjuncts)
		switch in := n.In.(type) {
		case *Project:
			below := mapExprs(conjuncts, func(e *Expr) *Expr { return e.over(in.Exprs) })
			return meet(&Project{In: meet(&Filter{In: in.In, Conjuncts: below}), Exprs: in.Exprs})
		case *Filter:
			return &Filter{In: in.In, Conjuncts: append(slices.Clone(in.Conjuncts), conjuncts...)}
		case *Window:
			if top := topped(in, conjuncts); top != nil {
				return top
			}
		}
		return &Filter{In: n.In, Conjuncts: conjuncts}
	case *Project:
		if in, ok := n.In.(*Project); ok {
			return meet(&Project{In: in.In, Exprs: mapExprs(n.Exprs, func(e *Expr) *Expr { return e.over(in.Exprs) })})
		}
		if identity(n) {
			return n.In
		}
	case *Aggregate:
		if in, ok := n.In.(*Project); ok {
			over := func(e *Expr) *Expr { return e.over(in.Exprs) }
			return n.with(in.In, mapExprs(n.Groups, over), mapAggs(n.Aggs, over))
		}
	case *Window:
		if in, ok := n.In.(*Project); ok {
			w := &Window{In: in.In}
			for _, c := range n.Calls {
				call := c.mapExprs(func(e *Expr) *Expr { return e.over(in.Exprs) })
				w.Calls = append(w.Calls, &call)
			}
			return lift(in, w, len(n.Calls))
		}
	case *Top:
		if in, ok := n.In.(*Project); ok {
			return lift(in, &Top{In: in.In, Over: n.mapExprs(func(e *Expr) *Expr { return e.over(in.Exprs) }), Rows: n.Rows}, 1)
		}
	case *Union:
		u := &Union{Type: n.Type, Sets: n.Sets}
		for _, in := range n.Ins {
			if inner, ok := in.(*Union); ok {
				u.Ins = append(u.Ins, inner.Ins...)
			} else {
				u.Ins = append(u.Ins, in)
			}
		}
		return u
	}
	return n
}

func identity(p *Project) bool {
	if len(p.Exprs) != len(p.In.Types()) {
		return false
	}
	for i, e := range p.Exprs {
		if e.Op != opRef || e.Ref != i {
			return false
		}
	}
	return true
}
