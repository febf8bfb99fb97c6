package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/planner/plannertest"
)

// A range is right when the rows it needs, folded from empty, correct state and tables after any change of
// rows inside it: random plans, random predicates over their keys, random corrections.
func TestRandomRanges(t *testing.T) {
	want := plannertest.Cases() / 4
	if testing.Short() {
		want /= 5
	}
	eng, planned := openEngine(t, 1), openEngine(t, 1)
	drawn, whole, corrected, sinks := 0, map[string]int{}, 0, 0
	plannertest.Draw(t, func() bool { return corrected >= want }, func(t *rapid.T) {
		query, plan := drawnPlan(t, planned, rapid.SampledFrom([]string{"", "", "WITH (files = 'replace')"}).Draw(t, "with"))
		if plan == nil {
			return
		}
		drawn++
		n, more := rapid.IntRange(1, 30).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "more")
		mustExecRapid(t, eng.Exec(t.Context(), "CREATE OR REPLACE TABLE all_t ("+plannertest.Columns+")"))
		mustExecRapid(t, eng.Exec(t.Context(), "INSERT INTO all_t VALUES "+plannertest.Rows(t, n)))
		mustExecRapid(t, eng.Exec(t.Context(), "CREATE OR REPLACE TEMP TABLE "+WithdrawnRelation("t")+" (file VARCHAR)"))
		l, err := begin(eng, plan)
		mustExecRapid(t, err)
		for l.upto < n {
			if l.batch(min(n-l.upto, rapid.IntRange(1, 20).Draw(t, "batch"))) != nil {
				return // the SELECT itself fails on such rows: TestRandomQueries compares that
			}
		}
		sink := plan.Sinks[rapid.IntRange(0, len(plan.Sinks)-1).Draw(t, "sink")]
		text := predicate(t, l, sink, slices.IndexFunc(plan.Sinks, func(s Sink) bool { return s.Name == sink.Name }))
		r, err := plan.Within(t.Context(), sink, "--where", text)
		if err != nil {
			t.Fatalf("%s\n%s\n%v", query, text, err)
		}
		if r.Whole != "" {
			whole[reason(r.Whole[strings.LastIndex(r.Whole, ": ")+2:])]++
			return
		}
		fail := func(err error) {
			if err != nil {
				t.Fatalf("%s\n%s\n%v", query, text, err)
			}
		}
		correct := &correction{life: l, r: r}
		fail(correct.remember())
		drop := rapid.SampledFrom([]string{"id % 2 = 0", "id % 3 = 1", "true", "false"}).Draw(t, "dropped")
		fail(l.exec(
			"CREATE OR REPLACE TEMP TABLE more_t AS FROM all_t LIMIT 0", "INSERT INTO more_t VALUES "+plannertest.Rows(t, more),
			fmt.Sprintf("DELETE FROM all_t WHERE id IN (SELECT id FROM _placed_t WHERE (%s) AND %s)", drop, r.Inside["t"]),
			fmt.Sprintf("UPDATE more_t SET id = id + %d", n),
			"INSERT INTO all_t FROM more_t",
			fmt.Sprintf("SET VARIABLE upto = %d", n+more),
			fmt.Sprintf("DELETE FROM all_t WHERE id > %d AND id NOT IN (SELECT id FROM _placed_t WHERE %s)", n, r.Inside["t"]),
		))
		fail(correct.run(n + more))
		if l, err = begin(eng, plan); err != nil || l.batch(n+more) != nil {
			return
		}
		diff, err := correct.differs()
		fail(err)
		if diff != "" {
			t.Fatalf("%s\n%s\nneeded %s\n%s", query, text, r.Needed["t"], diff)
		}
		corrected++
		sinks += min(1, len(plan.Sinks)-1)
	})
	t.Logf("%d plans: %d ranges corrected, %d of them of two sinks; everything for %v", drawn, corrected, sinks, whole)
	if drawn >= 100 && 3*corrected < drawn {
		t.Error("fewer than a third of the predicates were taken down to the input")
	}
}

// predicate draws a condition on the key of a sink, about values that are in its table.
func predicate(t *rapid.T, l *life, sink Sink, at int) string {
	if len(sink.Key) == 0 {
		return rapid.SampledFrom([]string{"true", "1 = 1", "false"}).Draw(t, "constant")
	}
	one := func() string {
		key := rapid.SampledFrom(sink.Key).Draw(t, "key")
		typ := sink.Columns[slices.IndexFunc(sink.Columns, func(c SinkColumn) bool { return c.Name == key })].Type
		var value *string
		row := rapid.IntRange(0, 5).Draw(t, "row")
		_ = l.eng.QueryRow(t.Context(), fmt.Sprintf("SELECT CAST(%s AS VARCHAR) FROM target%d ORDER BY 1 LIMIT 1 OFFSET %d", quoteName(key), at, row), nil, &value)
		if value == nil {
			return quoteName(key) + rapid.SampledFrom([]string{" IS NULL", " IS NOT NULL"}).Draw(t, "null")
		}
		op := rapid.SampledFrom([]string{"=", "=", "<=", ">=", "<>", "IS DISTINCT FROM"}).Draw(t, "op")
		return fmt.Sprintf("%s %s CAST('%s' AS %s)", quoteName(key), op, strings.ReplaceAll(*value, "'", "''"), typ)
	}
	switch rapid.IntRange(0, 4).Draw(t, "form") {
	case 0:
		return one() + " AND " + one()
	case 1:
		return one() + " OR " + one()
	case 2:
		return "NOT (" + one() + ")"
	}
	return one()
}

func quoteName(s string) string { return `"` + s + `"` }

// correction does to the tables of a life what a backfill does.
type correction struct {
	life *life
	r    *Range
}

type correctedTable struct{ name, cond string }

func (c *correction) tables() []correctedTable {
	var out []correctedTable
	for _, s := range c.life.plan.Steps {
		out = append(out, correctedTable{s.State.Name, c.r.Steps[s.ID]})
	}
	for i, s := range c.life.plan.Sinks {
		out = append(out, correctedTable{fmt.Sprintf("target%d", i), c.r.Sinks[s.Name]})
	}
	return out
}

// remember keeps what lies outside the range.
func (c *correction) remember() error {
	for _, t := range c.tables() {
		if err := c.life.exec(fmt.Sprintf("CREATE OR REPLACE TEMP TABLE kept_%[1]s AS FROM %[1]s WHERE NOT %[2]s", t.name, t.cond)); err != nil {
			return err
		}
	}
	return nil
}

// run folds what is needed from empty, and puts it in place of what is in the range.
func (c *correction) run(rows int) error {
	l, err := begin(c.life.eng, c.life.plan)
	if err != nil {
		return err
	}
	err = l.exec("CREATE OR REPLACE TEMP VIEW _in_t AS SELECT * FROM _placed_t WHERE id > getvariable('from') AND " + c.r.Needed["t"])
	if err == nil {
		err = l.batch(rows)
	}
	for _, t := range c.tables() {
		if err == nil {
			err = l.exec(fmt.Sprintf("INSERT INTO kept_%[1]s FROM %[1]s WHERE %[2]s", t.name, t.cond))
		}
	}
	return err
}

// differs compares with the tables of a life that folded all rows. Floating sums may differ in the last
// digits; where they are in a key, they are compared by nine digits.
func (c *correction) differs() (string, error) {
	for _, t := range c.tables() {
		types := map[string]string{}
		rows, err := c.life.eng.Query(context.Background(), "SELECT column_name, column_type FROM (DESCRIBE "+t.name+")")
		if err != nil {
			return "", err
		}
		for rows.Next() {
			var name, typ string
			if err := rows.Scan(&name, &typ); err != nil {
				return "", err
			}
			types[name] = typ
		}
		if err := rows.Close(); err != nil {
			return "", err
		}
		key := c.keyOf(t.name)
		var on, same []string
		for _, name := range slices.Sorted(maps.Keys(types)) {
			a, b := "_want."+quoteName(name), "_got."+quoteName(name)
			float := isFloat(types[name])
			switch {
			case key[name] && float:
				on = append(on, fmt.Sprintf("printf('%%.9e', %s) IS NOT DISTINCT FROM printf('%%.9e', %s)", a, b))
			case key[name]:
				on = append(on, a+" IS NOT DISTINCT FROM "+b)
			case float:
				same = append(same, fmt.Sprintf("(%[1]s IS NOT DISTINCT FROM %[2]s OR coalesce(abs(%[1]s - %[2]s) <= 1e-6 * greatest(abs(%[1]s), abs(%[2]s), 1), false))", a, b))
			default:
				same = append(same, a+" IS NOT DISTINCT FROM "+b)
			}
		}
		var diff *string
		query := fmt.Sprintf("SELECT string_agg(coalesce(_want::VARCHAR, '-') || ' got ' || coalesce(_got::VARCHAR, '-'), chr(10)) FROM (SELECT *, true AS _is FROM %s) _want FULL JOIN (SELECT *, true AS _is FROM kept_%s) _got ON %s WHERE _want._is IS NULL OR _got._is IS NULL OR NOT (%s)",
			t.name, t.name, strings.Join(append(on, "true"), " AND "), strings.Join(append(same, "true"), " AND "))
		if err := c.life.eng.QueryRow(context.Background(), query, nil, &diff); err != nil {
			return "", fmt.Errorf("%w in %s", err, query)
		}
		if diff != nil {
			return fmt.Sprintf("%s, range %s: want %s", t.name, t.cond, *diff), nil
		}
	}
	return "", nil
}

// keyOf are the key columns of a table.
func (c *correction) keyOf(table string) map[string]bool {
	out := map[string]bool{}
	for _, s := range c.life.plan.Steps {
		for _, col := range s.State.Cols[:s.State.Key] {
			if s.State.Name == table {
				out[col.Name] = true
			}
		}
	}
	for i, s := range c.life.plan.Sinks {
		for _, k := range s.Key {
			if fmt.Sprintf("target%d", i) == table {
				out[k] = true
			}
		}
	}
	return out
}
