package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/planner"
)

// life is what a run knows of its pipeline between two batches. It is built from the destination and
// dropped after any error.
type life struct {
	*Pipeline
	lease    connectors.Lease     // none before there is something to do
	manifest checkpoints.Manifest // of the last commit; Seq 0 before the first
	position checkpoints.Position
	live     []checkpoints.Segment  // without their data
	tables   map[string]*stateTable // by name
	restored bool                   // the state tables hold the state
	// needed are conditions on the rows of sources: the steps see no others. Of a backfill.
	needed map[string]string
	// within are conditions on the rows of steps: the state has no others. Of a backfill.
	within map[string]string
	// unsettled: the state tables do not have the last batch yet.
	unsettled bool
}

// Summary is what a run did.
type Summary struct {
	Reports  []Report
	Batch    int64    // the last one committed, by this run or before; -1 for none
	UpToDate bool     // nothing was new
	Warnings []string // what went wrong, or was mended, and needs nobody now
}

// Run folds everything that waits into the tables and stops. report, which may be nil, is called
// after every committed batch. An error leaves all committed batches in place.
func (p *Pipeline) Run(ctx context.Context, report func(Report)) (Summary, error) {
	s := Summary{Batch: -1}
	p.warn = func(text string) { s.Warnings = append(s.Warnings, text) }
	l, work, err := p.open(ctx)
	if err != nil {
		return s, err
	}
	s.Batch, s.UpToDate = l.manifest.Batch, work == nil
	_, err = p.drain(ctx, l, work, func(r Report) {
		s.Reports, s.Batch = append(s.Reports, r), r.Batch
		if report != nil {
			report(r)
		}
	})
	return s, err
}

// drain folds batch after batch until nothing is new, and gives the lease back. It returns the life to
// go on with.
func (p *Pipeline) drain(ctx context.Context, l *life, work *work, report func(Report)) (*life, error) {
	defer func() { l.release(ctx) }()
	for work != nil {
		r, err := l.batch(ctx, work)
		if err != nil {
			return nil, err
		}
		report(*r)
		upkeep := l.maintain(ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if upkeep == nil {
			if work, err = l.plan(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if recoverable(upkeep) { // it met old state that is damaged
			l.release(ctx)
			if l, work, err = p.again(ctx, func() (*life, error) { return p.recover(ctx, upkeep) }); err != nil {
				return nil, fmt.Errorf("batch %d is committed; the compaction after it failed: %w", r.Batch, err)
			}
			continue
		}
		if needsSomebody(upkeep) {
			return nil, fmt.Errorf("batch %d is committed; the compaction after it failed: %w", r.Batch, upkeep)
		}
		// The batch stands, but what this life knows may not be true any more: a new one reads it all again.
		p.warn(fmt.Sprintf("batch %d is committed; the compaction after it failed and is left to a later run: %v", r.Batch, upkeep))
		l.release(ctx)
		if l, work, err = p.open(ctx); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// release gives the lease back. That of a dead run is taken over anyway; this only spares it.
func (l *life) release(ctx context.Context) {
	if l == nil || l.lease.Holder == "" {
		return
	}
	_ = l.Destination.Release(context.WithoutCancel(ctx), l.lease)
	l.lease = connectors.Lease{}
}

// needsSomebody tells failures that the next look would meet again from those that may pass.
func needsSomebody(err error) bool {
	var (
		fenced *connectors.FencedError
		held   *connectors.HeldError
		target *connectors.TargetError
	)
	return errors.As(err, &fenced) || errors.As(err, &held) || errors.As(err, &target)
}

// open reads the head and finds the first batch. Only when there is one does it take the lease and
// restore the state: a run with nothing to do costs a look at the positions.
func (p *Pipeline) open(ctx context.Context) (*life, *work, error) {
	head, err := p.Destination.Head(ctx, p.Plan.Name)
	if recoverable(err) {
		return p.again(ctx, func() (*life, error) { return p.recover(ctx, err) })
	}
	if err != nil {
		return nil, nil, err
	}
	var blocked *BlockedError
	if err := p.compatible(ctx, head); errors.As(err, &blocked) && blocked.Comparison.Class == planner.Environment {
		return p.again(ctx, func() (*life, error) { return p.upgrade(ctx, blocked) })
	}
	l, segments, err := p.from(ctx, head)
	if recoverable(err) {
		return p.again(ctx, func() (*life, error) { return p.recover(ctx, err) })
	}
	if err != nil {
		return nil, nil, err
	}
	work, err := l.plan(ctx)
	if err != nil || work == nil {
		return l, nil, err
	}
	lease, taken, err := p.Destination.Take(ctx, p.Plan.Name)
	if err != nil {
		return nil, nil, err
	}
	// Another run may have committed between the two looks at the head.
	if taken.Manifest.Seq != head.Manifest.Seq {
		if l, segments, err = p.from(ctx, taken); err != nil {
			return nil, nil, err
		}
		if work, err = l.plan(ctx); err != nil {
			return nil, nil, err
		}
	}
	l.lease = lease
	if work == nil {
		return l, nil, nil
	}
	err = l.restore(ctx, segments)
	if recoverable(err) {
		return p.again(ctx, func() (*life, error) { return p.recover(ctx, err) })
	}
	l.restored = err == nil
	return l, work, err
}

// again goes on with a life whose state was made in another way than from the head alone.
func (p *Pipeline) again(ctx context.Context, fn func() (*life, error)) (*life, *work, error) {
	l, err := fn()
	if err != nil {
		return nil, nil, err
	}
	work, err := l.plan(ctx)
	return l, work, err
}

// from checks that the pipeline can go on from a head, and loads the position.
func (p *Pipeline) from(ctx context.Context, head connectors.Head) (*life, []checkpoints.Segment, error) {
	if err := p.fits(ctx, head); err != nil {
		return nil, nil, err
	}
	if err := p.Destination.CheckTargets(ctx, head, p.sinkSpecs()); err != nil {
		return nil, nil, err
	}
	return p.placed(ctx, head)
}

// placed is a life at the position of a head.
func (p *Pipeline) placed(ctx context.Context, head connectors.Head) (*life, []checkpoints.Segment, error) {
	l := &life{Pipeline: p, manifest: head.Manifest, tables: map[string]*stateTable{}}
	if head.Fresh || head.Manifest.Seq == 0 {
		l.manifest = checkpoints.Manifest{Pipeline: p.Plan.Name, Incarnation: 1, Batch: -1}
	}
	var segments []checkpoints.Segment
	var err error
	if l.manifest.Seq > 0 {
		segments, err = p.Destination.Segments(ctx, p.Plan.Name, l.manifest.Incarnation, l.manifest.Seq)
		if err != nil {
			return nil, nil, err
		}
	}
	l.live = segments
	l.position, err = p.position(ctx, l.manifest, segments)
	return l, segments, err
}

// work is one planned batch: what each source gives to it.
type work struct {
	sources []sourceWork
}

type sourceWork struct {
	plan  planner.Source
	found connectors.Batch
	as    map[string]string // the names that splits are recorded by, where they have another one now
}

// plan asks every source what is new; nil when nothing is and batch 0 is done. Batch 0 happens also
// without input: it makes the tables, and a SELECT without groups has a row before any input.
func (l *life) plan(ctx context.Context) (*work, error) {
	w, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	if l.manifest.Seq == 0 || slices.ContainsFunc(w.sources, func(s sourceWork) bool { return len(s.found.Ranges) > 0 }) {
		return w, nil
	}
	return nil, nil
}

// look asks every source what is new.
func (l *life) look(ctx context.Context) (*work, error) {
	w := &work{}
	for _, s := range l.readSources() {
		source, ok := l.Sources[s.Name]
		if !ok {
			return nil, errors.New("engine: no connector for source " + s.Name)
		}
		found, err := source.Plan(ctx, l.position[s.Name], l.Limit)
		if err != nil {
			return nil, err
		}
		w.sources = append(w.sources, sourceWork{plan: s, found: found})
	}
	return w, nil
}
