package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// Difference is what reconcile found in one sink.
type Difference struct {
	Sink      string   `json:"sink"`
	Rows      int64    `json:"rows"`      // of the SELECT
	Missing   int64    `json:"missing"`   // keys of the SELECT that the table lacks
	Extra     int64    `json:"extra"`     // keys of the table that the SELECT lacks
	Different int64    `json:"different"` // keys with other values
	Samples   []string `json:"samples,omitempty"`
}

// Total is the number of keys that differ.
func (d Difference) Total() int64 { return d.Missing + d.Extra + d.Different }

// ErrNeverRan says that there is nothing to reconcile.
var ErrNeverRan = errors.New("nothing to compare: the pipeline never ran; its first run makes the tables")

// maxSamples bounds the differing rows that are shown.
const maxSamples = 10

// Tables names the relation that holds a sink's table in the engine's DuckDB. A destination that is
// not attached to it copies the table first.
type Tables func(ctx context.Context, sink connectors.SinkSpec) (relation string, err error)

// Reconcile runs the author's SELECT once over all input consumed so far and compares the result with
// the table, key by key. The SELECT runs as written, not by the plan's statements. Floating sums and
// means may differ by 1e-9 of the larger value. It writes nothing. where limits it, as in Options.
func (p *Pipeline) Reconcile(ctx context.Context, tables Tables, where map[string]string) ([]Difference, error) {
	head, err := p.Destination.Head(ctx, p.Plan.Name)
	if err != nil {
		return nil, err
	}
	if head.Fresh || head.Manifest.Seq == 0 {
		return nil, p.neverRan(ctx, head)
	}
	if err := p.fits(ctx, head); err != nil {
		return nil, err
	}
	segments, err := p.Destination.Segments(ctx, p.Plan.Name, head.Manifest.Incarnation, head.Manifest.Seq)
	if err != nil {
		return nil, err
	}
	position, err := p.position(ctx, head.Manifest, segments)
	if err != nil {
		return nil, err
	}
	p.followRenames(ctx, position)
	for _, set := range p.Plan.Variables {
		if err := p.Duck.Exec(ctx, set); err != nil {
			return nil, err
		}
	}
	l := &life{Pipeline: p, position: position}
	inputs, err := l.consumed(ctx)
	defer inputs.close()
	if err != nil {
		return nil, err
	}
	var out []Difference
	for _, sink := range p.Plan.Sinks {
		condition := where[sink.Name]
		if where != nil && condition == "" {
			continue
		}
		table, err := tables(ctx, sinkSpec(sink))
		if err != nil {
			return nil, err
		}
		d, err := p.differ(ctx, sink, table, cmp.Or(condition, "true"))
		if err != nil {
			return nil, inputs.explain(ctx, err)
		}
		out = append(out, d)
	}
	return out, inputs.unchanged(ctx)
}

// followRenames finds splits that were renamed since the last batch. What else Plan may find wrong
// is no matter of reconcile, or found again by Read.
func (p *Pipeline) followRenames(ctx context.Context, position checkpoints.Position) {
	for _, source := range p.readSources() {
		if found, err := p.Sources[source.Name].Plan(ctx, position[source.Name], connectors.Limit{}); err == nil {
			position[source.Name].Apply(found.Moved, found.Gone)
		}
	}
}

// consumed makes everything read from every source a relation of the source's name, for the SELECT.
func (l *life) consumed(ctx context.Context) (*inputs, error) {
	return l.relations(ctx, func(source string) []connectors.Range { return consumedRanges(l.position[source]) }, l.checkRows)
}

// relations makes ranges of every source a relation of the source's name, for the SELECT as it is written.
// Files that DuckDB can scan inside a query are not copied. check, if not nil, looks at each.
func (l *life) relations(ctx context.Context, ranges func(source string) []connectors.Range, check func(context.Context, *input) error) (*inputs, error) {
	all := &inputs{}
	for _, source := range l.Plan.Sources {
		in := &input{plan: source, ranges: ranges(source.Name)}
		in.plan.Reads = 1 // the relation may be scanned any number of times: its rows are always the same
		all.list = append(all.list, in)
		if len(in.ranges) > 0 {
			scan, err := l.Sources[source.Name].Read(ctx, in.ranges)
			if err != nil {
				return all, err
			}
			in.scan = scan
		}
		relation, err := l.relation(ctx, in)
		if err == nil {
			err = l.view(ctx, source.Name, source.Shown(), relation)
		}
		if err == nil {
			err = l.view(ctx, planner.PlacedRelation(source.Name), source.Columns, relation)
		}
		if err == nil && check != nil {
			err = check(ctx, in)
		}
		if err != nil {
			return all, all.explain(ctx, err)
		}
	}
	return all, nil
}

// checkRows counts before comparing: with rows missing from the input, every difference would be
// blamed on the table.
func (l *life) checkRows(ctx context.Context, in *input) error {
	var n, want int64
	for _, r := range in.ranges {
		want += r.Rows
	}
	if err := l.Duck.QueryRow(ctx, "SELECT count(*) FROM "+duck.Quote(in.plan.Name), nil, &n); err != nil {
		return err
	}
	if rejects := rejectsOf(in); rejects != "" {
		var rejected int64
		if err := l.Duck.QueryRow(ctx, "SELECT count(*) FROM "+duck.Quote(rejects), nil, &rejected); err != nil {
			return err
		}
		n += rejected
	}
	if n == want {
		return nil
	}
	return &connectors.InputError{Source: in.plan.Name, Split: fmt.Sprintf("%d splits", len(in.ranges)),
		Reason: fmt.Sprintf("they give %d rows now, %d were consumed", n, want), Hint: "the input was changed after it was read; put it back as it was"}
}

func rejectsOf(in *input) string {
	if in.scan == nil {
		return ""
	}
	return in.scan.Rejects()
}

// unchanged lets the sources check, after all rows were read, that they were those once consumed.
func (all *inputs) unchanged(ctx context.Context) error {
	for _, in := range all.list {
		if in.scan == nil {
			continue
		}
		if _, err := in.scan.Finish(ctx, in.copied); err != nil {
			return err
		}
	}
	return nil
}

func consumedRanges(splits checkpoints.Splits) []connectors.Range {
	var out []connectors.Range
	for _, id := range slices.Sorted(maps.Keys(splits)) {
		s := splits[id]
		out = append(out, connectors.Range{Split: id, From: 0, To: s.Next, Rows: s.Rows, Next: s})
	}
	return out
}

// differ compares a sink's table with its SELECT.
func (p *Pipeline) differ(ctx context.Context, sink planner.Sink, table, where string) (Difference, error) {
	d := Difference{Sink: sink.Name}
	if err := p.Duck.Exec(ctx, "CREATE OR REPLACE TEMP TABLE _want AS "+sink.OneShot); err != nil {
		return d, p.computeError(sink.Decl.Head.Start, sink.Name, err)
	}
	on, same := []string{"true"}, []string{"true"}
	for _, c := range sink.Columns {
		w, g := "_w."+duck.Quote(c.Name), "_g."+duck.Quote(c.Name)
		equal := w + " IS NOT DISTINCT FROM " + g
		switch {
		case slices.Contains(sink.Key, c.Name):
			on = append(on, equal)
		case c.Inexact:
			same = append(same, fmt.Sprintf("(%s OR coalesce(abs(%s - %s) <= 1e-9 * greatest(abs(%s), abs(%s), 1), false))", equal, w, g, w, g))
		default:
			same = append(same, equal)
		}
	}
	compared := fmt.Sprintf("(SELECT *, true AS _is FROM _want WHERE %[1]s) _w FULL JOIN (SELECT *, true AS _is FROM %[2]s WHERE %[1]s) _g ON %[3]s", where, table, strings.Join(on, " AND "))
	equal := strings.Join(same, " AND ")
	err := p.Duck.QueryRow(ctx, fmt.Sprintf(
		"SELECT (SELECT count(*) FROM _want WHERE %s), count(*) FILTER (WHERE _g._is IS NULL), count(*) FILTER (WHERE _w._is IS NULL), count(*) FILTER (WHERE _w._is AND _g._is AND NOT (%s)) FROM %s", where, equal, compared),
		nil, &d.Rows, &d.Missing, &d.Extra, &d.Different)
	if err == nil {
		err = p.doubled(ctx, &d, sink, table, where)
	}
	if err != nil && where != "true" {
		return d, conditionError(err)
	}
	if err != nil || d.Total() == 0 {
		return d, err
	}
	return d, p.sample(ctx, &d, sink, compared, equal)
}

// doubled counts rows of the table as extra that have a key another row has.
func (p *Pipeline) doubled(ctx context.Context, d *Difference, sink planner.Sink, table, where string) error {
	key, shown := "()", "''"
	if len(sink.Key) > 0 {
		names, parts := make([]string, len(sink.Key)), make([]string, len(sink.Key))
		for i, k := range sink.Key {
			names[i] = duck.Quote(k)
			parts[i] = duck.Literal(k+"=") + " || coalesce(CAST(" + names[i] + " AS VARCHAR), 'NULL')"
		}
		key, shown = strings.Join(names, ", "), "concat_ws(' ', "+strings.Join(parts, ", ")+")"
	}
	query := fmt.Sprintf("SELECT count(*) - 1, 'doubled   ' || %s AS line FROM %s WHERE %s GROUP BY %s HAVING count(*) > 1 ORDER BY line", shown, table, where, key)
	return p.Duck.Each(ctx, query, nil, func(rows *sql.Rows) error {
		var n int64
		var line string
		err := rows.Scan(&n, &line)
		d.Extra += n
		if len(d.Samples) < maxSamples {
			d.Samples = append(d.Samples, line)
		}
		return err
	})
}

// sample writes some differing rows: the key, then what the SELECT and the table say.
func (p *Pipeline) sample(ctx context.Context, d *Difference, sink planner.Sink, compared, equal string) error {
	show := func(side string) string {
		parts := make([]string, len(sink.Columns))
		for i, c := range sink.Columns {
			parts[i] = fmt.Sprintf("%s || coalesce(CAST(%s.%s AS VARCHAR), 'NULL')", duck.Literal(c.Name+"="), side, duck.Quote(c.Name))
		}
		return "concat_ws(' ', " + strings.Join(parts, ", ") + ")"
	}
	query := fmt.Sprintf(`SELECT CASE WHEN _g._is IS NULL THEN 'missing   ' || %s WHEN _w._is IS NULL THEN 'extra     ' || %s
		ELSE 'SELECT    ' || %s || chr(10) || 'table     ' || %s END AS line FROM %s WHERE _w._is IS NULL OR _g._is IS NULL OR NOT (%s) ORDER BY line LIMIT %d`,
		show("_w"), show("_g"), show("_w"), show("_g"), compared, equal, maxSamples)
	lines, err := p.lines(ctx, query)
	d.Samples = append(d.Samples, lines...)
	return err
}
