package engine

import (
	"context"
	"fmt"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// Reached is what the last run read, for commands that only look. blocked is why a run would stop before
// it reads: the position is then that of the sources that still have the same name.
func (p *Pipeline) Reached(ctx context.Context) (position checkpoints.Position, blocked, err error) {
	head, blocked, err := p.Check(ctx)
	if err != nil || head.Fresh || head.Manifest.Seq == 0 {
		return checkpoints.Position{}, blocked, err
	}
	segments, err := p.Destination.Segments(ctx, p.Plan.Name, head.Manifest.Incarnation, head.Manifest.Seq)
	if err != nil {
		return nil, blocked, err
	}
	if blocked == nil {
		position, err = p.position(ctx, head.Manifest, segments)
	} else {
		position, err = p.positionIn(ctx, segments)
	}
	return position, blocked, err
}

// Preview is the result of the SELECTs over input that waits, and over nothing else.
type Preview struct {
	Sources []PreviewSource
	Tables  []string // temp tables with the rows of the sinks, in their order
}

// PreviewSource is what a preview covers of a source.
type PreviewSource struct {
	Name    string
	Waiting int                // splits with unread input
	Ranges  []connectors.Range // those that were read, with rows and rejects counted
	Rejects string             // temp table of the rejected rows; "" for none
}

// Preview runs the author's SELECTs, as written, over input after a position, up to the limit, and lets
// show look at the result; the tables go when it returns. Nothing is written anywhere.
func (p *Pipeline) Preview(ctx context.Context, position checkpoints.Position, show func(Preview) error) error {
	var out Preview
	ranges := map[string][]connectors.Range{}
	for _, source := range p.readSources() {
		found, err := p.Sources[source.Name].Plan(ctx, position[source.Name], p.Limit)
		if err != nil {
			return err
		}
		ranges[source.Name] = found.Ranges
		out.Sources = append(out.Sources, PreviewSource{Name: source.Name, Waiting: found.Waiting})
	}
	for _, set := range p.Plan.Variables {
		if err := p.Duck.Exec(ctx, set); err != nil {
			return err
		}
	}
	l := &life{Pipeline: p, position: position}
	inputs, err := l.relations(ctx, func(source string) []connectors.Range { return ranges[source] }, nil)
	defer inputs.close()
	if err != nil {
		return err
	}
	for i, sink := range p.Plan.Sinks {
		table := fmt.Sprintf("_preview_%d", i)
		if err := p.Duck.Exec(ctx, "CREATE OR REPLACE TEMP TABLE "+duck.Quote(table)+" AS "+sink.OneShot); err != nil {
			return inputs.explain(ctx, p.computeError(sink.Decl.Head.Start, sink.Name, err))
		}
		out.Tables = append(out.Tables, table)
	}
	for _, in := range inputs.list {
		if in.scan == nil {
			continue
		}
		if in.ranges, err = in.scan.Finish(ctx, in.copied); err != nil {
			return err
		}
		for i := range out.Sources {
			if s := &out.Sources[i]; s.Name == in.plan.Name {
				s.Ranges, s.Rejects = in.ranges, in.scan.Rejects()
			}
		}
	}
	return show(out)
}
