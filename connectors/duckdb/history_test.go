package duckdb

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// history makes a database with a few changes of the pipeline "bench".
func history(t *testing.T, changes int) (*Destination, connectors.Head, connectors.SinkSpec) {
	t.Helper()
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "mart.duckdb")
	eng, dest := open(t, path)
	lease, head, err := dest.Take(ctx, "bench")
	must(t, err)
	var sink connectors.SinkSpec
	for range changes {
		op, keys := connectors.OpUpdate, int64(3)
		if head.Fresh {
			op, keys = connectors.OpInsert, 10
		}
		change := benchmarkChange(t, eng, head, keys, op, load{keys: 10, steps: 2, state: 100, ranges: 3})
		must(t, dest.Commit(ctx, lease, change))
		head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
		sink = change.Sinks[0].Sink
	}
	t.Cleanup(func() { must(t, dest.Close()) })
	return dest, head, sink
}

func TestHistory(t *testing.T) {
	ctx := context.Background()
	dest, head, _ := history(t, 4)
	for n, want := range map[int]int{0: 4, 2: 2, 9: 4} {
		got, err := dest.History(ctx, "bench", n)
		must(t, err)
		if len(got) != want || got[0].Seq != 4 || got[0].Checksum() != head.Manifest.Checksum() {
			t.Errorf("the newest %d are %v", n, got)
		}
	}
	if rows := texts(t, dest.eng, dest.inDatabase("SELECT pipeline, seq, batch, kind, splits_read, rows_read FROM {db}.etl.history ORDER BY seq")); len(rows) != 4 ||
		strings.Join(rows[3], " ") != "bench 4 3 batch 3 0" {
		t.Errorf("the view history shows %v", rows)
	}
	if rows := texts(t, dest.eng, dest.inDatabase("SELECT pipeline, batch, seq, held_by_pid IS NOT NULL FROM {db}.etl.status")); len(rows) != 1 ||
		strings.Join(rows[0], " ") != "bench 3 4 true" {
		t.Errorf("the view status shows %v", rows)
	}
	must(t, dest.eng.Exec(ctx, dest.inDatabase("UPDATE {db}.etl.manifests SET counts = '{}' WHERE seq = 2")))
	var damaged *connectors.DamagedError
	if _, err := dest.History(ctx, "bench", 0); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "manifest 2 of bench") {
		t.Errorf("of a damaged manifest the error is %v", err)
	}
}

// TestMark: the comment that tells a table again is kept by ALTER and RENAME, lost by CREATE OR REPLACE,
// and can be put back.
func TestMark(t *testing.T) {
	ctx := context.Background()
	dest, head, sink := history(t, 1)
	table := dest.table("main", sink.Table)
	check := func() error { return dest.CheckTargets(ctx, head, []connectors.SinkSpec{sink}) }
	for _, stmt := range []string{
		"ALTER TABLE " + table + " ADD COLUMN x INTEGER", "ALTER TABLE " + table + " DROP COLUMN x",
		"ALTER TABLE " + table + " RENAME TO renamed", "ALTER TABLE " + dest.table("main", "renamed") + " RENAME TO " + sink.Table,
	} {
		must(t, dest.eng.Exec(ctx, stmt))
	}
	must(t, check())
	must(t, dest.eng.Exec(ctx, "CREATE OR REPLACE TABLE "+table+" AS FROM "+table))
	err := check()
	var target *connectors.TargetError
	if !errors.As(err, &target) || !strings.Contains(err.Error(), "it was replaced") {
		t.Fatalf("of a replaced table the error is %v", err)
	}
	owners, err := dest.owners(ctx)
	must(t, err)
	for _, own := range owners {
		must(t, dest.eng.Exec(ctx, "COMMENT ON TABLE "+table+" IS "+duck.Literal(targets.Mark(own.Pipeline, own.Identity))))
	}
	must(t, check())
}
