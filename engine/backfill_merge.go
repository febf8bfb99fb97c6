package engine

import (
	"context"
	"fmt"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// keptRows are the rows that the kept state gives for the range in one table: as many, and their digest.
type keptRows struct {
	rows   int64
	digest checkpoints.Digest
}

// kept computes what the kept state, of which only the range was restored, gives.
func (b *backfill) kept(ctx context.Context, l *life) (map[string]keptRows, error) {
	if err := l.finalise(ctx); err != nil {
		return nil, err
	}
	out := map[string]keptRows{}
	for _, sink := range b.Plan.Sinks {
		rows, err := l.rowsWithin(ctx, sink, b.rng.Sinks[sink.Name])
		if err != nil {
			return nil, err
		}
		out[sink.Name] = rows
	}
	return out, nil
}

// rowsWithin makes the rows that the state at hand gives for a sink, and counts those of a range.
func (l *life) rowsWithin(ctx context.Context, sink planner.Sink, where string) (keptRows, error) {
	var r keptRows
	if err := l.stage(ctx, sink); err != nil {
		return r, err
	}
	rows := "(" + sink.NewRows + ") WHERE " + where
	if err := l.Duck.QueryRow(ctx, "SELECT count(*) FROM "+rows, nil, &r.rows); err != nil {
		return r, l.computeError(sink.Decl.Head.Start, sink.Name, err)
	}
	var err error
	r.digest, err = l.digestOf(ctx, "SELECT * FROM "+rows)
	return r, err
}

// ranged compares the rows of a range with those of the table in it. All other rows are left alone, and the
// table is taken to have what the manifest says of them.
func (b *backfill) ranged(ctx context.Context, l *life, sink planner.Sink, where string, kept keptRows) (Outcome, error) {
	o := Outcome{Sink: sink.Name}
	now, err := l.rowsWithin(ctx, sink, where)
	if err != nil {
		return o, err
	}
	spec := sinkSpec(sink)
	found, err := l.Destination.Found(ctx, l.Plan.Name, spec)
	if err != nil {
		return o, err
	}
	c := connectors.SinkChange{Sink: spec, Table: "_fix_" + sink.Staged, Against: &found}
	part := found
	part.Relation = "(SELECT * FROM " + found.Relation + " WHERE " + where + ")"
	d := newDiffer(sink, part, l.manifest.Seq)
	var twice int64
	if found.OtherKey || found.Relation == "" || len(found.Columns) < len(sink.Columns) || len(found.Lost) > 0 {
		twice = 1
	} else if err := l.Duck.QueryRow(ctx, d.leaving(), nil, &twice); err != nil {
		return o, err
	}
	if twice > 0 {
		return o, &connectors.TargetError{Table: sink.Name, Reason: "it is not as the pipeline left it, so that no part of it can be computed by itself",
			Hint: "`etl reconcile FILE --repair` makes it right"}
	}
	if err := l.Duck.Exec(ctx, d.stage(c.Table, where)); err != nil {
		return o, err
	}
	if err := l.Duck.QueryRow(ctx, "SELECT count(*) FILTER (_op = 'I'), count(*) FILTER (_op = 'U'), count(*) FILTER (_op = 'D') FROM "+c.Table, nil,
		&o.Insert, &o.Update, &o.Delete); err != nil {
		return o, err
	}
	o.Was, o.Same = now.rows-o.Insert+o.Delete, now.rows-o.Insert-o.Update
	last := l.manifest.Sinks[sink.Name]
	c.Counts = checkpoints.SinkCount{Inserted: o.Insert, Updated: o.Update, Deleted: o.Delete, Rows: last.Rows - kept.rows + now.rows}
	var digest checkpoints.Digest
	if last.Digest != "" {
		if digest, err = checkpoints.ParseDigest(last.Digest); err != nil {
			return o, err
		}
	}
	c.Counts.Digest = digest.Sub(kept.digest).Add(now.digest).String()
	o.change = c
	o.Samples, err = l.lines(ctx, d.samples(c.Table))
	return o, err
}

// merge puts the state of the range in place of what is kept of it, and gives the difference as segments. The
// state at hand then is that of the range only.
func (b *backfill) merge(ctx context.Context, seq int64) ([]*checkpoints.Segment, error) {
	const delta = "_merged"
	var out []*checkpoints.Segment
	for _, step := range b.Plan.Steps {
		state, part := duck.Quote(step.State.Name), partState(step)
		columns, key := stateColumns(step.State), "true"
		for _, c := range step.State.Cols[:step.State.Key] {
			key += fmt.Sprintf(" AND o.%[1]s IS NOT DISTINCT FROM n.%[1]s", duck.Quote(c.Name))
		}
		stmt := fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %[1]s AS SELECT %[2]s, 1::TINYINT AS _op FROM (SELECT %[2]s FROM %[3]s EXCEPT SELECT %[2]s FROM %[4]s)"+
			" UNION ALL SELECT %[2]s, 0::TINYINT FROM %[4]s o WHERE NOT EXISTS (FROM %[3]s n WHERE %[5]s)", delta, columns, part, state, key)
		if err := b.stepError(step, b.Duck.Exec(ctx, stmt)); err != nil {
			return nil, err
		}
		rows, err := b.Duck.Arrow(ctx, "SELECT "+columns+", _op FROM "+delta)
		if err != nil {
			return nil, err
		}
		seg, err := checkpoints.EncodeSegment(step.ID, seq, rows)
		rows.Release()
		if err != nil {
			return nil, err
		}
		if seg != nil {
			out = append(out, seg)
		}
		for _, stmt := range []string{
			"CREATE OR REPLACE TEMP TABLE " + state + " AS FROM " + part, "DROP TABLE " + part, "DROP TABLE " + delta,
		} {
			if err := b.Duck.Exec(ctx, stmt); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// place moves the live position by what is taken over, and by names and times of files, where no run has
// moved on meanwhile.
func (b *backfill) place(seq int64) ([]*checkpoints.Segment, error) {
	var out []*checkpoints.Segment
	for _, source := range b.readSources() {
		moved, live := checkpoints.Splits{}, b.position[source.Name]
		var gone []string
		for _, s := range b.splits {
			switch {
			case s.source.Name != source.Name:
			case s.taken && s.State == connectors.StandsGone:
				gone = append(gone, s.Split)
			case s.taken:
				s.now.Seq = seq
				moved[s.Split] = s.now
			case s.State != connectors.StandsSame:
			case s.Moved != "":
				if was, ok := live[s.Moved]; ok && was.Next == s.Was.Next {
					moved[s.Split], gone = s.Was, append(gone, s.Moved)
				}
			case live[s.Split] != s.Was && live[s.Split].Next == s.Was.Next:
				moved[s.Split] = s.Was
			}
		}
		live.Apply(moved, gone)
		seg, err := checkpoints.EncodePosition(source.Name, seq, moved, gone)
		if err != nil {
			return nil, err
		}
		if seg != nil {
			out = append(out, seg)
		}
	}
	return out, nil
}

// takenOver is what was read that the record of the change tells: not what was only read again.
func (b *backfill) takenOver(ctx context.Context) (folded, error) {
	f := folded{counts: map[string]checkpoints.SourceCount{}}
	for _, s := range b.splits {
		if !s.taken {
			continue
		}
		if s.State == connectors.StandsGone { // from its start, nothing
			s.now = checkpoints.Split{}
		}
		c := f.counts[s.source.Name]
		c.Splits, c.Read = c.Splits+1, c.Read+s.now.Rows
		f.counts[s.source.Name] = c
		f.ranges = append(f.ranges, checkpoints.Range{Source: s.source.Name, Split: s.Split, To: s.now.Next, Rows: s.now.Rows, Content: s.now.Content})
	}
	for source, c := range f.counts {
		names := "''"
		for _, r := range f.ranges {
			if r.Source == source {
				names += ", " + duck.Literal(r.Split)
			}
		}
		if err := b.Duck.Exec(ctx, "DELETE FROM "+duck.Quote(leftOut(source))+" WHERE split_id NOT IN ("+names+")"); err != nil {
			return f, err
		}
		if err := b.Duck.QueryRow(ctx, "SELECT count(*) FROM "+duck.Quote(leftOut(source)), nil, &c.Rejected); err != nil {
			return f, err
		}
		c.Accepted = c.Read - c.Rejected
		f.counts[source] = c
	}
	sortRanges(f.ranges)
	return f, nil
}
