package connectorstest

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// testRecovery: what a damaged state is built again from can be read, and a change that replaces the whole
// state, and a damaged manifest, makes the head good again.
func testRecovery(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA)
	r.commit(rowB)
	ranges, err := r.Destination.Consumed(background, pipeline, 2)
	must(t, err)
	if want := []checkpoints.Range{{Source: "orders", Split: "2024/2.csv", To: 10, Rows: 10, Content: "c"}}; !reflect.DeepEqual(ranges, want) {
		t.Errorf("the ranges of change 2 are %v, want %v", ranges, want)
	}
	whole := r.head.Manifest
	position := loadPosition(t, r, 2)
	manifests := r.Table("etl", "manifests")
	r.Exec(t, "UPDATE "+manifests+" SET counts = 'x', live = '{}' WHERE seq = 2")
	r.Exec(t, "DELETE FROM "+r.Table("etl", "segments")+" WHERE seq_lo = 1")

	var damage *connectors.DamagedError
	m, err := r.Destination.Manifest(background, pipeline, 2)
	if !errors.As(err, &damage) || m.Attempt != whole.Attempt || !m.BatchTime.Equal(whole.BatchTime) || m.Env != whole.Env {
		t.Fatalf("the damaged manifest is %+v, %v", m, err)
	}
	lease, head, err := r.Destination.Take(background, pipeline)
	if !errors.As(err, &damage) || lease.Fence != r.lease.Fence+1 || head.Fence != lease.Fence {
		t.Fatalf("with a damaged manifest the lease is %+v, the head %+v: %v", lease, head, err)
	}
	if head.SHA != whole.Checksum() || head.Plan != plan || head.LastBatch != 1 || !reflect.DeepEqual(head.Manifest.Position, whole.Position) {
		t.Fatalf("without its manifest the head is %+v", head)
	}
	r.lease = lease
	r.head.Manifest = whole
	segment, err := checkpoints.EncodePosition("orders", 3, position, nil)
	must(t, err)
	recovery := func() *connectors.Change {
		c := r.change()
		c.Sinks, c.Ranges, c.Rejects = nil, nil, nil
		c.Whole, c.Mended, c.Segments = true, &whole, []*checkpoints.Segment{segment}
		m := &c.Manifest
		m.Kind, m.Batch, m.Sources, m.Attempt = checkpoints.KindRecovery, 1, nil, uuid.NewString()
		m.Position = whole.Position
		m.RangesSHA, m.Live = checkpoints.RangesSHA(nil), checkpoints.SumLive([]checkpoints.Segment{*segment})
		return c
	}
	wrong := recovery()
	other := whole
	other.Attempt = uuid.NewString()
	wrong.Mended = &other
	if err := r.Destination.Commit(background, r.lease, wrong); err == nil {
		t.Fatal("another manifest was stored in the place of a damaged one")
	}
	change := recovery()
	must(t, r.Destination.Commit(background, r.lease, change))
	r.follow(change, nil)
	r.again(db)
	if m, err = r.Destination.Manifest(background, pipeline, 2); err != nil || !reflect.DeepEqual(m, whole) {
		t.Errorf("the mended manifest is %+v, %v", m, err)
	}
	if again := loadPosition(t, r, 3); !reflect.DeepEqual(again, position) {
		t.Errorf("the position is %v, was %v", again, position)
	}
	r.commit(rowA.with("U"), rowC)
	r.again(db)
}
