package engine

import (
	"context"
	"errors"
	"fmt"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// SourceLosses are losses of one source.
type SourceLosses struct {
	Source string
	Losses []connectors.Loss
}

// AcceptLoss lets the pipeline go on past input that is lost. chosen picks from what a run would stop at; when
// it picks something, and agrees, the position takes those splits as they are now: what was read of them
// stays in the tables, what was not is given up. The change is of the kind loss and counts both. chosen is
// asked again when another run came in between. A split whose loss was accepted before, and that was changed
// again, is not counted twice.
func (p *Pipeline) AcceptLoss(ctx context.Context, chosen func([]SourceLosses) ([]SourceLosses, error)) (checkpoints.Manifest, error) {
	none := checkpoints.Manifest{}
	head, err := p.Destination.Head(ctx, p.Plan.Name)
	if err != nil {
		return none, err
	}
	if head.Fresh {
		if err := p.neverRan(ctx, head); !errors.Is(err, ErrNeverRan) {
			return none, err
		}
		return none, ErrNothingRead
	}
	l, lost, err := p.losses(ctx, head, chosen)
	if err != nil || len(lost) == 0 {
		return none, err
	}
	lease, taken, err := p.Destination.Take(ctx, p.Plan.Name)
	if err != nil {
		return none, err
	}
	defer func() { l.release(ctx) }()
	if taken.Manifest.Seq != head.Manifest.Seq {
		if l, lost, err = p.losses(ctx, taken, chosen); err != nil || len(lost) == 0 {
			l = &life{Pipeline: p, lease: lease}
			return none, err
		}
	}
	l.lease = lease
	return l.accept(ctx, taken, lost)
}

// ErrNothingRead says that there is nothing that could be lost.
var ErrNothingRead = fmt.Errorf("nothing can be lost: the pipeline never ran")

// losses looks for what is lost of the input that a head has read, and lets somebody choose.
func (p *Pipeline) losses(ctx context.Context, head connectors.Head, chosen func([]SourceLosses) ([]SourceLosses, error)) (*life, []SourceLosses, error) {
	l, _, err := p.from(ctx, head)
	if err != nil {
		return nil, nil, err
	}
	var all []SourceLosses
	for _, s := range l.readSources() {
		found, err := p.Sources[s.Name].Losses(ctx, l.position[s.Name])
		if err != nil {
			return nil, nil, err
		}
		all = append(all, SourceLosses{s.Name, found})
	}
	lost, err := chosen(all)
	return l, lost, err
}

// accept commits a loss. It does nothing to the state, which stays that of its plan and environment.
func (l *life) accept(ctx context.Context, head connectors.Head, lost []SourceLosses) (checkpoints.Manifest, error) {
	m := l.beside(checkpoints.KindLoss)
	m.PlanID, m.Env, m.Losses = head.Manifest.PlanID, head.Manifest.Env, map[string]checkpoints.LossCount{}
	change := &connectors.Change{Plan: head.Plan, Before: l.manifest.Live}
	for _, s := range lost {
		moved, count := checkpoints.Splits{}, checkpoints.LossCount{}
		for _, one := range s.Losses {
			moved[one.Split] = one.Next
			if one.Accepted { // all that was read of it is counted
				continue
			}
			count.Splits++
			count.Read += one.Next.Rows
			count.Unread += one.Unread
		}
		seg, err := checkpoints.EncodePosition(s.Source, m.Seq, moved, nil)
		if err != nil {
			return m, err
		}
		change.Segments = append(change.Segments, seg)
		m.Losses[s.Source] = count
		m.Position[s.Source] = m.Position[s.Source].After(l.position[s.Source], moved, nil)
	}
	m.RangesSHA, m.Live = checkpoints.RangesSHA(nil), change.Before.After(change.Segments, nil)
	change.Manifest = m
	return m, l.commit(ctx, change)
}

// lose takes what a loss did to the position from where it was stored: no input tells it again. It tells
// whether all of it was there.
func (l *life) lose(ctx context.Context, m checkpoints.Manifest) (whole bool, err error) {
	segments, err := l.Destination.Listed(ctx, l.Plan.Name, m.Incarnation, m.Seq)
	if err != nil {
		return false, err
	}
	found := 0
	for source := range m.Losses {
		for _, seg := range segments {
			if seg.Step != checkpoints.PositionStep(source) || seg.SeqLo != m.Seq || seg.SeqHi != m.Seq {
				continue
			}
			if err := l.Destination.Load(ctx, &seg); err != nil {
				return false, err
			}
			if splits, err := checkpoints.DecodePosition([]checkpoints.Segment{seg}); err == nil {
				l.position[source].Apply(splits, nil)
				found++
			}
		}
	}
	return found == len(m.Losses), nil
}
