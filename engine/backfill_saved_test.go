package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/engine"
)

// A backfill that was stopped goes on from what was saved, whatever the pipeline did meanwhile; where that is
// of no use, it begins anew. Either way the tables are right.
func TestResumedBackfill(t *testing.T) {
	const file = "002.csv" // that is corrected
	read := func(b *backfilled, name string) {
		if err := os.WriteFile(filepath.Join(b.dir, name), nil, 0o644); err != nil {
			b.t.Fatal(err)
		}
		b.write(name, b.read[name])
	}
	aRun := func(b *backfilled) {
		if err := b.run(b.o); err != nil {
			b.t.Fatal(err)
		}
	}
	edit := func(b *backfilled, stmt string) {
		b.o.close()
		(&half{project: b.project}).edit(stmt)
		b.o = b.open()
	}
	const saved = 4
	cases := map[string]struct {
		used      int
		meanwhile func(b *backfilled)
	}{
		"nothing else": {saved, func(*backfilled) {}},
		"runs with new files": {saved, func(b *backfilled) {
			corrected := b.now[file]
			read(b, file)
			for i := range 9 { // the last compacts
				b.write(fmt.Sprintf("new%d.csv", i), b.three(30))
				aRun(b)
			}
			b.write(file, corrected)
		}},
		"new files that a run read, of the range": {saved, func(b *backfilled) {
			corrected := b.now[file]
			read(b, file)
			b.write("new.csv", b.three(3))
			aRun(b)
			b.write(file, corrected)
		}},
		"a file that was not folded yet is corrected": {saved, func(b *backfilled) { b.write("006.csv", b.three(6)) }},
		"a file that was folded is corrected":         {0, func(b *backfilled) { b.write("001.csv", b.three(1)) }},
		"the file is corrected once more":             {0, func(b *backfilled) { b.write(file, b.three(2)) }},
		"another plan": {0, func(b *backfilled) {
			corrected := b.now[file]
			read(b, file)
			b.text = strings.Replace(b.text, "sum(v) AS s", "sum(v) + 1 AS s", 1)
			b.reopen()
			if _, err := b.o.Apply(b.t.Context(), engine.Options{Yes: true}); err != nil {
				b.t.Fatal(err)
			}
			b.write(file, corrected)
		}},
		"damage":               {0, func(b *backfilled) { edit(b, flipped("segment_id NOT IN (SELECT segment_id FROM m.etl.segment_use)")) }},
		"a segment is missing": {0, func(b *backfilled) { edit(b, "UPDATE m.etl.jobs SET staging = split_part(staging, ' ', 1)") }},
		"a spec that is none":  {0, func(b *backfilled) { edit(b, "UPDATE m.etl.jobs SET spec = 'x'") }},
	}
	onBoth(t, func(t *testing.T, dsn func() string) {
		server := dsn()
		left := len(cases)
		if testing.Short() {
			left = 3 // a map's first are others every time
		} else if server != "" {
			left /= 2
		}
		for name, c := range cases {
			if left--; left < 0 {
				break
			}
			t.Run(name, func(t *testing.T) {
				b := &backfilled{project: &project{t: t, dir: t.TempDir(), dsn: dsn()}, random: rand.New(rand.NewPCG(1, 1)), name: "days", format: "csv",
					now: map[string][]backfillRow{}, read: map[string][]backfillRow{}}
				b.text = "ATTACH 'm.duckdb' AS m;\nCREATE SOURCE t (" + backfillColumns + ", WATERMARK FOR ts AS ts - INTERVAL '1 day') FROM '*.csv';\n" +
					"CREATE SINK m.out0 PRIMARY KEY (day, k) AS " + backfillPipelines["days"][0][1] + ";\n"
				for day := range 9 {
					b.write(fmt.Sprintf("%03d.csv", day), b.three(day))
				}
				b.o = b.open()
				defer func() { b.o.close() }()
				aRun(b)
				b.write(file, b.three(2))

				spec := engine.BackfillSpec{Where: "day BETWEEN DATE '2024-03-20' AND DATE '2024-03-27'", SaveEvery: 1, Yes: true}
				id := spec.ID()
				told := 0
				spec.Saved = func() { told++ }
				for name, source := range b.o.Sources { // what the file has now is looked at first
					b.o.Sources[name] = &stopping{source, 1 + saved}
				}
				b.o.Limit.Bytes = 1
				if _, err := b.o.Backfill(t.Context(), spec, 0, nil); !errors.Is(err, errStopped) || told != 1 {
					t.Fatal(err, told)
				}
				b.reopen()
				all, err := engine.SavedBackfills(t.Context(), b.o.Destination, "p", "test")
				if err != nil || len(all) != 1 || !all[0].Fits || all[0].Damaged || all[0].ID != id || all[0].Asked.Where != spec.Where || all[0].Files != saved || all[0].FilesOf != 8 {
					t.Fatalf("%+v, %v", all, err)
				}
				c.meanwhile(b)
				b.reopen()
				all, err = engine.SavedBackfills(t.Context(), b.o.Destination, "p", "test")
				if err != nil || len(all) != 1 || all[0].Fits == (name == "another plan" || name == "a spec that is none") || all[0].Damaged != (name == "a spec that is none") {
					t.Errorf("%+v, %v", all, err)
				}
				b.o.Limit.Bytes = 1
				r, err := b.o.Backfill(t.Context(), spec, 0, nil)
				if err != nil || r.Saved != c.used || r.ID != id {
					t.Errorf("%+v, %v", r, err)
				}
				if jobs, err := b.o.Destination.Jobs(t.Context(), "p"); err != nil || len(jobs) > 0 {
					t.Errorf("%+v is left, %v", jobs, err)
				}
				b.took(r)
				b.expect(name)
				aRun(b)
				b.expect("the run after")
			})
		}
	})
}

// three are three rows of one of the days from 2024-03-20 on.
func (b *backfilled) three(day int) []backfillRow {
	rows := make([]backfillRow, 3)
	for i := range rows {
		b.ids++
		rows[i] = backfillRow{id: b.ids, at: time.Date(2024, 3, 20+day, i, 0, b.random.IntN(60), 0, time.UTC), k: i % 2, v: b.random.IntN(10), c: "a"}
	}
	return rows
}

// What a dry run finds saved it uses and leaves; what is cancelled is gone; a backfill that finds nothing to
// write forgets what was saved, and an id is what was asked.
func TestSavedBackfills(t *testing.T) {
	b := newBackfilled(t, rand.New(rand.NewPCG(5, 5)), "days", "")
	defer func() { b.o.close() }()
	for day := range 6 {
		b.write(fmt.Sprintf("day%d.%s", day, b.format), b.three(day))
	}
	if err := b.run(b.o); err != nil {
		t.Fatal(err)
	}
	spec := engine.BackfillSpec{From: "2024-03-20", To: "2024-03-26", Zone: "UTC", SaveEvery: 1}
	stop := func() {
		t.Helper()
		b.reopen()
		for name, source := range b.o.Sources {
			b.o.Sources[name] = &stopping{source, 3}
		}
		b.o.Limit.Bytes = 1
		if _, err := b.o.Backfill(t.Context(), spec, 0, func(engine.Backfill) error { return nil }); !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		b.reopen()
		b.o.Limit.Bytes = 1
	}
	kinds := func() (out []string) {
		t.Helper()
		jobs, err := b.o.Destination.Jobs(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			out = append(out, j.Kind)
		}
		return out
	}
	own := []string{"backfill/" + spec.ID()}

	stop()
	if r, err := b.o.Backfill(t.Context(), spec, 0, nil); err != nil || r.Saved != 3 || r.Seq != 0 {
		t.Errorf("a dry run: %+v, %v", r, err)
	}
	if got := kinds(); !slices.Equal(got, own) {
		t.Errorf("after a dry run there is %v", got)
	}
	other := spec
	other.Zone = "Europe/Berlin"
	if r, err := b.o.Backfill(t.Context(), other, 0, nil); err != nil || r.Saved != 0 || r.ID == spec.ID() {
		t.Errorf("another backfill: %+v, %v", r, err)
	}
	if err := engine.CancelBackfill(t.Context(), b.o.Destination, "p", spec.ID()); err != nil || len(kinds()) > 0 {
		t.Errorf("after it was cancelled there is %v, %v", kinds(), err)
	}
	for _, yes := range []bool{true, false} {
		stop()
		spec.Yes = yes
		if r, err := b.o.Backfill(t.Context(), spec, 0, func(engine.Backfill) error { return nil }); err != nil || r.Saved != 3 || r.Seq != 0 || len(kinds()) > 0 {
			t.Errorf("nothing to write: %+v, %v, and there is %v", r, err, kinds())
		}
		spec.Yes = false
	}
	b.expect("nothing was written")
}
