package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/connectors"
)

// Rename gives the pipeline the record that is kept under another name, as when its file was renamed. No file
// of the old name may be left, and a table of that record has to be one of the plan's. When the SQL was
// changed as well, or a table, ahead says what the next run stops at: what helps there works only under
// the new name.
func (p *Pipeline) Rename(ctx context.Context, registry connectors.Registry, from string, left func(file string) bool) (head connectors.Head, ahead error, err error) {
	if head, err = p.Destination.Head(ctx, from); err != nil {
		if recoverable(err) {
			err = fmt.Errorf("%w\n  under its old name a run mends what can be mended: name the file %s.sql again, run it, and rename both then", err, from)
		}
		return head, nil, err
	}
	if head.Fresh {
		return head, nil, connectors.NameUnknown(from)
	}
	if left(head.File) {
		return head, nil, &connectors.TargetError{Table: "etl.pipelines", Reason: fmt.Sprintf("pipeline %s is that of %s, which is still there", from, head.File),
			Hint: "remove or rename that file first: its next run would look for the pipeline under the old name"}
	}
	ahead = p.fits(ctx, head)
	var blocked *BlockedError
	switch {
	case errors.As(ahead, &blocked):
		err = p.kin(ctx, registry, from)
	case ahead == nil:
		ahead, err = onlyTargets(p.Destination.CheckTargets(ctx, head, p.sinkSpecs()))
	default:
		ahead, err = nil, ahead
	}
	if err != nil {
		return head, nil, err
	}
	return head, ahead, registry.Rename(ctx, from, p.Plan.Name)
}

// kin makes sure that a pipeline of another plan keeps one of the tables of this one.
func (p *Pipeline) kin(ctx context.Context, registry connectors.Registry, from string) error {
	known, err := registry.Known(ctx, from)
	if err != nil {
		return err
	}
	var kept []string
	for _, t := range known.Tables {
		if slices.ContainsFunc(p.sinkSpecs(), func(s connectors.SinkSpec) bool {
			return strings.EqualFold(s.Table, t.Table) && (s.Schema == "" || strings.EqualFold(s.Schema, t.Schema))
		}) {
			return nil
		}
		kept = append(kept, t.Sink)
	}
	return &connectors.TargetError{Table: p.Plan.Sinks[0].Name, Reason: fmt.Sprintf("pipeline %s keeps other tables, %s, so that it looks like another pipeline", from, strings.Join(kept, ", ")),
		Hint: "if the name of a table was changed with that of the file: put the table's old name back into the file, rename, and then change it: `etl apply FILE` takes that"}
}

// onlyTargets tells what is wrong with tables from a failure to look at them.
func onlyTargets(err error) (wrong, failed error) {
	var target *connectors.TargetError
	if errors.As(err, &target) {
		return err, nil
	}
	return nil, err
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

// neverRan says that nothing was committed. What would stop a first run tells why: the table may have another
// pipeline, which may be this one under the name of its file before.
func (p *Pipeline) neverRan(ctx context.Context, head connectors.Head) error {
	if wrong, err := onlyTargets(p.Destination.CheckTargets(ctx, head, p.sinkSpecs())); wrong != nil || err != nil {
		return errors.Join(wrong, err)
	}
	return ErrNeverRan
}
