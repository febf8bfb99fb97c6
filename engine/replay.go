package engine

import (
	"context"
	"fmt"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// What was committed before is done again out of the records of it, and has to come to the same.

// replay folds the recorded ranges of one batch, as batch does, but commits nothing to the destination.
func (l *life) replay(ctx context.Context, seq int64) (checkpoints.Manifest, error) {
	none := checkpoints.Manifest{}
	recorded, err := l.Destination.Consumed(ctx, l.Plan.Name, seq)
	if err != nil {
		return none, err
	}
	w, err := l.recorded(ctx, recorded)
	if err != nil {
		return none, err
	}
	inputs, err := l.read(ctx, w)
	defer inputs.close()
	if err != nil {
		return none, err
	}
	if err := l.settle(ctx); err != nil {
		return none, err
	}
	tx, err := l.Duck.Begin(ctx)
	if err != nil {
		return none, err
	}
	change, err := l.change(ctx, inputs)
	if err != nil {
		if rollbackErr := tx.Rollback(); rollbackErr != nil {
			return none, fmt.Errorf("%w (and the roll back failed: %v)", err, rollbackErr)
		}
		return none, inputs.explain(ctx, err)
	}
	if err := tx.Commit(); err != nil { // of the steps' tables
		return none, err
	}
	l.unsettled = true
	for _, in := range inputs.list {
		l.position[in.plan.Name].Apply(in.moved, in.gone)
	}
	return change.Manifest, nil
}

// sameOutcome compares a replayed batch with the one that was committed.
func sameOutcome(was, now checkpoints.Manifest) error {
	differs := func(what string) error {
		return &connectors.DamagedError{What: "the state of " + was.Pipeline,
			Reason: fmt.Sprintf("batch %d, replayed from the input it read, does not come to what it came to: %s", was.Batch, what)}
	}
	for name, c := range was.Sources {
		if now.Sources[name] != c {
			return differs("the rows of source " + name)
		}
	}
	for name, c := range was.Sinks {
		if now.Sinks[name] != c {
			return differs("table " + name)
		}
	}
	if was.RangesSHA != now.RangesSHA || len(was.Sources) != len(now.Sources) || len(was.Sinks) != len(now.Sinks) {
		return differs("what was read")
	}
	return nil
}

// remake writes a damaged manifest anew: what a replay and the head say, and what can only be taken from
// the damaged one. It is right when it has the checksum that the head records.
func (p *Pipeline) remake(ctx context.Context, head connectors.Head, stored, made checkpoints.Manifest) (checkpoints.Manifest, error) {
	made.PlanID, made.Position = head.Plan.ID, head.Manifest.Position
	made.Attempt, made.BatchTime, made.Env = stored.Attempt, stored.BatchTime, stored.Env
	live, err := p.Destination.Listed(ctx, p.Plan.Name, made.Incarnation, made.Seq)
	if err != nil {
		return made, err
	}
	made.Live = checkpoints.SumLive(live)
	if made.Checksum() != head.SHA {
		return made, &connectors.DamagedError{What: fmt.Sprintf("manifest %d of %s", made.Seq, p.Plan.Name),
			Reason: "it cannot be made again from what it must say"}
	}
	return made, nil
}

// place takes the position that the head recorded where it is intact, and otherwise the replayed one,
// with files that were renamed since, if it is the one that was recorded.
func (l *life) place(ctx context.Context) error {
	m := l.manifest
	if segments, err := l.Destination.Segments(ctx, l.Plan.Name, m.Incarnation, m.Seq); err == nil {
		if position, err := l.Pipeline.position(ctx, m, segments); err == nil {
			l.position = position
			return nil
		}
	}
	if err := l.comesToPosition(ctx, m.Position); err != nil {
		return &connectors.DamagedError{What: "the position after batch " + fmt.Sprint(m.Batch), Reason: err.Error()}
	}
	return nil
}

// comesToPosition compares the position at hand, which was made out of recorded ranges, with a summary. Files
// have the names there that they had when they were read, or those that they have now.
func (l *life) comesToPosition(ctx context.Context, sums map[string]checkpoints.PositionSum) error {
	if l.position.Verify(sums) == nil {
		return nil
	}
	l.followRenames(ctx, l.position)
	return l.position.Verify(sums)
}
