// Package connectors declares the two seams of the engine: where rows come from (Source) and
// the database whose tables they end in (Destination). Each is small; every implementation
// passes the suites of connectorstest.
package connectors

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"lockstep/checkpoints"
)

// SourceSpec is what a pipeline file says of a source, with getenv already resolved.
type SourceSpec struct {
	Name    string
	From    string // the glob, absolute, or the address
	Base    string // directory of the pipeline file
	Format  string // parquet, csv, json; "" = by suffix
	Columns []SourceColumn
	Options map[string]Option // reader options of WITH
}

// SourceColumn is a declared input column.
type SourceColumn struct {
	Name    string
	Type    string // DuckDB's canonical name of the type
	NotNull bool
}

// Option is a literal of a WITH list. Raw is how it is written in SQL: 'text', 12, true.
type Option struct {
	Raw  string
	Text string // the string's content, or Raw
}

// Limit bounds a batch. Zero means no bound. At least one range is planned when any input waits.
type Limit struct {
	Rows  int64
	Bytes int64
}

// Range is a half-open piece [From, To) of a split, in the source's own offsets.
type Range struct {
	Split string
	From  int64
	To    int64
	Rows  int64 // rows in it; -1 until it is known
	// Next is the split's entry in the position once the range is committed.
	Next checkpoints.Split
}

// Source is a place rows come from, made of splits.
type Source interface {
	// Plan looks at what exists now and returns the next ranges after seen, in a deterministic
	// order, none when caught up. It returns an InputError when input that seen still needs is
	// gone or was changed. waiting counts the splits with unread input, the planned ones included.
	Plan(ctx context.Context, seen checkpoints.Splits, limit Limit) (Batch, error)
	// Read opens the ranges for reading. The same ranges give the same rows in the same order.
	// The caller closes the Scan, also after an error of reading it.
	Read(ctx context.Context, ranges []Range) (Scan, error)
	// Close releases what the source holds. It may be called twice.
	Close() error
}

// Batch is what Plan found.
type Batch struct {
	Ranges  []Range
	Waiting int // splits with unread input, including those in Ranges
	// Moved holds splits whose identity changed without new rows: a renamed file (the old name is in
	// Gone) or a touched one. They enter the position with the next commit, before the Next of Ranges.
	Moved checkpoints.Splits
	Gone  []string
}

// Scan is the input of one batch from one source: a relation that DuckDB scans itself, or Arrow.
type Scan interface {
	// Relation is a SQL table expression that yields the declared columns, in order, under their
	// names; "" when the rows come as Records. Fused relations may be scanned inside a larger
	// query; others must be copied to a table once, before Finish. A copied relation has a last column
	// _split (VARCHAR) with the id of the split each row is from.
	Relation() (sql string, fused bool)
	// Records yields the rows as Arrow, once. The caller releases the reader. nil for a Relation.
	Records() array.RecordReader
	// Finish is called after all rows were read, with the name of the temp table they were copied
	// to ("" when fused). It checks that the input did not change meanwhile and returns the ranges
	// with their true row counts and identities. Those counts come from the source, not from the
	// query that consumed the rows.
	Finish(ctx context.Context, copied string) ([]Range, error)
	// Explain is called with the error of a statement that read the Relation, after its transaction
	// was rolled back. It looks for the place in the input that caused it and returns a DataError, or
	// err itself when the input is not to blame.
	Explain(ctx context.Context, err error) error
	Close() error
}

// Clock tells the time; tests replace it.
type Clock func() time.Time
