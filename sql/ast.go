// Package sql reads a pipeline file: plain SQL statements that say where rows come from,
// how they are combined, and which keyed table they keep up to date.
//
// It knows the statements and their positions. What stands after AS in a view or sink, and
// every expression in parentheses, is kept as untouched text: DuckDB parses and binds it later,
// and an error found there is pointed back into this file by its byte offset.
package sql

// Span is a half-open range of byte offsets in Script.Text.
type Span struct{ Start, End int }

// Script is one parsed pipeline file.
type Script struct {
	File      string // as the user named it, for messages
	Text      string // the whole file, as read
	Name      string // CREATE PIPELINE's name, else the file's base name without .sql; in lower case
	Pipeline  *Pipeline
	Attaches  []*Attach
	Variables []*Variable
	Sources   []*Source
	Views     []*View
	Sinks     []*Sink
	Tests     []*Later
	Audits    []*Later
}

// Name is an identifier as written, without its quotes.
type Name struct {
	Text string
	Span Span
}

// QName is a name of one to three parts: table, schema.table, database.schema.table.
type QName struct {
	Parts []Name
	Span  Span
}

// Pipeline is CREATE PIPELINE name [WITH (…)].
type Pipeline struct {
	Name Name
	With []Option
	Span Span
}

// Attach is ATTACH text AS name [(TYPE duckdb|postgres)].
type Attach struct {
	Target Text
	Name   Name
	Type   string // duckdb (default) or postgres
	Span   Span

	typeSpan Span
}

// Variable is SET VARIABLE name = constant.
type Variable struct {
	Name  Name
	Value Expr
	Span  Span
}

// Source is CREATE SOURCE.
type Source struct {
	Name      Name
	Columns   []Column
	Key       []Name // PRIMARY KEY
	Watermark *Watermark
	Checks    []Check
	From      Text   // the glob or address; zero when FROM names a table
	FromTable *QName // FROM name
	Envelope  string // NONE, UPSERT or DEBEZIUM
	Sequence  []Expr // SEQUENCE BY
	Delete    *Expr  // DELETE WHEN
	EnvSpan   Span   // of ENVELOPE …, zero when absent
	With      []Option
	Span      Span
	Head      Span // CREATE SOURCE name: where a message about the whole source points

	partial bool // an item of the list could not be read
}

// ColumnKind says where a column's value comes from.
type ColumnKind int

const (
	Input    ColumnKind = iota // read from the input under its name
	Computed                   // AS (expr) over the input columns
	Metadata                   // METADATA [FROM 'name']
)

// Column is one declared column of a source.
type Column struct {
	Name     Name
	Type     Expr // the type as written; DuckDB decides what it means
	Kind     ColumnKind
	NotNull  bool
	Expr     Expr   // Computed
	Metadata string // Metadata: the FROM name, else the column's own name
	Span     Span

	metadataSpan Span
}

// Watermark is WATERMARK FOR column AS expr.
type Watermark struct {
	Column Name
	Expr   Expr
	Span   Span
}

// Check is [CONSTRAINT name] CHECK (expr) [ON VIOLATION REJECT|FAIL].
type Check struct {
	Name Name // Text is "" when the constraint has no name
	Expr Expr
	Fail bool
	Span Span
}

// View is CREATE VIEW name AS select.
type View struct {
	Name   Name
	Select Expr
	Span   Span
}

// Sink is CREATE SINK.
type Sink struct {
	Name      QName
	Key       []Name // empty: a table of at most one row
	EmitFinal bool
	EmitSpan  Span
	With      []Option
	Select    Expr
	Span      Span
	Head      Span
}

// Later is a statement that parses and is not supported by this version.
type Later struct {
	Kind string // "CREATE TEST", "CREATE AUDIT"
	Name Name
	Span Span
}

// Expr is a piece of DuckDB SQL, untouched: an expression, a type, or a whole SELECT.
type Expr struct {
	Text string
	Span Span
}

// Option is one name = value of a WITH list.
type Option struct {
	Name  Name
	Value Value
	Span  Span
}

// Value is a literal or a text.
type Value struct {
	Kind ValueKind
	Text Text   // StringValue
	Raw  string // the literal as written, for the other kinds: 12, 1.5, true
	Span Span
}

// ValueKind tells the literals of a WITH list apart.
type ValueKind int

const (
	StringValue ValueKind = iota
	NumberValue
	BoolValue
	NullValue
)

// Text is a string that may contain getenv('NAME' [, 'default']) parts, joined by ||.
type Text struct {
	Parts []TextPart
	Span  Span
}

// TextPart is a literal, or a getenv call when Env is not empty.
type TextPart struct {
	Literal    string
	Env        string
	Default    string
	HasDefault bool
	Span       Span
}
