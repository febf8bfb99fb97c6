package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/planner"
)

// Apply is what making the tables those of a changed plan did, or would do.
type Apply struct {
	Seq      int64              `json:"seq,omitempty"` // of the change; 0 when nothing was written
	Kind     string             `json:"kind"`          // refinalise or rebuild
	Change   planner.Comparison `json:"change"`
	Outcomes []Outcome          `json:"sinks"`
	Same     []string           `json:"same,omitempty"` // tables that the change does not touch
	Left     []string           `json:"left,omitempty"` // tables of sinks that are gone: they stay as they are
	Files    int                `json:"files"`          // read
	Bytes    int64              `json:"bytes"`
	Rows     int64              `json:"rows"`            // that were read
	Saved    int                `json:"saved,omitempty"` // files of them that were folded before it was stopped
	Took     time.Duration      `json:"took_ns"`
}

// ErrNothingToApply says that the plan is the one the tables were built with.
var ErrNothingToApply = errors.New("the plan means what it meant; there is nothing to apply")

// Apply makes the tables what the changed plan says. What the kept state serves is computed from it; steps
// that the old plan did not keep are made anew out of everything that was read before. Nothing new is read:
// the position stays where it was. Tables that mean the same are not touched.
//
// All of it is one change. The input is folded without the lease, so that runs of the old plan can go on
// meanwhile; what they commit is folded in at the end.
func (p *Pipeline) Apply(ctx context.Context, o Options) (a Apply, err error) {
	started := p.Now()
	head, err := p.Destination.Head(ctx, p.Plan.Name)
	if err != nil {
		return a, err
	}
	t, err := p.turnTo(ctx, head)
	if err != nil {
		return a, err
	}
	if o.Sink != "" {
		for _, name := range append(slices.Clone(t.needs.Sinks), names(t.needs.Gone)...) {
			if name != o.Sink {
				return a, &connectors.TargetError{Table: name, Reason: "it changes too; nothing was written", Hint: "leave out --sink, or undo that change"}
			}
		}
	}
	a = t.apply()
	for _, fold := range []bool{false, true} { // the second time also what damage took from the kept state
		if fold {
			t.foldAll(p.Plan)
			a = t.apply()
		}
		err = p.apply(ctx, t, &a, o)
		if !recoverable(err) {
			break
		}
	}
	a.Took = p.Now().Sub(started)
	// What helps is blocked by the change, as a run is.
	const undo = "\n  each of them needs the SQL as it was: undo the change of the SQL, and apply it after that"
	var changed *connectors.InputError
	var target *connectors.TargetError
	switch {
	case errors.As(err, &changed):
		changed.Hint += undo
	case errors.As(err, &target) && strings.Contains(target.Hint, "`etl "):
		target.Hint += undo
	}
	return a, err
}

// turn is the way from the plan of a head to another.
type turn struct {
	head       connectors.Head
	comparison planner.Comparison
	needs      planner.Needs
}

// turnTo compares the plan with that of a head.
func (p *Pipeline) turnTo(ctx context.Context, head connectors.Head) (*turn, error) {
	if head.Fresh || head.Manifest.Seq == 0 {
		return nil, p.neverRan(ctx, head)
	}
	var blocked *BlockedError
	switch err := p.compatible(ctx, head); {
	case err == nil:
		return nil, ErrNothingToApply
	case !errors.As(err, &blocked):
		return nil, err
	case blocked.Comparison.Class == planner.Environment:
		return nil, ErrNothingToApply // a run shows that it does the same, and goes on
	}
	return blocked.turn, nil
}

// wayTo finds the way from the plan of a head, nil when it cannot be read any more.
func (p *Pipeline) wayTo(head connectors.Head, old *planner.Plan) *turn {
	t := &turn{head: head, needs: planner.Between(old, p.Plan)}
	if head.Manifest.Env.DuckDB != p.Plan.Hash.DuckDB {
		t.foldAll(p.Plan) // what another DuckDB kept is not taken for what this one would keep
	}
	return t
}

// foldAll makes everything anew.
func (t *turn) foldAll(plan *planner.Plan) {
	gone := t.needs.Gone
	t.needs = planner.Between(nil, plan)
	t.needs.Gone = gone
}

func (t *turn) kind() string {
	if t.needs.Reads() {
		return checkpoints.KindRebuild
	}
	return checkpoints.KindRefinalise
}

func (t *turn) folds(step planner.Step) bool { return slices.Contains(t.needs.Fold, step.ID) }

func (t *turn) apply() Apply {
	a := Apply{Kind: t.kind(), Change: t.comparison}
	a.Left = names(t.needs.Gone)
	return a
}

func names(sinks []planner.Sink) []string {
	var out []string
	for _, s := range sinks {
		out = append(out, s.Name)
	}
	return out
}

func (p *Pipeline) apply(ctx context.Context, t *turn, a *Apply, o Options) error {
	o.kind = t.kind()
	b, err := p.build(ctx, t.head, t.folds, true, o)
	if err != nil {
		return err
	}
	l := &life{Pipeline: p, tables: map[string]*stateTable{}}
	defer func() { l.release(ctx) }()
	head, err := l.newest(ctx, o)
	if err != nil {
		return err
	}
	if head.Plan.ID != t.head.Plan.ID {
		return p.moved()
	}
	if err := b.upTo(ctx, head); err != nil {
		return err
	}
	a.Files, a.Bytes, a.Rows, a.Saved = len(b.folded.ranges), b.folded.bytes, b.folded.rows(), b.saved
	l.manifest = head.Manifest
	if err := l.join(ctx, b, t); err != nil {
		return err
	}
	if err := l.finalise(ctx); err != nil {
		return err
	}
	a.Same, a.Outcomes = nil, nil
	for _, sink := range p.Plan.Sinks {
		if !slices.Contains(t.needs.Sinks, sink.Name) {
			err := p.Destination.CheckTargets(ctx, head, []connectors.SinkSpec{sinkSpec(sink)})
			if err == nil {
				a.Same = append(a.Same, sink.Name)
				continue
			}
			// One that was edited is repaired with the others: a repair by itself needs the plan that is applied.
			var target *connectors.TargetError
			if !errors.As(err, &target) {
				return err
			}
		}
		out, err := l.compare(ctx, sink, "")
		if err != nil {
			return err
		}
		a.Outcomes = append(a.Outcomes, out)
	}
	if o.DryRun {
		return nil
	}
	if err := askBefore(a.Outcomes, o); err != nil {
		return err
	}
	if err := l.correct(ctx, correction{kind: a.Kind, outcomes: a.Outcomes, folded: b.folded, whole: true, job: o.kind}); err != nil {
		return err
	}
	a.Seq = l.manifest.Seq
	return nil
}

// join restores the steps that the old plan kept beside those that were built, and joins their positions.
func (l *life) join(ctx context.Context, b *building, t *turn) error {
	position, segments, err := l.Pipeline.consumed(ctx, connectors.Head{Manifest: l.manifest})
	if err != nil {
		return err
	}
	kept := l.only(func(step planner.Step) bool { return !t.folds(step) })
	if err := kept.restore(ctx, segments); err != nil {
		return err
	}
	l.position = position
	for source, splits := range b.position {
		l.position[source] = splits
	}
	return nil
}

// Cost is what applying a changed plan would read.
type Cost struct {
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
	Missing []string `json:"missing,omitempty"` // that are gone or were changed, and are needed
}

// cost looks which files would have to be read for a turn, and whether they are there.
func (p *Pipeline) cost(ctx context.Context, t *turn) (c Cost, err error) {
	if !t.needs.Reads() {
		return c, nil
	}
	position, _, err := p.consumed(ctx, t.head)
	if err != nil {
		return c, err
	}
	p.followRenames(ctx, position)
	anew, err := (&life{Pipeline: p}).replacements(ctx, position)
	if err != nil {
		return c, err
	}
	for _, source := range t.needs.Sources {
		for _, r := range consumedRanges(position[source]) {
			c.Files++
			if now, ok := anew[source][r.Split]; ok {
				c.Bytes += now.Next.Size
				continue
			}
			c.Bytes += r.Next.Size
			if r.Next.Lost {
				c.Missing = append(c.Missing, r.Split)
				continue
			}
			_, err := p.Sources[source].Recorded(ctx, []checkpoints.Range{{Source: source, Split: r.Split, To: r.To, Rows: r.Rows, Content: r.Next.Content}}, false)
			var input *connectors.InputError
			if errors.As(err, &input) {
				c.Missing = append(c.Missing, input.Split)
			} else if err != nil {
				return c, err
			}
		}
	}
	return c, nil
}
