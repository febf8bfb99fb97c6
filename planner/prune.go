package planner

import "slices"

// dropUnread removes columns and aggregates that nothing above reads.
func dropUnread(root Node) Node {
	out, to := keep(root, all(len(root.Types())))
	exprs := make([]*Expr, len(to)) // a scan at the root has sorted its columns
	for i, typ := range root.Types() {
		exprs[i] = ref(to[i], typ)
	}
	return restored(&Project{In: out, Exprs: exprs})
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// keep rewrites n to yield at least the wanted columns (ascending) and returns where each old column
// is now; columns that are gone map to -1.
func keep(n Node, want []int) (Node, []int) {
	switch n := n.(type) {
	case *Scan:
		columns, at := sortedUnique(want, func(i int) string { return lower(n.Cols[i]) })
		s := &Scan{Source: n.Source, Replaced: n.Replaced}
		for _, i := range columns {
			s.Cols, s.Type = append(s.Cols, n.Cols[i]), append(s.Type, n.Type[i])
		}
		to := moved(len(n.Cols), nil)
		for j, i := range want {
			to[i] = at[j]
		}
		return s, to
	case *Filter:
		in, to := keep(n.In, union(want, refsOfAll(n.Conjuncts)))
		return &Filter{In: in, Conjuncts: mapExprs(n.Conjuncts, func(e *Expr) *Expr { return e.remap(to) })}, to
	case *Project:
		var exprs []*Expr
		for _, i := range want {
			exprs = append(exprs, n.Exprs[i])
		}
		in, to := keep(n.In, refsOfAll(exprs))
		return &Project{In: in, Exprs: mapExprs(exprs, func(e *Expr) *Expr { return e.remap(to) })}, moved(len(n.Exprs), want)
	case *Aggregate:
		stay := all(len(n.Groups))
		a := n.with(nil, n.Groups, nil)
		reads := refsOfAll(n.Groups)
		for _, i := range want {
			if i >= len(n.Groups) {
				agg := n.Aggs[i-len(n.Groups)]
				stay, a.Aggs = append(stay, i), append(a.Aggs, agg)
				reads = union(reads, refsOfAll(agg.exprs()))
			}
		}
		in, to := keep(n.In, reads)
		remap := func(e *Expr) *Expr { return e.remap(to) }
		a.In, a.Groups, a.Aggs = in, mapExprs(a.Groups, remap), mapAggs(a.Aggs, remap)
		return a, moved(len(n.Groups)+len(n.Aggs), stay)
	case *Union:
		u := &Union{Sets: n.Sets}
		for _, i := range want {
			u.Type = append(u.Type, n.Type[i])
		}
		for _, in := range n.Ins {
			branch, to := keep(in, want)
			exprs := make([]*Expr, len(want))
			for j, i := range want {
				exprs[j] = ref(to[i], n.Type[i])
			}
			u.Ins = append(u.Ins, &Project{In: branch, Exprs: exprs})
		}
		return u, moved(len(n.Type), want)
	case *Window:
		var reads []int
		for _, c := range n.Calls {
			reads = union(reads, refsOfAll(c.exprs()))
		}
		in, to := keep(n.In, union(below(want, len(n.In.Types())), reads))
		w := &Window{In: in}
		for i, c := range n.Calls {
			call := c.mapExprs(func(e *Expr) *Expr { return e.remap(to) })
			w.Calls, to = append(w.Calls, &call), append(slices.Clone(to), len(in.Types())+i)
		}
		return w, to
	case *Top:
		in, to := keep(n.In, union(below(want, len(n.In.Types())), refsOfAll(n.exprs())))
		return &Top{In: in, Over: n.mapExprs(func(e *Expr) *Expr { return e.remap(to) }), Rows: n.Rows}, append(slices.Clone(to), len(in.Types()))
	}
	return n, all(len(n.Types()))
}

// below are the columns that come from the input, before those a node adds.
func below(want []int, width int) []int {
	return slices.DeleteFunc(slices.Clone(want), func(i int) bool { return i >= width })
}

func (a *Agg) exprs() []*Expr {
	out := slices.Clone(a.Args)
	if a.Filter != nil {
		out = append(out, a.Filter)
	}
	for _, k := range a.Order {
		out = append(out, k.expr)
	}
	return out
}

// moved inverts a list of kept columns.
func moved(n int, kept []int) []int {
	to := make([]int, n)
	for i := range to {
		to[i] = -1
	}
	for at, i := range kept {
		to[i] = at
	}
	return to
}

func refsOfAll(exprs []*Expr) []int {
	var out []int
	for _, e := range exprs {
		out = union(out, refsOf(e))
	}
	return out
}

func union(a, b []int) []int {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}
