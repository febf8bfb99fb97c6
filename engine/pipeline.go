package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// Pipeline is a compiled pipeline with everything it needs to run. The engine, the sources and the
// destination share one DuckDB connection; they belong to the caller, who closes them.
type Pipeline struct {
	Plan        *planner.Plan
	Duck        *duck.Engine
	Sources     map[string]connectors.Source
	Destination connectors.Destination
	Limit       connectors.Limit
	Now         connectors.Clock
	Version     string // of etl, for the manifest
	// File is the pipeline file, absolute; Named: it says CREATE PIPELINE, so its name is no accident.
	File  string
	Named bool
	// Still tells whether a file is there and its pipeline has this one's name.
	Still func(file string) bool
	// Recompile plans the stored text of an earlier version, to explain what changed.
	Recompile func(ctx context.Context, text string) (*planner.Plan, error)
	// Parts, when set, is told before each part of input that is folded in several how many bytes were, and
	// how many are to be.
	Parts func(done, total int64)

	warn func(string) // of the run at work
}

// BlockedError: the pipeline means something else than what its table was built with. Nothing was
// written.
type BlockedError struct {
	Pipeline   string
	Batch      int64 // the last one of the old plan
	Comparison planner.Comparison
	File       string // the pipeline file, as commands name it
	Reads      bool   // to apply the change, input that was read before must be read again
	Cost       Cost   // what of it

	turn *turn
}

func (e *BlockedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "blocked: the plan changed after batch %d. Nothing was written.", e.Batch)
	for _, d := range e.Comparison.Differences {
		fmt.Fprintf(&b, "\n%s:%d:%d  %s", d.File, d.Line, d.Col, d.Name)
		if d.Old != "" {
			fmt.Fprintf(&b, "\n  - %s", d.Old)
		}
		if d.New != "" {
			fmt.Fprintf(&b, "\n  + %s", d.New)
		}
	}
	fmt.Fprintf(&b, "\nclass %s: %s.", e.Comparison.Class, e.Comparison.Why)
	if e.Comparison.Class == planner.Environment {
		b.WriteString("\nGo on with the etl that wrote it. To build a table with this one from all input," +
			"\ngive the pipeline another name (CREATE PIPELINE name;) and its sink another table.")
		return b.String()
	}
	b.WriteString(e.Cost.text(e.Reads))
	apply := "etl apply " + e.File
	fmt.Fprintf(&b, "\n  %s --dry-run    the rows that would change\n  %-*s    change them, in one transaction", apply, len(apply)+len(" --dry-run"), apply)
	return b.String()
}

// text says what would be read, behind the class.
func (c Cost) text(reads bool) string {
	switch {
	case !reads:
		return " No input is read."
	case len(c.Missing) == 0:
		return fmt.Sprintf(" Needs %s; all present (%s).", files(c.Files), bytesText(c.Bytes))
	}
	shown, more := c.Missing, ""
	if len(shown) > 3 {
		shown, more = shown[:3], fmt.Sprintf(" and %d more", len(shown)-3)
	}
	return fmt.Sprintf(" Needs %s; gone or changed: %s%s.", files(c.Files), strings.Join(shown, ", "), more)
}

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// bytesText writes a size with three digits or so.
func bytesText(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	f, units := float64(n), []string{"kB", "MB", "GB", "TB"}
	i := -1
	for f >= 1000 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// compatible compares the plan with the one the head was made by.
func (p *Pipeline) compatible(ctx context.Context, head connectors.Head) error {
	if err := p.sameFile(head); err != nil {
		return err
	}
	if head.Fresh || head.Manifest.Seq == 0 {
		return nil
	}
	was := planner.Hash{ID: head.Plan.ID, Input: head.Plan.Input, State: head.Plan.State, Output: head.Plan.Output, Env: head.Plan.Env}
	if p.Plan.Hash.ID == was.ID {
		return nil
	}
	blocked := &BlockedError{Pipeline: p.Plan.Name, Batch: head.LastBatch, File: p.Plan.Script.File}
	if planner.Same(was, p.Plan.Hash) {
		blocked.Comparison = planner.Comparison{Class: planner.Environment, Why: fmt.Sprintf(
			"the same pipeline, but its state was written by DuckDB %s (%s)", head.Manifest.Env.DuckDB, head.Manifest.Env.TimeZone)}
		return blocked
	}
	old, err := p.Recompile(ctx, head.Plan.SQL)
	if err != nil {
		// The old text cannot be planned any more, so only the parts can be named.
		blocked.Comparison = planner.Comparison{Class: planner.Incompatible, Why: "the stored plan of the table cannot be read by this version"}
		return p.priced(ctx, blocked, p.wayTo(head, nil))
	}
	blocked.Comparison = planner.Compare(old, p.Plan)
	if blocked.Comparison.Class == planner.None { // another version of etl writes the same meaning in another form
		blocked.Comparison = planner.Comparison{Class: planner.Environment, Why: fmt.Sprintf("the same pipeline, but its state was written by etl %s", head.Manifest.Env.Engine)}
		return blocked
	}
	return p.priced(ctx, blocked, p.wayTo(head, old))
}

// priced adds what it would cost to apply the change. That cannot be told of a damaged position.
func (p *Pipeline) priced(ctx context.Context, blocked *BlockedError, t *turn) error {
	cost, err := p.cost(ctx, t)
	if err != nil && !recoverable(err) {
		return err
	}
	t.comparison, blocked.Cost, blocked.Reads, blocked.turn = blocked.Comparison, cost, t.needs.Reads(), t
	return blocked
}

// fits is compatible, where another DuckDB than the one that wrote the state does not matter.
func (p *Pipeline) fits(ctx context.Context, head connectors.Head) error {
	err := p.compatible(ctx, head)
	var blocked *BlockedError
	if errors.As(err, &blocked) && blocked.Comparison.Class == planner.Environment {
		return nil
	}
	return err
}

// sameFile notices two files of one name: their pipelines would be one by accident. A file that says
// CREATE PIPELINE means it.
func (p *Pipeline) sameFile(head connectors.Head) error {
	if head.File == "" || p.File == "" || head.File == p.File || p.Named || p.Still == nil || !p.Still(head.File) {
		return nil
	}
	return &connectors.TargetError{Table: p.Plan.Sinks[0].Name,
		Reason: fmt.Sprintf("it is kept by pipeline %s of %s, and this is another file of that name: %s", p.Plan.Name, head.File, p.File),
		Hint: "give one of them a name of its own with CREATE PIPELINE name; and its sinks other tables. If it is the same pipeline, say so: CREATE PIPELINE " +
			duck.Quote(p.Plan.Name) + ";"}
}

// record is the plan as it is stored beside the first manifest made by it.
func (p *Pipeline) record() connectors.PlanRecord {
	h := p.Plan.Hash
	return connectors.PlanRecord{ID: h.ID, Canon: planner.CanonVersion, Input: h.Input, State: h.State, Output: h.Output, Env: h.Env,
		SQL: p.Plan.Script.Text, Canonical: h.Canonical}
}

// sinkSpec describes a sink's table to the destination.
func sinkSpec(s planner.Sink) connectors.SinkSpec {
	spec := connectors.SinkSpec{Name: s.Name, Schema: s.Schema, Table: s.Table, Key: s.Key}
	for _, c := range s.Columns {
		spec.Columns = append(spec.Columns, connectors.SinkColumn{Name: c.Name, Type: c.Type})
	}
	return spec
}

func (p *Pipeline) sinkSpecs() []connectors.SinkSpec {
	specs := make([]connectors.SinkSpec, len(p.Plan.Sinks))
	for i, s := range p.Plan.Sinks {
		specs[i] = sinkSpec(s)
	}
	return specs
}

// readSources are the sources that some sink reads; others have no position.
func (p *Pipeline) readSources() []planner.Source {
	var out []planner.Source
	for _, s := range p.Plan.Sources {
		if s.Reads > 0 {
			out = append(out, s)
		}
	}
	return out
}

// position loads the place of every source as of a manifest, and checks it against the manifest: a
// position that misses a split would read it twice.
func (p *Pipeline) position(ctx context.Context, m checkpoints.Manifest, segments []checkpoints.Segment) (checkpoints.Position, error) {
	position, err := p.positionIn(ctx, segments)
	if err != nil || m.Seq == 0 {
		return position, err
	}
	return position, verified(position, m.Position, m)
}

// verified compares a position with its sums in a manifest.
func verified(position checkpoints.Position, sums map[string]checkpoints.PositionSum, m checkpoints.Manifest) error {
	if err := position.Verify(sums); err != nil {
		return &connectors.DamagedError{What: "the position after batch " + fmt.Sprint(m.Batch), Reason: err.Error()}
	}
	return nil
}

// positionIn is the place of every source that the segments tell.
func (p *Pipeline) positionIn(ctx context.Context, segments []checkpoints.Segment) (checkpoints.Position, error) {
	position := checkpoints.Position{}
	for _, source := range p.readSources() {
		var own []checkpoints.Segment
		for _, seg := range segments {
			if seg.Step != checkpoints.PositionStep(source.Name) {
				continue
			}
			if err := p.Destination.Load(ctx, &seg); err != nil {
				return nil, err
			}
			own = append(own, seg)
		}
		splits, err := checkpoints.DecodePosition(own)
		if err != nil {
			return nil, &connectors.DamagedError{What: "the position of source " + source.Name, Reason: err.Error()}
		}
		position[source.Name] = splits
	}
	return position, nil
}
