package planner

import (
	"context"
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
	// Variables are the statements that set what the author's own text, Sink.OneShot, reads with
	// getvariable. The plan's other statements have the values in them.
	Variables []string

	state []canonicalState // of the steps
	parts []part           // what can be named when the plan changes
}

// Source is a source as the plan uses it.
type Source struct {
	Name    string // in lower case, as it is recorded: letter case has no meaning
	Decl    *sql.Source
	Columns []Column // declared, or taken from the input and pinned by the plan
	Checks  []Check
	// EventTime is the column of WATERMARK FOR, which says when a row happened; "" without one.
	EventTime string
	watermark string // canonical
	// Replaced: a file that was read may be replaced. InputRelation has the rows it has now, and
	// WithdrawnRelation names the files whose rows of before are taken back.
	Replaced bool
	Reads    int // how many steps scan it in a batch
}

// Column is a column of a source.
type Column struct {
	Name     string
	Type     string
	NotNull  bool
	Metadata string // what the source knows of the row, "" for a column of the input
	Computed string // SQL over the other columns, "" for a column of the input
	Hidden   bool   // no column of the author's: what decides between equal rows
	canon    string // of Computed
}

// Shown are the source's columns without the hidden ones.
func (s Source) Shown() []Column {
	return slices.DeleteFunc(slices.Clone(s.Columns), func(c Column) bool { return c.Hidden })
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
	ID    string // names the state in segments; the same as long as it groups the same
	Kind  string
	State Table
	Run   []string // per batch, after the steps before it: what changes
	Keep  []string // brings State to what Run found, before the next batch
	// The same for a batch whose keys are without NULL, and faster where the state is large. Nulls counts,
	// after RunPlain, the changed keys with a NULL: when there are any, Run has to do it. "" when only Run can.
	RunPlain, KeepPlain []string
	Nulls               string
	Changed             string   // SELECT of the state rows the batch changed, with _op 1 put, 0 deleted
	All                 []string // in the place of Run: the whole of State is what changed, after nothing
	Of                  Origin   // what it is made from
	Counts              string   // the source whose rows Counted counts; "" when a filter stands between
	Counted             string   // SELECT of how many of the batch's rows the step has folded
	Pos                 int      // byte offset in the pipeline file, -1 unknown

	node   Node   // what it computes
	source string // or the source whose rows it keeps
}

// both sets the statements for either way of comparing keys.
func (s *Step) both(statements func(same string) (run, keep []string)) {
	s.Run, s.Keep = statements(nullSafe)
	s.RunPlain, s.KeepPlain = statements(plainly)
}

// Sink is a keyed table with the statements that stage its changes.
type Sink struct {
	Name    string // database.table in lower case, as it is recorded
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
	Of      Origin   // what it is made from
	key     []int
	root    Node
	wrote   *authored
}

// SinkColumn is a column of a sink's table. The order of the columns is that of the SELECT and means
// nothing: the table's own is fixed when it is made, and rows are written by name.
type SinkColumn struct {
	Name    string
	Type    string
	Inexact bool // a number from a floating-point aggregate: equal to the one-shot SELECT within a tolerance only
}

// Infer tells the columns of a source that declares none.
type Infer func(ctx context.Context, source *sql.Source) ([]Column, error)
