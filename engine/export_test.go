package engine

import (
	"context"

	"lockstep/checkpoints"
	"lockstep/planner"
)

// Forge commits a state of the first file alone as a recovery: it passes all checks and is wrong.
func (p *Pipeline) Forge(ctx context.Context) error {
	head, err := p.Destination.Head(ctx, p.Plan.Name)
	if err != nil {
		return err
	}
	l := &life{Pipeline: p, tables: map[string]*stateTable{}}
	if l.lease, head, err = p.taken(ctx, 0); err != nil {
		return err
	}
	defer l.release(ctx)
	l.manifest = head.Manifest
	position, segments, err := p.consumed(ctx, head)
	if err != nil {
		return err
	}
	l.live = segments
	half := checkpoints.Position{}
	for source, splits := range position {
		half[source] = splits.Clone()
	}
	for _, splits := range half {
		for id := range splits {
			if id != "00000.csv" && id != "00000.parquet" {
				delete(splits, id)
			}
		}
	}
	b := (&life{Pipeline: p, manifest: head.Manifest}).only(func(planner.Step) bool { return true })
	if err := b.empty(ctx); err != nil {
		return err
	}
	for _, w := range b.reread(half, nil) {
		if err := b.fold(ctx, w, &folded{}); err != nil {
			return err
		}
	}
	l.position, l.tables = position, b.tables
	return l.replace(ctx, checkpoints.KindRecovery, nil)
}

// Delta commits a correction that puts state and position beside what is live, as a backfill does with the
// keys it touched. Nothing of them is other than it was.
func (p *Pipeline) Delta(ctx context.Context) (seq int64, err error) {
	l := &life{Pipeline: p, tables: map[string]*stateTable{}}
	head, err := l.newest(ctx, Options{})
	if err != nil {
		return 0, err
	}
	defer l.release(ctx)
	l.manifest = head.Manifest
	if l.position, l.live, err = p.consumed(ctx, head); err != nil {
		return 0, err
	}
	if err := l.restore(ctx, l.live); err != nil {
		return 0, err
	}
	if err := l.finalise(ctx); err != nil {
		return 0, err
	}
	c := correction{kind: checkpoints.KindBackfill}
	for _, sink := range p.Plan.Sinks {
		o, err := l.compare(ctx, sink, "")
		if err != nil {
			return 0, err
		}
		c.outcomes = append(c.outcomes, o)
	}
	if c.changed, err = l.allSegments(ctx, head.Manifest.Seq+1); err != nil {
		return 0, err
	}
	err = l.correct(ctx, c)
	return l.manifest.Seq, err
}
