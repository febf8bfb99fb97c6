package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine"
	"lockstep/planner"
)

// newest is the condition of the segments that the newest change added.
const newest = "segment_id IN (SELECT segment_id FROM m.etl.segment_use WHERE added_seq = (SELECT max(added_seq) FROM m.etl.segment_use))"

// flipped damages the data of segments.
func flipped(where string) string {
	return "UPDATE m.etl.segment_parts SET data = ('\\xFF'::BLOB || data[2:]) WHERE " + where
}

// half is a project with the given files landed and read, and as many again that wait.
type half struct {
	*project
	query namedQuery
	rows  int
	limit connectors.Limit
}

func halfRead(t *testing.T, q namedQuery, format string, files int) *half {
	t.Helper()
	return halfReadTo(t, q, format, files, "")
}

// halfReadTo: dsn is of a Postgres database, or "".
func halfReadTo(t *testing.T, q namedQuery, format string, files int, dsn string) *half {
	t.Helper()
	h := &half{project: &project{t: t, dir: t.TempDir(), text: pipelineText(format, q), dsn: dsn}, query: q, limit: connectors.Limit{Bytes: 1}}
	sizes := make([]int, files)
	for i := range sizes {
		sizes[i] = 5 + i%7
		h.rows += sizes[i]
	}
	writeFiles(t, h.dir, format, sizes)
	if format == "parquet" {
		h.limit = connectors.Limit{Rows: 4} // several batches per file
	}
	for i := files * 2 / 3; i < files; i++ {
		h.move(i, format, "", ".later")
	}
	o := h.open()
	o.Limit = h.limit
	if _, err := o.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	o.close()
	for i := files * 2 / 3; i < files; i++ {
		h.move(i, format, ".later", "")
	}
	return h
}

func (h *half) move(i int, format, from, to string) {
	name := filepath.Join(h.dir, fmt.Sprintf("%05d.%s", i, format))
	if err := os.Rename(name+from, name+to); err != nil {
		h.t.Fatal(err)
	}
}

// damage runs statements on the database of the pipeline, attached as m.
func (h *half) damage(stmts ...string) {
	h.t.Helper()
	o := h.open()
	defer o.close()
	for _, stmt := range stmts {
		if err := o.Duck.Exec(h.t.Context(), stmt); err != nil {
			h.t.Fatalf("%s: %v", stmt, err)
		}
	}
}

// goOn runs to the end and expects a table that equals the SELECT, now and after a restart; it returns
// what was noticed and the kinds of changes.
func (h *half) goOn(t *testing.T) (notices, kinds []string) {
	t.Helper()
	for range 2 {
		o := h.open()
		o.Limit = h.limit
		sum, err := o.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		notices = append(notices, sum.Warnings...)
		o.reference(t, h.rows)
		o.expectEqual(t, int64(h.rows), h.query.text)
		head, err := o.Destination.Head(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		kinds = nil
		for seq := int64(1); seq <= head.Manifest.Seq; seq++ {
			m, err := o.Destination.Manifest(t.Context(), "p", seq)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, m.Kind)
		}
		o.close()
	}
	return notices, kinds
}

// A damaged state is built again from an older checkpoint, for every query and both formats; the batches
// after it, and after a restart, go on from it.
func TestRecovery(t *testing.T) {
	for i, q := range queries(t) {
		format := []string{"csv", "parquet"}[i%2]
		t.Run(q.name+"/"+format, func(t *testing.T) {
			t.Parallel()
			h := halfRead(t, q, format, 6)
			h.damage(flipped(newest), flipped("segment_id IN (SELECT segment_id FROM m.etl.segment_use WHERE added_seq > 2)"))
			notices, kinds := h.goOn(t)
			if len(notices) != 1 || !strings.Contains(notices[0], "batches, read again") || !slices.Contains(kinds, checkpoints.KindRecovery) {
				t.Errorf("noticed was %q; the changes are %v", notices, kinds)
			}
		})
	}
}

// Everything that can be damaged and made again.
func TestRecoveryOfEverything(t *testing.T) {
	q := queries(t)[0]
	last := func(set string) string {
		return "UPDATE m.etl.manifests SET " + set + " WHERE seq = (SELECT max(seq) FROM m.etl.manifests)"
	}
	for name, c := range map[string]struct {
		stmt, from string
		files      int
	}{
		"a step's data":           {flipped(newest + " AND segment_id IN (SELECT segment_id FROM m.etl.segments WHERE step_id NOT LIKE 'position/%')"), "checkpoint 5 and the input of batch 5,", 9},
		"a position's data":       {flipped(newest + " AND segment_id IN (SELECT segment_id FROM m.etl.segments WHERE step_id LIKE 'position/%')"), "checkpoint 5 and the input of batch 5,", 9},
		"a part is missing":       {"DELETE FROM m.etl.segment_parts WHERE " + newest, "checkpoint 5 and the input of batch 5,", 9},
		"a segment is missing":    {"DELETE FROM m.etl.segments WHERE " + newest, "checkpoint 5 and the input of batch 5,", 9},
		"a use is missing":        {"DELETE FROM m.etl.segment_use WHERE " + newest, "checkpoint 5 and the input of batch 5,", 9},
		"an old segment":          {flipped("segment_id IN (SELECT segment_id FROM m.etl.segment_use WHERE added_seq = 3)"), "checkpoint 2 and the input of 4 ", 9},
		"all segments":            {flipped("true"), "the beginning and the input of 6 ", 9},
		"after a compaction":      {flipped(newest), "checkpoint ", 30},
		"the merged segments":     {flipped("segment_id IN (SELECT segment_id FROM m.etl.segments WHERE level > 0)"), "batches, read again", 30},
		"counts":                  {last(`counts = '{"sources":{},"sinks":{}}'`), "checkpoint 5 and the input of batch 5,", 9},
		"no JSON":                 {last("counts = 'x'"), "checkpoint 5 and the input of batch 5,", 9},
		"position":                {last("position = '{}'"), "checkpoint 5 and the input of batch 5,", 9},
		"live":                    {last("live = '{}'"), "checkpoint 5 and the input of batch 5,", 9},
		"ranges_sha":              {last("ranges_sha = '00'"), "checkpoint 5 and the input of batch 5,", 9},
		"checksum":                {last("checksum = '00'"), "checkpoint 5 and the input of batch 5,", 9},
		"batch":                   {last("batch = 77"), "checkpoint 5 and the input of batch 5,", 9},
		"kind":                    {last("kind = 'compaction'"), "checkpoint 5 and the input of batch 5,", 9},
		"plan_id":                 {last("plan_id = 'x'"), "checkpoint 5 and the input of batch 5,", 9},
		"a compaction's manifest": {last("position = '{}'"), "was built again from checkpoint 8", 12}, // 8 batches and the compaction after them
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := halfRead(t, q, "csv", c.files)
			h.damage(c.stmt)
			notices, kinds := h.goOn(t)
			if len(notices) != 1 || !strings.Contains(notices[0], c.from) || !slices.Contains(kinds, checkpoints.KindRecovery) {
				t.Errorf("noticed was %q, want %q; the changes are %v", notices, c.from, kinds)
			}
		})
	}
}

// What cannot be made again is said, and nothing is written.
func TestNoRecovery(t *testing.T) {
	q := queries(t)[0]
	file := func(h *half, i int) string { return filepath.Join(h.dir, fmt.Sprintf("%05d.csv", i)) }
	for name, c := range map[string]struct {
		do   func(t *testing.T, h *half)
		is   func(error) bool
		says string
	}{
		"the input is gone": {func(t *testing.T, h *half) {
			h.damage(flipped(newest))
			if err := os.Remove(file(h, 3)); err != nil {
				t.Fatal(err)
			}
		}, isA[*connectors.InputError], "00003.csv: is gone, but its rows must be read again; it is needed because the position of source t is damaged"},
		"the input has other bytes": {func(t *testing.T, h *half) {
			h.damage(flipped(newest))
			text, err := os.ReadFile(file(h, 3))
			if err == nil {
				text[len(text)-3] ^= 1
				err = os.WriteFile(file(h, 3), text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, isA[*connectors.InputError], "00003.csv"},
		"the plan is another": {func(t *testing.T, h *half) {
			h.damage(flipped(newest))
			h.text = strings.Replace(h.text, "count(*)", "count(a)", 1)
		}, isA[*engine.BlockedError], "the plan changed"},
		"what is only in the manifest": {func(t *testing.T, h *half) {
			h.damage("UPDATE m.etl.manifests SET batch_time = now() WHERE seq = 4")
		}, isA[*connectors.DamagedError], "it cannot be made again"},
		"the manifest is gone": {func(t *testing.T, h *half) {
			h.damage("DELETE FROM m.etl.manifests WHERE seq = 4")
		}, isA[*connectors.DamagedError], "manifest 4 of p"},
		"a manifest in between": {func(t *testing.T, h *half) {
			h.damage(flipped("true"), "UPDATE m.etl.manifests SET counts = '{}' WHERE seq = 2")
		}, isA[*connectors.DamagedError], "manifest 2 of p is damaged"},
		"the ranges": {func(t *testing.T, h *half) {
			h.damage(flipped(newest), "UPDATE m.etl.ranges SET content_id = 'x' WHERE seq = 4")
		}, isA[*connectors.InputError], "was changed after it was read"},
		"the table was edited": {func(t *testing.T, h *half) {
			h.damage(flipped(newest), "DELETE FROM m.main.out")
		}, isA[*connectors.TargetError], "it was edited or truncated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := halfRead(t, q, "csv", 6)
			c.do(t, h)
			o := h.open()
			defer o.close()
			_, err := o.Run(t.Context(), nil)
			if !c.is(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %T %v, want %q", err, err, c.says)
			}
		})
	}
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// under pretends that the plan was made by another DuckDB.
func under(plan *planner.Plan, duckdb string) {
	plan.Hash.DuckDB, plan.Hash.Env = duckdb, "env of "+duckdb
	plan.Hash.ID = plan.Hash.ID + duckdb
}

// A state that another DuckDB wrote is gone on with when this one makes the same of the last batch.
func TestOtherDuckDB(t *testing.T) {
	q := queries(t)[0]
	for name, waiting := range map[string]bool{"with input": true, "up to date": false} {
		t.Run(name, func(t *testing.T) {
			h := halfRead(t, q, "csv", 12) // the newest change is a compaction
			if !waiting {
				h.goOn(t)
			}
			var notices []string
			for range 2 { // the second time it is recorded
				o := h.open()
				under(o.Plan, "v9.9.9")
				o.Limit = h.limit
				sum, err := o.Run(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				notices = append(notices, sum.Warnings...)
				o.reference(t, h.rows)
				o.expectEqual(t, int64(h.rows), q.text)
				head, err := o.Destination.Head(t.Context(), "p")
				if err != nil || head.Plan.ID != o.Plan.Hash.ID || head.Manifest.Env.DuckDB != "v9.9.9" {
					t.Errorf("the head is %+v, %v", head, err)
				}
				o.close()
			}
			if len(notices) != 1 || !strings.Contains(notices[0], "came to the same") {
				t.Errorf("noticed was %q", notices)
			}
		})
	}
	t.Run("that does something else", func(t *testing.T) {
		h := halfRead(t, q, "csv", 6)
		o := h.open()
		defer o.close()
		want := o.Plan.Hash
		other := strings.Replace(h.text, "count(*)", "count(*) + 0 * count(a) + 1", 1)
		plan, err := h.compile(t.Context(), other)
		if err != nil || other == h.text {
			t.Fatal(err)
		}
		o.Plan = plan
		plan.Hash = want
		under(o.Plan, "v9.9.9")
		_, err = o.Run(t.Context(), nil)
		if !isA[*engine.BlockedError](err) || !strings.Contains(err.Error(), "does not come to what it came to") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("and the input is gone", func(t *testing.T) {
		h := halfRead(t, q, "csv", 6)
		if err := os.Remove(filepath.Join(h.dir, "00003.csv")); err != nil {
			t.Fatal(err)
		}
		o := h.open()
		defer o.close()
		under(o.Plan, "v9.9.9")
		_, err := o.Run(t.Context(), nil)
		if !isA[*engine.BlockedError](err) || !strings.Contains(err.Error(), "is gone") {
			t.Errorf("the error is %v", err)
		}
	})
}

// Files that were renamed since they were read are found by their content when nothing but the records of the
// batches tells what was read: by the next run, and by what folds everything anew.
func TestRecoveryOfRenamedFiles(t *testing.T) {
	q := queries(t)[0]
	for _, format := range []string{"csv", "parquet"} {
		for _, noted := range []bool{false, true} {
			rename := func(t *testing.T) *half {
				h := halfRead(t, q, format, 6)
				for i, to := range []string{1: "zz.", 3: "0."} {
					if to == "" {
						continue
					}
					if err := os.Rename(filepath.Join(h.dir, fmt.Sprintf("%05d.%s", i, format)), filepath.Join(h.dir, to+format)); err != nil {
						t.Fatal(err)
					}
				}
				if noted { // a batch has moved the position to the new names
					o := h.open()
					o.Limit = h.limit
					if r, err := o.oneBatch(); err != nil || r == nil {
						t.Fatal(r, err)
					}
					o.close()
				}
				h.damage(flipped("true"))
				return h
			}
			t.Run(fmt.Sprintf("run/%s/%v", format, noted), func(t *testing.T) {
				t.Parallel()
				notices, kinds := rename(t).goOn(t)
				if len(notices) != 1 || !strings.Contains(notices[0], "the beginning and the input of") || !slices.Contains(kinds, checkpoints.KindRecovery) {
					t.Errorf("noticed was %q; the changes are %v", notices, kinds)
				}
			})
			t.Run(fmt.Sprintf("repair/%s/%v", format, noted), func(t *testing.T) {
				t.Parallel()
				h := rename(t)
				if r := corrected(t, h, repair(t.Context(), engine.Options{})); !r.State || !r.Outcomes[0].Quiet() {
					t.Errorf("%+v", r)
				}
				if notices, _ := h.goOn(t); len(notices) != 0 {
					t.Errorf("noticed was %q", notices)
				}
			})
		}
	}
	t.Run("whose rows know its name", func(t *testing.T) {
		h := halfRead(t, q, "csv", 6)
		h.text = strings.Replace(h.text, "CREATE SOURCE t (", "CREATE SOURCE t (the_file VARCHAR METADATA FROM 'filename', ", 1)
		o := h.open()
		defer o.close()
		if err := os.Rename(h.dir+"/00001.csv", h.dir+"/zz.csv"); err != nil {
			t.Fatal(err)
		}
		_, err := o.Sources["t"].Recorded(t.Context(), []checkpoints.Range{{Source: "t", Split: "00001.csv", To: 1, Content: "x"}}, true)
		if !isA[*connectors.InputError](err) || !strings.HasSuffix(err.Error(), "put the file back") {
			t.Errorf("the error is %v", err)
		}
	})
}

// A file that a backfill took out is not wanted back when only the records tell what was read.
func TestRecoveryBehindARemovedFile(t *testing.T) {
	q := queries(t)[0]
	h := halfRead(t, q, "csv", 6)
	h.goOn(t)
	if err := os.Remove(filepath.Join(h.dir, "00005.csv")); err != nil {
		t.Fatal(err)
	}
	h.rows -= 10
	o := h.open()
	r, err := o.Backfill(t.Context(), engine.BackfillSpec{Named: func(s connectors.Standing) bool { return s.Split == "00005.csv" }, Yes: true}, 0, nil)
	o.close()
	if err != nil || len(r.Taken) != 1 || r.Taken[0].State != "removed" {
		t.Fatal(r, err)
	}
	h.damage(flipped("true"))
	notices, kinds := h.goOn(t)
	if len(notices) != 1 || !strings.Contains(notices[0], fmt.Sprintf("everything read until change %d", r.Seq)) || !slices.Contains(kinds, checkpoints.KindRecovery) {
		t.Errorf("noticed was %q; the changes are %v", notices, kinds)
	}
}
