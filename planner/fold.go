package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// newAcc and oldAcc name an accumulator of the changed groups.
func newAcc(name string) string { return `"` + name + `"` }
func oldAcc(name string) string { return `"_old_` + name + `"` }

// finished writes the columns of an aggregate: groups, then what is finished from the accumulators.
func finished(groups int, aggs []finish, acc func(string) string) columns {
	return func(i int) string {
		if i < groups {
			return fmt.Sprintf("c%d", i)
		}
		return aggs[i-groups](acc)
	}
}

// fold compiles an Aggregate to the step of the same name. One query reads the batch once, groups it
// and joins the state, giving the old and new row of every touched group.
func (c *compiler) fold(a *Aggregate) *changes {
	_, key := stepKey(a)
	if f, ok := c.steps[key]; ok {
		return f
	}
	in := c.delta(a.In)
	k := len(c.plan.Steps)
	below := describe(a.In)
	rules := &foldRules{weighted: in.weighted, below: below.cols, have: map[string]bool{}}
	f := &changes{table: fmt.Sprintf("n%d", k), types: a.Types(), onNew: `"_n" > 0`, onOld: "_had"}
	var aggs []finish
	for _, agg := range a.Aggs {
		aggs = append(aggs, rules.rule(agg))
	}
	f.news, f.olds = finished(len(a.Groups), aggs, newAcc), finished(len(a.Groups), aggs, oldAcc)
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
		node:  a,
		State: state,
		Pos:   aggregatePosition(a),
		Run:   []string{changedGroups(f.table, a, in, state, accs)},
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
	c.steps[key] = f
	return f
}

func changedGroups(table string, a *Aggregate, in delta, state Table, accs []accumulator) string {
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
		table,
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
	kinds := map[string]string{}
	for _, s := range sinks {
		walkNodes(s.root, func(n Node) {
			if rows, key := stepKey(n); key != "" {
				if keys[rows] == nil {
					keys[rows] = map[string]bool{}
				}
				keys[rows][key] = true
				kinds[key] = stepKind(n)
			}
		})
	}
	ids := map[string]string{}
	for rows, same := range keys {
		for key := range same {
			ids[key] = kinds[key] + "/" + shortHash(rows)
			if len(same) > 1 {
				ids[key] += "/" + shortHash(key)
			}
		}
	}
	return ids
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
