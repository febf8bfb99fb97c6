package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/staged"
	"lockstep/connectors/targets"
)

// Commit writes the change in one transaction of the server, and then ends the engine's own transaction
// the same way. Whatever fails before COMMIT is sent rolls all of it back; what passes by itself, such as
// a deadlock or a server that restarts, is tried again with the same staged rows under the same fence.
//
// When the connection is lost while COMMIT is under way nobody has said how it ended. The row of the
// pipeline was locked by the transaction, so whoever locks it next, in a new session, comes after its
// end; and what is then in etl.manifests under (seq, attempt) is the answer. Absent, it was not
// committed and never will be, and the change may be written again.
func (d *Destination) Commit(ctx context.Context, lease connectors.Lease, change *connectors.Change) error {
	err := d.commit(ctx, lease, change)
	if err != nil {
		clear(d.settled)
		return errors.Join(err, change.Local.Rollback())
	}
	if err := change.Local.Commit(); err != nil {
		return fmt.Errorf("change %d is committed in %s, but the state in memory is lost: %w", change.Manifest.Seq, d.name, err)
	}
	return nil
}

func (d *Destination) commit(ctx context.Context, lease connectors.Lease, change *connectors.Change) error {
	connectors.Failpoint("commit-begin")
	if d.readOnly {
		return errors.New("postgres: commit to a database opened only to read")
	}
	if err := change.Check(lease); err != nil {
		return err
	}
	for _, s := range change.Sinks {
		if s.Table == "" {
			continue
		}
		if _, err := staged.Check(ctx, d.eng, s); err != nil {
			return err
		}
	}
	if err := d.persist(ctx, "commit change "+fmt.Sprint(change.Manifest.Seq), func() error { return d.attempt(ctx, lease, change) }); err != nil {
		return err
	}
	d.settled[settledPlan(change.Plan.ID)] = true
	for _, s := range change.Sinks {
		d.settled[settledSink(s.Sink)] = true
	}
	return nil
}

func settledPlan(id string) string                { return "plan " + id }
func settledSink(sink connectors.SinkSpec) string { return "sink " + sink.Name }

// attempt is the whole transaction, once.
func (d *Destination) attempt(ctx context.Context, lease connectors.Lease, change *connectors.Change) error {
	if err := d.beat.check(lease); err != nil {
		return err
	}
	conn, err := d.connection(ctx)
	if err != nil {
		return err
	}
	tx, err := openTx(ctx, conn, beginWrite, applicationName(lease.Holder))
	if err == nil {
		err = d.writeTx(ctx, tx, lease, change)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		// A lease that ended while the rows were written is another run's by now, or soon.
		err = d.beat.check(lease)
	}
	if err != nil {
		clear(d.settled)
		d.rollback(ctx, tx)
		return err
	}
	connectors.Failpoint("before-commit")
	return d.finish(context.WithoutCancel(ctx), tx, change.Manifest)
}

// finish sends COMMIT and finds out how it ended. From here on nothing is called off.
func (d *Destination) finish(ctx context.Context, tx *tx, m checkpoints.Manifest) error {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	sent := tx.end(limited, "COMMIT")
	cancel()
	connectors.Failpoint("after-commit")
	if sent != nil {
		clear(d.settled)
		d.disconnect()
	}
	there, err := d.committed(ctx, m, sent != nil)
	if err != nil {
		return &connectors.UnavailableError{What: d.name, Err: &storeError{fmt.Sprintf("find out whether change %d was committed", m.Seq), err},
			Hint: "nothing is lost or doubled: the next run looks, and goes on from what it finds"}
	}
	if there {
		connectors.Failpoint("after-confirm")
		return nil
	}
	if sent == nil {
		return &mistakeError{fmt.Sprintf("the server said that change %d is committed, but it is not there", m.Seq)}
	}
	return refusal("the tables", sent) // constraints that are looked at by COMMIT
}

// committed looks for a change after the end of the transaction that wrote it. Where the end is not known
// it waits for it.
func (d *Destination) committed(ctx context.Context, m checkpoints.Manifest, wait bool) (there bool, err error) {
	var seq, n int64
	look := func(tx *tx) error {
		err := tx.row(ctx, sql("confirm"), []any{m.Pipeline, m.Seq, m.Attempt}, &n)
		there = n == 1
		return err
	}
	doing := fmt.Sprintf("confirm change %d", m.Seq)
	if !wait {
		err = d.read(ctx, doing, look)
		return there, err
	}
	err = d.inTx(ctx, doing, func(tx *tx) error {
		// A statement of its own: what another session committed is seen only by those that begin later.
		if err := tx.row(ctx, sql("lock-pipeline"), []any{m.Pipeline}, &seq); err != nil {
			return err
		}
		return look(tx)
	})
	return there, err
}

// writeTx does everything of a commit but COMMIT, in this order: new tables, rows, then what makes the
// rows this pipeline's progress, and last the head, which fails if another run has taken over. All
// writers lock in this order.
func (d *Destination) writeTx(ctx context.Context, tx *tx, lease connectors.Lease, change *connectors.Change) error {
	if err := d.createTargetsTx(ctx, tx, change); err != nil {
		return err
	}
	connectors.Failpoint("after-ddl")
	for i, sink := range change.Sinks {
		if err := d.applyTx(ctx, tx, change.Manifest.Seq, i, sink); err != nil {
			return err
		}
	}
	if err := d.insertRejectsTx(ctx, tx, change); err != nil {
		return err
	}
	if err := insertSegmentsTx(ctx, tx, change.Manifest, change.Segments); err != nil {
		return err
	}
	if err := removeSegmentsTx(ctx, tx, change); err != nil {
		return err
	}
	connectors.Failpoint("after-segments")
	if err := d.insertManifestTx(ctx, tx, change); err != nil {
		return err
	}
	connectors.Failpoint("after-manifest")
	return advanceTx(ctx, tx, lease, change.Manifest)
}

// createTargetsTx makes the tables of sinks that have none yet.
func (d *Destination) createTargetsTx(ctx context.Context, tx *tx, change *connectors.Change) error {
	unsettled := func(s connectors.SinkChange) bool { return !d.settled[settledSink(s.Sink)] }
	if !slices.ContainsFunc(change.Sinks, unsettled) {
		return nil
	}
	owners, err := ownersOf(ctx, tx)
	if err != nil {
		return err
	}
	for _, s := range change.Sinks {
		own, owned := owners[targets.Key(schemaOf(s.Sink), s.Sink.Table)]
		switch {
		case !owned:
			err = createTargetTx(ctx, tx, change.Manifest.Pipeline, s.Sink)
		case own.Pipeline != change.Manifest.Pipeline:
			err = own.Taken(s.Sink)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
