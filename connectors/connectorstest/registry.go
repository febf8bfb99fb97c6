package connectorstest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// registry is the part of a destination that changes a pipeline as a whole.
func (r *run) registry() connectors.Registry {
	r.t.Helper()
	out, ok := r.Destination.(connectors.Registry)
	if !ok {
		r.t.Fatal("the destination is no connectors.Registry")
	}
	return out
}

func (r *run) known(name string) connectors.Known {
	r.t.Helper()
	k, err := r.registry().Known(background, name)
	must(r.t, err)
	return k
}

// testDrop: nothing of a dropped pipeline is left, and everything of others.
func testDrop(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	if k := r.known(pipeline + "2"); k.Traces != 0 || k.Batch != -1 {
		t.Fatalf("a pipeline that never ran is known: %+v", k)
	}
	r.commit(rowA, rowC)
	r.commit(rowB)
	k := r.known(pipeline)
	if k.Batch != 1 || k.Changes != 2 || k.Splits != 2 || k.Rejected != 2 || k.Bytes == 0 || len(k.Tables) != 1 || k.Tables[0].Sink != salesSink.Name || k.Tables[0].Rows != 3 || k.Tables[0].Table != salesSink.Table ||
		!slices.Equal(k.Tables[0].Key, salesSink.Key) || len(k.Tables[0].Columns) != 3 || k.Tables[0].TakenOver || k.Tables[0].Gone {
		t.Fatalf("known is %+v", k)
	}
	must(t, r.registry().Drop(background, pipeline, false))
	if k := r.known(pipeline); k.Traces != 0 {
		t.Fatalf("after the drop %+v is known", k)
	}
	for _, table := range etlTables {
		if n := r.Rows(t, "SELECT count(*) FROM "+r.Table("etl", table))[0][0]; n != "0" {
			t.Errorf("etl.%s has %s rows after the drop", table, n)
		}
	}
	// A run that was at work does not write its batch.
	var fenced *connectors.FencedError
	var target *connectors.TargetError
	if err := r.Destination.Commit(background, r.lease, r.change(rowA.with("U"))); !errors.As(err, &fenced) && !errors.As(err, &target) && !strings.Contains(err.Error(), "does not exist") {
		t.Fatalf("a commit after the drop: %v", err)
	}
	must(t, r.registry().Drop(background, pipeline, false)) // nothing is there

	r = fresh(r, db)
	r.commit(rowB)
	if r.head.Manifest.Seq != 1 {
		t.Fatalf("the first change after the drop is %d", r.head.Manifest.Seq)
	}

	// With keep the table stays, as one that no pipeline wrote.
	must(t, r.registry().Drop(background, pipeline, true))
	table := r.Table(salesSink.Schema, salesSink.Table)
	if rows := r.Rows(t, "SELECT * FROM "+table); len(rows) != 1 || len(rows[0]) != len(salesSink.Columns) {
		t.Fatalf("the table that was kept has %v", rows)
	}
	if k := r.known(pipeline); k.Traces != 0 {
		t.Fatalf("after the drop %+v is known", k)
	}
	head, err := r.Destination.Head(background, pipeline)
	must(t, err)
	err = r.Destination.CheckTargets(background, head, []connectors.SinkSpec{salesSink})
	if !errors.As(err, &target) || !strings.Contains(target.Reason, "no pipeline wrote its rows (1)") {
		t.Fatalf("a table that was kept: %v", err)
	}
	// Emptied it is taken over, and then no drop takes it away.
	r.Exec(t, "DELETE FROM "+table)
	r.Exec(t, "COMMENT ON TABLE "+table+" IS 'of sales'")
	r = fresh(r, db)
	r.commit(rowA)
	if k := r.known(pipeline); !k.Tables[0].TakenOver {
		t.Fatal("a table that was taken over is not known as one")
	}
	must(t, r.registry().Drop(background, pipeline, false))
	if rows := r.Rows(t, "SELECT * FROM "+table); len(rows) != 1 || len(rows[0]) != len(salesSink.Columns) {
		t.Fatalf("the table that was taken over has %v", rows)
	}

	// A table in its place that is another's is left alone.
	r.Exec(t, "DROP TABLE "+table)
	r = fresh(r, db)
	r.commit(rowA)
	r.Exec(t, "DROP TABLE "+table)
	r.Exec(t, "CREATE TABLE "+table+" AS SELECT 1 AS n")
	if k := r.known(pipeline); !k.Tables[0].Gone {
		t.Fatal("another table is taken for the pipeline's")
	}
	must(t, r.registry().Drop(background, pipeline, false))
	if rows := r.Rows(t, "SELECT * FROM "+table); len(rows) != 1 {
		t.Fatalf("another's table has %v", rows)
	}
}

// fresh closes a run and starts the pipeline's next one, before its first batch.
func fresh(r *run, db Database) *run {
	r.t.Helper()
	r.Close(r.t)
	r = start(r.t, db, salesSink)
	if !r.head.Fresh {
		r.t.Fatal("the pipeline is not fresh")
	}
	return r
}

// testRename: under another name the pipeline goes on as if it had always had it.
func testRename(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA, rowC)
	r.commit(rowB)
	var target *connectors.TargetError
	if err := r.registry().Rename(background, "nobody", "somebody"); !errors.As(err, &target) || !strings.Contains(target.Reason, "there is no pipeline nobody") {
		t.Fatalf("renaming what is not there: %v", err)
	}
	lease, _, err := r.Destination.Take(background, "taken") // has a name and no batch
	must(t, err)
	must(t, r.Destination.Release(background, lease))
	must(t, r.registry().Rename(background, pipeline, "taken"))
	if k := r.known(pipeline); k.Traces != 0 {
		t.Fatalf("under the old name %+v is known", k)
	}
	if k := r.known("taken"); k.Batch != 1 || k.Changes != 2 || k.Splits != 2 || k.Bytes == 0 || len(k.Tables) != 1 || k.Tables[0].Gone || k.Tables[0].Rows != 3 {
		t.Fatalf("under the new name %+v is known", k)
	}
	head, err := r.Destination.Head(background, "taken")
	must(t, err)
	must(t, r.Destination.CheckTargets(background, head, []connectors.SinkSpec{salesSink}))
	_, err = r.Destination.Segments(background, "taken", 1, head.Manifest.Seq)
	must(t, err)
	for seq := int64(1); seq <= head.Manifest.Seq; seq++ {
		m, err := r.Destination.Manifest(background, "taken", seq)
		must(t, err)
		if m.Pipeline != "taken" {
			t.Fatalf("manifest %d is of %s", seq, m.Pipeline)
		}
	}
	var fenced *connectors.FencedError
	if err := r.Destination.Commit(background, r.lease, r.change(rowA.with("U"))); !errors.As(err, &fenced) && !errors.As(err, &target) {
		t.Fatalf("a commit under the old name: %v", err)
	}
	if n := r.Rows(t, "SELECT count(*) FROM "+r.Table("etl", "leases"))[0][0]; n != "0" {
		t.Fatalf("%s leases are left", n)
	}
	// A name that is taken is left alone.
	sink := salesSink
	sink.Name, sink.Table = "mart.others", "others"
	r.Close(t)
	r = start(t, db, sink)
	r.commit(rowA)
	if err := r.registry().Rename(background, pipeline, "taken"); !errors.As(err, &target) || !strings.Contains(target.Reason, "there is a pipeline taken already") {
		t.Fatalf("a name that is taken: %v", err)
	}
	must(t, r.registry().Drop(background, pipeline, false))
	// And back.
	must(t, r.registry().Rename(background, "taken", pipeline))
	r.Close(t)
	r = start(t, db, salesSink)
	for _, row := range []row{rowA, rowB, rowC} {
		r.table[row.key()] = row
	}
	r.sameTable()
	r.commit(rowA.with("U"), rowC.with("D"))
	must(t, r.Destination.CheckTargets(background, r.head, []connectors.SinkSpec{salesSink}))
}

// testLoss: a change that only moves the position past what is lost.
func testLoss(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA)
	position := loadPosition(t, r, 1)
	entry := position["2024/1.csv"]
	entry.Content, entry.Size, entry.Lost = "c now", 7, true
	segment, err := checkpoints.EncodePosition("orders", 2, checkpoints.Splits{"2024/1.csv": entry}, nil)
	must(t, err)
	loss := func() *connectors.Change {
		c := r.change()
		c.Sinks, c.Ranges, c.Rejects, c.Segments = nil, nil, nil, []*checkpoints.Segment{segment}
		m := &c.Manifest
		m.Kind, m.Batch, m.Sources = checkpoints.KindLoss, 0, nil
		m.Position = map[string]checkpoints.PositionSum{"orders": checkpoints.Splits{"2024/1.csv": entry}.Sum()}
		m.Losses = map[string]checkpoints.LossCount{"orders": {Splits: 1, Read: 10, Unread: 3}}
		m.RangesSHA, m.Live = checkpoints.RangesSHA(nil), c.Before.After(c.Segments, nil)
		return c
	}
	uncounted := loss()
	uncounted.Manifest.Losses = nil
	if err := r.Destination.Commit(background, r.lease, uncounted); err == nil {
		t.Fatal("a loss that counts nothing was committed")
	}
	change := loss()
	must(t, r.Destination.Commit(background, r.lease, change))
	r.follow(change, nil)
	r.again(db)
	if got := r.head.Manifest.Losses["orders"]; got != (checkpoints.LossCount{Splits: 1, Read: 10, Unread: 3}) {
		t.Fatalf("the loss is %+v", got)
	}
	if got := loadPosition(t, r, 2)["2024/1.csv"]; got != entry {
		t.Fatalf("the position is %+v, want %+v", got, entry)
	}
	kinds, ok := r.Destination.(interface {
		OfKind(ctx context.Context, pipeline, kind string) ([]checkpoints.Manifest, error)
	})
	if ok {
		found, err := kinds.OfKind(background, pipeline, checkpoints.KindLoss)
		if err != nil || len(found) != 1 || found[0].Seq != 2 {
			t.Fatalf("the losses are %v: %v", found, err)
		}
	}
	r.commit(rowB)
	must(t, r.registry().Rename(background, pipeline, "renamed"))
}
