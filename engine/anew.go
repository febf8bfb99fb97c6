package engine

import (
	"context"
	"errors"
	"fmt"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// anew makes the state that a correction left, without any state from before: everything that was read
// until then is folded into nothing. It must come to the rows and digests that the correction recorded.
func (p *Pipeline) anew(ctx context.Context, incarnation, seq int64) (*life, error) {
	m, err := p.Destination.Manifest(ctx, p.Plan.Name, seq)
	if err != nil {
		return nil, err
	}
	l := &life{Pipeline: p, manifest: m, position: checkpoints.Position{}}
	works, err := l.everything(ctx, incarnation)
	if err != nil {
		return nil, err
	}
	if err := l.empty(ctx); err != nil {
		return nil, err
	}
	for _, w := range works {
		if err := l.fold(ctx, w, &folded{}); err != nil {
			return nil, err
		}
	}
	if err := l.comesTo(ctx, m); err != nil {
		return nil, err
	}
	l.restored = true
	return l, nil
}

// everything plans to read all that was read until the manifest at hand: by the position it left, and where
// that is damaged, by the ranges recorded until then.
func (l *life) everything(ctx context.Context, incarnation int64) ([]*work, error) {
	m := l.manifest
	segments, err := l.Destination.Segments(ctx, m.Pipeline, incarnation, m.Seq)
	if err == nil {
		var position checkpoints.Position
		if position, err = l.Pipeline.position(ctx, m, segments); err == nil {
			l.followRenames(ctx, position)
			return l.reread(position, nil), nil
		}
	}
	if !recoverable(err) {
		return nil, err
	}
	ranges, rangesErr := l.consumedUntil(ctx, m.Seq)
	if rangesErr != nil {
		return nil, errors.Join(err, rangesErr)
	}
	w, err := l.recorded(ctx, ranges)
	return []*work{w}, err
}

// consumedUntil lists, from the records of all changes, what was read of every split until a change: what a
// rebuild read of a source is all there was of it, and what is read from the start of a split again takes
// the place of what was read of it before.
func (l *life) consumedUntil(ctx context.Context, seq int64) ([]checkpoints.Range, error) {
	type split struct{ source, id string }
	whole := map[string]bool{} // sources of which nothing older counts
	begun := map[split]bool{}  // read from its start
	read := map[split]checkpoints.Range{}
	for ; seq > 0; seq-- {
		m, err := l.Destination.Manifest(ctx, l.Plan.Name, seq)
		if err != nil {
			return nil, err
		}
		ranges, err := l.Destination.Consumed(ctx, l.Plan.Name, seq)
		if err != nil {
			return nil, err
		}
		for i := len(ranges) - 1; i >= 0; i-- {
			r, s := ranges[i], split{ranges[i].Source, ranges[i].Split}
			if whole[r.Source] || begun[s] {
				continue
			}
			newer, ok := read[s]
			if !ok {
				newer = checkpoints.Range{Source: r.Source, Split: r.Split, From: r.From, To: r.To, Content: r.Content}
			}
			newer.From, newer.Rows = min(newer.From, r.From), newer.Rows+r.Rows
			read[s], begun[s] = newer, r.From == 0
		}
		for source := range m.Sources {
			whole[source] = whole[source] || m.Kind == checkpoints.KindRebuild
		}
	}
	var out []checkpoints.Range
	for _, r := range read {
		if r.Content != "" { // nothing is left of one that a backfill took out
			out = append(out, r)
		}
	}
	sortRanges(out)
	return out, nil
}

// comesTo compares the state and the position at hand with what a manifest says of them.
func (l *life) comesTo(ctx context.Context, m checkpoints.Manifest) error {
	differs := func(what string) error {
		return &connectors.DamagedError{What: "the state of " + m.Pipeline,
			Reason: fmt.Sprintf("everything that was read until change %d does not come to what it recorded: %s", m.Seq, what)}
	}
	if err := l.comesToPosition(ctx, m.Position); err != nil {
		return differs(err.Error())
	}
	if err := l.finalise(ctx); err != nil {
		return err
	}
	for _, sink := range l.Plan.Sinks {
		c, err := l.rows(ctx, sink)
		if err != nil {
			return err
		}
		if was := m.Sinks[sink.Name]; was.Rows != c.Rows || was.Digest != c.Digest {
			return differs("table " + sink.Name)
		}
	}
	return nil
}
