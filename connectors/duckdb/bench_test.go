package duckdb

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// load is what one change of a benchmark writes.
type load struct {
	keys    int64 // keys of the table; every change updates changed of them
	changed int64
	state   int // bytes of segments, incompressible
	steps   int // segments they are in
	ranges  int
}

// BenchmarkCommit measures a whole commit, COMMIT and confirmation included. The first change, which
// fills the table, is not counted.
func BenchmarkCommit(b *testing.B) {
	for _, c := range []struct {
		name string
		load load
	}{
		{"nothing", load{keys: 1000, steps: 0}},
		{"1 row of 1M", load{keys: 1_000_000, changed: 1, state: 1000, steps: 2, ranges: 1}},
		{"100k rows of 1M", load{keys: 1_000_000, changed: 100_000, state: 1 << 20, steps: 2, ranges: 1}},
		{"100k rows of 10M", load{keys: 10_000_000, changed: 100_000, state: 1 << 20, steps: 2, ranges: 1}},
		{"50 MB of segments", load{keys: 1000, changed: 1, state: 50 << 20, steps: 5, ranges: 1}},
		{"5000 ranges", load{keys: 1000, changed: 1, steps: 0, ranges: 5000}},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkCommit(b, c.load) })
	}
}

func benchmarkCommit(b *testing.B, l load) {
	ctx, path := context.Background(), filepath.Join(b.TempDir(), "mart.duckdb")
	eng := engine(b, filepath.Dir(path))
	dest, err := Open(ctx, eng, path, "mart", Access{})
	must(b, err)
	lease, head, err := dest.Take(ctx, "bench")
	must(b, err)
	commit := func(keys int64, op string, l load) time.Duration {
		change := benchmarkChange(b, eng, head, keys, op, l)
		from := time.Now()
		must(b, dest.Commit(ctx, lease, change))
		took := time.Since(from)
		head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
		return took
	}
	commit(l.keys, connectors.OpInsert, load{keys: l.keys})
	var took time.Duration
	for b.Loop() {
		took += commit(l.changed, connectors.OpUpdate, l)
	}
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "ms/commit")
	b.ReportMetric(0, "ns/op") // it would count the staging
	must(b, dest.Close())
}

func benchmarkChange(b testing.TB, eng *duck.Engine, head connectors.Head, keys int64, op string, l load) *connectors.Change {
	b.Helper()
	tx, err := eng.Begin(context.Background())
	must(b, err)
	seq := head.Manifest.Seq + 1
	must(b, eng.Exec(context.Background(), fmt.Sprintf(
		"CREATE OR REPLACE TEMP TABLE staged AS SELECT (r * %d + %d) %% %d AS id, 'store ' || (r %% 100) AS store, (r * %d)::DECIMAL(38,2) AS revenue, '%s' AS _op FROM range(%d) s(r)",
		max(l.keys/max(keys, 1), 1), seq, l.keys, seq, op, keys)))
	counts := checkpoints.SinkCount{Updated: keys, Rows: l.keys}
	if op == connectors.OpInsert {
		counts.Inserted, counts.Updated = keys, 0
	}
	m := checkpoints.Manifest{
		Pipeline: "bench", Seq: seq, Incarnation: 1, Batch: seq - 1, Attempt: uuid.NewString(), Kind: checkpoints.KindBatch,
		ParentSeq: seq - 1, PlanID: "p", BatchTime: checkpoints.Time(time.Now()),
		Position: map[string]checkpoints.PositionSum{"orders": {}},
		Sources:  map[string]checkpoints.SourceCount{"orders": {Splits: l.ranges}},
		Sinks:    map[string]checkpoints.SinkCount{"mart.sales": counts},
	}
	if !head.Fresh {
		m.ParentSHA = head.Manifest.Checksum()
	}
	change := &connectors.Change{Plan: connectors.PlanRecord{ID: "p"}, Local: tx, Sinks: []connectors.SinkChange{{
		Sink: connectors.SinkSpec{Name: "mart.sales", Table: "sales", Key: []string{"id"}, Columns: []connectors.SinkColumn{
			{Name: "id", Type: "BIGINT"}, {Name: "store", Type: "VARCHAR"}, {Name: "revenue", Type: "DECIMAL(38,2)"}}},
		Table: "staged", Counts: counts}}}
	for i := range l.steps {
		change.Segments = append(change.Segments, randomSegment(fmt.Sprint("step ", i), seq, l.state/l.steps))
	}
	for i := range l.ranges {
		change.Ranges = append(change.Ranges, checkpoints.Range{Source: "orders", Split: fmt.Sprintf("2024/05/05/orders-%06d.parquet", i), Content: "0123456789abcdef0123456789abcdef"})
	}
	change.Before = head.Manifest.Live
	m.RangesSHA, m.Live = checkpoints.RangesSHA(change.Ranges), change.Before.After(change.Segments, nil)
	change.Manifest = m
	return change
}

// randomSegment has bytes as large as asked, which are no rows.
func randomSegment(step string, seq int64, size int) *checkpoints.Segment {
	data := make([]byte, size)
	_, _ = rand.Read(data)
	sum := sha256.Sum256(data)
	return &checkpoints.Segment{ID: uuid.NewString(), Step: step, SeqLo: seq, SeqHi: seq, Rows: 1, Bytes: int64(size), SHA256: hex.EncodeToString(sum[:]), Parts: [][]byte{data}}
}
