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

// fold gives the changed groups of an Aggregate, with the aggregates it asks for.
func (c *compiler) fold(a *Aggregate) *changes {
	rows := foldRows(a)
	if c.folds[rows] == nil {
		c.folds[rows] = c.foldStep(c.whole[rows])
	}
	f := c.folds[rows]
	below := describe(a.In).cols
	var aggs []finish
	for _, agg := range a.Aggs {
		aggs = append(aggs, f.finish[agg.canon(below)])
	}
	groups := len(a.Groups)
	return &changes{table: f.table, types: a.Types(), news: finished(groups, aggs, newAcc), olds: finished(groups, aggs, oldAcc),
		onNew: f.onNew, onOld: "_had", distinct: len(aggs) == 0, stays: f.stays, of: f.of}
}

// fold is a compiled step: what it keeps is asked for by one Aggregate or several.
type fold struct {
	table  string // n<k>: c0..cn the groups, accumulators new and (prefix _old_) old, _had
	onNew  string
	stays  bool              // no group is ever taken back
	finish map[string]finish // by canonical form of the aggregate
	of     Origin
}

// foldStep compiles an Aggregate to the step that keeps it. One query reads the batch once, groups it and
// joins the state, giving the old and new row of every touched group.
func (c *compiler) foldStep(a *Aggregate) *fold {
	in := c.delta(a.In)
	below := describe(a.In)
	f := &fold{stays: !in.weighted, finish: map[string]finish{}}
	rules := &foldRules{weighted: in.weighted, below: below.cols, have: map[string]bool{}}
	for _, agg := range a.Aggs {
		if one, ok := a.oneValue(agg); ok {
			f.finish[agg.canon(below.cols)] = func(func(string) string) string { return one }
		} else if !agg.Distinct {
			f.finish[agg.canon(below.cols)] = rules.rule(agg)
		}
	}
	parts := []partials{{in: in.sql, groups: groupKeys(a.Groups)}}
	origin := in.of
	var accs []accumulator
	weighted := in.weighted
	for _, v := range a.distincts() {
		d := c.delta(v.rows)
		weighted = weighted || d.weighted
		origin = origin.with(d.of)
		of := &foldRules{weighted: d.weighted, called: v.canon, have: map[string]bool{}}
		for _, agg := range v.aggs {
			f.finish[agg.canon(below.cols)] = of.rule(v.over(agg, len(a.Groups)))
		}
		parts = append(parts, partials{in: d.sql, groups: plainColumns(len(a.Groups)), accs: of.accs})
		accs = append(accs, of.accs...)
	}
	k := len(c.plan.Steps)
	f.table = fmt.Sprintf("n%d", k)
	f.onNew = `"_n" > 0`
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
	parts[0].accs = append([]accumulator{rows}, rules.accs...)
	// In the order of their names, the layout does not depend on how the SELECT was written.
	accs = append(accs, rules.accs...)
	slices.SortFunc(accs, func(a, b accumulator) int { return strings.Compare(a.name, b.name) })
	accs = append([]accumulator{rows}, accs...)
	for _, acc := range accs {
		state.Cols = append(state.Cols, Col{Name: acc.name, Type: acc.typ})
	}
	step := Step{
		ID:      stepID(a),
		Kind:    kindOf(a),
		node:    a,
		State:   state,
		Pos:     aggregatePosition(a),
		Of:      origin,
		All:     []string{f.allGroups(len(a.Groups), state, accs)},
		Changed: fmt.Sprintf("SELECT %s, (CASE WHEN %s THEN 1 ELSE 0 END)::TINYINT AS _op FROM %s WHERE %s OR _had", state.columnList(), f.onNew, f.table, f.onNew),
	}
	groups := plainColumns(len(a.Groups))
	step.both(func(same string) (run, keep []string) {
		return []string{f.changedGroups(a, batch(parts), same, state, accs)}, []string{
			fmt.Sprintf("DELETE FROM %s s USING %s n WHERE n._had AND %s", state.Name, f.table, matched("s.", same, "n.", groups)),
			fmt.Sprintf("INSERT INTO %s SELECT %s FROM %s WHERE %s", state.Name, state.columnList(), f.table, f.onNew),
		}
	})
	// A row that is taken back must find its group.
	if len(groups) > 0 && !weighted {
		step.Nulls = fmt.Sprintf("SELECT count(*) FROM %s WHERE %s", f.table, anyNullIn(groups))
	}
	f.of = origin.with(Origin{Steps: []string{step.ID}})
	c.plan.state = append(c.plan.state, canonicalFold(step.ID, a, accs))
	if scan, ok := a.In.(*Scan); ok && !scan.Replaced {
		step.Counts = scan.Source
		step.Counted = fmt.Sprintf(`SELECT coalesce(sum("_n" - coalesce("_old__n", 0)), 0)::BIGINT FROM %s`, f.table)
	}
	c.plan.Steps = append(c.plan.Steps, step)
	return f
}

// kindOf: a fold that keeps nothing but its groups keeps distinct rows.
func kindOf(a *Aggregate) string {
	if len(a.Aggs) == 0 && len(a.Groups) > 0 {
		return "distinct"
	}
	return "fold"
}

func (f *fold) changedGroups(a *Aggregate, batch, same string, state Table, accs []accumulator) string {
	merged := make([]string, len(accs))
	olds := make([]string, len(accs))
	for i, acc := range accs {
		merge := acc.merge
		if merge == nil {
			merge = added(acc.name, acc.typ)
		}
		merged[i] = merge(prefixed("s."), prefixed("d.")) + " AS " + newAcc(acc.name)
		olds[i] = "s." + newAcc(acc.name) + " AS " + oldAcc(acc.name)
	}
	n := len(a.Groups)
	return fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s FROM (%s) d LEFT JOIN %s s ON %s",
		f.table,
		list(each(n, "d.c%[1]d"), strings.Join(merged, ", "), strings.Join(olds, ", "), `s."_n" IS NOT NULL AS _had`),
		batch, state.Name, matched("d.", same, "s.", plainColumns(n)))
}

// allGroups makes every group one that is new.
func (f *fold) allGroups(n int, state Table, accs []accumulator) string {
	olds := make([]string, len(accs))
	for i, acc := range accs {
		olds[i] = "CAST(NULL AS " + acc.typ + ") AS " + oldAcc(acc.name)
	}
	return fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s FROM %s",
		f.table, list(state.columnList(), strings.Join(olds, ", "), "false AS _had"), state.Name)
}

func prefixed(prefix string) func(string) string {
	return func(name string) string { return prefix + newAcc(name) }
}

func groupKeys(groups []*Expr) []string {
	out := make([]string, len(groups))
	for i, g := range groups {
		out[i] = groupKey(g)
	}
	return out
}

func plainColumns(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("c%d", i)
	}
	return out
}

// groupKey writes a grouping expression. DuckDB groups −0.0 with 0.0, and NaN of either sign, and shows any of
// them; the state keeps 0.0 and the NaN without a sign.
func groupKey(e *Expr) string {
	s := e.sql(cols(""))
	if isFloat(e.Type) {
		return fmt.Sprintf("(CASE WHEN %[1]s = 0 THEN CAST(0 AS %[2]s) WHEN isnan(%[1]s) THEN CAST('nan' AS %[2]s) ELSE %[1]s END)", s, e.Type)
	}
	return s
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

func aggregatePosition(a *Aggregate) int {
	if a.Asked != nil && a.Asked.pos >= 0 {
		return a.Asked.pos
	}
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
