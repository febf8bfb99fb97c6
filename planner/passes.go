package planner

import (
	"slices"
	"strings"
)

// normalise brings a bound tree to one normal form, so that two ways of writing the same thing give
// the same steps and the same hash:
//
//   - projections are merged into what reads them; a projection stays only at the top, below a
//     UNION ALL and above an aggregate;
//   - filters sit below projections, their conjuncts in one list;
//   - the groups and aggregates of an Aggregate are sorted and without duplicates;
//   - columns nobody reads are gone, and those of a scan are sorted by name;
//   - a common table expression that is read once, or keeps no state, is inlined.
//
// Each pass is a pure function from tree to tree.
func normalise(n Node) Node {
	for _, pass := range []func(Node) Node{inline, merge, dropUnread, merge, ordered} {
		n = pass(n)
	}
	return n
}

// inline replaces common table expressions where computing them again costs nothing but a scan.
func inline(n Node) Node {
	done := map[*Shared]*Shared{}
	var rec func(Node) Node
	rec = func(n Node) Node {
		s, ok := n.(*Shared)
		if !ok {
			return mapInputs(n, rec)
		}
		if s.refs == 1 || !stateful(s.In) {
			return rec(s.In)
		}
		if done[s] == nil {
			done[s] = &Shared{In: rec(s.In), refs: s.refs}
		}
		return done[s]
	}
	return rec(n)
}

func stateful(n Node) bool {
	found := false
	walkNodes(n, func(n Node) {
		if _, ok := n.(*Aggregate); ok {
			found = true
		}
	})
	return found
}

// mapInputs copies a node with f applied to its inputs. Shared nodes keep their identity by the
// caller's care.
func mapInputs(n Node, f func(Node) Node) Node {
	switch n := n.(type) {
	case *Scan:
		return n
	case *Filter:
		return &Filter{In: f(n.In), Conjuncts: n.Conjuncts}
	case *Project:
		return &Project{In: f(n.In), Exprs: n.Exprs}
	case *Aggregate:
		return &Aggregate{In: f(n.In), Groups: n.Groups, Aggs: n.Aggs}
	case *Union:
		u := &Union{Type: n.Type}
		for _, in := range n.Ins {
			u.Ins = append(u.Ins, f(in))
		}
		return u
	}
	panic("planner: mapInputs of a node it does not know")
}

// sharing applies a pass that treats everything but Shared, each Shared once.
func sharing(pass func(rec func(Node) Node, n Node) Node) func(Node) Node {
	return func(root Node) Node {
		done := map[*Shared]*Shared{}
		var rec func(Node) Node
		rec = func(n Node) Node {
			if s, ok := n.(*Shared); ok {
				if done[s] == nil {
					done[s] = &Shared{In: rec(s.In), refs: s.refs}
				}
				return done[s]
			}
			return pass(rec, n)
		}
		return rec(root)
	}
}

// merge moves projections up and filters down until they meet what they belong to.
var merge = sharing(func(rec func(Node) Node, n Node) Node { return meet(mapInputs(n, rec)) })

// meet merges one node with its inputs, which are merged already.
func meet(n Node) Node {
	switch n := n.(type) {
	case *Filter:
		conjuncts := flatten(n.Conjuncts)
		switch in := n.In.(type) {
		case *Project:
			below := mapExprs(conjuncts, func(e *Expr) *Expr { return e.over(in.Exprs) })
			return meet(&Project{In: meet(&Filter{In: in.In, Conjuncts: below}), Exprs: in.Exprs})
		case *Filter:
			return &Filter{In: in.In, Conjuncts: append(slices.Clone(in.Conjuncts), conjuncts...)}
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
			return &Aggregate{In: in.In, Groups: mapExprs(n.Groups, over), Aggs: mapAggs(n.Aggs, over)}
		}
	case *Union:
		u := &Union{Type: n.Type}
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

// flatten splits ANDs into their parts.
func flatten(exprs []*Expr) []*Expr {
	var out []*Expr
	for _, e := range exprs {
		if e.Op == opAnd {
			out = append(out, flatten(e.Args)...)
		} else {
			out = append(out, e)
		}
	}
	return out
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

// dropUnread removes columns and aggregates that nothing above reads.
func dropUnread(root Node) Node {
	out, _ := keep(root, all(len(root.Types())))
	return out
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
		s := &Scan{Source: n.Source}
		for _, i := range sortedByName(n, want) {
			s.Cols, s.Type = append(s.Cols, n.Cols[i]), append(s.Type, n.Type[i])
		}
		return s, moved(len(n.Cols), sortedByName(n, want))
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
		kept := all(len(n.Groups))
		a := &Aggregate{Groups: n.Groups}
		reads := refsOfAll(n.Groups)
		for _, i := range want {
			if i >= len(n.Groups) {
				agg := n.Aggs[i-len(n.Groups)]
				kept, a.Aggs = append(kept, i), append(a.Aggs, agg)
				reads = union(reads, refsOfAll(agg.exprs()))
			}
		}
		in, to := keep(n.In, reads)
		remap := func(e *Expr) *Expr { return e.remap(to) }
		a.In, a.Groups, a.Aggs = in, mapExprs(a.Groups, remap), mapAggs(a.Aggs, remap)
		return a, moved(len(n.Groups)+len(n.Aggs), kept)
	case *Union:
		u := &Union{}
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
	}
	return n, all(len(n.Types())) // a Shared is read by several: it keeps what it has
}

func (a *Agg) exprs() []*Expr {
	if a.Filter == nil {
		return a.Args
	}
	return append(slices.Clone(a.Args), a.Filter)
}

func sortedByName(s *Scan, want []int) []int {
	out := slices.Clone(want)
	slices.SortStableFunc(out, func(a, b int) int { return strings.Compare(s.Cols[a], s.Cols[b]) })
	return slices.CompactFunc(out, func(a, b int) bool { return s.Cols[a] == s.Cols[b] })
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

// ordered sorts and deduplicates the groups and aggregates of every Aggregate and puts a projection
// on top that restores the order the readers expect.
var ordered = sharing(func(rec func(Node) Node, n Node) Node {
	n = meet(mapInputs(n, rec))
	if a, ok := n.(*Aggregate); ok {
		below := describe(a.In).cols
		groups, groupAt := sortedUnique(a.Groups, func(e *Expr) string { return e.canon(below) })
		aggs, aggAt := sortedUnique(a.Aggs, func(g *Agg) string { return g.canon(below) })
		types := a.Types()
		restore := make([]*Expr, 0, len(types))
		for i, at := range groupAt {
			restore = append(restore, ref(at, types[i]))
		}
		for i, at := range aggAt {
			restore = append(restore, &Expr{Op: opRef, Ref: len(groups) + at, Type: types[len(a.Groups)+i], Pos: a.Aggs[i].Pos})
		}
		p := &Project{In: &Aggregate{In: a.In, Groups: groups, Aggs: aggs}, Exprs: restore}
		if identity(p) {
			return p.In
		}
		return p
	}
	return n
})

func sortedUnique[T any](items []T, key func(T) string) (out []T, at []int) {
	keys := make([]string, len(items))
	order := all(len(items))
	for i, it := range items {
		keys[i] = key(it)
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	at = make([]int, len(items))
	last := ""
	for _, i := range order {
		if len(out) == 0 || keys[i] != last {
			out, last = append(out, items[i]), keys[i]
		}
		at[i] = len(out) - 1
	}
	return out, at
}
