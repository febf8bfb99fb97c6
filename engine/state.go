package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// restore rebuilds every step's state from its segments.
func (l *life) restore(ctx context.Context, segments []checkpoints.Segment) error {
	for _, step := range l.Plan.Steps {
		if err := l.Duck.Exec(ctx, step.State.Create()); err != nil {
			return err
		}
		var own []checkpoints.Segment
		for _, seg := range segments {
			if seg.Step == step.ID {
				own = append(own, seg)
			}
		}
		if err := l.restoreStep(ctx, step, own); err != nil {
			return err
		}
		if err := l.Duck.QueryRow(ctx, "SELECT count(*) FROM "+duck.Quote(step.State.Name), nil, &l.table(step).live); err != nil {
			return err
		}
	}
	return nil
}

// restoreStep fills a step's state with the newest row of every key, unless that says the key was
// deleted.
func (l *life) restoreStep(ctx context.Context, step planner.Step, segments []checkpoints.Segment) error {
	if len(segments) == 0 {
		return nil
	}
	if err := l.gather(ctx, step, segments); err != nil {
		return err
	}
	for _, stmt := range []string{
		fmt.Sprintf("INSERT INTO %s SELECT %s FROM (%s) WHERE _op = 1", duck.Quote(step.State.Name), stateColumns(step.State), newestRows(step.State, len(segments))),
		"DROP TABLE " + duck.Quote(gathered),
	} {
		if err := l.Duck.Exec(ctx, stmt); err != nil {
			return fmt.Errorf("restore the state of step %s: %w", step.ID, err)
		}
	}
	return nil
}

// gathered is the temp table of the rows of several segments; _seq orders them, oldest first.
const gathered = "_gathered"

// gather loads segments, oldest first, into one table.
func (l *life) gather(ctx context.Context, step planner.Step, segments []checkpoints.Segment) error {
	const one = "_segment"
	cols := stateColumns(step.State)
	for i := range segments {
		seg := &segments[i]
		if err := l.Destination.Load(ctx, seg); err != nil {
			return err
		}
		if err := l.loadSegment(ctx, one, seg); err != nil {
			return err
		}
		seg.Parts = nil // large; the rows are in DuckDB now
		from := one
		if within := l.within[step.ID]; within != "" {
			from += " WHERE " + within
		}
		stmt := fmt.Sprintf("INSERT INTO %s SELECT %s, _op, %d AS _seq FROM %s", duck.Quote(gathered), cols, i, from)
		if i == 0 {
			stmt = fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s, _op, 0 AS _seq FROM %s", duck.Quote(gathered), cols, from)
		}
		if err := l.Duck.Exec(ctx, stmt); err != nil {
			return damaged(seg, err)
		}
	}
	return l.Duck.Exec(ctx, "DROP TABLE "+one)
}

// newestRows selects the newest of the gathered rows of every key. DuckDB gives the columns that a window
// sorts by out of its sort keys, in which −0.0 has become 0.0: numbers of that kind are sorted as text.
func newestRows(t planner.Table, segments int) string {
	query := "SELECT * FROM " + duck.Quote(gathered)
	if segments < 2 {
		return query
	}
	over := "ORDER BY _seq DESC"
	if t.Key > 0 {
		key := make([]string, t.Key)
		for i, c := range t.Cols[:t.Key] {
			key[i] = duck.Quote(c.Name)
			if c.Type == "DOUBLE" || c.Type == "FLOAT" {
				key[i] = "CAST(" + key[i] + " AS VARCHAR)"
			}
		}
		over = "PARTITION BY " + strings.Join(key, ", ") + " " + over
	}
	return query + " QUALIFY row_number() OVER (" + over + ") = 1"
}

// loadSegment copies a verified segment into a temp table and checks that all rows arrived.
func (l *life) loadSegment(ctx context.Context, table string, seg *checkpoints.Segment) error {
	rows, err := seg.Records()
	if err != nil {
		return damaged(seg, err)
	}
	defer rows.Release()
	if err := l.Duck.Load(ctx, table, rows); err != nil {
		return damaged(seg, err)
	}
	var n int64
	if err := l.Duck.QueryRow(ctx, "SELECT count(*) FROM "+duck.Quote(table), nil, &n); err != nil {
		return err
	}
	if n != seg.Rows {
		return damaged(seg, fmt.Errorf("%d rows arrived of %d", n, seg.Rows))
	}
	return nil
}

func damaged(seg *checkpoints.Segment, err error) error {
	return &connectors.DamagedError{What: fmt.Sprintf("segment %s of step %s (seq %d)", seg.ID, seg.Step, seg.SeqHi), Reason: err.Error()}
}

func stateColumns(t planner.Table) string { return quoted(t.Cols) }

func quoted(cols []planner.Col) string {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = duck.Quote(c.Name)
	}
	return strings.Join(names, ", ")
}

// encoding is a segment on its way. Encoding takes one core as long as staging takes DuckDB, so the two
// run side by side; the rows were taken out of DuckDB before.
type encoding struct {
	step planner.Step
	done chan struct{}
	seg  *checkpoints.Segment
	err  error
}

// encode starts to encode what the batch changed in every step's state. Every encoding must be waited
// for.
func (l *life) encode(ctx context.Context, seq int64) ([]*encoding, error) {
	var all []*encoding
	for _, step := range l.Plan.Steps {
		rows, err := l.changedRows(ctx, step)
		if err != nil {
			return all, err
		}
		e := &encoding{step: step, done: make(chan struct{})}
		all = append(all, e)
		go func() {
			defer close(e.done)
			defer rows.Release()
			e.seg, e.err = checkpoints.EncodeSegment(e.step.ID, seq, rows)
		}()
	}
	return all, nil
}

func wait(all []*encoding) {
	for _, e := range all {
		<-e.done
	}
}

// changedRows takes the changed rows of a step's state out of DuckDB; the reader holds them all.
func (l *life) changedRows(ctx context.Context, step planner.Step) (array.RecordReader, error) {
	rows, err := l.Duck.Arrow(ctx, step.Changed)
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	var batches []arrow.RecordBatch
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	for rows.Next() {
		b := rows.RecordBatch()
		b.Retain()
		batches = append(batches, b)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return array.NewRecordReader(rows.Schema(), batches)
}

// segments waits for what the batch changed of each step's state, and adds the positions.
func (l *life) segments(inputs *inputs, states []*encoding, seq int64) ([]*checkpoints.Segment, error) {
	var out []*checkpoints.Segment
	for _, e := range states {
		<-e.done
		if e.err != nil {
			return nil, e.err
		}
		if e.seg != nil {
			out = append(out, e.seg)
			l.table(e.step).changed = e.seg.Rows
		}
	}
	for _, in := range inputs.list {
		seg, err := checkpoints.EncodePosition(in.plan.Name, seq, in.moved, in.gone)
		if err != nil {
			return nil, err
		}
		if seg != nil {
			out = append(out, seg)
		}
	}
	return out, nil
}

// stateTable counts what happened to a state table since it was last rewritten.
type stateTable struct {
	live    int64 // rows in it
	changed int64 // rows the last batch put or deleted, until they are in it
	deleted int64 // rows deleted since the last rewrite, most of them put back with new values
	plain   bool  // no key of the last batch has a NULL
	nulls   bool  // a batch before had one
}

func (l *life) table(step planner.Step) *stateTable {
	t := l.tables[step.State.Name]
	if t == nil {
		t = &stateTable{}
		l.tables[step.State.Name] = t
	}
	return t
}

// compute finds what the batch changes in one step's state. A batch with a NULL in a key is computed again in
// the way that matches NULLs; those after it are computed in that way at once.
func (l *life) compute(ctx context.Context, step planner.Step) error {
	t := l.table(step)
	if t.plain = step.Nulls != "" && !t.nulls; t.plain {
		if err := l.execAll(ctx, step.RunPlain); err != nil {
			return err
		}
		var n int64
		if err := l.Duck.QueryRow(ctx, step.Nulls, nil, &n); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		t.plain, t.nulls = false, true
	}
	return l.execAll(ctx, step.Run)
}

func (l *life) execAll(ctx context.Context, stmts []string) error {
	for _, stmt := range stmts {
		if err := l.Duck.Exec(ctx, stmt); err != nil {
			return err
		}
	}
	return nil
}

// settle brings the state tables to the last batch. That is put off until another batch needs them: most
// runs end after one, and never do.
//
// A table is rewritten once the rows deleted from it exceed a quarter of those that live: DuckDB does not
// give back the room of deleted rows of a temp table.
func (l *life) settle(ctx context.Context) error {
	if !l.unsettled {
		return nil
	}
	for _, step := range l.Plan.Steps {
		name, t := duck.Quote(step.State.Name), l.table(step)
		keep := step.Keep
		if t.plain {
			keep = step.KeepPlain
		}
		if err := l.execAll(ctx, keep); err != nil {
			return l.computeError(step.Pos, "", err)
		}
		before := t.live
		if err := l.Duck.QueryRow(ctx, "SELECT count(*) FROM "+name, nil, &t.live); err != nil {
			return err
		}
		t.deleted += max(0, t.changed-max(0, t.live-before))
		t.changed = 0
		if t.deleted <= t.live/4+1000 {
			continue
		}
		if err := l.Duck.Exec(ctx, "CREATE OR REPLACE TEMP TABLE "+name+" AS SELECT * FROM "+name); err != nil {
			return err
		}
		t.deleted = 0
	}
	l.unsettled = false
	return nil
}

// digest moves a sink's digest by the rows that came and went.
func (l *life) digest(ctx context.Context, sink planner.Sink, last string) (string, error) {
	var sum checkpoints.Digest
	var err error
	if last != "" {
		if sum, err = checkpoints.ParseDigest(last); err != nil {
			return "", err
		}
	}
	came, err := l.digestOf(ctx, sink.NewRows)
	if err != nil {
		return "", err
	}
	went, err := l.digestOf(ctx, sink.OldRows)
	if err != nil {
		return "", err
	}
	return sum.Add(came).Sub(went).String(), nil
}

func (l *life) digestOf(ctx context.Context, query string) (checkpoints.Digest, error) {
	rows, err := l.Duck.Arrow(ctx, query)
	if err != nil {
		return checkpoints.Digest{}, err
	}
	defer rows.Release()
	return checkpoints.DigestRows(rows, checkpoints.ExactColumns(rows.Schema()))
}
