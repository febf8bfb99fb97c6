package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine"
	"lockstep/planner"
	"lockstep/planner/plannertest"
	etlsql "lockstep/sql"
)

func apply(t *testing.T, h *half, o engine.Options) engine.Apply {
	t.Helper()
	return corrected(t, h, func(p *engine.Pipeline) (engine.Apply, error) { return p.Apply(t.Context(), o) })
}

// change gives the pipeline another query over the same input.
func (h *half) change(q namedQuery, format string) {
	h.query, h.text = q, pipelineText(format, q)
}

// consumed is how many rows were read; files are read in the order of the rows.
func (o *opened) consumed(t *testing.T) int64 {
	t.Helper()
	head, err := o.Destination.Head(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	return head.Manifest.Position["t"].Rows
}

// expect compares the table with the query over what was read.
func (h *half) expect(t *testing.T) {
	t.Helper()
	o := h.open()
	defer o.close()
	o.reference(t, h.rows)
	o.expectEqual(t, o.consumed(t), h.query.text)
}

// One pipeline becomes one query after the other, of any key and columns: after each change its table is
// what the new query gives for everything that was read, and the next batch goes on from there.
func TestApplyAnything(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn func() string) {
		all := queries(t)
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if testing.Short() {
			all = all[:7] // others every time
		}
		h := halfReadTo(t, all[0], "csv", 3*len(all), dsn())
		for i, q := range all[1:] {
			t.Logf("%s -> %s", h.query.name, q.name)
			h.change(q, "csv")
			dry := apply(t, h, engine.Options{DryRun: true})
			a := apply(t, h, engine.Options{Yes: true})
			if d, o := dry.Outcomes[0], a.Outcomes[0]; d.Insert != o.Insert || d.Update != o.Update || d.Delete != o.Delete || dry.Seq != 0 {
				t.Errorf("the dry run says %+v, apply %+v", dry, a)
			}
			h.expect(t)
			if again, err := func() (engine.Apply, error) {
				o := h.open()
				defer o.close()
				return o.Apply(t.Context(), engine.Options{})
			}(); err != engine.ErrNothingToApply {
				t.Errorf("a second time it does %+v, %v", again, err)
			}
			if i%4 == 3 { // what the change left is mended without what was before it
				h.edit(flipped(newest))
			}
			o := h.open()
			o.Limit = h.limit
			if _, err := o.oneBatch(); err != nil {
				t.Fatal(err)
			}
			o.close()
			h.expect(t)
		}
		h.goOn(t)
	})
}

// What the kept state serves is computed from it: no file is read, and the result is that of a rebuild.
func TestRefinalise(t *testing.T) {
	const base = "SELECT k, count(*) AS n, sum(a) AS sa, avg(b) AS ab, max(ts) AS mt, count(DISTINCT c) AS dc, sum(d) AS sd FROM t GROUP BY k"
	changes := map[string]string{
		"a column less":         "SELECT k, count(*) AS n, avg(b) AS ab, max(ts) AS mt FROM t GROUP BY k",
		"another name":          "SELECT k, count(*) AS rows, sum(a) AS total FROM t GROUP BY k",
		"another expression":    "SELECT k, count(*) * 2 AS n, sum(a) + count(*) AS sa, avg(b) AS ab, max(ts) AS mt, count(DISTINCT c) AS dc, sum(d) AS sd FROM t GROUP BY k",
		"another type":          "SELECT k, count(*)::VARCHAR AS n, sum(a) AS sa, avg(b) AS ab, max(ts)::DATE AS mt, count(DISTINCT c) AS dc, sum(d) AS sd FROM t GROUP BY k",
		"a having":              "SELECT k, count(*) AS n, sum(a) AS sa, avg(b) AS ab, max(ts) AS mt, count(DISTINCT c) AS dc, sum(d) AS sd FROM t GROUP BY k HAVING count(*) % 2 = 0 OR k IS NULL",
		"more of the same":      "SELECT k, count(*) AS n, sum(a) AS sa, sum(b) AS sb, count(b) AS nb, avg(b) AS ab, max(ts) AS mt, count(DISTINCT c) AS dc, sum(d) AS sd FROM t GROUP BY k",
		"columns change places": "SELECT k, sum(a) AS n, count(*)::HUGEINT AS sa, avg(b) AS ab, max(ts) AS mt, count(DISTINCT c) AS dc, sum(d) AS sd FROM t GROUP BY k",
	}
	onBoth(t, func(t *testing.T, dsn func() string) {
		q := namedQuery{name: "base", key: "k", text: base}
		left := len(changes)
		if testing.Short() {
			left = 3 // a map's first are others every time
		}
		for name, text := range changes {
			if left--; left < 0 {
				break
			}
			h := halfReadTo(t, q, "csv", 6, dsn())
			h.change(namedQuery{name: name, key: "k", text: text}, "csv")
			files, err := filepath.Glob(filepath.Join(h.dir, "*.csv"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if err := os.Rename(f, f+".away"); err != nil {
					t.Fatal(err)
				}
			}
			a := apply(t, h, engine.Options{Yes: true})
			if a.Kind != checkpoints.KindRefinalise || a.Files != 0 || a.Change.Class != planner.Refinalise {
				t.Errorf("%s: %+v", name, a)
			}
			for _, f := range files {
				if err := os.Rename(f+".away", f); err != nil {
					t.Fatal(err)
				}
			}
			h.expect(t)
			r := corrected(t, h, repair(t.Context(), engine.Options{DryRun: true}))
			if !r.Quiet() {
				t.Errorf("%s: a rebuild gives something else: %+v", name, r)
			}
			h.edit(flipped(newest))
			h.goOn(t)
		}
	})
}

// What is not touched by a change stays as it is, row by row; a new table needs only its own input.
func TestApplyPerSink(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn func() string) {
		q := namedQuery{name: "two", key: "k", text: "SELECT k, count(*) AS n, sum(a) AS sa FROM t GROUP BY k"}
		h := halfReadTo(t, q, "csv", 6, dsn())
		before := h.seqs()
		h.text += "CREATE SINK m.more PRIMARY KEY (c) AS SELECT c, sum(b) AS s FROM t GROUP BY c;\n"
		a := apply(t, h, engine.Options{})
		if len(a.Outcomes) != 1 || a.Outcomes[0].Sink != "m.more" || !a.Outcomes[0].Made || len(a.Same) != 1 {
			t.Errorf("%+v", a)
		}
		after := h.seqs()
		for k, seq := range before {
			if after[k] != seq {
				t.Errorf("key %s was of change %d, is of %d", k, seq, after[k])
			}
		}
		o := h.open()
		o.reference(t, h.rows)
		o.expectSink(t, 1, "id <= "+strconv.FormatInt(o.consumed(t), 10), "SELECT c, sum(b) AS s FROM t GROUP BY c")
		o.close()
		h.goOn(t)

		// One table was edited, the other gets another meaning: both are made right at once.
		h.edit("DELETE FROM m.main.out WHERE k = 2")
		h.text = strings.Replace(h.text, "sum(b) AS s", "sum(b) + 1 AS s", 1)
		if a = apply(t, h, engine.Options{}); len(a.Outcomes) != 2 || a.Outcomes[0].Insert != 1 {
			t.Errorf("%+v", a)
		}
		h.goOn(t)

		h.text = pipelineText("csv", q) // the new one goes
		a = apply(t, h, engine.Options{})
		if len(a.Outcomes) != 0 || len(a.Left) != 1 || a.Left[0] != "m.more" || a.Kind != checkpoints.KindRefinalise {
			t.Errorf("%+v", a)
		}
		h.goOn(t)
		h.edit("DELETE FROM m.main.more WHERE c = 'a'")
		h.text += "CREATE SINK m.more PRIMARY KEY (c) AS SELECT c, sum(b) AS s FROM t WHERE a > 0 GROUP BY c;\n" // and comes back
		apply(t, h, engine.Options{})
		o = h.open()
		o.reference(t, h.rows)
		o.expectSink(t, 1, "true", "SELECT c, sum(b) AS s FROM t WHERE a > 0 GROUP BY c")
		o.close()
	})
}

// A view needs a column that goes: that is said, and the old table stays.
func TestApplyUnderAView(t *testing.T) {
	cluster := pgtest.Start(t)
	h := halfReadTo(t, namedQuery{name: "two", key: "k", text: "SELECT k, count(*) AS n, sum(a) AS sa FROM t GROUP BY k"}, "csv", 6, cluster.Database(t))
	h.edit("CREATE VIEW m.main.looks AS SELECT k, sa FROM m.main.out")
	was := h.seqs()
	h.change(namedQuery{name: "one", key: "k", text: "SELECT k, count(*) + 1 AS n FROM t GROUP BY k"}, "csv")
	o := h.open()
	_, err := o.Apply(t.Context(), engine.Options{})
	o.close()
	if !isA[*connectors.TargetError](err) || !strings.Contains(err.Error(), "looks depends on column sa") {
		t.Errorf("the error is %v", err)
	}
	if now := h.seqs(); !maps.Equal(was, now) {
		t.Errorf("the rows are of changes %v, were of %v", now, was)
	}
	h.edit("DROP VIEW m.main.looks")
	apply(t, h, engine.Options{})
	h.goOn(t)
}

// What cannot be made exact is not made.
func TestNoApply(t *testing.T) {
	q := namedQuery{name: "base", key: "k", text: "SELECT k, count(*) AS n, sum(a) AS sa FROM t GROUP BY k"}
	other := namedQuery{name: "other", key: "k", text: "SELECT k, count(*) AS n, sum(e) AS sa FROM t GROUP BY k"}
	fails := func(h *half, o engine.Options) error {
		p := h.open()
		defer p.close()
		_, err := p.Apply(t.Context(), o)
		return err
	}
	h := halfRead(t, q, "csv", 6)
	h.change(other, "csv")
	if err := os.Remove(filepath.Join(h.dir, "00001.csv")); err != nil {
		t.Fatal(err)
	}
	o := h.open()
	_, err := o.Run(t.Context(), nil)
	o.close()
	if !isA[*engine.BlockedError](err) || !strings.Contains(err.Error(), "gone or changed: 00001.csv") {
		t.Errorf("blocked is %v", err)
	}
	if err := fails(h, engine.Options{}); !isA[*connectors.InputError](err) || !strings.Contains(err.Error(), "00001.csv") {
		t.Errorf("the error is %v", err)
	}
	h = halfRead(t, q, "csv", 6)
	h.change(namedQuery{name: "few", key: "k", text: "SELECT k, count(*) AS n, sum(a) AS sa FROM t WHERE k = 1 GROUP BY k"}, "csv")
	if err := fails(h, engine.Options{}); !isA[*engine.ManyDeletedError](err) {
		t.Errorf("the error is %v", err)
	}
	if err := fails(h, engine.Options{Sink: "m.other", Yes: true}); !isA[*connectors.TargetError](err) {
		t.Errorf("the error is %v", err)
	}
	apply(t, h, engine.Options{Sink: "m.out", Yes: true})
	h.expect(t)
	h.edit("ALTER TABLE m.main.out ADD COLUMN note VARCHAR")
	h.change(namedQuery{name: "key", key: "c", text: "SELECT c, count(*) AS n FROM t GROUP BY c"}, "csv")
	if err := fails(h, engine.Options{Yes: true}); !isA[*connectors.TargetError](err) || !strings.Contains(err.Error(), "note") {
		t.Errorf("the error is %v", err)
	}
}

// Any pipeline may become any other: random queries over random rows, some read and some not, then other
// random queries, and the rest. Files may have been replaced in between.
func TestRandomApply(t *testing.T) {
	testRandomApply(t, func() string { return "" }, max(8, plannertest.Cases()/100))
}

func TestRandomApplyOnPostgres(t *testing.T) {
	cluster := pgtest.Start(t)
	testRandomApply(t, func() string { return cluster.Database(t) }, 4)
}

func testRandomApply(t *testing.T, dsn func() string, want int) {
	accepted, kinds := 0, map[string]int{}
	plannertest.Draw(t, func() bool { return accepted >= want }, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p := &project{t: t, dir: dir}
		with := rapid.SampledFrom([]string{"", " WITH (files = 'replace')"}).Draw(rt, "with")
		was, is := plannertest.Sinks(rt), plannertest.Sinks(rt)
		is = append(is, rapid.SliceOfN(rapid.SampledFrom(was), 0, 2).Draw(rt, "kept")...)
		texts := []string{}
		for _, sinks := range [][]plannertest.Sink{was, is} {
			text := plannertest.Pipeline(sinks, "*.parquet", with)
			_, err = p.compile(t.Context(), text)
			var faults etlsql.Errors
			if errors.As(err, &faults) {
				return
			}
			if err != nil {
				rt.Fatalf("%s\n%v", text, err)
			}
			texts = append(texts, text)
		}
		p.dsn = dsn()
		n := rapid.IntRange(2, 24).Draw(rt, "rows")
		first := rapid.IntRange(1, n-1).Draw(rt, "first")
		if err := randomFiles(t, dir, plannertest.Rows(rt, n), []int{first, n - first}); err != nil {
			rt.Fatal(err)
		}
		later := filepath.Join(dir, "001.parquet")
		if err := os.Rename(later, later+".later"); err != nil {
			rt.Fatal(err)
		}
		// turn does something in a process of its own and compares the tables.
		turn := func(text string, rows int, do func(*opened) error) (goOn bool) {
			p.text = text
			o := p.open()
			o.Limit = connectors.Limit{Rows: int64(rapid.IntRange(1, 12).Draw(rt, "batch"))}
			err := do(o)
			diff, theirs := "", o.placedReference(t, dir, int64(rows))
			if theirs == nil && err == nil {
				diff, theirs = o.differs(t)
			}
			o.close()
			if theirs != nil || err != nil && failsAnyway(t, p, int64(n)) {
				return false
			}
			if err != nil || diff != "" {
				rt.Fatalf("%s\nbecame\n%s\nin the turn of %s\n%v%s", texts[0], texts[1], text, err, diff)
			}
			return true
		}
		run := func(o *opened) error { _, err := o.Run(t.Context(), nil); return err }
		if !turn(texts[0], first, run) {
			return
		}
		if !turn(texts[1], first, func(o *opened) error {
			a, err := o.Apply(t.Context(), engine.Options{Yes: true})
			kinds[a.Kind]++
			if err == engine.ErrNothingToApply {
				return nil
			}
			return err
		}) {
			return
		}
		if err := os.Rename(later+".later", later); err != nil {
			rt.Fatal(err)
		}
		if !turn(texts[1], n, run) {
			return
		}
		if !turn(texts[1], n, func(o *opened) error {
			r, err := o.Repair(t.Context(), engine.Options{})
			if err == nil && !r.Quiet() {
				err = fmt.Errorf("it needed a repair: %+v", r)
			}
			return err
		}) {
			return
		}
		accepted++
	})
	t.Logf("%d random pipelines became others: %v", accepted, kinds)
}

// What another DuckDB kept is not taken for what this one would keep: the change of the SQL is made from the
// input, also one that the kept state would serve.
func TestApplyWithAnotherDuckDB(t *testing.T) {
	h := halfRead(t, namedQuery{name: "base", key: "k", text: "SELECT k, count(*) AS n, sum(a) AS sa FROM t GROUP BY k"}, "csv", 6)
	h.change(namedQuery{name: "less", key: "k", text: "SELECT k, count(*) + 1 AS n FROM t GROUP BY k"}, "csv")
	o := h.open()
	under(o.Plan, "v9.9.9")
	a, err := o.Apply(t.Context(), engine.Options{})
	if err != nil || a.Kind != checkpoints.KindRebuild || a.Files == 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	if sum, err := o.Run(t.Context(), nil); err != nil || len(sum.Warnings) > 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	o.reference(t, h.rows)
	o.expectEqual(t, int64(h.rows), h.query.text)
	o.close()
	h.goOn(t) // back on the first: everything since the change is folded again to see that it does the same
}

// A file that was replaced since it was read is read as it is now, where that is allowed.
func TestApplyOfReplacedFiles(t *testing.T) {
	q := namedQuery{name: "base", key: "k", text: "SELECT k, count(*) AS n, sum(a) AS sa FROM t GROUP BY k"}
	p := &project{t: t, dir: t.TempDir(), text: strings.Replace(pipelineText("csv", q), "'*.csv'", "'*.csv' WITH (files = 'replace')", 1)}
	writeFiles(t, p.dir, "csv", []int{9, 9, 9})
	o := p.open()
	if _, err := o.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	o.close()
	text, err := os.ReadFile(filepath.Join(p.dir, "00001.csv"))
	if err == nil {
		lines := strings.SplitAfter(string(text), "\n")
		err = os.WriteFile(filepath.Join(p.dir, "00001.csv"), []byte(strings.Join(lines[:5], "")), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.text = strings.Replace(p.text, "sum(a)", "sum(e)", 1)
	o = p.open()
	defer o.close()
	if _, err := o.Run(t.Context(), nil); !isA[*engine.BlockedError](err) || !strings.Contains(err.Error(), "Needs 3 files; all present") {
		t.Errorf("blocked is %v", err)
	}
	if _, err := o.Apply(t.Context(), engine.Options{Yes: true}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o.reference(t, 27)
		o.expectSink(t, 0, "id NOT BETWEEN 14 AND 18", "SELECT k, count(*) AS n, sum(e) AS sa FROM t GROUP BY k")
		if sum, err := o.Run(t.Context(), nil); err != nil || !sum.UpToDate {
			t.Errorf("%+v, %v", sum, err)
		}
	}
}
