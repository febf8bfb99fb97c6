package engine_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine"
)

// onBoth runs a test on a DuckDB file and on Postgres.
func onBoth(t *testing.T, test func(t *testing.T, dsn func() string)) {
	t.Run("duckdb", func(t *testing.T) { test(t, func() string { return "" }) })
	t.Run("postgres", func(t *testing.T) {
		cluster := pgtest.Start(t)
		test(t, func() string { return cluster.Database(t) })
	})
}

// edit runs statements on the database as somebody with a shell does. m.main and m.etl are written for both.
func (h *half) edit(stmts ...string) {
	h.t.Helper()
	if h.dsn == "" {
		h.damage(stmts...)
		return
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, h.dsn)
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, stmt := range stmts {
		stmt = strings.NewReplacer("m.main.", "public.", "m.etl.", "etl.", `'\xFF'::BLOB || data[2:]`, `'\xff'::bytea || substr(data, 2)`).Replace(stmt)
		if _, err := conn.Exec(ctx, stmt); err != nil {
			h.t.Fatalf("%s: %v", stmt, err)
		}
	}
}

// seqs are the keys of the table with the change that wrote each.
func (h *half) seqs() map[string]int64 {
	h.t.Helper()
	o := h.open()
	defer o.close()
	sink := o.Plan.Sinks[0]
	spec := connectors.SinkSpec{Name: sink.Name, Schema: sink.Schema, Table: sink.Table, Key: sink.Key}
	for _, c := range sink.Columns {
		spec.Columns = append(spec.Columns, connectors.SinkColumn{Name: c.Name, Type: c.Type})
	}
	found, err := o.Destination.Found(context.Background(), "p", spec)
	if err != nil {
		h.t.Fatal(err)
	}
	out := map[string]int64{}
	key := []string{"'key'"}
	for _, k := range sink.Key {
		key = append(key, fmt.Sprintf(`coalesce("%s"::VARCHAR, 'NULL')`, k))
	}
	rows, err := o.Duck.Query(context.Background(), "SELECT concat_ws(' ', "+strings.Join(key, ", ")+"), _etl_seq FROM "+found.Relation)
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var k string
		var seq int64
		if err := rows.Scan(&k, &seq); err != nil {
			h.t.Fatal(err)
		}
		out[k] = seq
	}
	return out
}

// corrected runs a correction as a process of its own.
func corrected[R any](t *testing.T, h *half, fn func(*engine.Pipeline) (R, error)) R {
	t.Helper()
	o := h.open()
	defer o.close()
	r, err := fn(o.Pipeline)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func repair(ctx context.Context, o engine.Options) func(*engine.Pipeline) (engine.Repair, error) {
	return func(p *engine.Pipeline) (engine.Repair, error) { return p.Repair(ctx, o) }
}

// Whatever somebody did to the table, a repair brings back what the input gives, and touches no other row.
func TestRepair(t *testing.T) {
	q := queries(t)[0]
	const t0 = "m.main.out"
	cases := map[string]struct {
		edits                  []string
		insert, update, delete int64 // -1: any
		only                   string
		after                  []string
	}{
		"nothing":            {},
		"a value":            {edits: []string{"UPDATE " + t0 + " SET sa = -7 WHERE k = 3"}, update: 1},
		"values":             {edits: []string{"UPDATE " + t0 + " SET n = n + 1, mc = NULL WHERE k > 3 OR k IS NULL"}, update: -1},
		"a row less":         {edits: []string{"DELETE FROM " + t0 + " WHERE k = 2"}, insert: 1},
		"the row of NULL":    {edits: []string{"DELETE FROM " + t0 + " WHERE k IS NULL"}, insert: 1},
		"a row more":         {edits: []string{"INSERT INTO " + t0 + " (k, n, _etl_seq) VALUES (77, 1, 1)"}, delete: 1},
		"another key":        {edits: []string{"UPDATE " + t0 + " SET k = 99 WHERE k = 1"}, insert: 1, delete: 1},
		"all rows":           {edits: []string{"DELETE FROM " + t0}, insert: -1},
		"a newer sequence":   {edits: []string{"UPDATE " + t0 + " SET _etl_seq = 99999 WHERE k = 4"}, update: 1},
		"doubled rows":       {edits: []string{"INSERT INTO " + t0 + " SELECT * FROM " + t0 + " WHERE k < 3"}, update: 3, delete: 3, only: "duckdb"},
		"doubled and edited": {edits: []string{"INSERT INTO " + t0 + " SELECT * REPLACE (n + 1 AS n) FROM " + t0 + " WHERE k IS NULL"}, update: 1, delete: 1, only: "duckdb"},
		"no table":           {edits: []string{"DROP TABLE " + t0}, insert: -1},
		"no column":          {edits: []string{"ALTER TABLE " + t0 + " DROP COLUMN sa"}, update: -1},
		"no key column":      {edits: []string{"ALTER TABLE " + t0 + " DROP COLUMN k"}, insert: -1, delete: -1},
		"another type":       {edits: []string{"ALTER TABLE " + t0 + " DROP COLUMN n", "ALTER TABLE " + t0 + " ADD COLUMN n VARCHAR(9)"}, update: -1},
		"no sequence":        {edits: []string{"ALTER TABLE " + t0 + " DROP COLUMN _etl_seq"}, update: -1},
		"a column more":      {edits: []string{"ALTER TABLE " + t0 + " ADD COLUMN note VARCHAR(9)", "UPDATE " + t0 + " SET note = 'x', n = 0 WHERE k = 1"}, update: 1, after: []string{"ALTER TABLE " + t0 + " DROP COLUMN note"}},
		"no key":             {edits: []string{"ALTER TABLE " + t0 + " DROP CONSTRAINT out_k_key", "INSERT INTO " + t0 + " SELECT * FROM " + t0 + " WHERE k < 3"}, update: 3, delete: 3, only: "postgres"},
		"the comment":        {edits: []string{"COMMENT ON TABLE " + t0 + " IS 'mine'", "UPDATE " + t0 + " SET n = 0 WHERE k = 1"}, update: 1},
	}
	onBoth(t, func(t *testing.T, dsn func() string) {
		h := halfReadTo(t, q, "csv", 6, dsn())
		destination := map[bool]string{true: "duckdb", false: "postgres"}[h.dsn == ""]
		for i, name := range slices.Sorted(maps.Keys(cases)) {
			c := cases[name]
			if testing.Short() && c.only == "" {
				c.only = []string{"duckdb", "postgres"}[i%2] // each on one of them
			}
			if c.only != "" && c.only != destination {
				continue
			}
			before := h.seqs()
			h.edit(c.edits...)
			dry := corrected(t, h, repair(t.Context(), engine.Options{DryRun: true, Yes: true}))
			r := corrected(t, h, repair(t.Context(), engine.Options{Yes: true}))
			if dry.Outcomes[0].Insert != r.Outcomes[0].Insert || dry.Outcomes[0].Update != r.Outcomes[0].Update || dry.Seq != 0 || r.State {
				t.Errorf("%s: the dry run says %+v, the repair %+v", name, dry, r)
			}
			o := r.Outcomes[0]
			for what, n := range map[string][2]int64{"insert": {o.Insert, c.insert}, "update": {o.Update, c.update}, "delete": {o.Delete, c.delete}} {
				if n[0] != n[1] && n[1] >= 0 {
					t.Errorf("%s: %s is %d, want %d: %+v", name, what, n[0], n[1], o)
				}
			}
			same := int64(0)
			for k, seq := range h.seqs() {
				if seq == before[k] {
					same++
				} else if seq != r.Seq {
					t.Errorf("%s: key %s is of change %d, was %d; the repair is %d", name, k, seq, before[k], r.Seq)
				}
			}
			if same != o.Same {
				t.Errorf("%s: %d rows kept their change, not %d", name, same, o.Same)
			}
			if again := corrected(t, h, repair(t.Context(), engine.Options{})); !again.Quiet() || again.Seq != 0 {
				t.Errorf("%s: a second repair does %+v", name, again)
			}
			h.edit(c.after...)
		}
		h.goOn(t)
	})
}

// A state that is not what the input gives, though it passes its checks, is replaced as a whole; damage
// after a repair is mended from what was read, not from checkpoints before it.
func TestRepairedState(t *testing.T) {
	third := rand.IntN(3)
	for i, q := range queries(t) {
		if testing.Short() && i%3 != third {
			continue
		}
		format := []string{"csv", "parquet"}[i%2]
		t.Run(q.name+"/"+format, func(t *testing.T) {
			t.Parallel()
			h := halfReadTo(t, q, format, 6, "")
			o := h.open()
			// A state of half of the input, committed as if it were the whole.
			if err := o.Forge(t.Context()); err != nil {
				t.Fatal(err)
			}
			o.close()
			r := corrected(t, h, repair(t.Context(), engine.Options{Yes: true}))
			if !r.State || r.Seq == 0 {
				t.Fatalf("the state was not replaced: %+v", r)
			}
			if again := corrected(t, h, repair(t.Context(), engine.Options{})); !again.Quiet() {
				t.Errorf("a second repair does %+v", again)
			}
			h.damage(flipped("segment_id IN (SELECT segment_id FROM m.etl.segment_use WHERE added_seq = " + fmt.Sprint(r.Seq) + ")"))
			notices, kinds := h.goOn(t)
			if len(notices) != 1 || !strings.Contains(notices[0], fmt.Sprintf("everything read until change %d", r.Seq)) || !slices.Contains(kinds, checkpoints.KindRecovery) {
				t.Errorf("noticed was %q; the changes are %v", notices, kinds)
			}
		})
	}
}

// What a repair needs and cannot have.
func TestNoRepair(t *testing.T) {
	q := queries(t)[0]
	h := halfRead(t, q, "csv", 9)
	o := h.open()
	h.t = t
	if err := os.Rename(h.dir+"/00002.csv", h.dir+"/elsewhere"); err != nil {
		t.Fatal(err)
	}
	_, err := o.Repair(t.Context(), engine.Options{})
	o.close()
	if !isA[*connectors.InputError](err) || !strings.Contains(err.Error(), "00002.csv: is gone, but its rows are needed") {
		t.Errorf("the error is %v", err)
	}
	if err := os.Rename(h.dir+"/elsewhere", h.dir+"/00002.csv"); err != nil {
		t.Fatal(err)
	}
	h.edit("INSERT INTO m.main.out (k, n, _etl_seq) SELECT i, 1, 1 FROM range(100, 110) r(i)")
	o = h.open()
	_, err = o.Repair(t.Context(), engine.Options{})
	o.close()
	if !isA[*engine.ManyDeletedError](err) {
		t.Errorf("the error is %v", err)
	}
	h.edit("DROP TABLE m.main.out", "CREATE TABLE m.main.out AS SELECT 1 AS x")
	o = h.open()
	_, err = o.Repair(t.Context(), engine.Options{Yes: true})
	o.close()
	if !isA[*connectors.TargetError](err) || !strings.Contains(err.Error(), "replaced by another table") {
		t.Errorf("the error is %v", err)
	}
}

// The position is damaged and the table was edited: a run cannot go on because of the one, and the repair of
// the other takes what was read from the records of the batches.
func TestRepairOfEverything(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn func() string) {
		h := halfReadTo(t, queries(t)[0], "csv", 6, dsn())
		h.edit("DELETE FROM m.main.out WHERE k = 1", flipped("true"))
		o := h.open()
		if _, err := o.Run(t.Context(), nil); !isA[*connectors.TargetError](err) {
			t.Errorf("the error is %v", err)
		}
		o.close()
		r := corrected(t, h, repair(t.Context(), engine.Options{}))
		if !r.State || r.Outcomes[0].Insert != 1 {
			t.Errorf("%+v", r)
		}
		h.goOn(t)
	})
}

// Behind a correction that left deltas of the state, too, what was read is folded anew: at once, and when
// batches have come after it.
func TestRecoveryBehindADelta(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn func() string) {
		for _, batches := range []int{0, 2} {
			h := halfReadTo(t, queries(t)[0], "csv", 9, dsn())
			seq := corrected(t, h, func(p *engine.Pipeline) (int64, error) { return p.Delta(t.Context()) })
			for range batches {
				o := h.open()
				o.Limit = h.limit
				if r, err := o.oneBatch(); err != nil || r == nil {
					t.Fatal(r, err)
				}
				o.close()
			}
			h.edit(flipped(fmt.Sprintf("segment_id IN (SELECT segment_id FROM m.etl.segment_use WHERE added_seq >= %d)", seq)))
			notices, kinds := h.goOn(t)
			if len(notices) != 1 || !strings.Contains(notices[0], fmt.Sprintf("everything read until change %d", seq)) || !slices.Contains(kinds, checkpoints.KindRecovery) {
				t.Errorf("noticed was %q; the changes are %v", notices, kinds)
			}
		}
	})
}
