package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// folded is input that was folded into the state at hand without a commit.
type folded struct {
	ranges []checkpoints.Range
	counts map[string]checkpoints.SourceCount
	bytes  int64 // of the splits
}

// only is the life of some of the plan's steps, with what they read, over the same tables.
func (l *life) only(keep func(planner.Step) bool) *life {
	plan := *l.Plan
	plan.Sinks, plan.Steps, plan.Sources = nil, nil, nil
	reads := map[string]bool{}
	for _, step := range l.Plan.Steps {
		if keep(step) {
			plan.Steps = append(plan.Steps, step)
			for _, source := range step.Of.Sources {
				reads[source] = true
			}
		}
	}
	for _, source := range l.Plan.Sources {
		if reads[source.Name] {
			plan.Sources = append(plan.Sources, source)
		}
	}
	pipeline := *l.Pipeline
	pipeline.Plan = &plan
	return &life{Pipeline: &pipeline, manifest: l.manifest, position: checkpoints.Position{}, tables: l.tables}
}

// empty makes the state before any input. What is folded into it starts from an empty position.
func (l *life) empty(ctx context.Context) error {
	l.tables, l.unsettled = map[string]*stateTable{}, false
	for _, step := range l.Plan.Steps {
		if err := l.Duck.Exec(ctx, step.State.Create()); err != nil {
			return err
		}
	}
	for _, s := range l.readSources() {
		l.position[s.Name] = checkpoints.Splits{}
		if err := l.Duck.Exec(ctx, fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s (source VARCHAR, split_id VARCHAR, off BIGINT, line BIGINT, reason VARCHAR, raw VARCHAR)",
			duck.Quote(leftOut(s.Name)))); err != nil {
			return err
		}
	}
	return nil
}

// leftOut is the temp table of the rows that were rejected while input was folded without a commit.
func leftOut(source string) string { return "_left_out_" + source }

// reread plans to read everything of a position once more, in works within the limit of bytes. There is
// at least one: a SELECT without groups has a row before any input.
//
// anew has, by source and split, what is read in the place of the recorded content. What is in the position at
// hand was folded already.
func (l *life) reread(of checkpoints.Position, anew map[string]map[string]connectors.Range) []*work {
	limit := l.Limit.Bytes
	if total := l.bytes(of); total > bigBuilding {
		limit = min(cmp.Or(limit, total), max(bigBuilding/2, total/16))
	}
	var all []*work
	var now *work
	var bytes int64
	begin := func() {
		now, bytes = &work{}, 0
		for _, s := range l.readSources() {
			now.sources = append(now.sources, sourceWork{plan: s})
		}
		all = append(all, now)
	}
	begin()
	for i, s := range l.readSources() {
		for _, r := range consumedRanges(of[s.Name]) {
			r.Next.Times = checkpoints.Times{} // they are found again
			if now, ok := anew[s.Name][r.Split]; ok {
				r = now
			}
			if _, done := l.position[s.Name][r.Split]; done {
				continue
			}
			if bytes > 0 && limit > 0 && bytes+r.Next.Size > limit {
				begin()
			}
			now.sources[i].found.Ranges = append(now.sources[i].found.Ranges, r)
			bytes += r.Next.Size
		}
	}
	return all
}

// bytes is how much input a position is of.
func (l *life) bytes(of checkpoints.Position) (n int64) {
	for _, s := range l.readSources() {
		for _, split := range of[s.Name] {
			n += split.Size
		}
	}
	return n
}

// recorded plans to read the ranges that a change recorded. Splits that were renamed since are read under the
// name they have, and recorded under the one they had.
func (l *life) recorded(ctx context.Context, ranges []checkpoints.Range) (*work, error) {
	w := &work{}
	for _, s := range l.readSources() {
		own := slices.DeleteFunc(slices.Clone(ranges), func(r checkpoints.Range) bool { return r.Source != s.Name })
		found, err := l.Sources[s.Name].Recorded(ctx, own, true)
		if err != nil {
			return nil, err
		}
		as := map[string]string{}
		for i, r := range found {
			if r.Split != own[i].Split {
				as[r.Split] = own[i].Split
			}
			found[i].Next.Times = l.position[s.Name][own[i].Split].Times // of the rows read before these
		}
		w.sources = append(w.sources, sourceWork{plan: s, found: connectors.Batch{Ranges: found}, as: as})
	}
	return w, nil
}

func sortRanges(ranges []checkpoints.Range) {
	slices.SortFunc(ranges, func(a, b checkpoints.Range) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Split, b.Split))
	})
}

// fold brings the state and the position at hand past some input, and commits nothing.
func (l *life) fold(ctx context.Context, w *work, into *folded) error {
	inputs, err := l.read(ctx, w)
	defer inputs.close()
	if err != nil {
		return err
	}
	if err := l.computeAll(ctx); err != nil {
		return inputs.explain(ctx, err)
	}
	if err := inputs.finish(ctx, l.manifest.Seq); err != nil {
		return err
	}
	for _, in := range inputs.list {
		name := in.plan.Name
		c, err := l.count(ctx, in)
		if err != nil {
			return err
		}
		if rejects := rejectsOf(in); rejects != "" {
			if err := l.Duck.Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT source, split_id, off, line, reason, raw FROM %s", duck.Quote(leftOut(name)), duck.Quote(rejects))); err != nil {
				return err
			}
		}
		into.add(in, c)
		l.position[name].Apply(in.moved, in.gone)
	}
	for _, step := range l.Plan.Steps {
		if err := l.Duck.QueryRow(ctx, "SELECT count(*) FROM ("+step.Changed+")", nil, &l.table(step).changed); err != nil {
			return err
		}
	}
	l.unsettled = true
	return l.settle(ctx)
}

// add counts what was folded of one source. A split may be read in several parts.
func (f *folded) add(in *input, c checkpoints.SourceCount) {
	if f.counts == nil {
		f.counts = map[string]checkpoints.SourceCount{}
	}
	total := f.counts[in.plan.Name]
	total.Read, total.Accepted, total.Rejected = total.Read+c.Read, total.Accepted+c.Accepted, total.Rejected+c.Rejected
	for _, r := range in.recorded() {
		if !slices.ContainsFunc(f.ranges, func(o checkpoints.Range) bool { return r.From > 0 && o.Source == r.Source && o.Split == r.Split }) {
			total.Splits++
		}
		f.ranges = append(f.ranges, r)
	}
	for _, r := range in.ranges {
		f.bytes += r.Next.Size
	}
	f.counts[in.plan.Name] = total
}

// rows is how many were read.
func (f *folded) rows() (n int64) {
	for _, c := range f.counts {
		n += c.Read
	}
	return n
}

// rejects are the rows left out, as a change takes them.
func (f *folded) rejects() []connectors.Rejects {
	var out []connectors.Rejects
	for source, c := range f.counts {
		if c.Rejected > 0 {
			out = append(out, connectors.Rejects{Source: source, Table: leftOut(source), Rows: c.Rejected})
		}
	}
	return out
}
