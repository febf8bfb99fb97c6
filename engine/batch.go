package engine

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// batch is the life of one batch. Its ranges were planned (run.go); here they are read, folded into
// the state, and committed. The steps:
//
//	read      open the ranges; make each source a relation that the plan's statements scan
//	settle    bring the state to the last batch, which was put off until now
//	compute   run the steps: each reads its deltas and its state and finds what changes
//	collapse  one row per key for every sink: insert, update or delete
//	record    counts, position, segments and the manifest that ties them together
//	commit    all of it in one transaction of the destination
//	advance   only now does the position in memory move
//
// The transaction opened before compute is the destination's too: its Commit ends it. Until then
// everything can be undone, and after any error it is.
func (l *life) batch(ctx context.Context, w *work) (*Report, error) {
	started := l.Now()
	inputs, err := l.read(ctx, w)
	defer inputs.close()
	if err != nil {
		return nil, err
	}
	if err := l.settle(ctx); err != nil {
		return nil, err
	}
	connectors.Failpoint("after-read")

	tx, err := l.Duck.Begin(ctx)
	if err != nil {
		return nil, err
	}
	change, err := l.change(ctx, inputs)
	if err != nil {
		// The tables of the steps go back; then the input can be asked what was wrong with it.
		if rollbackErr := tx.Rollback(); rollbackErr != nil {
			return nil, fmt.Errorf("%w (and the roll back failed: %v)", err, rollbackErr)
		}
		return nil, inputs.explain(ctx, err)
	}
	change.Local = tx
	connectors.Failpoint("before-change")
	if err := l.Destination.Commit(ctx, l.lease, change); err != nil {
		return nil, err
	}

	l.advance(inputs, change)
	return l.report(inputs, change.Manifest, started), nil
}

// change computes what the batch does, in the open transaction: what changes in the state, staged rows,
// and the record of both.
func (l *life) change(ctx context.Context, inputs *inputs) (*connectors.Change, error) {
	if err := l.computeAll(ctx); err != nil {
		return nil, err
	}
	connectors.Failpoint("after-compute")
	m := l.next()
	states, err := l.encode(ctx, m.Seq)
	defer wait(states)
	if err != nil {
		return nil, err
	}
	change := &connectors.Change{Plan: l.record()}
	for _, sink := range l.Plan.Sinks {
		c, err := l.collapse(ctx, sink)
		if err != nil {
			return nil, err
		}
		m.Sinks[sink.Name] = c.Counts
		change.Sinks = append(change.Sinks, c)
	}
	connectors.Failpoint("after-collapse")
	if err := inputs.finish(ctx, m.Seq); err != nil {
		return nil, err
	}
	for _, in := range inputs.list {
		count, err := l.count(ctx, in)
		if err != nil {
			return nil, err
		}
		m.Sources[in.plan.Name] = count
		m.Position[in.plan.Name] = m.Position[in.plan.Name].After(l.position[in.plan.Name], in.moved, in.gone)
		change.Ranges = append(change.Ranges, in.recorded()...)
		if count.Rejected > 0 {
			change.Rejects = append(change.Rejects, connectors.Rejects{Source: in.plan.Name, Table: in.scan.Rejects(), Rows: count.Rejected})
		}
	}
	if change.Segments, err = l.segments(inputs, states, m.Seq); err != nil {
		return nil, err
	}
	m.RangesSHA = checkpoints.RangesSHA(change.Ranges)
	change.Before = l.manifest.Live
	m.Live = change.Before.After(change.Segments, nil)
	change.Manifest = m
	return change, nil
}

// computeAll runs the steps.
func (l *life) computeAll(ctx context.Context) error {
	for _, step := range l.Plan.Steps {
		if err := l.compute(ctx, step); err != nil {
			return l.computeError(step.Pos, "", err)
		}
	}
	return nil
}

// next is the manifest of the batch after the last one, before anything is counted.
func (l *life) next() checkpoints.Manifest {
	last := l.manifest
	m := checkpoints.Manifest{
		Pipeline: l.Plan.Name, Seq: last.Seq + 1, Incarnation: last.Incarnation, Batch: last.Batch + 1,
		Attempt: uuid.NewString(), Kind: checkpoints.KindBatch, ParentSeq: last.Seq,
		PlanID: l.Plan.Hash.ID, Env: l.env(), BatchTime: checkpoints.Time(l.Now()),
		Position: map[string]checkpoints.PositionSum{}, Sources: map[string]checkpoints.SourceCount{}, Sinks: map[string]checkpoints.SinkCount{},
	}
	if last.Seq > 0 {
		m.ParentSHA = last.Checksum()
	}
	for _, s := range l.readSources() {
		m.Position[s.Name] = l.sums(s.Name)
	}
	return m
}

// sums is the summary of a source's position after the last commit.
func (l *life) sums(source string) checkpoints.PositionSum {
	if sum, ok := l.manifest.Position[source]; ok {
		return sum
	}
	return checkpoints.Splits{}.Sum()
}

// collapse stages one sink's changes and counts them.
func (l *life) collapse(ctx context.Context, sink planner.Sink) (connectors.SinkChange, error) {
	c := connectors.SinkChange{Sink: sinkSpec(sink), Table: sink.Staged}
	if err := l.stage(ctx, sink); err != nil {
		return c, err
	}
	n := &c.Counts
	if err := l.Duck.QueryRow(ctx, sink.Counts, nil, &n.Inserted, &n.Updated, &n.Deleted); err != nil {
		return c, l.computeError(sink.Decl.Head.Start, sink.Name, err)
	}
	last := l.manifest.Sinks[sink.Name]
	n.Rows = last.Rows + n.Inserted - n.Deleted
	var err error
	n.Digest, err = l.digest(ctx, sink, last.Digest)
	return c, err
}

// stage makes the rows to write of a sink, and counts its keys.
func (l *life) stage(ctx context.Context, sink planner.Sink) error {
	for _, stmt := range sink.Run {
		if err := l.Duck.Exec(ctx, stmt); err != nil {
			return l.computeError(sink.Decl.Head.Start, sink.Name, err)
		}
	}
	if sink.Unique == "" {
		return nil
	}
	var twice int64
	if err := l.Duck.QueryRow(ctx, sink.Unique, nil, &twice); err != nil {
		return l.computeError(sink.Decl.Head.Start, sink.Name, err)
	}
	if twice > 0 {
		return fmt.Errorf("sink %s: %d keys would have two rows; nothing was committed", sink.Name, twice)
	}
	return nil
}

// count is what the batch read from one source, by the source's own count, and what arrived in the
// steps. Where both are known they must agree: rows never disappear on the way.
func (l *life) count(ctx context.Context, in *input) (checkpoints.SourceCount, error) {
	c := checkpoints.SourceCount{Splits: len(in.ranges)}
	for _, r := range in.ranges {
		c.Read += r.Rows
		c.Rejected += r.Rejected
	}
	c.Accepted = c.Read - c.Rejected
	arrived := map[string]int64{}
	if in.copied != "" {
		var n int64
		if err := l.Duck.QueryRow(ctx, "SELECT count(*) FROM "+duck.Quote(in.copied), nil, &n); err != nil {
			return c, err
		}
		arrived["the copy"] = n
	}
	for _, step := range l.Plan.Steps {
		if step.Counts != in.plan.Name {
			continue
		}
		var n int64
		if err := l.Duck.QueryRow(ctx, step.Counted, nil, &n); err != nil {
			return c, l.computeError(step.Pos, "", err)
		}
		arrived["step "+step.ID] = n
	}
	for where, n := range arrived {
		if n != c.Accepted {
			return c, fmt.Errorf("source %s: %d rows were read and %d rejected, but %d arrived in %s; nothing was committed", in.plan.Name, c.Read, c.Rejected, n, where)
		}
	}
	return c, nil
}

// advance moves the life to the committed batch.
func (l *life) advance(inputs *inputs, change *connectors.Change) {
	for _, in := range inputs.list {
		l.position[in.plan.Name].Apply(in.moved, in.gone)
	}
	l.manifest = change.Manifest
	l.unsettled = true
	l.relive(change)
}
