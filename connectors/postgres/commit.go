package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockstep/connectors"
	"lockstep/connectors/protocol"
	"lockstep/connectors/staged"
	"lockstep/connectors/targets"
)

// Commit writes the change in one transaction of the server, and then ends the engine's own transaction
// the same way. Whatever fails before COMMIT is sent rolls all of it back; what passes by itself, such as
// a deadlock or a server that restarts, is tried again with the same staged rows under the same fence.
// Their order, and how a commit whose answer is lost is found out about, is in connectors/protocol.
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
	m := change.Manifest
	err := protocol.Attempt(ctx, &committing{d: d, lease: lease, change: change}, lease)
	if err != nil {
		clear(d.settled)
	}
	if blocked(err) {
		d.endReplaced(ctx, m.Pipeline)
	}
	var unknown *protocol.Unknown
	var not *protocol.NotCommitted
	switch {
	case errors.As(err, &unknown):
		return &connectors.UnavailableError{What: d.name, Err: &storeError{fmt.Sprintf("find out whether change %d was committed", m.Seq), unknown.Err}, Passes: connectors.Away(unknown.Err),
			Hint: "nothing is lost or doubled: the next run looks, and goes on from what it finds"}
	case errors.As(err, &not):
		return refusal("the tables", not.Err) // constraints that are looked at by COMMIT
	case errors.Is(err, protocol.ErrMissing):
		return &mistakeError{fmt.Sprintf("the server said that change %d is committed, but it is not there", m.Seq)}
	}
	return err
}

// committing is a change on its way. It implements protocol.Committing.
type committing struct {
	d      *Destination
	lease  connectors.Lease
	change *connectors.Change
	tx     *tx // nil before it began
}

func (c *committing) Alive() error { return c.d.beat.check(c.lease) }

func (c *committing) Begin(ctx context.Context) error {
	conn, err := c.d.connection(ctx)
	if err != nil {
		return err
	}
	c.tx, err = openTx(ctx, conn, beginWrite, applicationName(c.lease.Holder))
	return err
}

func (c *committing) Rows(ctx context.Context) error {
	if err := c.d.createTargetsTx(ctx, c.tx, c.change); err != nil {
		return err
	}
	connectors.Failpoint("after-ddl")
	for i, sink := range c.change.Sinks {
		if err := c.d.applyTx(ctx, c.tx, c.change.Manifest.Seq, i, sink); err != nil {
			return err
		}
	}
	return nil
}

func (c *committing) Record(ctx context.Context) error {
	if err := c.d.insertRejectsTx(ctx, c.tx, c.change); err != nil {
		return err
	}
	if err := insertSegmentsTx(ctx, c.tx, c.change.Manifest, c.change.Segments); err != nil {
		return err
	}
	if err := removeSegmentsTx(ctx, c.tx, c.change); err != nil {
		return err
	}
	if c.change.Job != "" {
		if err := forgetJobTx(ctx, c.tx, c.change.Manifest.Pipeline, c.change.Job); err != nil {
			return err
		}
	}
	connectors.Failpoint("after-segments")
	return c.d.insertManifestTx(ctx, c.tx, c.change)
}

func (c *committing) Advance(ctx context.Context) (int64, error) {
	return advanceTx(ctx, c.tx, c.lease, c.change.Manifest)
}

func (c *committing) Commit(ctx context.Context) error { return c.tx.end(ctx, "COMMIT") }

func (c *committing) Rollback(ctx context.Context) {
	if c.tx != nil {
		c.d.rollback(ctx, c.tx)
	}
}

// A key that is there may be that of a run that took over.
func (c *committing) Passes(err error) bool { return passes(err) && !conflict(err) }

func (c *committing) Leave() { c.d.disconnect() }

func (c *committing) There(ctx context.Context, ended bool) (there bool, err error) {
	m := c.change.Manifest
	var seq, n int64
	look := func(tx *tx) error {
		err := tx.row(ctx, sql("confirm"), []any{m.Pipeline, m.Seq, m.Attempt}, &n)
		there = n == 1
		return err
	}
	doing := fmt.Sprintf("confirm change %d", m.Seq)
	if !ended {
		err = c.d.read(ctx, doing, look)
		return there, err
	}
	err = c.d.inTx(ctx, doing, func(tx *tx) error {
		// A statement of its own: what another session committed is seen only by those that begin later.
		if err := tx.row(ctx, sql("lock-pipeline"), []any{m.Pipeline}, &seq); err != nil {
			return err
		}
		return look(tx)
	})
	return there, err
}

func (c *committing) Fence(ctx context.Context) (fence int64, err error) {
	err = c.d.read(ctx, "read the fence of pipeline "+c.lease.Pipeline, func(tx *tx) error {
		row, err := pipelineOf(ctx, tx, c.lease.Pipeline)
		fence = row.fence
		return err
	})
	return fence, err
}

// createTargetsTx makes the tables of sinks that have none yet, and brings those that are corrected to their
// sinks.
func (d *Destination) createTargetsTx(ctx context.Context, tx *tx, change *connectors.Change) error {
	unsettled := func(s connectors.SinkChange) bool { return s.Against != nil || !d.settled[settledSink(s.Sink)] }
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
		case s.Against != nil:
			err = d.fitTx(ctx, tx, change.Manifest.Pipeline, s)
		case !owned:
			err = createTargetTx(ctx, tx, change.Manifest.Pipeline, s.Sink)
		case own.Pipeline != change.Manifest.Pipeline:
			err = own.Taken(s.Sink, d.file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
