package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/planner"
)

// A backfill makes a part of the tables what it would be had the input always been what it is now: a range
// of keys (planner.Range), of which all input is read again and folded from empty. Input that was changed
// after it was read is taken over with it, if all that it makes, and all that it made before, lies in the
// range; of what it made before nothing is known but the event times. Otherwise everything is computed again,
// if the files were named, or nothing is done.
//
//	survey     hold every split against what was read of it (backfill.go)
//	choose     the range, which splits are needed for it and which are taken over (backfill_range.go)
//	fold       their rows from empty: the part of the state in the range. No lease is held
//	           (backfill_part.go)
//	take       the lease; fold in what runs committed meanwhile
//	merge      put the part in place of what the kept state has in the range; the difference are the
//	           segments. Compare the rows of the range with the tables (backfill_merge.go)
//	commit     segments, position and rows, as one correction
//
// Killed anywhere before the commit it has changed nothing. Run again, it goes on from what was saved of the
// fold (saving.go), if that is still what it needs.

// BackfillSpec says what to backfill. One of Where, From with To, and Files with Named is set.
type BackfillSpec struct {
	Sink  string   `json:"sink,omitempty"`  // the one that it is about; "" is the first that can be
	Where string   `json:"where,omitempty"` // a predicate over the key of the sink
	From  string   `json:"from,omitempty"`  // From and To are half-open, event time in Zone
	To    string   `json:"to,omitempty"`
	Zone  string   `json:"time_zone,omitempty"`
	Files []string `json:"files,omitempty"` // what Named was made of: patterns, as they were given in Dir
	Dir   string   `json:"dir,omitempty"`

	Yes bool `json:"-"` // nobody is to be asked
	// SaveEvery is how often what was folded is saved, to go on from when it is stopped; 0 is never. Saved, when
	// set, is told of the first time.
	SaveEvery time.Duration `json:"-"`
	Saved     func()        `json:"-"`
	// edited is a table that is not as the pipeline left it, so that everything has to be compared. A repair
	// by itself would need the files as they were.
	edited string
	look   bool // nothing is to be written
	// Named tells the splits that are taken over as they are now, whatever became of them.
	Named func(connectors.Standing) bool `json:"-"`
}

// Backfill is what a backfill did, or would do.
type Backfill struct {
	ID       string    `json:"id"`
	Seq      int64     `json:"seq,omitempty"`     // of the change; 0 when nothing was written
	Whole    string    `json:"whole,omitempty"`   // why everything is computed again
	Keys     string    `json:"keys,omitempty"`    // of a range of event time
	Widened  bool      `json:"widened,omitempty"` // they have rows outside of it as well
	Taken    []Taken   `json:"taken,omitempty"`   // splits that are taken over
	Splits   int       `json:"files"`             // that are read
	Of       int       `json:"files_of"`          // all splits
	Saved    int       `json:"saved,omitempty"`   // splits of them that were folded before it was stopped
	Bytes    int64     `json:"bytes"`             // of those that are read
	Rows     int64     `json:"rows"`              // that were read
	Outcomes []Outcome `json:"sinks"`
	Warnings []string  `json:"warnings,omitempty"` // what was mended first
}

// Taken is a split that is taken over as it is now.
type Taken struct {
	Source string `json:"source"`
	Split  string `json:"file"` // as messages write it
	State  string `json:"state"`
	Was    int64  `json:"rows_before"`
	Rows   int64  `json:"rows"`
}

// Quiet: the tables have what they should, and no input was changed.
func (b Backfill) Quiet() bool {
	return len(b.Taken) == 0 && !slices.ContainsFunc(b.Outcomes, func(o Outcome) bool { return !o.Quiet() })
}

// NothingNamedError says that no split is of the names that were given.
type NothingNamedError struct{}

func (*NothingNamedError) Error() string {
	return "no file that was read, or is there, has such a name"
}

// from is the life at a head. A table that was edited does not matter once everything is compared.
func (s BackfillSpec) from(ctx context.Context, p *Pipeline, head connectors.Head) (*life, []checkpoints.Segment, error) {
	if s.edited != "" {
		return p.placed(ctx, head)
	}
	return p.from(ctx, head)
}

// errTaken: what was computed is of no use, since another run read what was to be taken over, or another
// command changed the pipeline.
var errTaken = errors.New("the pipeline was changed meanwhile")

// Backfill computes the range and, when agree allows, writes it. agree is asked with what would be done, and
// again when that is not what it would do any more; nil only looks. While it thinks, runs of the pipeline go on. With spec.Yes nobody is asked.
func (p *Pipeline) Backfill(ctx context.Context, spec BackfillSpec, patience time.Duration, agree func(Backfill) error) (Backfill, error) {
	var warnings []string
	p.warn = func(text string) { warnings = append(warnings, text) }
	spec.look = agree == nil && !spec.Yes
	b, err := p.backfill(ctx, spec, patience, agree)
	var edited *connectors.TargetError
	if errors.As(err, &edited) && spec.Named != nil && spec.edited == "" {
		spec.edited = edited.Table
		b, err = p.backfill(ctx, spec, patience, agree)
	}
	if recoverable(err) && !spec.look {
		mended, recoverErr := p.recover(ctx, err)
		if recoverErr != nil {
			return b, recoverErr
		}
		mended.release(ctx)
		b, err = p.backfill(ctx, spec, patience, agree)
	}
	b.Warnings = warnings
	return b, err
}

func (p *Pipeline) backfill(ctx context.Context, spec BackfillSpec, patience time.Duration, agree func(Backfill) error) (Backfill, error) {
	for {
		b, err := p.backfillOnce(ctx, spec, patience, agree)
		if err != errShown {
			return b, err
		}
		p.warn("files, or the pipeline, were changed while it was asked; this is what it comes to now")
	}
}

// errShown: what was agreed to is not what would be written any more.
var errShown = errors.New("it is not what was shown")

func (p *Pipeline) backfillOnce(ctx context.Context, spec BackfillSpec, patience time.Duration, agree func(Backfill) error) (Backfill, error) {
	head, err := p.Destination.Head(ctx, p.Plan.Name)
	if err != nil {
		return Backfill{}, err
	}
	b, err := p.part(ctx, head, spec)
	if err != nil {
		return Backfill{}, err
	}
	if !spec.Yes {
		if err := b.preview(ctx); err != nil || agree == nil {
			return b.found, err
		}
		if err := agree(b.found); err != nil {
			return b.found, err
		}
		if b.found.Quiet() {
			b.forget(ctx)
			return b.found, nil
		}
	}
	lease, head, err := p.taken(ctx, patience)
	if err != nil {
		return b.found, err
	}
	defer func() { _ = p.Destination.Release(context.WithoutCancel(ctx), lease) }()
	b.lease = lease
	if err = b.upTo(ctx, head); err != nil && err != errTaken {
		return b.found, err
	}
	if err != nil && !spec.Yes {
		return b.found, errShown
	}
	if err != nil { // under the lease nobody else changes anything
		if b, err = p.part(ctx, head, spec); err != nil {
			return Backfill{}, err
		}
		b.lease = lease
	}
	err = b.commit(ctx, head)
	return b.found, err
}

// part checks that the pipeline can be backfilled from a head, and folds the range.
func (p *Pipeline) part(ctx context.Context, head connectors.Head, spec BackfillSpec) (*backfill, error) {
	if head.Fresh || head.Manifest.Seq == 0 {
		return nil, p.neverRan(ctx, head)
	}
	if err := p.compatible(ctx, head); err != nil { // a run shows first that another DuckDB does the same
		return nil, err
	}
	b := &backfill{spec: spec, read: checkpoints.Position{}}
	var err error
	if b.life, _, err = spec.from(ctx, p, head); err != nil {
		return nil, err
	}
	if err := b.survey(ctx); err != nil {
		return nil, err
	}
	if err := b.choose(ctx); err != nil {
		return nil, err
	}
	return b, b.fold(ctx)
}

// backfill is a range on its way into the tables.
type backfill struct {
	*life // of the head it began at, and then of the live one
	spec  BackfillSpec
	found Backfill

	splits []stands
	rng    *planner.Range
	read   checkpoints.Position // what is folded
	part   *building            // the steps over it, from empty
}

// stands is a split of a source, and what is done with it.
type stands struct {
	connectors.Standing
	source planner.Source
	named  bool
	taken  bool
	now    checkpoints.Split // the entry it gets, of one whose rows of now are known
	some   bool              // of the rows of now, some are needed
	out    int64             // of the rows of now, those that are not inside
}

// survey asks the sources what became of everything.
func (b *backfill) survey(ctx context.Context) error {
	for _, s := range b.readSources() {
		found, err := b.Sources[s.Name].Survey(ctx, b.position[s.Name], b.spec.Named)
		if err != nil {
			return err
		}
		for _, st := range found {
			named := b.spec.Named != nil && b.spec.Named(st)
			b.splits = append(b.splits, stands{Standing: st, source: s, named: named})
		}
	}
	if b.spec.Named != nil && !slices.ContainsFunc(b.splits, func(s stands) bool { return s.named }) {
		return &NothingNamedError{}
	}
	return nil
}

// targets are the sinks that the range can be about.
func (b *backfill) targets() ([]planner.Sink, error) {
	if b.spec.Sink == "" {
		return b.Plan.Sinks, nil
	}
	var names []string
	for _, s := range b.Plan.Sinks {
		if strings.EqualFold(s.Name, b.spec.Sink) || strings.EqualFold(s.Table, b.spec.Sink) {
			return []planner.Sink{s}, nil
		}
		names = append(names, s.Name)
	}
	return nil, &NoSinkError{Name: b.spec.Sink, Sinks: names}
}

// NoSinkError names a sink that there is not.
type NoSinkError struct {
	Name  string
	Sinks []string
}

func (e *NoSinkError) Error() string {
	return fmt.Sprintf("there is no sink %s; there is %s", e.Name, strings.Join(e.Sinks, ", "))
}
