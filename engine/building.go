package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/planner"
)

// building is the state of some steps on its way from nothing to what everything that was read gives. Most
// of it happens without the lease, while runs of the pipeline go on; what they commit meanwhile is folded
// in at the end, under the lease.
type building struct {
	*life         // of those steps
	saving saving // how it is saved
	folded folded // what was read
	saved  int    // how many splits of it were folded by a run that was stopped
}

// build folds everything that was read until a head into the empty state of the steps that are wanted.
// now: files that were replaced since are read as they are.
func (p *Pipeline) build(ctx context.Context, head connectors.Head, wanted func(planner.Step) bool, now bool, o Options) (*building, error) {
	l := &life{Pipeline: p, manifest: head.Manifest}
	b := &building{life: l.only(wanted), saving: saving{kind: o.kind, every: o.SaveEvery, look: o.DryRun}}
	position, _, err := p.consumed(ctx, head)
	if recoverable(err) && len(b.Plan.Steps) > 0 {
		return b, b.fromRanges(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	b.followRenames(ctx, position)
	if len(b.Plan.Steps) == 0 {
		return b, nil
	}
	var anew map[string]map[string]connectors.Range
	if now {
		if anew, err = b.replacements(ctx, position); err != nil {
			return nil, err
		}
	}
	return b, b.foldTo(ctx, position, anew)
}

// foldTo folds a position, as reread plans it, into the empty state, or into what was saved of it before.
func (b *building) foldTo(ctx context.Context, position checkpoints.Position, anew map[string]map[string]connectors.Range) error {
	if b.saving.every > 0 {
		if _, err := b.goOn(ctx, position); err != nil {
			return err
		}
	}
	saved := b.Now()
	before, works := b.folded.bytes, b.reread(position, anew)
	for i, w := range works {
		if b.Parts != nil && len(works) > 1 {
			b.Parts(b.folded.bytes-before, b.bytes(position)-before)
		}
		if err := b.fold(ctx, w, &b.folded); err != nil {
			return err
		}
		if b.saving.every > 0 && !b.saving.look && i+1 < len(works) && b.Now().Sub(saved) >= b.saving.every {
			if err := b.save(ctx, position); err != nil {
				return err
			}
			saved = b.Now()
		}
	}
	connectors.Failpoint("after-fold")
	return nil
}

// fromRanges folds what the records of all changes say was read, because the position is damaged. It must come
// to the position that the head recorded.
func (b *building) fromRanges(ctx context.Context, damage error) error {
	ranges, err := b.consumedUntil(ctx, b.manifest.Seq)
	if err != nil {
		return errors.Join(damage, err)
	}
	if err := b.empty(ctx); err != nil {
		return err
	}
	w, err := b.recorded(ctx, ranges)
	if err == nil {
		err = b.fold(ctx, w, &b.folded)
	}
	if err != nil {
		return lost(damage, err)
	}
	sums := map[string]checkpoints.PositionSum{}
	for source := range b.position {
		sums[source] = b.manifest.Position[source]
	}
	if err := b.comesToPosition(ctx, sums); err != nil {
		return &connectors.DamagedError{What: "the position after batch " + fmt.Sprint(b.manifest.Batch), Reason: err.Error()}
	}
	return nil
}

// replacements are the splits that were replaced since they were read, of sources that allow it: a run would
// read them again, too.
func (l *life) replacements(ctx context.Context, position checkpoints.Position) (map[string]map[string]connectors.Range, error) {
	out := map[string]map[string]connectors.Range{}
	for _, s := range l.readSources() {
		if !s.Replaced {
			continue
		}
		found, err := l.Sources[s.Name].Plan(ctx, position[s.Name], connectors.Limit{})
		if err != nil {
			return nil, err
		}
		out[s.Name] = map[string]connectors.Range{}
		for _, r := range found.Ranges {
			if _, read := position[s.Name][r.Split]; read && r.From == 0 {
				out[s.Name][r.Split] = r
			}
		}
	}
	return out, nil
}

// consumed is the position of a head, as far as its sources are the plan's; one that is new has none.
func (p *Pipeline) consumed(ctx context.Context, head connectors.Head) (checkpoints.Position, []checkpoints.Segment, error) {
	m := head.Manifest
	segments, err := p.Destination.Segments(ctx, p.Plan.Name, m.Incarnation, m.Seq)
	if err != nil {
		return nil, nil, err
	}
	position, err := p.positionIn(ctx, segments)
	if err != nil {
		return nil, nil, err
	}
	sums := map[string]checkpoints.PositionSum{}
	for source := range position {
		if sum, ok := m.Position[source]; ok {
			sums[source] = sum
		}
	}
	return position, segments, verified(position, sums, m)
}

// moved says that another correction came between: what was built is of no use, and may be built again.
func (p *Pipeline) moved() error {
	return &connectors.HeldError{What: "pipeline " + p.Plan.Name, By: "another command, which has changed it meanwhile; nothing was written"}
}

// upTo folds in what was committed since.
func (b *building) upTo(ctx context.Context, head connectors.Head) error {
	for b.manifest.Seq < head.Manifest.Seq {
		m, err := b.Destination.Manifest(ctx, b.Pipeline.Plan.Name, b.manifest.Seq+1)
		if err != nil {
			return err
		}
		if checkpoints.Corrects(m.Kind) || m.Kind == checkpoints.KindLoss {
			return b.moved()
		}
		b.manifest = m
		if m.Kind != checkpoints.KindBatch || len(b.Plan.Steps) == 0 {
			continue
		}
		ranges, err := b.Destination.Consumed(ctx, b.Plan.Name, m.Seq)
		if err != nil {
			return err
		}
		w, err := b.recorded(ctx, ranges)
		if err == nil {
			err = b.fold(ctx, w, &b.folded)
		}
		if err != nil {
			return err
		}
	}
	b.followRenames(ctx, b.position)
	return nil
}

// newest is the head that a correction is of: under the lease, or for a dry run as it is now.
func (l *life) newest(ctx context.Context, o Options) (head connectors.Head, err error) {
	if o.DryRun {
		return l.Destination.Head(ctx, l.Plan.Name)
	}
	l.lease, head, err = l.taken(ctx, o.Patience)
	return head, err
}

// taken takes the lease, and waits for a run that has it. Its batch comes to an end, and it gives the
// lease back.
func (p *Pipeline) taken(ctx context.Context, patience time.Duration) (connectors.Lease, connectors.Head, error) {
	until := time.Now().Add(patience)
	for {
		lease, head, err := p.Destination.Take(ctx, p.Plan.Name)
		if err == nil || !connectors.Held(err) || time.Now().After(until) {
			return lease, head, err
		}
		select {
		case <-ctx.Done():
			return lease, head, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
