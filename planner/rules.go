package planner

import "fmt"

// check refuses what has no proven incremental rule, and tells which output columns are only equal
// within a tolerance.
func check(root Node) (inexact []bool, refusals []*refusal) {
	c := &checker{seen: map[Node]bool{}}
	inexact = c.node(root)
	return inexact, c.refusals
}

type checker struct {
	refusals []*refusal
	seen     map[Node]bool // a Shared reports its faults once
}

func (c *checker) refuse(pos int, hint, format string, args ...any) {
	c.refusals = append(c.refusals, refuse(pos, hint, format, args...))
}

const exactHint = "round it, as in round(avg(x), 2), or compute from exact types: sum(x) of integers or decimals"

// node returns which columns of n are inexact: floating sums and means differ in the last digit with
// the order of the rows, so nothing may be decided by them.
func (c *checker) node(n Node) []bool {
	switch n := n.(type) {
	case *Scan:
		return make([]bool, len(n.Cols))
	case *Filter:
		in := c.node(n.In)
		for _, e := range n.Conjuncts {
			if dependsOnInexact(e, in) {
				c.refuse(e.position(), exactHint, "a filter on a floating-point aggregate could decide differently from run to run")
			}
		}
		return in
	case *Project:
		in := c.node(n.In)
		out := make([]bool, len(n.Exprs))
		for i, e := range n.Exprs {
			out[i] = dependsOnInexact(e, in)
		}
		return out
	case *Union:
		out := make([]bool, len(n.Type))
		for _, branch := range n.Ins {
			for i, x := range c.node(branch) {
				out[i] = out[i] || x
			}
		}
		return out
	case *Shared:
		if c.seen[n] {
			silent := &checker{seen: c.seen}
			return silent.node(n.In)
		}
		c.seen[n] = true
		return c.node(n.In)
	case *Aggregate:
		return c.aggregate(n)
	}
	panic(fmt.Sprintf("planner: no check for %T", n))
}

func (c *checker) aggregate(a *Aggregate) []bool {
	in := c.node(a.In)
	takenBack := retracts(a.In)
	out := make([]bool, 0, len(a.Groups)+len(a.Aggs))
	for _, g := range a.Groups {
		c.groupKey(g, in)
		out = append(out, false)
	}
	for _, agg := range a.Aggs {
		c.agg(agg, in, takenBack)
		out = append(out, inexactAggregate(agg))
	}
	return out
}

func (c *checker) groupKey(g *Expr, in []bool) {
	pos := g.position()
	switch {
	case dependsOnInexact(g, in):
		c.refuse(pos, exactHint, "grouping by a floating-point aggregate could split groups differently from run to run")
	case g.Type == "INTERVAL":
		c.refuse(pos, "group by a number instead: epoch(i)", "an INTERVAL cannot be a group: 30 days and 1 month are equal and look different")
	case isNested(g.Type):
		c.refuse(pos, "group by its parts", "a group of type %s is not supported", g.Type)
	case g.Type == "NULL":
		c.refuse(pos, "cast it: NULL::VARCHAR", "a group that is always NULL has no type")
	}
}

func (c *checker) agg(a *Agg, in []bool, takenBack bool) {
	if !aggregateFunctions[a.Name] {
		c.refuse(a.Pos, aggregateHints[a.Name], "%s has no incremental rule in this version", a.Name)
		return
	}
	if len(a.Args) > 1 || len(a.Args) == 0 && a.Name != "count_star" {
		c.refuse(a.Pos, "", "%s with %d arguments has no incremental rule in this version", a.Name, len(a.Args))
		return
	}
	if a.Filter != nil && dependsOnInexact(a.Filter, in) {
		c.refuse(a.Pos, exactHint, "a FILTER on a floating-point aggregate could decide differently from run to run")
	}
	if len(a.Args) == 0 || a.Name == "count" {
		return
	}
	arg := a.Args[0]
	if dependsOnInexact(arg, in) {
		c.refuse(a.Pos, exactHint, "%s of a floating-point aggregate is not exact enough to be kept", a.Name)
		return
	}
	if hint, ok := argumentRule(a, arg); !ok {
		c.refuse(a.Pos, hint, "%s of %s has no incremental rule in this version", a.Name, arg.Type)
		return
	}
	if takenBack && !retractable(a, arg) {
		c.refuse(a.Pos, "aggregate the source's rows directly, or keep the inner result as a sink of its own",
			"%s over the result of another aggregate is not supported by this version: rows of that result can be taken back", a.Name)
	}
}

// argumentRule tells whether an aggregate has a rule for the type of its argument.
func argumentRule(a *Agg, arg *Expr) (hint string, ok bool) {
	t := arg.Type
	switch a.Name {
	case "min", "max":
		if isNested(t) || t == "NULL" || t == "INTERVAL" {
			return "take it of one of its parts", false
		}
	case "sum", "avg", "fsum", "favg":
		if !isInteger(t) && !isDecimal(t) && !isFloat(t) && (t != "BOOLEAN" || a.Name != "sum") {
			return "cast it to a number: sum(x::BIGINT)", false
		}
	case "var_pop", "var_samp", "stddev_pop", "stddev_samp":
		return "cast it to DOUBLE", t == "DOUBLE"
	case "bool_and", "bool_or", "count_if":
		return "compare it: x <> 0", t == "BOOLEAN"
	}
	return "", true
}

// retractable: the accumulators can give a row back.
func retractable(a *Agg, arg *Expr) bool {
	switch a.Name {
	case "min", "max":
		return false
	case "sum", "avg", "fsum", "favg":
		return !isFloat(arg.Type)
	case "var_pop", "var_samp", "stddev_pop", "stddev_samp":
		_, small := smallInteger(arg)
		return small
	}
	return true
}

func inexactAggregate(a *Agg) bool {
	switch a.Name {
	case "avg", "favg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "fsum":
		return true
	case "sum":
		return isFloat(a.Type)
	}
	return false
}

// retracts: rows of n can be taken back by a later batch.
func retracts(n Node) bool {
	if _, ok := n.(*Aggregate); ok {
		return true
	}
	for _, in := range n.inputs() {
		if retracts(in) {
			return true
		}
	}
	return false
}

// dependsOnInexact: the value of e may differ in its last digits. Rounding to fewer digits, and casts
// to exact types, which round too, end that.
func dependsOnInexact(e *Expr, in []bool) bool {
	switch e.Op {
	case opRef:
		return in[e.Ref]
	case opFunc:
		if e.Name == "round" || e.Name == "round_even" {
			return false
		}
	case opCast, opTryCast:
		if isInteger(e.Type) || isDecimal(e.Type) {
			return false
		}
	case opIsNull, opIsNotNull:
		return false
	}
	for _, a := range e.Args {
		if dependsOnInexact(a, in) {
			return true
		}
	}
	return false
}
