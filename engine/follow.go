package engine

import (
	"context"
	"errors"
	"time"

	"lockstep/connectors"
)

// Watcher is told what happens while a pipeline is followed.
type Watcher struct {
	Batch func(Report)
	Held  func(error) // another program has the destination, or it is away; once until that has changed
	Warn  func(string)
}

// outage is how long a destination that is away is waited for. Somebody has to see to one that stays away.
const outage = time.Hour

// Follow looks at the input at every tick and folds what is new, until an error or the end of ctx. The
// destination is given back while nothing waits, so that other programs can use it; the state stays in
// memory. Others may have changed the destination meanwhile: the head is read again before every batch,
// and when it is not the one that was left, everything is forgotten and read anew. So it is when the
// destination was away, for an hour at most.
func (p *Pipeline) Follow(ctx context.Context, every time.Duration, tell Watcher) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	p.warn = tell.Warn
	var l *life
	held, away := false, time.Time{} // since when
	began := false
	awake := true // as it was opened
	committed := func(r Report) {
		held, away = false, time.Time{} // whatever comes after it in the same turn comes anew
		tell.Batch(r)
	}
	for {
		var err error
		l, err = p.turn(ctx, l, awake, committed)
		switch wasAway := !away.IsZero(); {
		case err == nil:
			held, away, began = false, time.Time{}, true
		case connectors.Held(err):
			if !held {
				tell.Held(err)
			}
			held, away = true, time.Time{}
		case connectors.Away(err) && ctx.Err() == nil && (!wasAway || p.Now().Sub(away) < outage):
			if !wasAway {
				tell.Held(err)
				away = p.Now()
			}
			held = false
		case began:
			return p.overtaken(err)
		default:
			return err
		}
		awake = false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// overtaken says of a plan that fitted when the pipeline began to be followed that another one was applied since.
func (p *Pipeline) overtaken(err error) error {
	var blocked *BlockedError
	if !errors.As(err, &blocked) {
		return err
	}
	return &connectors.TargetError{Table: p.Plan.Sinks[0].Name, Reason: "another SELECT was applied to its pipeline while it was followed",
		Hint: "start the run again: it takes the pipeline file as it is now"}
}

// turn looks once. The destination is asleep before it, unless it says otherwise, and after it.
func (p *Pipeline) turn(ctx context.Context, l *life, awake bool, report func(Report)) (_ *life, err error) {
	var work *work
	if l != nil {
		if work, err = l.news(ctx); err != nil || work == nil {
			return l, err
		}
	}
	if !awake {
		if err := p.Destination.Wake(ctx); err != nil {
			return l, err
		}
	}
	defer func() {
		if restErr := p.Destination.Rest(ctx); err == nil {
			err = restErr
		}
	}()
	connectors.Failpoint("after-wake")
	if l, err = p.resume(ctx, l); err != nil {
		return nil, err
	}
	if l == nil {
		if l, work, err = p.open(ctx); err != nil {
			return nil, err
		}
	}
	return p.drain(ctx, l, work, report)
}

// resume takes the lease for a life that rested; nil when it has to be forgotten.
func (p *Pipeline) resume(ctx context.Context, l *life) (*life, error) {
	if l == nil {
		return nil, nil
	}
	head, err := p.Destination.Head(ctx, p.Plan.Name)
	if recoverable(err) {
		return nil, nil // to be built again, as when it is opened
	}
	if err != nil {
		return nil, err
	}
	if head.Fresh {
		return nil, &connectors.TargetError{Table: p.Plan.Sinks[0].Name, Reason: "the database was replaced by one in which the pipeline never ran, while it was followed",
			Hint: "put the database back; to begin anew in this one, start the run again"}
	}
	if !l.restored || head.Manifest.Checksum() != l.manifest.Checksum() {
		return nil, nil
	}
	if err := p.compatible(ctx, head); err != nil {
		return nil, err
	}
	if err := p.Destination.CheckTargets(ctx, head, p.sinkSpecs()); err != nil {
		return nil, err
	}
	lease, taken, err := p.Destination.Take(ctx, p.Plan.Name)
	if err != nil || taken.Manifest.Checksum() != l.manifest.Checksum() { // another run came between
		return nil, err
	}
	l.lease = lease
	return l, nil
}

// news is plan, but remembers what only looked new, so that it is not read again at every tick: a
// touched file gets its time, and a renamed one is committed by a batch without rows. A life without
// state only looks: it will be read anew before anything is committed.
func (l *life) news(ctx context.Context) (*work, error) {
	w, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range w.sources {
		if len(s.found.Ranges) > 0 || l.restored && len(s.found.Gone) > 0 {
			return w, nil
		}
	}
	for _, s := range w.sources {
		l.position[s.plan.Name].Apply(s.found.Moved, s.found.Gone)
	}
	return nil, nil
}
