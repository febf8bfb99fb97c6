package engine_test

import (
	"context"
	"sync"
	"testing"

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
