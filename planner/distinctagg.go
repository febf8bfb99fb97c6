package planner

import (
	"fmt"
	"slices"
	"strings"
)

// Aggregates of distinct values are a fold over a fold: a step keeps the distinct values of every group,
// and those that come or go are what the aggregates of the group are made of. No group is ever read
// again.

// valued is a set of distinct values that aggregates of one Aggregate are of.
type valued struct {
	rows  Node // the groups, and behind them the value: in order, an Aggregate or a projection of one
	aggs  []*Agg
	canon string // of the argument and FILTER
	typ   string
}

// distincts lists what the DISTINCT aggregates of a are of.
func (n *Aggregate) distincts() []*valued {
	var out []*valued
	below := describe(n.In).cols
	for _, a := range n.Aggs {
		if _, one := n.oneValue(a); one || !a.Distinct {
			continue
		}
		canon := a.canonArg(below)
		var v *valued
		for _, have := range out {
			if have.canon == canon {
				v = have
			}
		}
		if v == nil {
			value := a.value()
			groups := append(slices.Clone(n.Groups), value)
			rows := orderedAggregate(&Aggregate{In: a.of(n.In), Groups: groups, Asked: &asked{word: "DISTINCT", pos: a.Pos}})
			v = &valued{canon: canon, typ: value.Type, rows: rows}
			out = append(out, v)
		}
		v.aggs = append(v.aggs, a)
	}
	return out
}

// value is what is kept: of the moments of a small integer that, not the DOUBLE they are of.
func (a *Agg) value() *Expr {
	if moments[a.Name] {
		if small, ok := smallInteger(a.Args[0]); ok {
			return small
		}
	}
	return a.Args[0]
}

// oneValue writes a DISTINCT aggregate of the only value that a group can have: a constant, or what the rows
// are grouped by. A group has a row, but for the one of an aggregate without groups.
func (n *Aggregate) oneValue(a *Agg) (sql string, one bool) {
	if !a.Distinct || len(n.Groups) == 0 || describe(a.of(n.In)).rows != describe(n.In).rows {
		return "", false
	}
	value := a.value()
	sql = value.sql(cols(""))
	if one = value.constant(); !one {
		below := describe(n.In).cols
		at := slices.Index(canonAll(n.Groups, below), value.canon(below))
		sql, one = fmt.Sprintf("c%d", at), at >= 0
	}
	return fmt.Sprintf("CAST(list_aggregate([CAST(%s AS %s)], '%s') AS %s)", sql, a.Args[0].Type, a.Name, a.Type), one
}

// of are the rows that the FILTER lets through.
func (a *Agg) of(in Node) Node {
	if a.Filter == nil {
		return in
	}
	return meet(&Filter{In: in, Conjuncts: []*Expr{a.Filter}})
}

var moments = words("var_pop var_samp stddev_pop stddev_samp")

// over is the aggregate of the values, which stand behind the groups.
func (v *valued) over(a *Agg, groups int) *Agg {
	arg := ref(groups, v.typ)
	if a.Args[0].Type != v.typ {
		arg = &Expr{Op: opCast, Type: a.Args[0].Type, Args: []*Expr{arg}, Pos: -1}
	}
	return &Agg{Name: a.Name, Type: a.Type, Args: []*Expr{arg}, Pos: a.Pos}
}

// partials is the part of a fold's batch that comes from one input.
type partials struct {
	in     string
	groups []string
	accs   []accumulator
}

// batch writes the partial accumulators of every group that the batch touches. Those of distinct values
// are from inputs of their own: each accumulator is given by one of them, once per group. The first input
// has all groups.
func batch(parts []partials) string {
	written := make([]string, len(parts))
	for i, p := range parts {
		columns := []string{aliased(p.groups)}
		for j, from := range parts {
			for _, acc := range from.accs {
				value := "NULL"
				if i == j {
					value = acc.partial
				}
				if i == j || len(parts) > 1 {
					columns = append(columns, value+" AS "+newAcc(acc.name))
				}
			}
		}
		written[i] = fmt.Sprintf("SELECT %s FROM (%s)", list(columns...), p.in)
		if len(p.groups) > 0 {
			written[i] += " GROUP BY " + ordinals(len(p.groups))
		}
	}
	if len(parts) == 1 {
		return written[0]
	}
	groups := len(parts[0].groups)
	columns := []string{each(groups, "c%[1]d")}
	for i, p := range parts {
		for _, acc := range p.accs {
			value := "any_value(" + newAcc(acc.name) + ")"
			if i > 0 && !acc.nothing() {
				value = "coalesce(" + value + ", 0)"
			}
			columns = append(columns, value+" AS "+newAcc(acc.name))
		}
	}
	out := fmt.Sprintf("SELECT %s FROM ((%s))", list(columns...), strings.Join(written, ") UNION ALL ("))
	if groups > 0 {
		out += " GROUP BY " + ordinals(groups)
	}
	return out
}

// nothing: the partial of no value is NULL, not 0.
func (a accumulator) nothing() bool {
	kind, _, _ := strings.Cut(a.name, "_")
	return kind == "mean" || kind == "m2" || kind == "bitstring"
}
