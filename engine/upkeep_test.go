package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// failing is a destination whose compactions fail for a while.
type failing struct {
	connectors.Destination
	err   error
	times int
}

func (f *failing) Points(ctx context.Context, pipeline string, incarnation int64) ([]checkpoints.Point, error) {
	if f.times > 0 {
		f.times--
		return nil, f.err
	}
	return f.Destination.Points(ctx, pipeline, incarnation)
}

// TestFailedCompaction: the batch before it is committed and reported, the run goes on from what the
// destination says, and the table stays equal to the SELECT.
func TestFailedCompaction(t *testing.T) {
	ctx := context.Background()
	text := "ATTACH 'm.duckdb' AS m; CREATE SOURCE t " + columnsOfT + " FROM '*.csv'; " +
		"CREATE SINK m.s PRIMARY KEY (k) AS SELECT k, count(*) AS n, sum(b) AS b FROM t GROUP BY k;"
	p := &project{t: t, dir: t.TempDir(), text: text}
	sizes := make([]int, 12)
	for i := range sizes {
		sizes[i] = 20
	}
	writeFiles(t, p.dir, "csv", sizes)
	o := p.open()
	defer o.close()
	o.Limit = connectors.Limit{Bytes: 1} // a file a batch
	dest := o.Destination
	o.Destination = &failing{Destination: dest, err: errors.New("no room"), times: 2}
	sum, err := o.Run(ctx, nil)
	if err != nil || len(sum.Reports) != 12 || sum.Batch != 11 {
		t.Fatalf("%d batches to batch %d: %v", len(sum.Reports), sum.Batch, err)
	}
	if len(sum.Warnings) != 2 || !strings.Contains(sum.Warnings[0], "is committed; the compaction after it failed and is left to a later run: no room") {
		t.Errorf("warnings: %q", sum.Warnings)
	}
	found, err := o.Reconcile(ctx, dest.(interface {
		Relation(context.Context, connectors.SinkSpec) (string, error)
	}).Relation, nil)
	if err != nil || found[0].Total() != 0 {
		t.Errorf("%+v, %v", found, err)
	}

	// Damage is mended, and the run goes on.
	d := &project{t: t, dir: t.TempDir(), text: text}
	writeFiles(t, d.dir, "csv", sizes)
	o = d.open()
	defer o.close()
	o.Limit = connectors.Limit{Bytes: 1}
	o.Destination = &failing{Destination: o.Destination, err: &connectors.DamagedError{What: "x", Reason: "y"}, times: 1}
	sum, err = o.Run(ctx, nil)
	if err != nil || len(sum.Reports) != 12 || len(sum.Warnings) != 1 || sum.Warnings[0] != "x is damaged: y; the state was built again from checkpoint 8" {
		t.Errorf("%d batches, warnings %q: %v", len(sum.Reports), sum.Warnings, err)
	}

	// What the next look would meet again stops the run; the batch is reported all the same.
	q := &project{t: t, dir: t.TempDir(), text: text}
	writeFiles(t, q.dir, "csv", sizes)
	o = q.open()
	defer o.close()
	o.Limit = connectors.Limit{Bytes: 1}
	o.Destination = &failing{Destination: o.Destination, err: &connectors.TargetError{Table: "x", Reason: "y"}, times: 1}
	sum, err = o.Run(ctx, nil)
	var target *connectors.TargetError
	if !errors.As(err, &target) || !strings.HasPrefix(err.Error(), "batch 7 is committed; the compaction after it failed: ") || len(sum.Reports) != 8 {
		t.Errorf("%d batches, %v", len(sum.Reports), err)
	}
}
