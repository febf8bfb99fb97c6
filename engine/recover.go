package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// A state that fails its checks is built again: from the newest checkpoint that passes them, by folding
// the ranges that were recorded after it, batch by batch as they were committed. The tables are not
// written. What every batch came to then, its counts and the digests of its tables, it must come to
// again. The result replaces all live segments, in a change of its own.
//
// With another DuckDB than the one that wrote the state the last batch is replayed in the same way, to
// show that it comes to the same.

// recoverable tells damage of what can be built again.
func recoverable(err error) bool {
	var damaged *connectors.DamagedError
	return errors.As(err, &damaged)
}

// recover goes on from a head whose manifest, position or state is damaged, as cause says.
func (p *Pipeline) recover(ctx context.Context, cause error) (*life, error) {
	lease, head, err := p.Destination.Take(ctx, p.Plan.Name)
	if err != nil && !recoverable(err) {
		return nil, err
	}
	whole := err == nil // the manifest is
	if head.Manifest.Seq == 0 || head.Plan.ID == "" {
		return nil, cause
	}
	if err := p.fits(ctx, head); err != nil {
		return nil, err
	}
	if whole {
		if err := p.Destination.CheckTargets(ctx, head, p.sinkSpecs()); err != nil {
			return nil, err
		}
	}
	l, done, err := p.rebuild(ctx, head, head.Manifest.Seq, whole)
	if err != nil {
		return nil, lost(cause, err)
	}
	mended := l.manifest
	if !whole {
		head.Manifest = mended
		if err := p.Destination.CheckTargets(ctx, head, p.sinkSpecs()); err != nil {
			return nil, err
		}
	}
	l.lease = lease
	if err := l.replace(ctx, checkpoints.KindRecovery, &mended); err != nil {
		return nil, err
	}
	p.warn(fmt.Sprintf("%v; the state was built again from %s", cause, done))
	return l, nil
}

// lost says why the damage that was found cannot be mended. What was read once and cannot be read now has
// changed.
func lost(cause, err error) error {
	var input *connectors.InputError
	var data *connectors.DataError
	switch {
	case errors.As(err, &input):
	case errors.As(err, &data) && data.Source != "":
		input = &connectors.InputError{Source: data.Source, Split: data.Where, Reason: "cannot be read as it was before: " + data.Err.Error()}
	default:
		return err
	}
	return &connectors.InputError{Source: input.Source, Split: input.Split,
		Reason: fmt.Sprintf("%s; it is needed because %v", input.Reason, cause), Hint: "put the file back as it was, or the whole database from a backup"}
}

// upgrade shows that this DuckDB does what the one did that wrote the state, and goes on with it.
func (p *Pipeline) upgrade(ctx context.Context, blocked *BlockedError) (*life, error) {
	lease, head, err := p.Destination.Take(ctx, p.Plan.Name)
	if err != nil {
		return nil, err
	}
	if err := p.Destination.CheckTargets(ctx, head, p.sinkSpecs()); err != nil {
		return nil, err
	}
	// The last batch is replayed, so the checkpoint is one before it; changes after it read nothing.
	from, err := p.corrected(ctx, head.Manifest.Seq)
	if err != nil {
		return nil, err
	}
	before := head.Manifest.Seq
	for m := head.Manifest; m.Kind != checkpoints.KindBatch && before > max(1, from); {
		before--
		if m, err = p.Destination.Manifest(ctx, p.Plan.Name, before); err != nil {
			return nil, err
		}
	}
	l, done, err := p.rebuild(ctx, head, before-1, true)
	if err != nil {
		if ctx.Err() == nil {
			blocked.Comparison.Why += fmt.Sprintf(". Replaying batch %d to see whether this one does the same failed: %v", head.LastBatch, err)
			return nil, blocked
		}
		return nil, err
	}
	mended := l.manifest
	l.lease = lease
	if err := l.replace(ctx, checkpoints.KindEnvironment, &mended); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("batch %d was replayed", head.LastBatch)
	if before == from {
		what = "its state was built again from " + done
	}
	p.warn(fmt.Sprintf("%s; %s by this one, %s, and came to the same", blocked.Comparison.Why, what, p.Plan.Hash.DuckDB))
	return l, nil
}

// rebuild makes the state and position of the head out of the newest intact checkpoint that is not newer
// than newest, and the ranges recorded since; done says from what. whole: the head's manifest is intact.
// Otherwise it is made again from what it must say, and has to give the checksum that the head records.
func (p *Pipeline) rebuild(ctx context.Context, head connectors.Head, newest int64, whole bool) (l *life, done string, err error) {
	from, err := p.corrected(ctx, head.Manifest.Seq)
	if err != nil {
		return nil, "", err
	}
	l, anew, err := p.intact(ctx, head.Manifest.Incarnation, from, newest)
	if err != nil {
		return nil, "", err
	}
	base, batches, forgotten := l.manifest.Seq, 0, ""
	for seq := base + 1; seq <= head.Manifest.Seq; seq++ {
		m, err := p.Destination.Manifest(ctx, p.Plan.Name, seq)
		known := err == nil
		if !known && (seq < head.Manifest.Seq || whole || !recoverable(err)) {
			return nil, "", err
		}
		if !known && !checkpoints.Corrects(m.Kind) {
			m.Kind = checkpoints.KindBatch
			if head.LastBatch == l.manifest.Batch {
				m.Kind = checkpoints.KindCompaction
			}
		}
		if m.Kind == checkpoints.KindBatch {
			batches++
			made, err := l.replay(ctx, seq)
			if err != nil {
				return nil, "", err
			}
			if known {
				err = sameOutcome(m, made)
			} else {
				m, err = p.remake(ctx, head, m, made)
			}
			if err != nil {
				return nil, "", err
			}
		} else if !known {
			made := m // of a correction only the manifest tells what it did
			if !checkpoints.Corrects(m.Kind) {
				made = l.next()
				made.Kind, made.Batch, made.Sources, made.Sinks = m.Kind, l.manifest.Batch, nil, standing(l.manifest.Sinks)
				made.RangesSHA = checkpoints.RangesSHA(nil)
			}
			if m, err = p.remake(ctx, head, m, made); err != nil {
				return nil, "", err
			}
		}
		l.manifest = m
		if m.Kind == checkpoints.KindLoss {
			whole, err := l.lose(ctx, m)
			if err != nil {
				return nil, "", err
			}
			if !whole {
				forgotten = fmt.Sprintf("; the loss that was accepted after batch %d is not there any more, and no input tells it again", m.Batch)
			}
		}
	}
	if err := l.place(ctx); err != nil {
		if damaged := (*connectors.DamagedError)(nil); errors.As(err, &damaged) {
			damaged.Reason += forgotten
		}
		return nil, "", err
	}
	done = fmt.Sprintf("checkpoint %d", base)
	switch {
	case base == 0:
		done = "the beginning"
	case anew:
		done = fmt.Sprintf("everything read until change %d", base)
	}
	switch batches {
	case 0:
	case 1:
		done += fmt.Sprintf(" and the input of batch %d, read again", l.manifest.Batch)
	default:
		done += fmt.Sprintf(" and the input of %d batches, read again", batches)
	}
	return l, done, nil
}

// corrected finds the newest change, not after seq, that no batch leads to: a correction that changed the
// state. 0 when there is none. Checkpoints before it are of no use.
func (p *Pipeline) corrected(ctx context.Context, seq int64) (int64, error) {
	var after *checkpoints.Manifest // the correction that was met last
	for ; seq > 0; seq-- {
		m, err := p.Destination.Manifest(ctx, p.Plan.Name, seq)
		if err != nil && !recoverable(err) {
			return 0, err
		}
		if after != nil && after.Live != m.Live {
			return after.Seq, nil
		}
		if after = nil; checkpoints.Corrects(m.Kind) {
			after = &m
		}
	}
	return 0, nil
}

// intact restores the newest checkpoint, between two changes, that passes all checks. The last resort is
// the empty state before batch 0; or, when from is a correction, everything that was read until then, anew.
func (p *Pipeline) intact(ctx context.Context, incarnation, from, newest int64) (l *life, anew bool, err error) {
	points, err := p.Destination.Points(ctx, p.Plan.Name, incarnation)
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(points, func(a, b checkpoints.Point) int { return int(b.Seq - a.Seq) })
	for _, point := range points {
		if point.Seq > newest || point.Seq < from {
			continue
		}
		l, err := p.at(ctx, incarnation, point.Seq)
		if err == nil || !recoverable(err) {
			return l, false, err
		}
	}
	if from == 0 {
		l, err = p.at(ctx, incarnation, 0)
		return l, false, err
	}
	l, err = p.anew(ctx, incarnation, from)
	return l, true, err
}

// at restores one checkpoint.
func (p *Pipeline) at(ctx context.Context, incarnation, seq int64) (*life, error) {
	l := &life{Pipeline: p, tables: map[string]*stateTable{}}
	l.manifest = checkpoints.Manifest{Pipeline: p.Plan.Name, Incarnation: incarnation, Batch: -1}
	var segments []checkpoints.Segment
	var err error
	if seq > 0 {
		if l.manifest, err = p.Destination.Manifest(ctx, p.Plan.Name, seq); err != nil {
			return nil, err
		}
		if segments, err = p.Destination.Segments(ctx, p.Plan.Name, incarnation, seq); err != nil {
			return nil, err
		}
	}
	if l.position, err = p.position(ctx, l.manifest, segments); err != nil {
		return nil, err
	}
	if err := l.restore(ctx, segments); err != nil {
		return nil, err
	}
	l.restored = true
	return l, nil
}

// replace commits the state at hand as the whole state, after the manifest it belongs to.
func (l *life) replace(ctx context.Context, kind string, mended *checkpoints.Manifest) error {
	m := l.beside(kind)
	change := &connectors.Change{Plan: l.record(), Whole: true, Mended: mended}
	if err := l.settle(ctx); err != nil {
		return err
	}
	var err error
	if change.Segments, err = l.allSegments(ctx, m.Seq); err != nil {
		return err
	}
	for _, s := range l.readSources() {
		m.Position[s.Name] = l.position[s.Name].Sum()
	}
	m.RangesSHA, m.Live = checkpoints.RangesSHA(nil), checkpoints.LiveSum{}.After(change.Segments, nil)
	change.Manifest = m
	connectors.Failpoint("before-recovery")
	if err := l.commit(ctx, change); err != nil {
		return err
	}
	connectors.Failpoint("after-recovery")
	l.manifest, l.live = m, nil
	l.relive(change)
	return nil
}

func (l *life) wholeState(ctx context.Context, step planner.Step, seq int64) (*checkpoints.Segment, error) {
	rows, err := l.Duck.Arrow(ctx, "SELECT "+stateColumns(step.State)+", 1::TINYINT AS _op FROM "+duck.Quote(step.State.Name))
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	seg, err := checkpoints.EncodeSegment(step.ID, seq, rows)
	if seg != nil {
		seg.Level = 1 // as large as what was merged before
	}
	return seg, err
}
