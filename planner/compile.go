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
	of       Origin
}

func (d delta) withWeight() string {
	if d.weighted {
		return d.sql
	}
	return "SELECT *, 1::BIGINT AS _w FROM (" + d.sql + ")"
}

type compiler struct {
	plan  *Plan
	whole map[string]*Aggregate  // rows → all that is kept of them
	folds map[string]*fold       // rows → the step that keeps them
	steps map[string]*changes    // local steps, by step key
	reads map[string]int         // source → scans of it
	rows  map[string]*sourceRows // source whose files may be replaced → its rows
}

// InputRelation is the relation the engine provides for a source during a batch, with the source's
// columns under their names.
func InputRelation(source string) string { return "_in_" + source }

func (c *compiler) delta(n Node) delta {
	switch n := n.(type) {
	case *Scan:
		if n.Replaced {
			return c.replaced(n)
		}
		c.reads[n.Source]++
		return delta{sql: "SELECT " + selection(qualified(n.Cols)) + " FROM " + duck.Quote(InputRelation(n.Source)) + " AS _t", types: n.Type, of: Origin{Sources: []string{n.Source}}}
	case *Filter:
		if step := c.step(n.In); step != nil {
			return step.delta(n.Conjuncts)
		}
		in := c.delta(n.In)
		in.sql = "SELECT * FROM (" + in.sql + ") WHERE " + conjunction(n.Conjuncts, cols(""))
		return in
	case *Project:
		in := c.delta(n.In)
		exprs := selection(sqlAll(n.Exprs, cols("")))
		if in.weighted {
			exprs = list(exprs, "_w")
		}
		return delta{sql: "SELECT " + exprs + " FROM (" + in.sql + ")", types: n.Types(), weighted: in.weighted, of: in.of}
	case *Aggregate, *Top:
		return c.step(n).delta(nil)
	case *Union:
		return c.union(n)
	}
	panic(fmt.Sprintf("planner: no step for %T", n)) // every Node of ir.go is above
}

// step compiles what keeps state; nil for a node that does not.
func (c *compiler) step(n Node) *changes {
	switch n := n.(type) {
	case *Aggregate:
		if n.needsRows() {
			return c.values(n)
		}
		return c.fold(n)
	case *Top:
		return c.top(n)
	}
	return nil
}

func (c *compiler) union(n *Union) delta {
	out := delta{types: n.Type}
	branches := make([]delta, len(n.Ins))
	for i, in := range n.Ins {
		branches[i] = c.delta(in)
		out.weighted = out.weighted || branches[i].weighted
		out.of = out.of.with(branches[i].of)
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
