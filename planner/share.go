package planner

import "slices"

// Selects that group the same rows by the same columns keep one step, with the accumulators of all of
// them: one scan and one row of state per group serve every sink, and a step is found again by what it
// groups, whichever sinks ask it for what.

// gather adds the aggregates of a sink to those that group the same rows.
func (c *compiler) gather(root Node) {
	walkNodes(root, func(n Node) {
		if scan, ok := n.(*Scan); ok && scan.Replaced {
			c.gatherRows(scan)
		}
		a, ok := n.(*Aggregate)
		if !ok || a.needsRows() {
			return
		}
		c.gatherOne(a)
		for _, v := range a.distincts() {
			below, _ := parted(v.rows)
			c.gatherOne(below.(*Aggregate))
		}
	})
}

func (c *compiler) gatherOne(a *Aggregate) {
	rows := foldRows(a)
	if have := c.whole[rows]; have != nil {
		a = joined(have, a).(*Aggregate)
	}
	c.whole[rows] = a
}

// foldRows names what a fold groups. Input that is taken back is kept in another way than input that only
// comes, so aggregates over the one and over the other are two steps, even where the rows are the same.
// What a local step below keeps is as its readers ask for it, so it is not joined.
func foldRows(a *Aggregate) string {
	out := describe(a).rows
	if retracts(a.In) {
		out += " taken back"
	}
	walkNodes(a.In, func(n Node) {
		if _, key := stepKey(n); key != "" && stepKind(n) == "local" {
			out += " of " + key
		}
	})
	return out
}

// joined is a node with the columns of two that have the same rows, each column once. Columns are told
// apart by their canonical form; branches of a union stand in the same order in both.
func joined(a, b Node) Node {
	switch a := a.(type) {
	case *Scan:
		b := b.(*Scan)
		s := &Scan{Source: a.Source, Replaced: a.Replaced}
		columns, _ := sortedUnique(append(slices.Clone(a.Cols), b.Cols...), lower)
		for _, name := range columns {
			from, i := a, slices.Index(a.Cols, name)
			if i < 0 {
				from, i = b, slices.Index(b.Cols, name)
			}
			s.Cols, s.Type = append(s.Cols, from.Cols[i]), append(s.Type, from.Type[i])
		}
		return s
	case *Filter:
		in := joined(a.In, b.(*Filter).In)
		return &Filter{In: in, Conjuncts: mapExprs(a.Conjuncts, moving(a.In, in))}
	case *Top:
		return a
	case *Aggregate:
		b := b.(*Aggregate)
		if a.needsRows() {
			return a
		}
		in := joined(a.In, b.In)
		out := a.with(in, mapExprs(a.Groups, moving(a.In, in)), mapAggs(a.Aggs, moving(a.In, in)))
		below, have := describe(in).cols, map[string]bool{}
		for _, agg := range out.Aggs {
			have[agg.canon(below)] = true
		}
		for _, agg := range mapAggs(b.Aggs, moving(b.In, in)) {
			if !have[agg.canon(below)] {
				out.Aggs = append(out.Aggs, agg)
			}
		}
		return out
	case *Union:
		return joinedUnion(a, b.(*Union))
	}
	panic("planner: joined projections") // there is none below an aggregate or a filter
}

// joinedUnion has a's columns, and those of b that a has not.
func joinedUnion(a, b *Union) Node {
	out := &Union{Type: slices.Clone(a.Type), Sets: a.Sets}
	var more []int
	have := describe(a).cols
	for i, col := range describe(b).cols {
		if !slices.Contains(have, col) {
			more, out.Type = append(more, i), append(out.Type, b.Type[i])
		}
	}
	for i := range a.Ins {
		left, leftCols := parted(a.Ins[i])
		right, rightCols := parted(b.Ins[i])
		in := joined(left, right)
		exprs := mapExprs(leftCols, moving(left, in))
		for _, j := range more {
			exprs = append(exprs, moving(right, in)(rightCols[j]))
		}
		out.Ins = append(out.Ins, &Project{In: in, Exprs: exprs})
	}
	return out
}

// parted takes a projection from what it is over.
func parted(n Node) (below Node, exprs []*Expr) {
	if p, ok := n.(*Project); ok {
		return p.In, p.Exprs
	}
	for i, typ := range n.Types() {
		exprs = append(exprs, ref(i, typ))
	}
	return n, exprs
}

// moving rewrites expressions over from to the same over into, which has all its columns.
func moving(from, into Node) func(*Expr) *Expr {
	is := describe(into).cols
	var to []int
	for _, col := range describe(from).cols {
		to = append(to, slices.Index(is, col))
	}
	return func(e *Expr) *Expr { return e.remap(to) }
}
