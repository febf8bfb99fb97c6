package engine

import (
	"context"
	"errors"
	"fmt"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Status is what the destination and the sources say of a pipeline.
type Status struct {
	Head     connectors.Head
	Blocked  error                        // why a run would stop before it reads anything; nil: it would not
	Waiting  map[string]int               // per source, splits with unread input; nil when it could not be asked
	Input    error                        // what is wrong with the input, as a run would say
	Times    map[string]checkpoints.Times // per source, of all rows read
	Lost     map[string]int               // per source, splits whose loss was accepted; nil when it is not known
	Segments int                          // live ones
	Bytes    int64                        // of the live segments, as stored
}

// NeverRan tells a pipeline that has no batch yet.
func (s Status) NeverRan() bool { return s.Head.Fresh || s.Head.Manifest.Seq == 0 }

// Check compares the plan and the tables with what the last run left, as a run does before it reads.
// blocked is a BlockedError, TargetError or DamagedError. It writes nothing.
func (p *Pipeline) Check(ctx context.Context) (head connectors.Head, blocked, err error) {
	if head, err = p.Destination.Head(ctx, p.Plan.Name); err == nil {
		err = p.fits(ctx, head)
	}
	if err == nil {
		err = p.Destination.CheckTargets(ctx, head, p.sinkSpecs())
	}
	blocked, err = asBlocked(err)
	return head, blocked, err
}

// Status looks at everything a run would look at, and writes nothing.
func (p *Pipeline) Status(ctx context.Context) (Status, error) {
	head, blocked, err := p.Check(ctx)
	s := Status{Head: head, Blocked: blocked}
	if err == nil && !s.NeverRan() {
		var segments []checkpoints.Segment
		segments, err = p.Destination.Segments(ctx, p.Plan.Name, head.Manifest.Incarnation, head.Manifest.Seq)
		s.Segments = len(segments)
		for _, seg := range segments {
			s.Bytes += seg.Bytes
		}
	}
	// The sources of a blocked plan may be other ones than the position is of.
	if err == nil && s.Blocked == nil {
		var l *life
		if l, _, err = p.from(ctx, head); err == nil {
			s.Times, s.Lost = times(l.position), lostSplits(l.position)
			s.Waiting, s.Input, err = p.Ask(ctx, l.position)
		}
	}
	blocked, err = asBlocked(err)
	if blocked != nil {
		s.Blocked = blocked
	}
	if recoverable(s.Blocked) {
		s.Blocked = fmt.Errorf("%w; the next run tries to build it again", s.Blocked)
	}
	return s, err
}

// Ask lets every source count the splits it has not given yet, after a position; an empty one is before
// the first batch. wrong is what a run would stop at.
func (p *Pipeline) Ask(ctx context.Context, position checkpoints.Position) (waiting map[string]int, wrong, err error) {
	waiting = map[string]int{}
	for _, source := range p.readSources() {
		found, err := p.Sources[source.Name].Plan(ctx, position[source.Name], connectors.Limit{})
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			wrong = errors.Join(wrong, err)
			continue
		}
		waiting[source.Name] = found.Waiting
	}
	return waiting, wrong, nil
}

// times are the event times of everything a position has read.
func times(position checkpoints.Position) map[string]checkpoints.Times {
	out := map[string]checkpoints.Times{}
	for source, splits := range position {
		for _, split := range splits {
			out[source] = out[source].With(split.Times)
		}
	}
	return out
}

// lostSplits counts what is still lost: a correction may have taken it over as it is.
func lostSplits(position checkpoints.Position) map[string]int {
	out := map[string]int{}
	for source, splits := range position {
		for _, split := range splits {
			if split.Lost {
				out[source]++
			}
		}
	}
	return out
}

// asBlocked tells the errors that say what is wrong with the plan or the tables from failures to look.
func asBlocked(err error) (blocked, failure error) {
	var (
		plan    *BlockedError
		target  *connectors.TargetError
		damaged *connectors.DamagedError
	)
	if errors.As(err, &plan) || errors.As(err, &target) || errors.As(err, &damaged) {
		return err, nil
	}
	return nil, err
}
