package connectorstest

import (
	"errors"
	"slices"
	"testing"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// correct commits a repair: what is staged was found by comparing with the table as it is.
func (r *run) correct(leaving int64, rowsAfter int, rows ...row) error {
	r.t.Helper()
	found, err := r.Destination.Found(background, pipeline, r.sink)
	must(r.t, err)
	c := r.change(rows...)
	c.Segments, c.Ranges, c.Rejects = nil, nil, nil
	m := &c.Manifest
	m.Kind, m.Batch, m.Sources, m.Position = checkpoints.KindRepair, r.head.LastBatch, nil, r.head.Manifest.Position
	m.RangesSHA, m.Live = checkpoints.RangesSHA(nil), c.Before
	counts := c.Sinks[0].Counts
	counts.Rows, counts.Deleted = int64(rowsAfter), counts.Deleted+leaving
	c.Sinks[0].Counts, c.Sinks[0].Against, c.Sinks[0].Leaving = counts, &found, leaving
	m.Sinks[r.sink.Name] = counts
	if err := r.Destination.Commit(background, r.lease, c); err != nil {
		return err
	}
	r.follow(c, rows)
	r.sameTable()
	return nil
}

// testCorrections: a correction overrules whatever was done to a table, but not what is done to it after it
// was looked at.
func testCorrections(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	if found, err := r.Destination.Found(background, pipeline, salesSink); err != nil || found.Relation != "" {
		t.Fatalf("before there is a table it is %+v, %v", found, err)
	}
	r.commit(rowA, rowB)
	table := r.Table("", salesSink.Table)
	found, err := r.Destination.Found(background, pipeline, salesSink)
	if err != nil || !found.Seq || len(found.Columns) != 3 || found.OtherKey || len(found.Lost) > 0 {
		t.Fatalf("the table is %+v, %v", found, err)
	}
	var n int
	must(t, r.Engine.QueryRow(background, "SELECT count(*) FROM "+found.Relation+" WHERE _etl_seq = 1 AND revenue < 3", nil, &n))
	if n != 2 {
		t.Errorf("%d of its rows can be read", n)
	}

	r.Exec(t, "UPDATE "+table+" SET revenue = 9, _etl_seq = 99 WHERE store = 'a'")
	must(t, r.correct(0, 2, rowA.with("U")))
	r.Exec(t, "DELETE FROM "+table+" WHERE store = 'a'")
	must(t, r.correct(0, 2, rowA))
	r.again(db)
	if !r.Keyed {
		r.Exec(t, "INSERT INTO "+table+" SELECT * FROM "+table)
		must(t, r.correct(2, 2, rowA.with("U"), rowB.with("U")))
	}
	r.Exec(t, "DROP TABLE "+table)
	must(t, r.correct(0, 2, rowA, rowB))
	r.again(db)
	r.commit(rowC)

	// The table has an older one's columns and another key.
	key, columns := salesSink, slices.Clone(salesSink.Columns)
	columns[2] = connectors.SinkColumn{Name: "total", Type: "DECIMAL(12,2)"}
	key.Key, key.Columns = []string{"store"}, columns
	if found, err = r.Destination.Found(background, pipeline, key); err != nil || !found.OtherKey || !slices.Equal(found.Lost, []string{"revenue"}) {
		t.Errorf("to a sink of another key it is %+v, %v", found, err)
	}

	// What happens after the look.
	for name, wrong := range map[string]func() error{
		"a row to insert is there": func() error { return r.correct(0, 4, rowA) },
		"a row to update is gone":  func() error { return r.correct(0, 3, row{"'2024-05-09'", "'x'", "1.00", "U"}) },
		"a row to delete is gone":  func() error { return r.correct(0, 2, row{"'2024-05-09'", "'x'", "1.00", "D"}) },
		"a row more":               func() error { return r.correct(0, 2, rowA.with("U")) },
		"fewer rows leave":         func() error { return r.correct(1, 2, rowA.with("U")) },
	} {
		before := r.everything()
		var target *connectors.TargetError
		if err := wrong(); !errors.As(err, &target) {
			t.Errorf("%s: the error is %T %v", name, err, err)
		}
		r.unchanged(before)
	}
}

// testJobs: what is saved of a job is there until it is saved again, committed or forgotten, whatever is
// compacted.
func testJobs(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA)
	job := func() connectors.Job {
		t.Helper()
		found, err := r.Destination.Job(background, pipeline, checkpoints.KindRebuild)
		must(t, err)
		return found
	}
	if found := job(); len(found.Segments) > 0 {
		t.Errorf("before anything was saved there is %+v", found)
	}
	save := func(id string) {
		t.Helper()
		segment, err := checkpoints.EncodePosition("orders", 1, checkpoints.Splits{id: {Next: 5, Rows: 5, Content: "c"}}, nil)
		must(t, err)
		must(t, r.Destination.SaveJob(background, connectors.Job{Pipeline: pipeline, Kind: checkpoints.KindRebuild, BaseSeq: 1, Spec: "of " + id, Segments: []checkpoints.Segment{*segment}}))
	}
	save("1")
	save("2")
	r.again(db)
	found := job()
	if len(found.Segments) != 1 || found.Spec != "of 2" || found.BaseSeq != 1 {
		t.Fatalf("what was saved is %+v", found)
	}
	must(t, r.Destination.Load(background, &found.Segments[0]))
	if splits, err := checkpoints.DecodePosition(found.Segments); err != nil || splits["2"].Next != 5 {
		t.Errorf("the segment gives %v, %v", splits, err)
	}
	if jobs, err := r.Destination.Jobs(background, pipeline); err != nil || len(jobs) != 1 || jobs[0].Kind != checkpoints.KindRebuild || jobs[0].Spec != "of 2" {
		t.Errorf("the jobs are %+v, %v", jobs, err)
	}
	must(t, r.Destination.ForgetJob(background, pipeline, checkpoints.KindRebuild))
	must(t, r.Destination.ForgetJob(background, pipeline, checkpoints.KindRebuild))
	save("3")
	change := r.change(rowB)
	change.Job = checkpoints.KindRebuild
	must(t, r.Destination.Commit(background, r.lease, change))
	if left := r.Rows(t, "SELECT * FROM "+r.Table("etl", "segments")+" WHERE segment_id NOT IN (SELECT segment_id FROM "+r.Table("etl", "segment_use")+")"); len(left) > 0 || len(job().Segments) > 0 {
		t.Errorf("of a job that was forgotten %v is left", left)
	}
}
