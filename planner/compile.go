package planner

import (
	"fmt"
	"strings"

	"lockstep/engine/duck"
)

// delta is rows on their way between steps, as a SELECT giving c0..cn and, when weighted, _w.
type delta struct {
	sql      string
	types    []string
	weighted bool
}

func (d delta) withWeight() string {
	if d.weighted {
		return d.sql
	}
	return "SELECT *, 1::BIGINT AS _w FROM (" + d.sql + ")"
}

type compiler struct {
	plan  *Plan
	folds map[string]*folded
	ids   map[string]bool
	reads map[string]int // source → scans of it
}

// InputRelation is the relation the engine provides for a source during a batch, with the source's
// columns under their names.
func InputRelation(source string) string { return "_in_" + source }

func (c *compiler) delta(n Node) delta {
	switch n := n.(type) {
	case *Scan:
		return c.scan(n)
	case *Filter:
		in := c.delta(n.In)
		in.sql = "SELECT * FROM (" + in.sql + ") WHERE " + conjunction(n.Conjuncts, cols(""))
		return in
	case *Project:
		in := c.delta(n.In)
		exprs := aliased(sqlAll(n.Exprs, cols("")))
		if in.weighted {
			exprs = list(exprs, "_w")
		}
		return delta{sql: "SELECT " + exprs + " FROM (" + in.sql + ")", types: n.Types(), weighted: in.weighted}
	case *Aggregate:
		return c.fold(n).delta()
	case *Union:
		return c.union(n)
	case *Shared:
		return c.delta(n.In) // an equal Aggregate below is compiled once
	}
	panic(fmt.Sprintf("planner: no step for %T", n))
}

func (c *compiler) scan(n *Scan) delta {
	c.reads[n.Source]++
	exprs := make([]string, len(n.Cols))
	for i, name := range n.Cols {
		exprs[i] = fmt.Sprintf("%s AS c%d", duck.Quote(name), i)
	}
	if len(exprs) == 0 {
		exprs = []string{"true AS _row"}
	}
	return delta{sql: "SELECT " + strings.Join(exprs, ", ") + " FROM " + duck.Quote(InputRelation(n.Source)), types: n.Type}
}

func (c *compiler) union(n *Union) delta {
	out := delta{types: n.Type}
	branches := make([]delta, len(n.Ins))
	for i, in := range n.Ins {
		branches[i] = c.delta(in)
		out.weighted = out.weighted || branches[i].weighted
	}
	parts := make([]string, len(branches))
	for i, b := range branches {
		parts[i] = b.sql
		if out.weighted {
			parts[i] = b.withWeight()
		}
		parts[i] = "(" + parts[i] + ")"
	}
	out.sql = strings.Join(parts, " UNION ALL ")
	return out
}
