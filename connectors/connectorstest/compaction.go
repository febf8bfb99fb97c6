package connectorstest

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"lockstep/checkpoints"
)

// testCompaction merges the segments of some batches and drops what no kept checkpoint needs. The
// position stays what it was, and the checkpoints that are kept can still be listed.
func testCompaction(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	for i := range 9 {
		op := "I"
		if i > 0 {
			op = "U"
		}
		r.commit(row{"'2024-05-03'", "'a'", "1.00", op})
	}
	live, err := r.Destination.Segments(background, pipeline, 1, 9)
	must(t, err)
	merges := checkpoints.Merges(live)
	if len(merges) != 1 || len(merges[0].Inputs) < 8 || !merges[0].Oldest {
		t.Fatalf("9 segments ask for %v", merges)
	}
	var want checkpoints.Splits
	for i := range live {
		must(t, r.Destination.Load(background, &live[i]))
	}
	want, err = checkpoints.DecodePosition(live)
	must(t, err)

	merge := merges[0]
	for i := range merge.Inputs {
		must(t, r.Destination.Load(background, &merge.Inputs[i]))
	}
	merged, err := checkpoints.MergePosition(merge, 10)
	must(t, err)
	change := r.change()
	change.Sinks, change.Ranges, change.Rejects = nil, nil, nil
	m := &change.Manifest
	m.Kind, m.Batch, m.Sources, m.Attempt = checkpoints.KindCompaction, r.head.LastBatch, nil, uuid.NewString()
	m.Position = r.head.Manifest.Position
	change.Segments, change.Removed = []*checkpoints.Segment{merged}, merge.Inputs
	change.Kept = []checkpoints.Kept{{Seq: 4, Reason: "hourly"}}
	m.RangesSHA, m.Live = checkpoints.RangesSHA(nil), change.Before.After(change.Segments, change.Removed)
	must(t, r.Destination.Commit(background, r.lease, change))
	r.follow(change, nil)
	r.again(db)

	for seq, readable := range map[int64]bool{10: true, 9: false, 6: false, 4: true} {
		listed, err := r.Destination.Segments(background, pipeline, 1, seq)
		if readable != (err == nil) {
			t.Errorf("of checkpoint %d: %v", seq, err)
		}
		if seq != 10 {
			continue
		}
		for i := range listed {
			must(t, r.Destination.Load(background, &listed[i]))
		}
		got, err := checkpoints.DecodePosition(listed)
		must(t, err)
		if len(got) != len(want) || got["2024/9.csv"] != want["2024/9.csv"] {
			t.Errorf("after the compaction the position is %v, was %v", got, want)
		}
	}
	points, err := r.Destination.Points(background, pipeline, 1)
	must(t, err)
	var seqs []int64
	for _, p := range points {
		seqs = append(seqs, p.Seq)
	}
	if !slices.Equal(seqs, []int64{4, 10}) {
		t.Errorf("kept are %v", seqs)
	}
	r.commit(row{"'2024-05-03'", "'a'", "2.00", "U"})
	r.again(db)

	// Merging what is not live any more is refused.
	again := r.change()
	again.Removed = merge.Inputs[:1]
	again.Manifest.Live = again.Before.After(again.Segments, again.Removed)
	if err := r.Destination.Commit(background, r.lease, again); err == nil {
		t.Error("a segment was removed twice")
	}
}
