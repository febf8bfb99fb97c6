package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// A building that takes long is saved now and then: the state of its steps, the position that state is of,
// and the rows that were left out. The same correction goes on from there after it was stopped. A saved
// state is that of its plan for the files it names with their content, whatever became of the pipeline since;
// where one of them is another now, all is begun anew.

// bigBuilding is from how many bytes of input on it is folded in parts, so that it can be saved between them.
const bigBuilding = 1 << 30

// leftOutStep is the segment of the rows of a source that were left out.
const leftOutStep = "left out/"

// spec names what a saved state is of.
func (b *building) spec() string {
	var s struct {
		Plan, DuckDB, Engine string
		Steps                []string
	}
	s.Plan, s.DuckDB, s.Engine = b.Pipeline.Plan.Hash.ID, b.Pipeline.Plan.Hash.DuckDB, b.Version
	for _, step := range b.Plan.Steps {
		s.Steps = append(s.Steps, step.ID)
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always encode
	}
	return string(text)
}

// save stores what was folded until now.
func (b *building) save(ctx context.Context, kind string) error {
	seq := b.manifest.Seq
	job := connectors.Job{Pipeline: b.Plan.Name, Kind: kind, BaseSeq: seq, Spec: b.spec()}
	all, err := b.allSegments(ctx, seq)
	if err != nil {
		return err
	}
	for _, s := range b.readSources() {
		rows, err := b.Duck.Arrow(ctx, "SELECT source, split_id, off, line, reason, raw FROM "+duck.Quote(leftOut(s.Name)))
		if err != nil {
			return err
		}
		seg, err := checkpoints.EncodeSegment(leftOutStep+s.Name, seq, rows)
		rows.Release()
		if err != nil {
			return err
		}
		if seg != nil {
			all = append(all, seg)
		}
	}
	for _, seg := range all {
		job.Segments = append(job.Segments, *seg)
	}
	if err := b.Destination.SaveJob(ctx, job); err != nil {
		return err
	}
	connectors.Failpoint("after-save")
	return nil
}

// goOn restores what was saved, if it is of any use for the position that is to be reached. Then the position
// at hand is what need not be folded any more.
func (b *building) goOn(ctx context.Context, kind string, to checkpoints.Position) (used bool, err error) {
	job, err := b.Destination.Job(ctx, b.Plan.Name, kind)
	if err != nil || job.Spec != b.spec() || len(job.Segments) == 0 {
		return false, err
	}
	defer func() {
		if !used && (err == nil || recoverable(err)) {
			b.folded = folded{}
			err = b.empty(ctx)
		}
	}()
	if err := b.restore(ctx, job.Segments); err != nil {
		return false, err
	}
	position, err := b.positionIn(ctx, job.Segments)
	if err != nil {
		return false, err
	}
	for source, splits := range position {
		for id, split := range splits {
			if now, ok := to[source][id]; !ok || now.Next != split.Next || now.Content != split.Content {
				return false, nil
			}
		}
	}
	for i := range job.Segments {
		source, ok := strings.CutPrefix(job.Segments[i].Step, leftOutStep)
		if !ok {
			continue
		}
		if err := b.Destination.Load(ctx, &job.Segments[i]); err != nil {
			return false, err
		}
		if err := b.loadSegment(ctx, "_saved", &job.Segments[i]); err != nil {
			return false, err
		}
		if err := b.Duck.Exec(ctx, "INSERT INTO "+duck.Quote(leftOut(source))+" FROM _saved"); err != nil {
			return false, err
		}
	}
	b.position = position
	return true, b.recount(ctx)
}

// recount says of the position at hand what fold said when it was read.
func (b *building) recount(ctx context.Context) error {
	b.folded = folded{counts: map[string]checkpoints.SourceCount{}}
	for _, s := range b.readSources() {
		var c checkpoints.SourceCount
		if err := b.Duck.QueryRow(ctx, "SELECT count(*) FROM "+duck.Quote(leftOut(s.Name)), nil, &c.Rejected); err != nil {
			return err
		}
		for _, r := range consumedRanges(b.position[s.Name]) {
			c.Splits++
			c.Read += r.Rows
			b.folded.bytes += r.Next.Size
			b.folded.ranges = append(b.folded.ranges, checkpoints.Range{Source: s.Name, Split: r.Split, To: r.To, Rows: r.Rows, Content: r.Next.Content})
		}
		if c.Accepted = c.Read - c.Rejected; c.Accepted < 0 {
			return fmt.Errorf("source %s: of %d rows that were read %d were left out", s.Name, c.Read, c.Rejected)
		}
		b.folded.counts[s.Name] = c
	}
	b.saved = len(b.folded.ranges)
	return nil
}
