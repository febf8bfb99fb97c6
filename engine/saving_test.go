package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lockstep/connectors"
	"lockstep/engine"
)

// stopping is a source whose reading ends in an error after so many readings.
type stopping struct {
	connectors.Source
	left int
}

var errStopped = errors.New("stopped")

func (s *stopping) Read(ctx context.Context, ranges []connectors.Range) (connectors.Scan, error) {
	if s.left--; s.left < 0 {
		return nil, errStopped
	}
	return s.Source.Read(ctx, ranges)
}

// A rebuild that was stopped goes on from what was saved, whatever the pipeline did meanwhile; where that is
// of no use, it begins anew. Either way the table is right.
func TestResumedRebuild(t *testing.T) {
	was := namedQuery{name: "was", key: "k", text: "SELECT k, count(*) AS n, sum(a) AS sa FROM t GROUP BY k"}
	is := namedQuery{name: "is", key: "n", text: "SELECT n, count(*) AS groups, sum(s) AS s, max(d) AS d FROM (SELECT k, c, count(*) AS n, sum(a) AS s, count(DISTINCT e) AS d FROM t GROUP BY k, c) GROUP BY n"}
	save := engine.Options{Yes: true, SaveEvery: 1}
	cases := map[string]struct {
		saved     int
		meanwhile func(t *testing.T, h, old *half)
	}{
		"nothing else": {4, func(*testing.T, *half, *half) {}},
		"files that were folded are gone": {4, func(t *testing.T, h, _ *half) {
			if err := os.Rename(filepath.Join(h.dir, "00001.csv"), filepath.Join(h.dir, "away")); err != nil {
				t.Fatal(err)
			}
		}},
		"more batches, and a compaction": {4, func(t *testing.T, h, old *half) {
			for range 9 {
				o := old.open()
				o.Limit = old.limit
				if r, err := o.oneBatch(); err != nil || r == nil {
					t.Fatal(r, err)
				}
				o.close()
			}
		}},
		"another plan": {0, func(t *testing.T, h, _ *half) {
			h.change(namedQuery{name: "other", key: "c", text: "SELECT c, count(DISTINCT e) AS n, sum(b) AS s FROM t GROUP BY c"}, "csv")
		}},
		"damage": {0, func(t *testing.T, h, _ *half) {
			h.edit(flipped("segment_id NOT IN (SELECT segment_id FROM m.etl.segment_use)"))
		}},
	}
	onBoth(t, func(t *testing.T, dsn func() string) {
		left := len(cases)
		if testing.Short() {
			left = 2 // a map's first are others every time
		}
		for name, c := range cases {
			if left--; left < 0 {
				break
			}
			t.Run(name, func(t *testing.T) {
				h := halfReadTo(t, was, "csv", 30, dsn())
				old := &half{project: &project{t: t, dir: h.dir, text: h.text, dsn: h.dsn}, query: was, rows: h.rows, limit: h.limit}
				h.change(is, "csv")
				o := h.open()
				for name, source := range o.Sources {
					o.Sources[name] = &stopping{source, 4}
				}
				o.Limit = h.limit
				if _, err := o.Apply(t.Context(), save); !errors.Is(err, errStopped) {
					t.Fatal(err)
				}
				o.close()
				old.expect(t)
				c.meanwhile(t, h, old)
				o = h.open()
				o.Limit = h.limit
				a, err := o.Apply(t.Context(), save)
				if err != nil || a.Saved != c.saved {
					t.Errorf("%+v, %v", a, err)
				}
				job, err := o.Destination.Job(t.Context(), "p", a.Kind)
				if err != nil || len(job.Segments) > 0 {
					t.Errorf("%+v was left, %v", job, err)
				}
				o.close()
				h.expect(t)
				if name == "files that were folded are gone" {
					if err := os.Rename(filepath.Join(h.dir, "away"), filepath.Join(h.dir, "00001.csv")); err != nil {
						t.Fatal(err)
					}
				}
				h.goOn(t)
			})
		}
	})
}
