package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine"
)

// meanwhile does something once, when a source is read for the first time.
type meanwhile struct {
	connectors.Source
	once *sync.Once
	do   func()
}

func (m *meanwhile) Read(ctx context.Context, ranges []connectors.Range) (connectors.Scan, error) {
	m.once.Do(m.do)
	return m.Source.Read(ctx, ranges)
}

// interrupted opens the pipeline so that do happens while it folds what was read, without the lease.
func (h *half) interrupted(do func()) *opened {
	o := h.open()
	for name, source := range o.Sources {
		o.Sources[name] = &meanwhile{source, new(sync.Once), do}
	}
	return o
}

// On Postgres a correction folds what was read beside runs of the old plan: what they commit meanwhile is in
// the tables of the new one, too.
func TestCorrectionsBesideRuns(t *testing.T) {
	cluster := pgtest.Start(t)
	was := namedQuery{name: "was", key: "k", text: "SELECT k, count(*) AS n, sum(a) AS sa FROM t GROUP BY k"}
	is := namedQuery{name: "is", key: "k", text: "SELECT k, count(*) AS n, sum(e) AS sa, min(b) AS mb FROM t GROUP BY k"}
	batches := func(h *half, n int) func() {
		return func() {
			for range n {
				o := h.open()
				o.Limit = h.limit
				if r, err := o.oneBatch(); err != nil || r == nil {
					t.Errorf("a run beside it: %+v, %v", r, err)
				}
				o.close()
			}
		}
	}
	for name, format := range map[string]string{"csv": "csv", "parquet, files in parts": "parquet"} {
		t.Run("apply/"+name, func(t *testing.T) {
			h := halfReadTo(t, was, format, 9, cluster.Database(t))
			old := *h.project
			h.change(is, format)
			o := h.interrupted(batches(&half{project: &old, limit: h.limit}, 3))
			before := o.consumed(t)
			if _, err := o.Apply(t.Context(), engine.Options{Yes: true}); err != nil {
				t.Fatal(err)
			}
			if o.consumed(t) == before {
				t.Error("nothing was committed beside it")
			}
			o.close()
			h.expect(t)
			h.edit(flipped(newest))
			h.goOn(t)
		})
	}
	t.Run("repair", func(t *testing.T) {
		h := halfReadTo(t, was, "csv", 9, cluster.Database(t))
		h.edit("UPDATE m.main.out SET n = n + 1 WHERE k <> 5")
		o := h.interrupted(batches(h, 2))
		r, err := o.Repair(t.Context(), engine.Options{Yes: true})
		if err != nil || r.State || r.Outcomes[0].Update == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		o.close()
		h.expect(t)
		h.goOn(t)
	})
	t.Run("another correction", func(t *testing.T) {
		h := halfReadTo(t, was, "csv", 6, cluster.Database(t))
		old := &half{project: &project{t: t, dir: h.dir, text: h.text, dsn: h.dsn}, limit: h.limit}
		h.change(is, "csv")
		o := h.interrupted(func() {
			old.edit("DELETE FROM m.main.out WHERE k = 1")
			corrected(t, old, repair(t.Context(), engine.Options{}))
		})
		_, err := o.Apply(t.Context(), engine.Options{Yes: true})
		o.close()
		if err == nil {
			t.Error("it went on from what another correction had changed")
		}
		apply(t, h, engine.Options{Yes: true})
		h.expect(t)
	})
	t.Run("a hand", func(t *testing.T) {
		h := halfReadTo(t, was, "csv", 6, cluster.Database(t))
		h.change(is, "csv")
		o := h.open()
		defer o.close()
		dest := &edited{Destination: o.Destination, edit: func() { h.edit("DELETE FROM m.main.out WHERE k = 1") }}
		o.Destination = dest
		if _, err := o.Apply(t.Context(), engine.Options{Yes: true}); !isA[*connectors.TargetError](err) {
			t.Errorf("rows went while they were looked at: %v", err)
		}
		o.Destination, dest.edit = dest.Destination, nil
		if _, err := o.Apply(t.Context(), engine.Options{Yes: true}); err != nil {
			t.Error(err)
		}
		h.expect(t)
	})
}

// edited is a destination whose tables somebody edits after they were looked at.
type edited struct {
	connectors.Destination
	edit func()
}

func (e *edited) Found(ctx context.Context, pipeline string, sink connectors.SinkSpec) (connectors.Found, error) {
	f, err := e.Destination.Found(ctx, pipeline, sink)
	if e.edit != nil {
		e.edit()
	}
	return f, err
}

// Whoever reads the table meanwhile sees the rows of one meaning, all of them.
func TestReadersBesideCorrections(t *testing.T) {
	cluster := pgtest.Start(t)
	meaning := func(version int) namedQuery {
		text := fmt.Sprintf("SELECT k, c, count(*) AS n, %d AS version FROM t GROUP BY k, c", version)
		if version%3 == 0 { // a column comes and goes
			text = fmt.Sprintf("SELECT k, c, count(*) AS n, %d AS version, sum(e) AS more FROM t GROUP BY k, c", version)
		}
		return namedQuery{name: "m", key: "k, c", text: text}
	}
	h := halfReadTo(t, meaning(1), "csv", 9, cluster.Database(t))
	rows := len(h.seqs())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	looks, seen := 0, map[int]bool{}
	go func() {
		conn, err := pgx.Connect(context.Background(), h.dsn)
		if err != nil {
			done <- err
			return
		}
		defer conn.Close(context.Background())
		for ctx.Err() == nil {
			var n, versions, version int
			if err := conn.QueryRow(context.Background(), "SELECT count(*), count(DISTINCT version), min(version) FROM public.out").Scan(&n, &versions, &version); err != nil {
				done <- err
				return
			}
			if n != rows || versions != 1 {
				done <- fmt.Errorf("a reader saw %d rows of %d meanings, not %d of one", n, versions, rows)
				return
			}
			looks, seen[version] = looks+1, true
		}
		done <- nil
	}()
	var err error
	for version := 2; version < 12 && err == nil; version++ {
		h.change(meaning(version), "csv")
		o := h.open()
		_, err = o.Apply(t.Context(), engine.Options{})
		o.close()
	}
	stop()
	if err := errors.Join(err, <-done); err != nil || len(seen) < 5 {
		t.Errorf("in %d looks at %d meanings: %v", looks, len(seen), err)
	}
}

// What was agreed to is what is written: files that change while it is asked are asked about again.
func TestAskedAgain(t *testing.T) {
	b := newBackfilled(t, rand.New(rand.NewPCG(8, 8)), "days", "")
	defer func() { b.o.close() }()
	if err := b.run(b.o); err != nil {
		t.Fatal(err)
	}
	name := "000." + b.format
	change := func() { b.write(name, b.rows(b.day())) }
	change()
	var shown []engine.Backfill
	r, err := b.o.Backfill(t.Context(), engine.BackfillSpec{Named: func(s connectors.Standing) bool { return s.Split == name }}, 0, func(found engine.Backfill) error {
		if shown = append(shown, found); len(shown) == 1 {
			change()
		}
		return nil
	})
	if err != nil || len(shown) != 2 {
		t.Fatalf("asked %d times, %v", len(shown), err)
	}
	last := shown[1]
	if fmt.Sprint(last.Taken, last.Keys) != fmt.Sprint(r.Taken, r.Keys) || len(last.Outcomes) != 1 || last.Outcomes[0].Insert != r.Outcomes[0].Insert || last.Outcomes[0].Update != r.Outcomes[0].Update || last.Outcomes[0].Delete != r.Outcomes[0].Delete {
		t.Errorf("shown was %+v, done %+v", last, r)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "while it was asked") {
		t.Errorf("warnings are %q", r.Warnings)
	}
	b.took(r)
	b.expect("backfill")
}
