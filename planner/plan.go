package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
	"lockstep/sql"
)

// Plan is a compiled pipeline. It is a value: nothing in it is bound to a connection.
type Plan struct {
	Script  *sql.Script
	Name    string // of the pipeline
	Sources []Source
	Steps   []Step // in the order they run
	Sinks   []Sink
	Hash    Hash
	facets  []facet
}

// Source is a source as the plan uses it.
type Source struct {
	Name    string
	Decl    *sql.Source
	Columns []Column // declared, or taken from the input and pinned by the plan
	Reads   int      // how many steps scan it in a batch
}

// Column is a column of a source.
type Column struct {
	Name    string
	Type    string
	NotNull bool
}

// Col is a column of a step's state.
type Col struct {
	Name string
	Type string
}

// Table is a step's state: a temp table of the engine, made, stored and restored by it. The first Key
// columns identify a row, NULL equal to NULL; with Key 0 there is at most one row.
type Table struct {
	Name string
	Cols []Col
	Key  int
}

func (t Table) columnList() string {
	names := make([]string, len(t.Cols))
	for i, c := range t.Cols {
		names[i] = duck.Quote(c.Name)
	}
	return strings.Join(names, ", ")
}

// Create is the statement that makes the empty table.
func (t Table) Create() string {
	defs := make([]string, len(t.Cols))
	for i, c := range t.Cols {
		defs[i] = duck.Quote(c.Name) + " " + c.Type
	}
	return "CREATE OR REPLACE TEMP TABLE " + duck.Quote(t.Name) + " (" + strings.Join(defs, ", ") + ")"
}

// Step keeps one operator's state up to date. All statements are fixed when the plan is made.
type Step struct {
	ID      string // names the state in segments; the same as long as it groups the same
	Kind    string
	State   Table
	Run     []string // per batch, after the steps before it
	Changed string   // SELECT of the state rows the batch changed, with _op 1 put, 0 deleted
	Counts  string   // the source whose rows Counted counts; "" when a filter stands between
	Counted string   // SELECT of how many of the batch's rows the step has folded
	Pos     int      // in the pipeline file, -1 unknown
}

// Sink is a keyed table with the statements that stage its changes.
type Sink struct {
	Name    string // as written
	Schema  string // "" = default
	Table   string
	Decl    *sql.Sink
	Columns []SinkColumn
	Key     []string
	Run     []string // per batch, after all steps
	Unique  string   // SELECT that must give 0: keys with two rows; "" where that cannot be
	Staged  string   // relation of the rows to write, with _op
	Counts  string   // SELECT inserted, updated, deleted
	NewRows string   // SELECT of the rows that come
	OldRows string   // SELECT of the rows that go
	OneShot string   // the author's SELECT, views in front, over tables named like the sources
	key     []int
	root    Node
}

// SinkColumn is a column of a sink's table.
type SinkColumn struct {
	Name    string
	Type    string
	Inexact bool // equal to the one-shot SELECT within a tolerance only
}

// Infer tells the columns of a source that declares none.
type Infer func(ctx context.Context, source *sql.Source) ([]Column, error)

// Compile plans a pipeline. A faulty one gives sql.Errors with everything that is wrong.
func Compile(ctx context.Context, script *sql.Script, infer Infer) (*Plan, error) {
	eng, err := duck.Open(ctx, duck.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	p := &planning{eng: eng, script: script, tables: map[string]string{}, plan: &Plan{Script: script, Name: script.Name}}
	p.faults = append(p.faults, script.Unsupported()...)
	for _, declare := range []func(context.Context, Infer) error{p.variables, p.sources, p.sinks} {
		if err := declare(ctx, infer); err != nil {
			return nil, err
		}
	}
	if len(p.faults) > 0 {
		p.faults.Sort()
		return nil, slices.CompactFunc(p.faults, func(a, b *sql.Error) bool { return *a == *b })
	}
	if err := p.finish(ctx); err != nil {
		return nil, err
	}
	return p.plan, nil
}

type planning struct {
	eng    *duck.Engine
	script *sql.Script
	plan   *Plan
	tables map[string]string // DuckDB table → source
	faults sql.Errors
}

func (p *planning) fault(span sql.Span, hint, format string, args ...any) {
	p.faults = append(p.faults, p.script.Errorf(span, hint, format, args...))
}

// variables sets every SET VARIABLE, which must be a constant.
func (p *planning) variables(ctx context.Context, _ Infer) error {
	for _, v := range p.script.Variables {
		tree, err := serialize(ctx, p.eng, "json_serialize_sql", "SELECT "+v.Value.Text+"\n")
		if err != nil {
			p.faultAt(v.Value.Span, err)
			continue
		}
		if reads(tree) {
			p.fault(v.Value.Span, "write the value itself", "SET VARIABLE takes a constant")
			continue
		}
		if err := p.eng.Exec(ctx, "SET VARIABLE "+duck.Quote(v.Name.Text)+" = ("+v.Value.Text+"\n)"); err != nil {
			p.faultAt(v.Value.Span, err)
		}
	}
	return nil
}

// reads: the tree is more than constants and casts of them.
func reads(v any) bool {
	switch v := v.(type) {
	case object:
		switch text(v, "class") {
		case "", "CONSTANT", "CAST":
		case "FUNCTION":
			if name := text(v, "function_name"); name != "-" && name != "+" && name != "list_value" {
				return true
			}
		default:
			return true
		}
		for _, c := range v {
			if reads(c) {
				return true
			}
		}
	case []any:
		for _, c := range v {
			if reads(c) {
				return true
			}
		}
	}
	return false
}

// sources makes an empty table per source, for DuckDB to bind against.
func (p *planning) sources(ctx context.Context, infer Infer) error {
	for _, s := range p.script.Sources {
		columns, err := p.columns(ctx, s, infer)
		if err != nil {
			return err
		}
		if columns == nil {
			continue
		}
		defs := make([]string, len(columns))
		for i, c := range columns {
			defs[i] = duck.Quote(c.Name) + " " + c.Type
		}
		if err := p.eng.Exec(ctx, "CREATE TABLE "+duck.Quote(s.Name.Text)+" ("+strings.Join(defs, ", ")+")"); err != nil {
			p.faultAt(s.Head, err)
			continue
		}
		p.tables[s.Name.Text] = s.Name.Text
		p.plan.Sources = append(p.plan.Sources, Source{Name: s.Name.Text, Decl: s, Columns: columns})
	}
	return nil
}

// columns gives the source's columns with DuckDB's names for their types; nil after a fault.
func (p *planning) columns(ctx context.Context, s *sql.Source, infer Infer) ([]Column, error) {
	if len(s.Columns) == 0 {
		if infer == nil {
			p.fault(s.Head, "", "source %s declares no columns", s.Name.Text)
			return nil, nil
		}
		columns, err := infer(ctx, s)
		var fault *sql.Error
		if errors.As(err, &fault) {
			p.faults = append(p.faults, fault)
			return nil, nil
		}
		return columns, err
	}
	var columns []Column
	for _, c := range s.Columns {
		var typ string
		err := p.eng.QueryRow(ctx, "SELECT column_type FROM (DESCRIBE SELECT CAST(NULL AS "+c.Type.Text+"\n) AS c)", nil, &typ)
		if err != nil {
			p.faultAt(c.Type.Span, err)
			columns = append(columns, Column{Name: c.Name.Text, Type: "VARCHAR"}) // so that the SELECT is still checked
			continue
		}
		columns = append(columns, Column{Name: c.Name.Text, Type: typ, NotNull: c.NotNull})
	}
	return columns, nil
}

// sinks binds and checks every SELECT.
func (p *planning) sinks(ctx context.Context, _ Infer) error {
	if len(p.plan.Sources) < len(p.script.Sources) {
		return nil // a SELECT over a missing table would only repeat the fault
	}
	for _, s := range p.script.Sinks {
		sink, err := p.sink(ctx, s)
		if err != nil {
			return err
		}
		if sink != nil {
			p.plan.Sinks = append(p.plan.Sinks, *sink)
		}
	}
	return nil
}

func (p *planning) sink(ctx context.Context, s *sql.Sink) (*Sink, error) {
	q := compose(p.script, s)
	g, tree, err := inspect(ctx, p.eng, q.text, p.tableNames())
	if err != nil {
		return nil, p.refused(q, s, err)
	}
	if len(g.refusals) > 0 {
		for _, r := range g.refusals {
			p.faultsOf(q, s, r)
		}
		return nil, nil
	}
	bound, err := bind(ctx, p.eng, p.tables, q.text)
	if err != nil {
		return nil, p.refused(q, s, err)
	}
	g.locate(bound)
	root := normalise(bound)
	inexact, refusals := check(root)
	sink, err := p.columnsOf(ctx, s, q, root, inexact)
	if err != nil {
		return nil, err
	}
	if sink != nil && len(refusals) == 0 {
		if r := proveKey(root, columnNames(sink.Columns), sink.key); r != nil {
			p.fault(keySpan(s), r.hint, "%s", r.msg)
			return nil, nil
		}
	}
	for _, r := range refusals {
		p.faultsOf(q, s, r)
	}
	if sink != nil {
		sink.OneShot = q.text
	}
	if sink == nil || len(refusals) > 0 {
		return nil, nil
	}
	if err := p.prove(ctx, s, root); err != nil {
		return nil, err
	}
	p.facets(q, s, sink, tree)
	return sink, nil
}

// prove renders the IR, binds that and compares: what is going to run means what DuckDB bound.
func (p *planning) prove(ctx context.Context, s *sql.Sink, root Node) error {
	again, err := bind(ctx, p.eng, p.tables, query(root))
	var r *refusal
	if errors.As(err, &r) {
		p.fault(s.Head, "please report this", "the plan of this SELECT cannot be proven to mean what it says (%s)", r.msg)
		return nil
	}
	if err != nil {
		return err
	}
	was, is := describe(root), describe(normalise(again))
	if was.rows != is.rows || !slices.Equal(was.cols, is.cols) {
		p.fault(s.Head, "please report this", "the plan of this SELECT cannot be proven to mean what it says")
	}
	return nil
}

// columnsOf names the output and finds the key in it; nil after a fault.
func (p *planning) columnsOf(ctx context.Context, s *sql.Sink, q composed, root Node, inexact []bool) (*Sink, error) {
	sink := &Sink{Name: nameOf(s.Name), Table: s.Name.Parts[len(s.Name.Parts)-1].Text, Decl: s, root: root}
	if len(s.Name.Parts) == 3 {
		sink.Schema = s.Name.Parts[1].Text
	}
	rows, err := p.eng.Query(ctx, "SELECT column_name FROM (DESCRIBE "+q.text+"\n)")
	if err != nil {
		return nil, fmt.Errorf("DuckDB could not name the columns: %w", err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	ok := p.checkNames(s, names)
	for i, typ := range root.Types() {
		if typ == "NULL" {
			p.fault(s.Head, "cast it: NULL::VARCHAR AS "+names[i], "column %s is always NULL and has no type", names[i])
			ok = false
		}
		sink.Columns = append(sink.Columns, SinkColumn{Name: names[i], Type: typ, Inexact: inexact[i]})
	}
	for _, k := range s.Key {
		at := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, k.Text) })
		if at < 0 {
			hint := "the SELECT has " + strings.Join(names, ", ")
			if near := sql.Suggest(k.Text, names); near != "" {
				hint = "did you mean \"" + near + "\"?"
			}
			p.fault(k.Span, hint, "the key column %s is not a column of the SELECT", k.Text)
			ok = false
			continue
		}
		if inexact[at] {
			p.fault(k.Span, exactHint, "the key column %s is a floating-point aggregate and not exact", k.Text)
			ok = false
		}
		sink.key, sink.Key = append(sink.key, at), append(sink.Key, names[at])
	}
	if !ok {
		return nil, nil
	}
	return sink, nil
}

func (p *planning) checkNames(s *sql.Sink, names []string) bool {
	ok := true
	seen := map[string]bool{}
	for _, n := range names {
		lower := strings.ToLower(n)
		switch {
		case seen[lower]:
			p.fault(s.Head, "give one of them another name with AS", "two columns of the SELECT are named %s", n)
			ok = false
		case strings.HasPrefix(lower, "_etl_") || lower == "_op":
			p.fault(s.Head, "give it another name with AS", "the column name %s is reserved", n)
			ok = false
		}
		seen[lower] = true
	}
	return ok
}

// finish compiles the steps once everything is known to be right.
func (p *planning) finish(ctx context.Context) error {
	c := &compiler{plan: p.plan, folds: map[string]*folded{}, ids: map[string]bool{}, reads: map[string]int{}}
	for i := range p.plan.Sinks {
		c.sink(&p.plan.Sinks[i], p.plan.Sinks[i].root, i)
	}
	for i := range p.plan.Sources {
		p.plan.Sources[i].Reads = c.reads[p.plan.Sources[i].Name]
	}
	version, err := p.eng.Version(ctx)
	if err != nil {
		return err
	}
	p.plan.Hash, err = hashOf(p.plan, version)
	return err
}

func (p *planning) tableNames() []string {
	var names []string
	for _, s := range p.script.Sources {
		names = append(names, s.Name.Text)
	}
	for _, v := range p.script.Views {
		names = append(names, v.Name.Text)
	}
	return names
}

func nameOf(q sql.QName) string {
	parts := make([]string, len(q.Parts))
	for i, n := range q.Parts {
		parts[i] = n.Text
	}
	return strings.Join(parts, ".")
}

func columnNames(columns []SinkColumn) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// keySpan is where a message about the whole key points.
func keySpan(s *sql.Sink) sql.Span {
	if len(s.Key) == 0 {
		return s.Head
	}
	return sql.Span{Start: s.Key[0].Span.Start, End: s.Key[len(s.Key)-1].Span.End}
}
