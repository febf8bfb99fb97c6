package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockstep/checkpoints"
	"lockstep/connectors"
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
		return nil, p.replaced(ctx, head, m, err)
	}
	var out []Changed
	for _, sink := range p.Plan.Sinks {
		out = append(out, Changed{sink.Name, sink.Key, sink.Staged})
	}
	return out, nil
}

// replaced says of a batch whose input cannot be read again that a later change read it anew, when one did: what
// it was then is not wanted back.
func (p *Pipeline) replaced(ctx context.Context, head connectors.Head, m checkpoints.Manifest, cause error) error {
	var input *connectors.InputError
	if !errors.As(cause, &input) {
		return cause
	}
	was, err := p.Destination.Consumed(ctx, p.Plan.Name, m.Seq)
	if err != nil {
		return cause
	}
	for seq := m.Seq + 1; seq <= head.Manifest.Seq; seq++ {
		now, err := p.Destination.Consumed(ctx, p.Plan.Name, seq)
		if err != nil {
			return cause
		}
		for _, r := range now {
			if !slices.ContainsFunc(was, func(w checkpoints.Range) bool {
				return r.From == 0 && w.Source == r.Source && w.Split == r.Split && w.Content != r.Content
			}) {
				continue
			}
			later, err := p.Destination.Manifest(ctx, p.Plan.Name, seq)
			if err != nil {
				return cause
			}
			by := fmt.Sprintf("a %s after batch %d", later.Kind, later.Batch)
			if later.Kind == checkpoints.KindBatch {
				by = fmt.Sprintf("batch %d", later.Batch)
			}
			did := fmt.Sprintf("took %s as it was then, which is not what batch %d read", r.Split, m.Batch)
			if r.Content == "" {
				did = fmt.Sprintf("took the rows out that batch %d read of %s", m.Batch, r.Split)
			}
			return &ForgottenError{by + " " + did}
		}
	}
	input.Hint = fmt.Sprintf("batch %d can be computed again only while the file is as it was then; without --replay diff shows what the tables still have of it", m.Batch)
	return cause
}
