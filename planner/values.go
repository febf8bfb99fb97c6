package planner

import (
	"fmt"
	"slices"
	"strings"
)

// needsRows: some aggregate cannot give back a row, because what it was may be that row. Then all
// aggregates of the groups are computed again from the groups' rows, as far as they are read.
func (a *Aggregate) needsRows() bool {
	return retracts(a.In) && a.firstOfRows() != nil
}

// firstOfRows is the first such aggregate, nil when there is none.
func (a *Aggregate) firstOfRows() *Agg {
	for _, g := range a.Aggs {
		if len(g.Args) == 1 && !retractable(g, g.Args[0]) {
			return g
		}
	}
	return nil
}

// reads are the expressions that the aggregates need of a row: after the groups, in the order of their
// canonical form. The second result is the aggregates over them.
func (a *Aggregate) reads() ([]*Expr, []*Agg) {
	var args []*Expr
	for _, g := range a.Aggs {
		args = append(args, g.exprs()...)
	}
	below := describe(a.In).cols
	args, at := sortedUnique(args, func(e *Expr) string { return e.canon(below) + " " + e.Type })
	next := 0
	aggs := mapAggs(a.Aggs, func(e *Expr) *Expr {
		next++
		return ref(len(a.Groups)+at[next-1], e.Type)
	})
	return append(slices.Clone(a.Groups), args...), aggs
}

// values is the local step of an Aggregate.
type values struct {
	*bag
	node *Aggregate
	aggs []*Agg // over the columns of the bag
}

func (c *compiler) values(a *Aggregate) *changes {
	_, key := stepKey(a)
	if f, ok := c.steps[key]; ok {
		return f
	}
	in := c.delta(a.In)
	k := len(c.plan.Steps)
	read, aggs := a.reads()
	types := exprTypes(read)
	v := &values{bag: bagOf(keptRows(types, refs(types[:len(a.Groups)])), len(a.Groups) == 0, k), node: a, aggs: aggs}
	in.sql = "SELECT " + list(aliased(sqlAll(read, cols(""))), "_w") + " FROM (" + in.sql + ")"
	table := fmt.Sprintf("n%d", k)
	c.plan.Steps = append(c.plan.Steps, Step{ID: stepID(a), Kind: "local", node: a, Pos: aggregatePosition(a),
		State: v.state, Run: append(v.run(in), v.paired(table)), All: append(v.all(), v.paired(table)), Keep: v.keep(), Changed: v.changed(), Of: in.of})
	c.plan.state = append(c.plan.state, canonicalState{Step: stepID(a), Rows: describe(a).rows, Keeps: []string{"rows of " + strings.Join(canonAll(read, describe(a.In).cols), "; ")}})
	column := func(prefix string) columns {
		return func(i int) string {
			if i < len(a.Groups) {
				return fmt.Sprintf("k%d", i)
			}
			return fmt.Sprintf("%s%d", prefix, i)
		}
	}
	f := &changes{table: table, types: a.Types(), news: column("c"), olds: column("o"), onNew: "_new", onOld: "_old", of: in.of.with(Origin{Steps: []string{stepID(a)}})}
	c.steps[key] = f
	return f
}

// results computes the aggregates from the rows of one of the bag's temp tables.
func (v *values) results(table string) string {
	selected := v.keyNames()
	for i, g := range v.aggs {
		selected = append(selected, fmt.Sprintf("%s AS c%d", g.ordered().sql(v.col("c")), len(v.node.Groups)+i))
	}
	q := "SELECT " + join(append(selected, "true AS _is")) + " FROM (" + v.rows(table) + ")"
	if len(v.node.Groups) > 0 {
		return q + " GROUP BY " + ordinals(len(v.node.Groups))
	}
	return "SELECT * FROM (" + q + ") WHERE " + v.touchedAt(table)
}

// ordered makes a floating-point aggregate add in one order, so that the same rows give the same result
// to the last bit: what was added to the next step is what is taken back.
func (a *Agg) ordered() *Agg {
	if len(a.Args) == 0 || len(a.Order) > 0 || !isFloat(a.Args[0].Type) || idempotent[a.Name] || a.Name == "count" {
		return a
	}
	c := *a
	c.inOrder = true
	return &c
}

// paired puts the new and the old result of each group side by side, without those that stay.
func (v *values) paired(table string) string {
	var selected []string
	same := []string{"n._is IS NOT NULL", "o._is IS NOT NULL"}
	for _, k := range v.keyNames() {
		selected = append(selected, fmt.Sprintf("CASE WHEN n._is IS NULL THEN o.%[1]s ELSE n.%[1]s END AS %[1]s", k))
	}
	for i := range v.aggs {
		c := len(v.node.Groups) + i
		selected = append(selected, fmt.Sprintf("n.c%[1]d AS c%[1]d, o.c%[1]d AS o%[1]d", c))
		same = append(same, fmt.Sprintf("n.c%[1]d IS NOT DISTINCT FROM o.c%[1]d", c))
	}
	selected = append(selected, "n._is IS NOT NULL AS _new", "o._is IS NOT NULL AS _old")
	return fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s FROM (%s) n FULL JOIN (%s) o ON %s WHERE NOT (%s)",
		table, join(selected), v.results(v.after), v.results(v.before), matched("n.", nullSafe, "o.", v.keyNames()), strings.Join(same, " AND "))
}
