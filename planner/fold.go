package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// folded is a compiled Aggregate: its changed groups are the rows of a temp table, old and new side by
// side.
type folded struct {
	table  string // n<k>: c0..cn the groups, accumulators new and (prefix _old_) old, _had
	groups int
	aggs   []finish
	types  []string
	onNew  string // true for rows whose group exists after the batch
	onOld  string // true for rows whose group existed before it
}

// newAcc and oldAcc name an accumulator of the changed groups.
func newAcc(name string) string { return `"` + name + `"` }
func oldAcc(name string) string { return `"_old_` + name + `"` }

// newCols and oldCols write the aggregate's columns: groups, then finished aggregates.
func (f *folded) newCols(i int) string { return f.col(i, newAcc) }
func (f *folded) oldCols(i int) string { return f.col(i, oldAcc) }
func (f *folded) col(i int, acc func(string) string) string {
	if i < f.groups {
		return fmt.Sprintf("c%d", i)
	}
	return f.aggs[i-f.groups](acc)
}

// delta emits +1 for the new row of every changed group and −1 for the old, as far as the conjuncts of
// a HAVING let them through. Conditions run only for rows that exist, as they would in the SELECT: of a
// group that is gone, ln(count(*)) would be an error.
func (f *folded) delta(conjuncts []*Expr) delta {
	side := func(col columns, weight int, on string) string {
		exprs := make([]string, len(f.types))
		for i := range exprs {
			exprs[i] = col(i)
		}
		rows := fmt.Sprintf("SELECT %s, %s AS _on FROM %s", selection(exprs), on, f.table)
		where := "_on"
		if len(conjuncts) > 0 {
			where = fmt.Sprintf("CASE WHEN _on THEN coalesce(%s, false) ELSE false END", conjunction(conjuncts, cols("")))
		}
		return fmt.Sprintf("SELECT * EXCLUDE (_on), %d::BIGINT AS _w FROM (%s) WHERE %s", weight, rows, where)
	}
	return delta{
		sql:      side(f.newCols, 1, f.onNew) + " UNION ALL " + side(f.oldCols, -1, f.onOld),
		types:    f.types,
		weighted: true,
	}
}

// fold compiles an Aggregate to the step of the same name. One query reads the batch once, groups it
// and joins the state, giving the old and new row of every touched group.
func (c *compiler) fold(a *Aggregate) *folded {
	_, key := foldKey(a)
	if f, ok := c.folds[key]; ok {
		return f
	}
	in := c.delta(a.In)
	k := len(c.plan.Steps)
	below := describe(a.In)
	rules := &foldRules{weighted: in.weighted, below: below.cols, have: map[string]bool{}}
	f := &folded{table: fmt.Sprintf("n%d", k), groups: len(a.Groups), types: a.Types()}
	for _, agg := range a.Aggs {
		f.aggs = append(f.aggs, rules.rule(agg))
	}
	f.onNew, f.onOld = `"_n" > 0`, "_had"
	if len(a.Groups) == 0 {
		f.onNew = "true" // the one row of an aggregate without groups is there before any input
	}

	state := Table{Name: fmt.Sprintf("s%d", k), Key: len(a.Groups)}
	for i, g := range a.Groups {
		state.Cols = append(state.Cols, Col{Name: fmt.Sprintf("c%d", i), Type: g.Type})
	}
	rows := accumulator{name: "_n", canon: "rows", typ: "BIGINT", partial: "count(*)"}
	if in.weighted {
		rows.partial = "coalesce(sum(_w), 0)::BIGINT"
		rows.merge = func(old, batch func(string) string) string {
			n := fmt.Sprintf("coalesce(%s, 0) + %s", old("_n"), batch("_n"))
			return fmt.Sprintf("CASE WHEN %s < 0 THEN error('a group lost more rows than it had') ELSE %s END", n, n)
		}
	}
	// In the order of their names, the layout does not depend on how the SELECT was written.
	slices.SortFunc(rules.accs, func(a, b accumulator) int { return strings.Compare(a.name, b.name) })
	accs := append([]accumulator{rows}, rules.accs...)
	for _, acc := range accs {
		state.Cols = append(state.Cols, Col{Name: acc.name, Type: acc.typ})
	}
	step := Step{
		ID:    c.ids[key],
		Kind:  "fold",
		fold:  a,
		State: state,
		Pos:   aggregatePosition(a),
		Run:   []string{f.changedGroups(a, in, state, accs)},
		Keep: []string{
			fmt.Sprintf("DELETE FROM %s s USING %s n WHERE n._had AND %s", state.Name, f.table, nullSafe(len(a.Groups), "s.", "n.")),
			fmt.Sprintf("INSERT INTO %s SELECT %s FROM %s WHERE %s", state.Name, state.columnList(), f.table, f.onNew),
		},
		Changed: fmt.Sprintf("SELECT %s, (CASE WHEN %s THEN 1 ELSE 0 END)::TINYINT AS _op FROM %s WHERE %s OR _had", state.columnList(), f.onNew, f.table, f.onNew),
	}
	c.plan.state = append(c.plan.state, canonicalFold(step.ID, a, accs))
	if scan, ok := a.In.(*Scan); ok {
		step.Counts = scan.Source
		step.Counted = fmt.Sprintf(`SELECT coalesce(sum("_n" - coalesce("_old__n", 0)), 0)::BIGINT FROM %s`, f.table)
	}
	c.plan.Steps = append(c.plan.Steps, step)
	c.folds[key] = f
	return f
}

func (f *folded) changedGroups(a *Aggregate, in delta, state Table, accs []accumulator) string {
	groups := make([]string, len(a.Groups))
	for i, g := range a.Groups {
		groups[i] = groupKey(g)
	}
	partials := make([]string, len(accs))
	merged := make([]string, len(accs))
	olds := make([]string, len(accs))
	for i, acc := range accs {
		partials[i] = acc.partial + " AS " + newAcc(acc.name)
		merge := acc.merge
		if merge == nil {
			merge = added(acc.name, acc.typ)
		}
		merged[i] = merge(prefixed("s."), prefixed("d.")) + " AS " + newAcc(acc.name)
		olds[i] = "s." + newAcc(acc.name) + " AS " + oldAcc(acc.name)
	}
	batch := fmt.Sprintf("SELECT %s FROM (%s)", list(aliased(groups), strings.Join(partials, ", ")), in.sql)
	if len(groups) > 0 {
		batch += " GROUP BY " + ordinals(len(groups))
	}
	return fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s FROM (%s) d LEFT JOIN %s s ON %s",
		f.table,
		list(each(len(groups), "d.c%[1]d"), strings.Join(merged, ", "), strings.Join(olds, ", "), `s."_n" IS NOT NULL AS _had`),
		batch, state.Name, nullSafe(len(groups), "d.", "s."))
}

func prefixed(prefix string) func(string) string {
	return func(name string) string { return prefix + newAcc(name) }
}

// groupKey writes a grouping expression. DuckDB groups −0.0 with 0.0 and shows either; the state keeps
// 0.0.
func groupKey(e *Expr) string {
	s := e.sql(cols(""))
	if isFloat(e.Type) {
		return fmt.Sprintf("(CASE WHEN %s = 0 THEN CAST(0 AS %s) ELSE %s END)", s, e.Type, s)
	}
	return s
}

// stepIDs names the steps by what they group, so that a step is found again after a restart and after
// a change of its aggregates. Steps that group the same rows by the same columns, with other
// aggregates, are told apart by those too. Nothing here depends on the order of the SELECT's parts.
func stepIDs(sinks []Sink) map[string]string {
	keys := map[string]map[string]bool{} // rows → keys
	for _, s := range sinks {
		walkNodes(s.root, func(n Node) {
			if a, ok := n.(*Aggregate); ok {
				rows, key := foldKey(a)
				if keys[rows] == nil {
					keys[rows] = map[string]bool{}
				}
				keys[rows][key] = true
			}
		})
	}
	ids := map[string]string{}
	for rows, same := range keys {
		for key := range same {
			ids[key] = "fold/" + shortHash(rows)
			if len(same) > 1 {
				ids[key] += "/" + shortHash(key)
			}
		}
	}
	return ids
}

// foldKey identifies what a fold keeps: the rows it groups, and with them its aggregates.
func foldKey(a *Aggregate) (rows, key string) {
	d := describe(a)
	return d.rows, strings.Join(d.cols, "; ") + " | " + d.rows
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

func aggregatePosition(a *Aggregate) int {
	for _, g := range a.Groups {
		if p := g.position(); p >= 0 {
			return p
		}
	}
	for _, g := range a.Aggs {
		if g.Pos >= 0 {
			return g.Pos
		}
	}
	return -1
}
