package connectorstest

import (
	"errors"
	"reflect"
	"testing"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

func testLifecycle(t *testing.T, db Database) {
	s := db.Open(t)
	head, err := s.Destination.Head(background, pipeline)
	must(t, err)
	if !head.Fresh || head.LastBatch != -1 || head.Manifest.Incarnation != 1 || head.Manifest.Pipeline != pipeline {
		t.Fatalf("a pipeline that never ran has head %+v", head)
	}
	must(t, s.Destination.CheckTargets(background, head, []connectors.SinkSpec{salesSink}))
	s.Close(t)

	r := start(t, db, salesSink)
	if !r.head.Fresh || r.head.Fence != 1 || r.lease.Fence != 1 {
		t.Fatalf("the first lease gives %+v with head %+v", r.lease, r.head)
	}
	r.commit(row{"'2024-05-03'", "'a'", "1.50", "I"}, row{"'2024-05-03'", "'b'", "2.00", "I"}, row{"'2024-05-04'", "'a'", "3.00", "I"})
	r.commit(row{"'2024-05-03'", "'a'", "9.99", "U"}, row{"'2024-05-03'", "'b'", "2.00", "D"}, row{"'2024-05-05'", "'c''d'", "NULL", "I"})
	want := r.head.Manifest
	r.again(db)
	if !reflect.DeepEqual(r.head.Manifest, want) || r.head.Plan != plan || r.head.LastBatch != 1 || r.head.Fence != 2 {
		t.Fatalf("after a restart the head is %+v, want manifest %+v", r.head, want)
	}
	r.commit(row{"'2024-05-04'", "'a'", "3.00", "D"})

	seqs := r.Rows(t, "SELECT DISTINCT _etl_seq FROM "+r.Table(salesSink.Schema, salesSink.Table))
	if len(seqs) != 1 || seqs[0][0] != "2" {
		t.Errorf("_etl_seq is %v, want that of the change which wrote the rows, 2", seqs)
	}
	position := loadPosition(t, r, 3)
	if err := (checkpoints.Position{"orders": position}).Verify(r.head.Manifest.Position); err != nil {
		t.Error(err)
	}
	if len(loadPosition(t, r, 2)) != 2 {
		t.Error("the position as of change 2 does not have its 2 splits")
	}
	must(t, r.Destination.Release(background, r.lease))
	if rows := r.Rows(t, "SELECT * FROM "+r.Table("etl", "leases")); len(rows) != 0 {
		t.Errorf("after its release the lease is %v", rows)
	}
}

// loadPosition restores the position as of a change.
func loadPosition(t *testing.T, r *run, seq int64) checkpoints.Splits {
	t.Helper()
	segments, err := r.Destination.Segments(background, pipeline, 1, seq)
	must(t, err)
	for i := range segments {
		must(t, r.Destination.Load(background, &segments[i]))
	}
	splits, err := checkpoints.DecodePosition(segments)
	must(t, err)
	return splits
}

func testNullKeys(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(row{"NULL", "'a'", "1.00", "I"}, row{"NULL", "NULL", "2.00", "I"}, row{"'2024-05-03'", "NULL", "3.00", "I"})
	r.commit(row{"NULL", "'a'", "1.10", "U"}, row{"NULL", "NULL", "2.10", "U"}, row{"'2024-05-03'", "NULL", "3.00", "D"})
	r.again(db)
	r.commit(row{"NULL", "NULL", "2.10", "D"})
}

func testEmptyKey(t *testing.T, db Database) {
	sink := salesSink
	sink.Key = nil
	r := start(t, db, sink)
	r.commit(row{"'2024-05-03'", "'a'", "1.00", "I"})
	r.table = map[string]row{}
	r.commit(row{"'2024-05-04'", "'b'", "2.00", "U"})
	r.again(db)
	_ = r.refused(row{"'2024-05-03'", "'c'", "3.00", "U"}, row{"'2024-05-03'", "'d'", "3.00", "I"}) // two rows for a table of one
	r.again(db)
	r.table = map[string]row{}
	change := r.change(row{"NULL", "NULL", "NULL", "D"})
	must(t, r.Destination.Commit(background, r.lease, change))
	r.follow(change, nil)
	r.again(db)
}

func testEmptyChange(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit() // the table is there after it
	change := r.change()
	change.Sinks, change.Segments, change.Ranges = nil, nil, nil
	change.Manifest.Sources, change.Rejects = nil, nil
	change.Manifest.RangesSHA, change.Manifest.Live = checkpoints.RangesSHA(nil), change.Before
	must(t, r.Destination.Commit(background, r.lease, change))
	r.follow(change, nil)
	r.again(db)
	if r.head.Manifest.Seq != 2 {
		t.Errorf("an empty change left the head at %d", r.head.Manifest.Seq)
	}
	r.commit(row{"'2024-05-03'", "'a'", "1.00", "I"})
}

func testFence(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(row{"'2024-05-03'", "'a'", "1.00", "I"})
	older := r.lease
	newer, head, err := r.Destination.Take(background, pipeline)
	must(t, err)
	if newer.Fence <= older.Fence || head.Fence != newer.Fence {
		t.Fatalf("the second lease has fence %d after %d, the head %d", newer.Fence, older.Fence, head.Fence)
	}
	var fenced *connectors.FencedError
	if err := r.refused(row{"'2024-05-03'", "'a'", "1.00", "D"}); !errors.As(err, &fenced) {
		t.Fatalf("the older run's commit gave %v", err)
	}
	must(t, r.Destination.Release(background, older))
	r.lease = newer
	r.commit(row{"'2024-05-03'", "'a'", "2.00", "U"})

	// A change that was built on an older head is stopped as well, by the same run.
	stale := r.head
	r.commit(row{"'2024-05-04'", "'a'", "3.00", "I"})
	current := r.head
	r.head = stale
	_ = r.refused(row{"'2024-05-03'", "'a'", "4.00", "I"}) // on a stale head
	r.head = current
	r.again(db)
}

// testRest: while a destination rests another run can use the database. Awake again it sees what that
// one did, and cannot write under its old lease.
func testRest(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA)
	older := r.lease
	must(t, r.Destination.Release(background, older))
	must(t, r.Destination.Rest(background))

	other := &run{Session: db.Open(t), t: t, sink: salesSink, table: r.table}
	var err error
	other.lease, other.head, err = other.Destination.Take(background, pipeline)
	must(t, err)
	other.commit(rowB)
	other.Close(t)

	must(t, r.Destination.Wake(background))
	head, err := r.Destination.Head(background, pipeline)
	must(t, err)
	if head.Manifest.Seq != 2 || head.Manifest.Checksum() != other.head.Manifest.Checksum() {
		t.Fatalf("awake again the head is %+v", head)
	}
	r.head = head
	var fenced *connectors.FencedError
	if err := r.refused(rowC); !errors.As(err, &fenced) {
		t.Fatalf("a commit under the old lease gave %v", err)
	}
	r.again(db)
	r.commit(rowC)
	must(t, r.Destination.Rest(background))
	must(t, r.Destination.Rest(background))
	must(t, r.Destination.Close())
}

// testLostRecord: missing is not fresh.
func testLostRecord(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit()
	r.commit()
	pipelines := r.Table("etl", "pipelines")
	for _, damage := range []string{"UPDATE " + pipelines + " SET seq = 1", "UPDATE " + pipelines + " SET seq = 0", "DELETE FROM " + pipelines} {
		r.Exec(t, damage)
		var target *connectors.TargetError
		if _, err := r.Destination.Head(background, pipeline); !errors.As(err, &target) {
			t.Errorf("after %q the head gives %v", damage, err)
		}
		if _, _, err := r.Destination.Take(background, pipeline); !errors.As(err, &target) {
			t.Errorf("after %q a lease gives %v", damage, err)
		}
	}
}
