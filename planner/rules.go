package planner

import (
	"fmt"
	"slices"
	"strings"
)

// check refuses what has no proven incremental rule, and tells how exact the output columns are.
func check(root Node) (columns []exactness, refusals []*refusal) {
	c := &checker{}
	columns = c.node(root)
	return columns, c.refusals
}

type checker struct {
	refusals []*refusal
}

func (c *checker) refuse(pos int, hint, format string, args ...any) {
	c.refusals = append(c.refusals, refuse(pos, hint, format, args...))
}

const exactHint = "round it, as in round(avg(x), 2), or compute from exact types: sum(x) of integers or decimals"

// node returns how exact the columns of n are: floating sums and means differ in the last digit with
// the order of the rows, so nothing may be decided by them.
func (c *checker) node(n Node) []exactness {
	switch n := n.(type) {
	case *Scan:
		return make([]exactness, len(n.Cols))
	case *Filter:
		in := c.node(n.In)
		for _, e := range n.Conjuncts {
			if c.inexact(e, in) {
				c.refuse(e.position(), exactHint, "a filter on a floating-point aggregate could decide differently from run to run")
			}
		}
		return in
	case *Project:
		in := c.node(n.In)
		out := make([]exactness, len(n.Exprs))
		for i, e := range n.Exprs {
			if out[i] = c.exactness(e, in); out[i] == inexact && !isFloat(e.Type) {
				c.decided(e, "a value of type "+article(e.Type))
			}
		}
		return out
	case *Union:
		out := make([]exactness, len(n.Type))
		for _, branch := range n.Ins {
			for i, x := range c.node(branch) {
				out[i] = max(out[i], x)
			}
		}
		return out
	case *Aggregate:
		return c.aggregate(n)
	case *Window:
		c.refuse(n.Calls[0].Pos, windowHint, "row_number is supported only where a filter keeps the first rows")
		return append(slices.Clone(c.node(n.In)), make([]exactness, len(n.Calls))...)
	case *Top:
		in := c.node(n.In)
		for _, p := range n.Parts {
			c.groupKey(p, in, "a group", "group by", p.position())
		}
		c.order(n, in)
		if retracts(n.In) {
			c.bag(n.Pos, n.In.Types())
		}
		return append(slices.Clone(in), exact)
	}
	panic(fmt.Sprintf("planner: no check for %T", n)) // every Node of ir.go is above
}

func (c *checker) aggregate(a *Aggregate) []exactness {
	in := c.node(a.In)
	out := make([]exactness, 0, len(a.Groups)+len(a.Aggs))
	for _, g := range a.Groups {
		role, by, pos := "a group", "group by", g.position()
		if a.Asked != nil {
			role, by = "in "+a.Asked.words(), "select"
			if pos < 0 {
				pos = a.Asked.pos
			}
		}
		c.groupKey(g, in, role, by, pos)
		out = append(out, min(c.exactness(g, in), rounded)) // what is inexact was refused
	}
	for _, agg := range a.Aggs {
		// Beside a group whose equal values look different, DuckDB adds a first() to show one of them.
		if agg.Pos >= 0 || len(c.refusals) == 0 {
			c.agg(agg, a, in)
		}
		out = append(out, c.aggregateExactness(agg, in))
	}
	if a.needsRows() {
		read, _ := a.reads()
		c.bag(aggregatePosition(a), exprTypes(read))
	}
	return out
}

// groupKey refuses what equal values of are not one value: to be grouped by, or to be told apart by what
// the author asked for in place of that.
func (c *checker) groupKey(g *Expr, in []exactness, role, by string, pos int) {
	switch {
	case c.inexact(g, in):
		c.refuse(pos, exactHint, "a floating-point aggregate cannot be %s: rows could be told apart differently from run to run", role)
	case g.Type == "INTERVAL":
		c.refuse(pos, by+" a number instead: epoch(i)", "an INTERVAL cannot be %s: 30 days and 1 month are equal and look different", role)
	case g.Type == "TIME WITH TIME ZONE":
		c.refuse(pos, by+timetzHint, timetz, role)
	case g.Type == "JSON":
		c.refuse(pos, by+" its text: (…)::VARCHAR", "JSON cannot be %s in this version", role)
	case isNested(g.Type):
		c.refuse(pos, by+" its parts", "a value of type %s cannot be %s in this version", article(g.Type), role)
	case g.Type == "NULL":
		c.refuse(pos, "cast it: NULL::VARCHAR", "what is always NULL cannot be %s: it has no type", role)
	}
}

func (a *asked) words() string {
	switch a.word {
	case "DISTINCT":
		return "a SELECT DISTINCT"
	case "UNION":
		return "a UNION without ALL"
	}
	return "an " + a.word
}

const (
	timetzHint = " its text or an hour of it"
	timetz     = "a TIME WITH TIME ZONE cannot be %s: 12:00+00 and 13:00+01 are the same moment and look different"
)

func (c *checker) agg(a *Agg, of *Aggregate, in []exactness) {
	if !aggregateFunctions[a.Name] && len(a.Order) == 0 {
		c.refuse(a.Pos, aggregateHints[a.Name], "%s has no incremental rule in this version", a.Name)
		return
	}
	if len(a.Args) > 1 || len(a.Args) == 0 && a.Name != "count_star" {
		c.refuse(a.Pos, "", "%s with %d arguments has no incremental rule in this version", a.Name, len(a.Args))
		return
	}
	if a.Filter != nil && c.inexact(a.Filter, in) {
		c.refuse(a.Pos, exactHint, "a FILTER on a floating-point aggregate could decide differently from run to run")
	}
	if a.Distinct {
		faults := len(c.refusals)
		if c.groupKey(a.Args[0], in, "in "+a.Name+"(DISTINCT …)", "take", a.Pos); len(c.refusals) > faults {
			return
		}
	}
	if len(a.Args) == 0 || a.Name == "count" {
		for _, arg := range a.Args {
			c.inexact(arg, in)
		}
		return
	}
	arg := a.Args[0]
	if c.inexact(arg, in) {
		c.refuse(a.Pos, exactHint, "%s of a floating-point aggregate is not exact enough to be kept", a.Name)
		return
	}
	if a.Name == "first" {
		c.first(a, of, in)
		return
	}
	if hint, ok := argumentRule(a, arg); !ok {
		c.refuse(a.Pos, hint, "%s of %s has no incremental rule in this version", a.Name, article(arg.Type))
		return
	}
}

// article names a type in a message; some types are long.
func article(typ string) string {
	for _, long := range []string{"STRUCT(", "MAP(", "ENUM("} {
		if strings.HasPrefix(typ, long) {
			return strings.TrimSuffix(long, "(")
		}
	}
	return typ
}

// argumentRule tells whether an aggregate has a rule for the type of its argument.
func argumentRule(a *Agg, arg *Expr) (hint string, ok bool) {
	t := arg.Type
	switch a.Name {
	case "min", "max":
		// Equal values of these types can look different, so which one stays depends on the batches.
		if isNested(t) || t == "NULL" || t == "INTERVAL" || t == "JSON" || t == "TIME WITH TIME ZONE" {
			return "take it of one of its parts, or of its text", false
		}
	case "sum", "avg":
		if !isInteger(t) && !isDecimal(t) && !isFloat(t) && (t != "BOOLEAN" || a.Name != "sum") {
			if strings.HasPrefix(t, "TIMESTAMP") || t == "DATE" || t == "INTERVAL" || t == "TIME" {
				return "take it of a number: " + a.Name + "(epoch(x))", false
			}
			return "cast it to a number: " + a.Name + "(x::BIGINT)", false
		}
	case "var_pop", "var_samp", "stddev_pop", "stddev_samp":
		return "cast it to DOUBLE", t == "DOUBLE"
	case "bit_and", "bit_or", "bit_xor":
		return "take it of an integer", isInteger(t) || t == "UHUGEINT" || t == "BIT"
	case "bool_and", "bool_or", "count_if":
		return "compare it: x <> 0", t == "BOOLEAN"
	}
	return "", true
}

// retractable: the accumulators can give a row back.
func retractable(a *Agg, arg *Expr) bool {
	switch a.Name {
	case "min", "max", "first", "bit_and", "bit_or":
		return false
	case "bit_xor":
		return arg.Type != "BIT"
	case "sum", "avg":
		return !isFloat(arg.Type)
	case "var_pop", "var_samp", "stddev_pop", "stddev_samp":
		_, small := smallInteger(arg)
		return small
	}
	return true
}

func (c *checker) aggregateExactness(a *Agg, in []exactness) exactness {
	switch a.Name {
	case "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp":
		return inexact
	case "sum":
		if isFloat(a.Type) {
			return inexact
		}
	case "count":
		return exact
	}
	worst := exact
	for _, e := range a.exprs() {
		worst = max(worst, c.exactness(e, in))
	}
	return min(worst, rounded)
}

// retracts: rows of n can be taken back by a later batch. Distinct rows stay as long as one of those
// they are from does.
func retracts(n Node) bool {
	switch n := n.(type) {
	case *Scan:
		return n.Replaced
	case *Top:
		return true
	case *Aggregate:
		if len(n.Aggs) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(n.inputs(), retracts)
}
