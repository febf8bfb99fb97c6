package duckdb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// Commit writes the change in the engine's open transaction and commits that. Whatever fails before
// COMMIT rolls all of it back: target rows, state, segments, manifest and head.
func (d *Destination) Commit(ctx context.Context, lease connectors.Lease, change *connectors.Change) error {
	err := d.commit(ctx, lease, change)
	if err != nil {
		clear(d.settled)
	}
	return err
}

func (d *Destination) commit(ctx context.Context, lease connectors.Lease, change *connectors.Change) error {
	tx, ok := change.Local.(*duck.Tx)
	if !ok {
		return fmt.Errorf("duckdb: a change comes in the engine's open transaction, not in %T", change.Local)
	}
	if err := d.writeTx(ctx, lease, change); err != nil {
		return errors.Join(err, d.failed("roll back", tx.Rollback()))
	}
	connectors.Failpoint("before-commit")
	if err := tx.Commit(); err != nil {
		return d.failed("commit", err)
	}
	connectors.Failpoint("after-commit")
	// The commit was sent: finding out how it ended is not called off.
	if err := d.confirm(context.WithoutCancel(ctx), change.Manifest); err != nil {
		return err
	}
	connectors.Failpoint("after-confirm")
	d.settled[settledPlan(change.Plan.ID)] = true
	for _, s := range change.Sinks {
		d.settled[settledSink(s.Sink)] = true
	}
	return nil
}

func settledPlan(id string) string                { return "plan " + id }
func settledSink(sink connectors.SinkSpec) string { return "sink " + sink.Name }

// writeTx does everything of a commit but COMMIT, in this order: checks that need no database, new
// tables, rows, then what makes the rows this pipeline's progress, and last the head, which fails if
// another run has taken over.
func (d *Destination) writeTx(ctx context.Context, lease connectors.Lease, change *connectors.Change) error {
	connectors.Failpoint("commit-begin")
	if d.readOnly {
		return errors.New("duckdb: commit to a database opened only to read")
	}
	if err := change.Check(lease); err != nil {
		return err
	}
	if err := d.createTargetsTx(ctx, change); err != nil {
		return err
	}
	connectors.Failpoint("after-ddl")
	for _, sink := range change.Sinks {
		if err := d.applyTx(ctx, change.Manifest.Seq, sink); err != nil {
			return err
		}
	}
	if err := d.insertRejectsTx(ctx, change); err != nil {
		return err
	}
	if err := d.insertSegmentsTx(ctx, change.Manifest, change.Segments); err != nil {
		return err
	}
	if err := d.removeSegmentsTx(ctx, change); err != nil {
		return err
	}
	if change.Job != "" {
		if err := d.forgetJobTx(ctx, change.Manifest.Pipeline, change.Job); err != nil {
			return err
		}
	}
	connectors.Failpoint("after-segments")
	if err := d.insertManifestTx(ctx, change); err != nil {
		return err
	}
	connectors.Failpoint("after-manifest")
	return d.advanceTx(ctx, lease, change.Manifest)
}

// createTargetsTx makes the tables of sinks that have none yet, and brings those that are corrected to their
// sinks.
func (d *Destination) createTargetsTx(ctx context.Context, change *connectors.Change) error {
	unsettled := func(s connectors.SinkChange) bool { return s.Against != nil || !d.settled[settledSink(s.Sink)] }
	if !slices.ContainsFunc(change.Sinks, unsettled) {
		return nil
	}
	owners, err := d.owners(ctx)
	if err != nil {
		return err
	}
	for _, s := range change.Sinks {
		own, owned := owners[targets.Key(schemaOf(s.Sink), s.Sink.Table)]
		switch {
		case s.Against != nil:
			err = d.fitTx(ctx, change.Manifest.Pipeline, s)
		case !owned:
			err = d.createTargetTx(ctx, change.Manifest.Pipeline, s.Sink)
		case own.Pipeline != change.Manifest.Pipeline:
			err = own.Taken(s.Sink, d.file)
		}
		if err == nil {
			err = d.findOut(ctx, s.Sink)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
