package engine

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// A correction is a change that is not a batch: it makes state, position and tables something else, in one
// transaction under the lease, and leaves a manifest of its kind. Its parts, in the order they are used:
//
//	empty, reread, fold a state is made of nothing by the plan's steps, out of input that was read before
//	                    (fold.go). Nothing is written; it needs no lease.
//	finalise            every row that every sink should have, from the state at hand, as the relation
//	                    Sink.Staged: all steps give their whole state as what changed.
//	compare             a sink's rows against its table as it is, key by key: the rows to write are staged,
//	                    those that are the same stay out and keep their _etl_seq. An outcome counts them.
//	correct             manifest, segments and rows, committed. The segments are the whole state at hand,
//	                    or what the caller found to have changed in it.
//
// What the table held before does not matter, nor what the manifest says it should hold: whoever edited it
// is overruled. What is edited between compare and commit makes the commit fail, as in a batch.
//
// No state from before a correction can be brought past it by replaying batches. A correction that changed
// the state is therefore where every recovery begins (recover.go): at the state it left, or at everything
// that was read until then, folded anew under its plan.
type correction struct {
	kind     string
	outcomes []Outcome
	folded   folded // what was read for it: in the manifest of a rebuild, all that was consumed of a source
	// whole: the state at hand is all there is. Otherwise changed are the segments that enter.
	whole   bool
	changed []*checkpoints.Segment
	job     string // that was saved for it, by its kind
}

// Outcome is what a correction does to one table.
type Outcome struct {
	Sink    string   `json:"sink"`
	Was     int64    `json:"was"` // rows of the table before
	Same    int64    `json:"same"`
	Insert  int64    `json:"insert"`
	Update  int64    `json:"update"`
	Delete  int64    `json:"delete"`
	Columns []string `json:"columns,omitempty"` // "+name" for those that come, "-name" for those that go
	Made    bool     `json:"made,omitempty"`    // there was no table
	Samples []string `json:"samples,omitempty"`

	change connectors.SinkChange
}

// Quiet: nothing of the table changes.
func (o Outcome) Quiet() bool {
	return o.Insert+o.Update+o.Delete == 0 && len(o.Columns) == 0 && !o.Made
}

// finalise computes all rows of all sinks from the state at hand, which has to be settled.
func (l *life) finalise(ctx context.Context) error {
	for _, step := range l.Plan.Steps {
		for _, stmt := range step.All {
			if err := l.Duck.Exec(ctx, stmt); err != nil {
				return l.computeError(step.Pos, "", err)
			}
		}
	}
	return nil
}

// rows makes and counts the rows that a sink should have, after finalise.
func (l *life) rows(ctx context.Context, sink planner.Sink) (c checkpoints.SinkCount, err error) {
	if err := l.stage(ctx, sink); err != nil {
		return c, err
	}
	if err := l.Duck.QueryRow(ctx, sink.Counts, nil, &c.Rows, new(int64), new(int64)); err != nil {
		return c, l.computeError(sink.Decl.Head.Start, sink.Name, err)
	}
	digest, err := l.digestOf(ctx, sink.NewRows)
	c.Digest = digest.String()
	return c, err
}

// compare stages what has to be written to a sink's table to make it what finalise says. where, a
// condition on the key's columns, leaves all other keys alone; "" compares all.
func (l *life) compare(ctx context.Context, sink planner.Sink, where string) (Outcome, error) {
	o := Outcome{Sink: sink.Name}
	spec := sinkSpec(sink)
	counts, err := l.rows(ctx, sink)
	if err != nil {
		return o, err
	}
	found, err := l.Destination.Found(ctx, l.Plan.Name, spec)
	if err != nil {
		return o, err
	}
	c := connectors.SinkChange{Sink: spec, Table: "_fix_" + sink.Staged, Against: &found, Counts: counts}
	d := newDiffer(sink, found, l.manifest.Seq)
	if where != "" && (found.OtherKey || found.Relation == "") {
		return o, &connectors.TargetError{Table: sink.Name, Reason: "it is not there, or has another key, so that no part of it can be repaired by itself", Hint: "repair without --where"}
	}
	if err := l.Duck.Exec(ctx, d.stage(c.Table, where)); err != nil && where != "" {
		return o, conditionError(err)
	} else if err != nil {
		return o, err
	}
	if err := l.Duck.QueryRow(ctx, "SELECT count(*) FILTER (_op = 'I'), count(*) FILTER (_op = 'U'), count(*) FILTER (_op = 'D') FROM "+c.Table, nil,
		&c.Counts.Inserted, &c.Counts.Updated, &c.Counts.Deleted); err != nil {
		return o, err
	}
	if found.Relation != "" {
		if err := l.Duck.QueryRow(ctx, "SELECT count(*) FROM "+found.Relation, nil, &o.Was); err != nil {
			return o, err
		}
		if err := l.Duck.QueryRow(ctx, d.leaving(), nil, &c.Leaving); err != nil {
			return o, err
		}
		if where != "" && c.Leaving > 0 {
			return o, &connectors.TargetError{Table: sink.Name, Reason: "it has rows with the same key, so that no part of it can be repaired by itself", Hint: "repair without --where"}
		}
		c.Counts.Deleted += c.Leaving
	}
	o.Insert, o.Update, o.Delete, o.change = c.Counts.Inserted, c.Counts.Updated, c.Counts.Deleted, c
	o.Same, o.Made = counts.Rows-o.Insert-o.Update, found.Relation == ""
	for _, col := range spec.Columns {
		if !o.Made && !slices.Contains(found.Columns, col.Name) {
			o.Columns = append(o.Columns, "+"+col.Name)
		}
	}
	for _, name := range found.Lost {
		o.Columns = append(o.Columns, "-"+name)
	}
	o.Samples, err = l.lines(ctx, d.samples(c.Table))
	return o, err
}

// lines reads a query of texts.
func (p *Pipeline) lines(ctx context.Context, query string) (lines []string, err error) {
	err = p.Duck.Each(ctx, query, nil, func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		lines = append(lines, line)
		return err
	})
	return lines, err
}

// correct commits a correction. Tables without an outcome are left alone.
func (l *life) correct(ctx context.Context, c correction) error {
	m := l.beside(c.kind)
	m.Sources, m.Position = c.folded.counts, map[string]checkpoints.PositionSum{}
	change := &connectors.Change{Plan: l.record(), Before: l.manifest.Live, Whole: c.whole, Segments: c.changed, Ranges: c.folded.ranges, Rejects: c.folded.rejects(), Job: c.job}
	maps.DeleteFunc(m.Sinks, func(name string, _ checkpoints.SinkCount) bool {
		return !slices.ContainsFunc(l.Plan.Sinks, func(s planner.Sink) bool { return s.Name == name }) // of the plan before
	})
	for _, o := range c.outcomes {
		m.Sinks[o.Sink] = o.change.Counts
		change.Sinks = append(change.Sinks, o.change)
	}
	for source := range c.folded.counts {
		for id, split := range l.position[source] {
			split.Seq = m.Seq
			l.position[source][id] = split
		}
	}
	for _, s := range l.readSources() {
		m.Position[s.Name] = l.position[s.Name].Sum()
	}
	if c.whole {
		change.Before = checkpoints.LiveSum{}
		var err error
		if change.Segments, err = l.allSegments(ctx, m.Seq); err != nil {
			return err
		}
	}
	m.RangesSHA, m.Live = checkpoints.RangesSHA(change.Ranges), change.Before.After(change.Segments, nil)
	change.Manifest = m
	connectors.Failpoint("before-correction")
	if err := l.commit(ctx, change); err != nil {
		return err
	}
	connectors.Failpoint("after-correction")
	l.manifest = m
	if c.whole {
		l.live = nil
	}
	l.relive(change)
	return nil
}

// allSegments are the whole state and position at hand.
func (l *life) allSegments(ctx context.Context, seq int64) ([]*checkpoints.Segment, error) {
	var out []*checkpoints.Segment
	for _, step := range l.Plan.Steps {
		seg, err := l.wholeState(ctx, step, seq)
		if err != nil {
			return nil, err
		}
		if seg != nil {
			out = append(out, seg)
		}
	}
	for _, s := range l.readSources() {
		seg, err := checkpoints.EncodePosition(s.Name, seq, l.position[s.Name], nil)
		if err != nil {
			return nil, err
		}
		if seg != nil {
			out = append(out, seg)
		}
	}
	return out, nil
}

// differ writes the queries that compare the rows a sink should have, _w, with those of its table, _g.
type differ struct {
	sink  planner.Sink
	found connectors.Found
	seq   int64 // of the head: rows of a later change are somebody's edits
}

func newDiffer(sink planner.Sink, found connectors.Found, seq int64) differ {
	return differ{sink, found, seq}
}

func (d differ) has(column string) bool { return slices.Contains(d.found.Columns, column) }

func (d differ) keys() []string {
	out := make([]string, len(d.sink.Key))
	for i, k := range d.sink.Key {
		out[i] = duck.Quote(k)
	}
	return out
}

// matched is the condition that rows of two sides have the same key.
func (d differ) matched(a, b string) string {
	conds := []string{"true"}
	for _, k := range d.keys() {
		conds = append(conds, a+"."+k+" IS NOT DISTINCT FROM "+b+"."+k)
	}
	return strings.Join(conds, " AND ")
}

// byKey is the window of the rows of a key.
func (d differ) byKey() string {
	if len(d.sink.Key) == 0 {
		return ""
	}
	return "PARTITION BY " + strings.Join(d.keys(), ", ")
}

// table selects one row of every key of the table; _n counts the rows of its key.
func (d differ) table() string {
	return fmt.Sprintf("SELECT *, true AS _is, count(*) OVER (%[1]s) AS _n FROM %[2]s QUALIFY row_number() OVER (%[1]s) = 1", d.byKey(), d.found.Relation)
}

// leaving counts the rows that leave before the staged ones do what they say: of a key all but one.
func (d differ) leaving() string {
	if d.found.OtherKey {
		return "SELECT count(*) FROM " + d.found.Relation
	}
	if len(d.sink.Key) == 0 {
		return "SELECT greatest(count(*) - 1, 0) FROM " + d.found.Relation
	}
	return fmt.Sprintf("SELECT coalesce(sum(n - 1), 0)::BIGINT FROM (SELECT count(*) AS n FROM %s GROUP BY %s)", d.found.Relation, strings.Join(d.keys(), ", "))
}

// same is the condition that the table's row is the wanted one.
func (d differ) same() string {
	conds := []string{"_w._is", "_g._is", "_g._n = 1"}
	if !d.found.Seq {
		conds = append(conds, "false")
	} else {
		conds = append(conds, fmt.Sprintf("_g._etl_seq BETWEEN 0 AND %d", d.seq))
	}
	for _, c := range d.sink.Columns {
		if slices.Contains(d.sink.Key, c.Name) {
			continue
		}
		w, g := "_w."+duck.Quote(c.Name), "_g."+duck.Quote(c.Name)
		equal := w + " IS NOT DISTINCT FROM " + g
		switch {
		case !d.has(c.Name):
			equal = w + " IS NULL" // as the new column of the table will be
		case c.Inexact:
			equal = fmt.Sprintf("(%s OR coalesce(abs(%s - %s) <= 1e-9 * greatest(abs(%s), abs(%s), 1), false))", equal, w, g, w, g)
		}
		conds = append(conds, equal)
	}
	return "coalesce(" + strings.Join(conds, " AND ") + ", false)"
}

// stage makes the temp table of the rows to write.
func (d differ) stage(into, where string) string {
	head := "CREATE OR REPLACE TEMP TABLE " + into + " AS "
	columns := make([]string, len(d.sink.Columns))
	for i, c := range d.sink.Columns {
		columns[i] = duck.Quote(c.Name)
	}
	if d.found.Relation == "" || d.found.OtherKey {
		return head + "SELECT " + strings.Join(append(columns, "'I' AS _op"), ", ") + " FROM " + d.sink.Staged
	}
	for i, c := range d.sink.Columns {
		g := "CAST(NULL AS " + c.Type + ")"
		if d.has(c.Name) {
			g = "_g." + columns[i]
		}
		columns[i] = fmt.Sprintf("CASE WHEN _w._is THEN _w.%[1]s ELSE %[2]s END AS %[1]s", columns[i], g)
	}
	query := fmt.Sprintf("SELECT %s, CASE WHEN _g._is IS NULL THEN 'I' WHEN _w._is IS NULL THEN 'D' ELSE 'U' END AS _op FROM (SELECT * EXCLUDE (_op), true AS _is FROM %s) _w FULL JOIN (%s) _g ON %s WHERE NOT %s",
		strings.Join(columns, ", "), d.sink.Staged, d.table(), d.matched("_w", "_g"), d.same())
	if where != "" {
		query = "SELECT * FROM (" + query + ") WHERE (" + where + "\n)"
	}
	return head + query
}

// samples shows the first of the rows to write, one a line.
func (d differ) samples(staged string) string {
	var key, values, changed []string
	join := d.found.Relation != "" && !d.found.OtherKey
	for _, c := range d.sink.Columns {
		name := duck.Quote(c.Name)
		text := func(side string) string { return "coalesce(CAST(" + side + "." + name + " AS VARCHAR), 'NULL')" }
		shown := duck.Literal(c.Name+"=") + " || " + text("_f")
		switch {
		case slices.Contains(d.sink.Key, c.Name):
			key = append(key, shown)
			continue
		case join && d.has(c.Name):
			changed = append(changed, fmt.Sprintf("CASE WHEN _f.%[1]s IS DISTINCT FROM _g.%[1]s THEN %[2]s || %[3]s || ' -> ' || %[4]s END", name, duck.Literal(c.Name+" "), text("_g"), text("_f")))
		default:
			changed = append(changed, shown)
		}
		values = append(values, shown)
	}
	line := func(op string, parts []string) string {
		return "concat_ws(' ', " + strings.Join(slices.Concat([]string{"'" + op + "'"}, key, parts), ", ") + ")"
	}
	order := strings.Join(append([]string{"_op"}, d.keys()...), ", ")
	with := fmt.Sprintf("WITH _f AS MATERIALIZED (FROM %s ORDER BY %s LIMIT %d)", staged, order, maxSamples)
	from := "_f"
	if join {
		on := d.matched("_f", "_g")
		with += fmt.Sprintf(", _t AS (SELECT _g.* FROM %s AS _g SEMI JOIN _f ON %s QUALIFY row_number() OVER (%s) = 1)", d.found.Relation, on, d.byKey())
		from += " LEFT JOIN _t AS _g ON " + on
	}
	return fmt.Sprintf("%s SELECT CASE _f._op WHEN 'I' THEN %s WHEN 'D' THEN %s ELSE %s END AS line FROM %s ORDER BY line",
		with, line("insert", values), line("delete", values), line("update", changed), from)
}
