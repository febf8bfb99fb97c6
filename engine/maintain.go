package engine

import (
	"context"
	"fmt"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// maintain compacts the segments between two batches, when enough have gathered, and drops the data
// that no kept checkpoint needs. It is a change of its own, fenced like a batch, and reads no input.
// A crash in it loses nothing: the segments it would have merged are still live.
func (l *life) maintain(ctx context.Context) error {
	merges := checkpoints.Merges(l.live)
	if len(merges) == 0 {
		return nil
	}
	m := l.beside(checkpoints.KindCompaction)
	change := &connectors.Change{Plan: l.record(), Before: l.manifest.Live}
	for _, merge := range merges {
		seg, err := l.merge(ctx, merge, m.Seq)
		if err != nil {
			return err
		}
		if seg != nil {
			change.Segments = append(change.Segments, seg)
		}
		change.Removed = append(change.Removed, merge.Inputs...)
	}
	points, err := l.Destination.Points(ctx, l.Plan.Name, m.Incarnation)
	if err != nil {
		return err
	}
	change.Kept = checkpoints.DefaultRetention.Keep(points, l.Now())
	m.RangesSHA, m.Live = checkpoints.RangesSHA(nil), change.Before.After(change.Segments, change.Removed)
	change.Manifest = m
	connectors.Failpoint("before-compaction")
	if err := l.commit(ctx, change); err != nil {
		return err
	}
	connectors.Failpoint("after-compaction")
	l.manifest = m
	l.relive(change)
	return nil
}

// beside is the manifest of a change that is no batch, as far as it reads nothing and touches no table.
func (l *life) beside(kind string) checkpoints.Manifest {
	m := l.next()
	m.Kind, m.Batch, m.Sources, m.Sinks = kind, l.manifest.Batch, nil, standing(l.manifest.Sinks)
	return m
}

// standing is what a change that touches no table says of the sinks.
func standing(sinks map[string]checkpoints.SinkCount) map[string]checkpoints.SinkCount {
	out := map[string]checkpoints.SinkCount{}
	for name, c := range sinks {
		out[name] = checkpoints.SinkCount{Rows: c.Rows, Digest: c.Digest}
	}
	return out
}

// commit commits a change that was computed outside of a transaction.
func (l *life) commit(ctx context.Context, change *connectors.Change) error {
	tx, err := l.Duck.Begin(ctx)
	if err != nil {
		return err
	}
	change.Local = tx
	return l.Destination.Commit(ctx, l.lease, change)
}

// relive moves the list of live segments by a committed change.
func (l *life) relive(change *connectors.Change) {
	removed := map[string]bool{}
	for _, s := range change.Removed {
		removed[s.ID] = true
	}
	var live []checkpoints.Segment
	for _, s := range l.live {
		if !removed[s.ID] {
			live = append(live, s)
		}
	}
	for _, s := range change.Segments {
		listed := *s
		listed.Parts = nil // the data is in the destination
		live = append(live, listed)
	}
	l.live = live
}

// merge makes one segment of several: the newest row of every key.
func (l *life) merge(ctx context.Context, merge checkpoints.Merge, seq int64) (*checkpoints.Segment, error) {
	if checkpoints.IsPosition(merge.Step) {
		for i := range merge.Inputs {
			if err := l.Destination.Load(ctx, &merge.Inputs[i]); err != nil {
				return nil, err
			}
		}
		return checkpoints.MergePosition(merge, seq)
	}
	step, err := l.step(merge.Step)
	if err != nil {
		return nil, err
	}
	if err := l.gather(ctx, step, merge.Inputs); err != nil {
		return nil, err
	}
	query := fmt.Sprintf("SELECT %s, _op FROM (%s)", stateColumns(step.State), newestRows(step.State, len(merge.Inputs)))
	if merge.Oldest {
		query += " WHERE _op = 1"
	}
	rows, err := l.Duck.Arrow(ctx, query)
	if err != nil {
		return nil, err
	}
	seg, err := checkpoints.EncodeSegment(step.ID, seq, rows)
	rows.Release()
	if err != nil {
		return nil, err
	}
	return merge.Merged(seg), l.Duck.Exec(ctx, "DROP TABLE "+duck.Quote(gathered))
}

func (l *life) step(id string) (planner.Step, error) {
	for _, s := range l.Plan.Steps {
		if s.ID == id {
			return s, nil
		}
	}
	return planner.Step{}, fmt.Errorf("segments of step %s are live, but the plan has no such step", id)
}
