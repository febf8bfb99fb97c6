package engine

import (
	"context"
	"errors"
	"slices"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// fold makes the state of the range from nothing.
func (b *backfill) fold(ctx context.Context) error {
	err := b.foldOnce(ctx)
	var failed *computeFailure
	if b.rng.Whole != "" || !errors.As(err, &failed) {
		return err
	}
	if askErr := b.askable(ctx); askErr != nil {
		return askErr
	}
	// Of a group that is not in the range only some rows may be there, which can be too few for an expression.
	b.rng = b.Plan.Everything("it cannot be computed from a part of the rows")
	if err := b.whole(ctx); err != nil {
		return err
	}
	b.count()
	return b.foldOnce(ctx)
}

func (b *backfill) foldOnce(ctx context.Context) error {
	l := &life{Pipeline: b.Pipeline, manifest: b.manifest}
	b.part = &building{life: l.only(func(planner.Step) bool { return true }), saving: b.saving()}
	if b.rng.Whole == "" {
		b.part.needed = b.rng.Needed
		for i := range b.part.Plan.Steps {
			b.part.Plan.Steps[i].Counts = "" // they do not get all rows that are read
		}
	}
	if err := b.part.empty(ctx); err != nil {
		return err
	}
	if err := b.part.foldTo(ctx, b.read, nil); err != nil {
		return err
	}
	b.found.Saved, b.found.Rows = b.part.saved, b.part.folded.rows()
	return nil
}

// preview compares the range with the tables, as they are now.
func (b *backfill) preview(ctx context.Context) error {
	if b.rng.Whole != "" {
		return b.compared(ctx, b.part.life, nil)
	}
	// More may have to be folded in: the rows outside the range, of which there are only some, come back.
	for _, step := range b.Plan.Steps {
		state := duck.Quote(step.State.Name)
		for _, stmt := range []string{
			"CREATE OR REPLACE TEMP TABLE " + partState(step) + " AS FROM " + state,
			"CREATE OR REPLACE TEMP TABLE " + state + " AS FROM " + partState(step) + " WHERE " + b.rng.Steps[step.ID],
		} {
			if err := b.stepError(step, b.Duck.Exec(ctx, stmt)); err != nil {
				return err
			}
		}
	}
	if err := b.compared(ctx, b.part.life, nil); err != nil {
		return err
	}
	for _, step := range b.Plan.Steps {
		if err := b.Duck.Exec(ctx, "CREATE OR REPLACE TEMP TABLE "+duck.Quote(step.State.Name)+" AS FROM "+partState(step)); err != nil {
			return err
		}
	}
	return nil
}

// stepError says of a predicate that it fails on a key that there is.
func (b *backfill) stepError(step planner.Step, err error) error {
	if err == nil {
		return nil
	}
	return b.ofCondition(b.computeError(step.Pos, "", err))
}

// compared compares the rows that a life's state gives for the range with the tables. kept is what the kept
// state gives for it, nil in a preview.
func (b *backfill) compared(ctx context.Context, l *life, kept map[string]keptRows) error {
	if err := l.finalise(ctx); err != nil {
		return err
	}
	b.found.Outcomes = nil
	for _, sink := range b.Plan.Sinks {
		var o Outcome
		var err error
		if where := b.rng.Sinks[sink.Name]; where != "" {
			o, err = b.ranged(ctx, l, sink, where, kept[sink.Name])
		} else {
			o, err = l.compare(ctx, sink, "")
		}
		if err != nil {
			return err
		}
		b.found.Outcomes = append(b.found.Outcomes, o)
	}
	return nil
}

func partState(step planner.Step) string { return duck.Quote("_part_" + step.State.Name) }

// upTo folds in what runs committed since, and makes sure that what is taken over still is what it was.
func (b *backfill) upTo(ctx context.Context, head connectors.Head) error {
	taken := b.takenSplits()
	for seq := b.part.manifest.Seq + 1; seq <= head.Manifest.Seq; seq++ {
		ranges, err := b.Destination.Consumed(ctx, b.Plan.Name, seq)
		if err != nil {
			return err
		}
		for _, r := range ranges {
			if taken[r.Source][r.Split] != nil {
				return errTaken
			}
		}
	}
	if b.part.manifest.Seq < head.Manifest.Seq {
		if err := b.part.upTo(ctx, head); connectors.Held(err) {
			return errTaken
		} else if err != nil {
			return err
		}
	}
	for _, source := range b.readSources() {
		ours := taken[source.Name]
		if len(ours) == 0 {
			continue
		}
		found, err := b.Sources[source.Name].Survey(ctx, b.position[source.Name], func(st connectors.Standing) bool { return ours[st.Split] != nil })
		if err != nil {
			return err
		}
		for _, s := range ours {
			at := slices.IndexFunc(found, func(st connectors.Standing) bool { return st.Split == s.Split })
			if at < 0 || found[at].State != s.State || found[at].Now.Next.Size != s.Now.Next.Size || found[at].Now.Next.ModTime != s.Now.Next.ModTime {
				return errTaken
			}
		}
	}
	return nil
}

// takenSplits are those that are taken over, by their source and their name.
func (b *backfill) takenSplits() map[string]map[string]*stands {
	out := map[string]map[string]*stands{}
	for i := range b.splits {
		s := &b.splits[i]
		if !s.taken {
			continue
		}
		if out[s.source.Name] == nil {
			out[s.source.Name] = map[string]*stands{}
		}
		out[s.source.Name][s.Split] = s
	}
	return out
}

// commit brings the range into the live state, position and tables, under the lease.
func (b *backfill) commit(ctx context.Context, head connectors.Head) error {
	c := correction{kind: checkpoints.KindBackfill, whole: b.rng.Whole != "", job: b.spec.job()}
	if err := b.settlePart(ctx); err != nil {
		return err
	}
	l, segments := b.life, b.life.live
	if l.manifest.Seq != head.Manifest.Seq {
		var err error
		if l, segments, err = b.spec.from(ctx, b.Pipeline, head); err != nil {
			return err
		}
		l.lease, b.life = b.lease, l
	}
	seq := l.manifest.Seq + 1
	var kept map[string]keptRows
	var err error
	if c.whole {
		l.tables = b.part.tables
	} else {
		l.within = b.rng.Steps
		if err := l.restore(ctx, segments); err != nil {
			return err
		}
		if kept, err = b.kept(ctx, l); err != nil {
			return err
		}
		if c.changed, err = b.merge(ctx, seq); err != nil {
			return err
		}
	}
	positions, err := b.place(seq)
	if err != nil {
		return err
	}
	if !c.whole {
		c.changed = append(c.changed, positions...)
	}
	if err := b.compared(ctx, l, kept); err != nil {
		return err
	}
	if b.found.Quiet() {
		b.forget(ctx)
		return nil
	}
	if c.folded, err = b.takenOver(ctx); err != nil {
		return err
	}
	c.outcomes = b.found.Outcomes
	if err := l.correct(ctx, c); err != nil {
		return err
	}
	b.found.Seq = seq
	return nil
}

// settlePart sets the state of the range aside.
func (b *backfill) settlePart(ctx context.Context) error {
	if b.rng.Whole != "" {
		return nil
	}
	for _, step := range b.Plan.Steps {
		stmt := "CREATE OR REPLACE TEMP TABLE " + partState(step) + " AS FROM " + duck.Quote(step.State.Name) + " WHERE " + b.rng.Steps[step.ID]
		if err := b.stepError(step, b.Duck.Exec(ctx, stmt)); err != nil {
			return err
		}
	}
	return nil
}
