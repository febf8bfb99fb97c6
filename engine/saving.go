package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// A building that takes long is saved now and then: the state of its steps, the position that state is of,
// and the rows that were left out. The same correction goes on from there after it was stopped. A saved
// state is that of its plan, and of a backfill of its range, for the files it names with their content,
// whatever became of the pipeline since; where one of them is another now, or anything of it is damaged, all
// is begun anew.

// bigBuilding is from how many bytes of input on it is folded in parts, so that it can be saved between them.
const bigBuilding = 1 << 30

// leftOutStep is the segment of the rows of a source that were left out.
const leftOutStep = "left out/"

// saving is how a building is saved.
type saving struct {
	kind  string        // of the job
	every time.Duration // 0: never, and nothing that was saved is looked for
	look  bool          // what was saved is used, and nothing is saved
	asked *BackfillSpec // what a backfill is of
	begun func()        // told when it was saved for the first time; may be nil
}

// saved is the spec of a job.
type saved struct {
	Of       json.RawMessage     // a stateOf
	Segments checkpoints.LiveSum // all there are
	Asked    *BackfillSpec       `json:",omitempty"`
	Progress
}

// Progress is how far a building was when it was saved.
type Progress struct {
	Files   int       `json:"files"` // that were folded
	FilesOf int       `json:"files_of"`
	Bytes   int64     `json:"bytes"`
	BytesOf int64     `json:"bytes_of"`
	At      time.Time `json:"saved_at"`
}

// stateOf names what a saved state is of, but for the input, which its position names.
type stateOf struct {
	Plan, DuckDB, Engine string
	Steps                []string
	Rows                 map[string]string `json:",omitempty"` // by source the condition on the rows that were folded
}

func (b *building) stateOf() json.RawMessage {
	plan := b.Pipeline.Plan
	s := stateOf{Plan: plan.Hash.ID, DuckDB: plan.Hash.DuckDB, Engine: b.Version, Rows: b.needed}
	for _, step := range plan.Steps {
		s.Steps = append(s.Steps, step.ID)
	}
	return encoded(s)
}

func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers and times always encode
	}
	return text
}

// save stores what was folded until now on the way to a position.
func (b *building) save(ctx context.Context, to checkpoints.Position) error {
	seq := b.manifest.Seq
	job := connectors.Job{Pipeline: b.Plan.Name, Kind: b.saving.kind, BaseSeq: seq}
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
	of := saved{Of: b.stateOf(), Segments: checkpoints.SumLive(job.Segments), Asked: b.saving.asked,
		Progress: Progress{Bytes: b.bytes(b.position), BytesOf: b.bytes(to), At: b.Now().UTC()}}
	for _, s := range b.readSources() {
		of.Files, of.FilesOf = of.Files+len(b.position[s.Name]), of.FilesOf+len(to[s.Name])
	}
	job.Spec = string(encoded(of))
	if err := b.Destination.SaveJob(ctx, job); err != nil {
		return err
	}
	if b.saving.begun != nil {
		b.saving.begun()
		b.saving.begun = nil
	}
	connectors.Failpoint("after-save")
	return nil
}

// goOn restores what was saved, if it is of any use for the position that is to be reached. Then the position
// at hand is what need not be folded any more.
func (b *building) goOn(ctx context.Context, to checkpoints.Position) (used bool, err error) {
	job, err := b.Destination.Job(ctx, b.Plan.Name, b.saving.kind)
	if err != nil || len(job.Segments) == 0 {
		return false, err
	}
	var of saved
	if json.Unmarshal([]byte(job.Spec), &of) != nil || !bytes.Equal(of.Of, b.stateOf()) || of.Segments != checkpoints.SumLive(job.Segments) {
		return false, nil
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
	err = b.recount(ctx)
	return err == nil, err
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
			return &connectors.DamagedError{What: "what was saved of source " + s.Name, Reason: fmt.Sprintf("of %d rows that were read %d were left out", c.Read, c.Rejected)}
		}
		b.folded.counts[s.Name] = c
	}
	b.saved = len(b.folded.ranges)
	return nil
}
