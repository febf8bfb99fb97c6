package planner

import (
	"slices"
	"strings"
)

// ordered sorts and deduplicates the groups and aggregates of every Aggregate and the columns of every
// Union, and puts a projection on top that restores the order the readers expect.
func ordered(n Node) Node {
	switch n := meet(mapInputs(n, ordered)).(type) {
	case *Aggregate:
		return orderedAggregate(n)
	case *Top:
		return n.ordered()
	case *Project: // that of a Top's input was lifted above it
		if top, ok := n.In.(*Top); ok {
			return &Project{In: top.ordered(), Exprs: n.Exprs}
		}
		return n
	case *Union:
		return orderedUnion(n)
	default:
		return n
	}
}

// A constant splits nothing: GROUP BY ALL leaves it out beside others, and so does this. Where all groups
// are constants there is one group once there is a row, whichever constants they are: they become one.
func orderedAggregate(a *Aggregate) Node {
	a = a.with(a.In, a.Groups, slices.Clone(a.Aggs))
	below := describe(a.In).cols
	var splitting []*Expr
	for _, g := range a.Groups {
		if !g.constant() {
			splitting = append(splitting, g)
		}
	}
	if len(splitting) == 0 && len(a.Groups) > 0 {
		splitting = []*Expr{{Op: opConst, Name: "1", Type: "INTEGER", Pos: a.Groups[0].Pos}}
	}
	groups, groupAt := sortedUnique(splitting, func(e *Expr) string { return e.canon(below) })
	for i, g := range a.Aggs {
		if len(g.Order) > 0 {
			a.Aggs[i] = g.orderedBy(below, groups)
		}
	}
	aggs, aggAt := sortedUnique(a.Aggs, func(g *Agg) string { return g.canon(below) })
	types := a.Types()
	restore := make([]*Expr, 0, len(types))
	for i, g := range a.Groups {
		if g.constant() {
			restore = append(restore, g)
			continue
		}
		restore = append(restore, ref(groupAt[slices.Index(splitting, g)], types[i]))
	}
	for i, at := range aggAt {
		restore = append(restore, &Expr{Op: opRef, Ref: len(groups) + at, Type: types[len(a.Groups)+i], Pos: a.Aggs[i].Pos})
	}
	return restored(&Project{In: a.with(a.In, groups, aggs), Exprs: restore})
}

// orderedUnion sorts the branches, and the columns by what the branches put into them. Columns that are
// the same in all branches become one.
func orderedUnion(u *Union) Node {
	type branch struct {
		in   Node
		name string
		cols []string
	}
	branches := make([]branch, len(u.Ins))
	for i, in := range u.Ins {
		d := describe(in)
		branches[i] = branch{in: in, name: d.rows + " | " + strings.Join(sorted(d.cols), "; "), cols: d.cols}
	}
	slices.SortStableFunc(branches, func(a, b branch) int { return strings.Compare(a.name, b.name) })
	columns, at := sortedUnique(all(len(u.Type)), func(i int) string {
		var parts []string
		for _, b := range branches {
			parts = append(parts, b.cols[i])
		}
		return strings.Join(append(parts, u.Type[i]), " | ")
	})
	restore := make([]*Expr, len(at))
	for i, a := range at {
		restore[i] = ref(a, u.Type[i])
	}
	out := &Union{Type: make([]string, len(columns)), Sets: u.Sets}
	for i, c := range columns {
		out.Type[i] = u.Type[c]
	}
	for _, b := range branches {
		types := b.in.Types()
		picked := make([]*Expr, len(columns))
		for i, c := range columns {
			picked[i] = ref(c, types[c])
		}
		out.Ins = append(out.Ins, meet(&Project{In: b.in, Exprs: picked}))
	}
	if flat := meet(out).(*Union); len(flat.Ins) > len(out.Ins) { // what was between two unions is gone
		return meet(&Project{In: orderedUnion(flat), Exprs: restore})
	}
	return restored(&Project{In: out, Exprs: restore})
}

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return out
}

// constant: the expression reads no column; all functions there are give the same every time.
func (e *Expr) constant() bool { return len(refsOf(e)) == 0 }

func restored(p *Project) Node {
	if identity(p) {
		return p.In
	}
	return p
}

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
