package engine

import (
	"context"
	"fmt"
	"slices"

	"lockstep/checkpoints"
)

// Changed is what a batch did to the tables: for every sink a temp table of rows, as the batch staged them, with
// _op as their last column.
type Changed struct {
	Sink   string
	Key    []string
	Staged string
}

// ForgottenError says why a batch cannot be computed again.
type ForgottenError struct{ Reason string }

func (e *ForgottenError) Error() string { return e.Reason }

// Again computes a batch once more, from the state before it and the input that it read, and writes nothing. It
// comes to what the batch came to, or is an error.
func (p *Pipeline) Again(ctx context.Context, m checkpoints.Manifest) ([]Changed, error) {
	head, err := p.Destination.Head(ctx, p.Plan.Name)
	if err != nil {
		return nil, err
	}
	if err := p.fits(ctx, head); err != nil {
		return nil, err
	}
	if m.PlanID != head.Plan.ID || m.Incarnation != head.Manifest.Incarnation {
		return nil, &ForgottenError{fmt.Sprintf("batch %d was of another plan than the pipeline has now", m.Batch)}
	}
	points, err := p.Destination.Points(ctx, p.Plan.Name, m.Incarnation)
	if err != nil {
		return nil, err
	}
	if m.Seq > 1 && !slices.ContainsFunc(points, func(at checkpoints.Point) bool { return at.Seq == m.Seq-1 }) {
		return nil, &ForgottenError{fmt.Sprintf("the state before batch %d is not kept any more", m.Batch)}
	}
	l, err := p.at(ctx, m.Incarnation, m.Seq-1)
	if err != nil {
		return nil, err
	}
	made, err := l.replay(ctx, m.Seq)
	if err == nil {
		err = sameOutcome(m, made)
	}
	if err != nil {
		return nil, err
	}
	var out []Changed
	for _, sink := range p.Plan.Sinks {
		out = append(out, Changed{sink.Name, sink.Key, sink.Staged})
	}
	return out, nil
}
