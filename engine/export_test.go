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
