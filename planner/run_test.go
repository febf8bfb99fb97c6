package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lockstep/engine/duck"
)

// life runs a plan as the engine would: batch by batch over a plain table, with the staged rows
// written by plain DELETE and INSERT, and compares every table with its author's SELECT over all rows
// so far. The reference never goes through the planner.
//
// The engine holds a table all_t whose rows are numbered by id from 1.
type life struct {
	eng  *duck.Engine
	plan *Plan
	upto int
	seen map[string]bool // steps that had a NULL in a key
}

// begin makes empty targets and state for a plan over the engine's all_t.
func begin(eng *duck.Engine, plan *Plan) (*life, error) {
	l := &life{eng: eng, plan: plan, seen: map[string]bool{}}
	stmts := []string{
		"SET VARIABLE \"from\" = 0", "SET VARIABLE upto = 0",
		"CREATE OR REPLACE VIEW t AS SELECT * FROM all_t WHERE id <= getvariable('upto')",
		// The rows lie in two files, the one with the later name read first.
		"CREATE OR REPLACE TEMP VIEW _placed_t AS SELECT *, CASE WHEN id % 3 = 0 THEN 'a' ELSE 'b' END AS _etl_file, id AS _etl_row FROM t",
		"CREATE OR REPLACE TEMP VIEW _in_t AS SELECT * FROM _placed_t WHERE id > getvariable('from')",
	}
	for _, v := range plan.Script.Variables {
		stmts = append(stmts, "SET VARIABLE "+duck.Quote(v.Name.Text)+" = "+v.Value.Text)
	}
	for i, sink := range plan.Sinks {
		defs := make([]string, len(sink.Columns))
		for j, c := range sink.Columns {
			defs[j] = duck.Quote(c.Name) + " " + c.Type
		}
		stmts = append(stmts, fmt.Sprintf("CREATE OR REPLACE TEMP TABLE target%d (%s)", i, strings.Join(defs, ", ")))
	}
	for _, s := range plan.Steps {
		stmts = append(stmts, s.State.Create())
	}
	return l, l.exec(stmts...)
}

func (l *life) exec(stmts ...string) error {
	for _, s := range stmts {
		if err := l.eng.Exec(context.Background(), s); err != nil {
			return fmt.Errorf("%w\nin %s", err, s)
		}
	}
	return nil
}

// batch consumes the next rows and writes the tables.
func (l *life) batch(rows int) error {
	from := l.upto
	l.upto += rows
	err := l.exec(fmt.Sprintf("SET VARIABLE \"from\" = %d", from), fmt.Sprintf("SET VARIABLE upto = %d", l.upto))
	for _, s := range l.plan.Steps {
		if err == nil {
			err = l.step(s)
		}
	}
	for i, sink := range l.plan.Sinks {
		if err == nil {
			err = l.write(i, sink)
		}
	}
	return err
}

// step runs a step as a batch without NULLs in its keys does, if this is one.
func (l *life) step(s Step) error {
	run, keep := s.Run, s.Keep
	if s.Nulls != "" && !l.seen[s.ID] {
		nulls := 0
		err := l.exec(s.RunPlain...)
		if err == nil {
			err = l.eng.QueryRow(context.Background(), s.Nulls, nil, &nulls)
		}
		if err != nil {
			return err
		}
		if l.seen[s.ID] = nulls > 0; nulls == 0 {
			run, keep = nil, s.KeepPlain
		}
	}
	return l.exec(append(slices.Clone(run), keep...)...)
}

func (l *life) write(i int, sink Sink) error {
	if err := l.exec(sink.Run...); err != nil {
		return err
	}
	if sink.Unique != "" {
		var n int
		if err := l.eng.QueryRow(context.Background(), sink.Unique, nil, &n); err != nil || n != 0 {
			return fmt.Errorf("unique: %d %v", n, err)
		}
	}
	on := []string{"true"}
	for _, k := range sink.Key {
		on = append(on, fmt.Sprintf("t.%[1]s IS NOT DISTINCT FROM s.%[1]s", duck.Quote(k)))
	}
	return l.exec(
		fmt.Sprintf("DELETE FROM target%d t USING %s s WHERE _op <> 'I' AND %s", i, sink.Staged, strings.Join(on, " AND ")),
		fmt.Sprintf("INSERT INTO target%d SELECT * EXCLUDE (_op) FROM %s WHERE _op <> 'D'", i, sink.Staged))
}

// differs tells how the tables differ from their SELECTs; "" when they do not. refErr is what the
// SELECT itself ran into.
func (l *life) differs() (diff string, refErr error) {
	for i, sink := range l.plan.Sinks {
		query := fmt.Sprintf("reference%d", i)
		if err := l.eng.Exec(context.Background(), "CREATE OR REPLACE TEMP TABLE "+query+" AS "+sink.OneShot+"\n"); err != nil {
			return "", err
		}
		on, same := []string{"true"}, []string{"_want._there AND _got._there"}
		for _, c := range sink.Columns {
			w, g := "_want."+duck.Quote(c.Name), "_got."+duck.Quote(c.Name)
			cond := w + " IS NOT DISTINCT FROM " + g
			if slices.Contains(sink.Key, c.Name) {
				on = append(on, cond)
			} else if c.Inexact {
				cond = fmt.Sprintf("(%s OR abs(%s - %s) <= 1e-9 * greatest(abs(%s), abs(%s)) + 1e-9)", cond, w, g, w, g)
			}
			same = append(same, "coalesce("+cond+", false)")
		}
		rows, err := l.eng.Query(context.Background(), fmt.Sprintf(
			"SELECT coalesce(_want::VARCHAR, '-') || ' got ' || coalesce(_got::VARCHAR, '-') FROM (SELECT *, true AS _there FROM %s) _want FULL JOIN (SELECT *, true AS _there FROM target%d) _got ON %s WHERE NOT coalesce(%s, false) LIMIT 5",
			query, i, strings.Join(on, " AND "), strings.Join(same, " AND ")))
		if err != nil {
			return err.Error(), nil
		}
		var out []string
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				return err.Error(), nil
			}
			out = append(out, "want "+s)
		}
		if err := rows.Close(); err != nil {
			return err.Error(), nil
		}
		if len(out) > 0 {
			return fmt.Sprintf("after row %d, %s:\n%s", l.upto, sink.Name, strings.Join(out, "\n")), nil
		}
	}
	return "", nil
}

// anew computes every row again from the whole state, and tells how the tables differ from that: not in a
// bit.
func (l *life) anew() (string, error) {
	for _, s := range l.plan.Steps {
		if err := l.exec(s.All...); err != nil {
			return "", err
		}
	}
	for i, sink := range l.plan.Sinks {
		if err := l.exec(sink.Run...); err != nil {
			return "", err
		}
		var n int
		from, to := fmt.Sprintf("SELECT *, 'I' AS _op FROM target%d", i), "FROM "+sink.Staged
		err := l.eng.QueryRow(context.Background(), fmt.Sprintf("SELECT count(*) FROM ((%[1]s EXCEPT ALL %[2]s) UNION ALL (%[2]s EXCEPT ALL %[1]s))", from, to), nil, &n)
		if err != nil || n != 0 {
			return fmt.Sprintf("after row %d, %s: %d rows differ from those of the whole state", l.upto, sink.Name, n), err
		}
	}
	return "", nil
}

// mustEqual runs batches of the sizes and wants every table to equal its SELECT after each, and what the whole
// state gives after the last.
func mustEqual(t *testing.T, eng *duck.Engine, plan *Plan, sizes ...int) {
	t.Helper()
	l, err := begin(eng, plan)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range sizes {
		if err := l.batch(n); err != nil {
			t.Fatal(err)
		}
		diff, err := l.differs()
		if err == nil && diff == "" && i == len(sizes)-1 {
			diff, err = l.anew()
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff != "" {
			t.Fatal(diff)
		}
	}
}
