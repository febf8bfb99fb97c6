package engine

import (
	"context"
	"fmt"

	"lockstep/connectors"
)

// Rename gives the pipeline the record that is kept under another name, as when its file was renamed. It must
// be the same pipeline: the plan and the tables have to fit, and no file of the old name may be left.
func (p *Pipeline) Rename(ctx context.Context, registry connectors.Registry, from string, left func(file string) bool) (connectors.Head, error) {
	head, err := p.Destination.Head(ctx, from)
	if err != nil {
		return head, err
	}
	if head.Fresh {
		return head, connectors.NameUnknown(from)
	}
	if left(head.File) {
		return head, &connectors.TargetError{Table: "etl.pipelines", Reason: fmt.Sprintf("pipeline %s is that of %s, which is still there", from, head.File),
			Hint: "remove or rename that file first: its next run would look for the pipeline under the old name"}
	}
	if err := p.fits(ctx, head); err != nil {
		return head, err
	}
	if err := p.Destination.CheckTargets(ctx, head, p.sinkSpecs()); err != nil {
		return head, err
	}
	return head, registry.Rename(ctx, from, p.Plan.Name)
}

// Adopt takes tables back that lost the mark of the pipeline, when they are what it left in every other way.
func (p *Pipeline) Adopt(ctx context.Context, registry connectors.Registry) (head connectors.Head, tables []string, err error) {
	if head, err = p.Destination.Head(ctx, p.Plan.Name); err != nil || head.Fresh {
		return head, nil, err
	}
	if err = p.fits(ctx, head); err == nil {
		tables, err = registry.Adopt(ctx, head, p.sinkSpecs())
	}
	return head, tables, err
}
