package duckdb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockstep/checkpoints"
	"lockstep/connectors"
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
	if err := check(lease, change); err != nil {
		return fmt.Errorf("the change contradicts itself and was not written: %w", err)
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
	connectors.Failpoint("after-segments")
	if err := d.insertManifestTx(ctx, change); err != nil {
		return err
	}
	connectors.Failpoint("after-manifest")
	return d.advanceTx(ctx, lease, change.Manifest)
}

// check compares the parts of a change with its manifest.
func check(lease connectors.Lease, change *connectors.Change) error {
	m := change.Manifest
	if err := m.Check(); err != nil {
		return err
	}
	if lease.Pipeline != m.Pipeline {
		return fmt.Errorf("the lease is of pipeline %s, the change of %s", lease.Pipeline, m.Pipeline)
	}
	if change.Plan.ID != m.PlanID {
		return fmt.Errorf("the plan is %s, the manifest names %s", change.Plan.ID, m.PlanID)
	}
	before := change.Before
	if change.Whole {
		before = checkpoints.LiveSum{}
	}
	if before.After(change.Segments, change.Removed) != m.Live {
		return errors.New("the segments are not those of the manifest")
	}
	if p := change.Mended; p != nil && (p.Pipeline != m.Pipeline || p.Seq != m.ParentSeq || p.Checksum() != m.ParentSHA) {
		return errors.New("the mended manifest is not the parent")
	}
	for _, s := range change.Segments {
		// A merge of older segments enters as old as they are.
		if s.SeqLo > s.SeqHi || s.SeqHi > m.Seq || m.Kind == checkpoints.KindBatch && s.SeqHi != m.Seq {
			return fmt.Errorf("the segment of step %s is of changes %d to %d, the manifest of %d", s.Step, s.SeqLo, s.SeqHi, m.Seq)
		}
	}
	if err := checkpoints.CheckRanges(change.Ranges, m); err != nil {
		return err
	}
	changed := map[string]bool{}
	for _, s := range change.Sinks {
		if c, ok := m.Sinks[s.Sink.Name]; !ok || c != s.Counts || changed[s.Sink.Name] {
			return fmt.Errorf("the counts of sink %s are not those of the manifest", s.Sink.Name)
		}
		changed[s.Sink.Name] = true
	}
	for name, c := range m.Sinks {
		if !changed[name] && c.Inserted+c.Updated+c.Deleted > 0 {
			return fmt.Errorf("the manifest counts changes of sink %s, but there are none", name)
		}
	}
	return nil
}

// createTargetsTx makes the tables of sinks that have none yet.
func (d *Destination) createTargetsTx(ctx context.Context, change *connectors.Change) error {
	unsettled := func(s connectors.SinkChange) bool { return !d.settled[settledSink(s.Sink)] }
	if !slices.ContainsFunc(change.Sinks, unsettled) {
		return nil
	}
	owners, err := d.owners(ctx)
	if err != nil {
		return err
	}
	for _, s := range change.Sinks {
		own, owned := owners[targetKey(schemaOf(s.Sink), s.Sink.Table)]
		switch {
		case !owned:
			err = d.createTargetTx(ctx, change.Manifest.Pipeline, s.Sink)
		case own.pipeline != change.Manifest.Pipeline:
			err = own.taken(s.Sink)
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
