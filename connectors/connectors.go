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
	Checks  []Check
	// EventTime names the column that says when a row happened; "" when none does. The position then has
	// the Times of what was read from each split.
	EventTime string
	Options   map[string]Option // reader options of WITH, max_rejects among them
}

// SourceColumn is a declared column: of the input unless Metadata or Computed is set.
type SourceColumn struct {
	Name    string
	Type    string // DuckDB's canonical name of the type
	NotNull bool
	// Metadata is what the source knows of a row. Files: filename (the split's id) and file_row_number
	// (the row's ordinal in its file, from 0).
	Metadata string
	// Computed is a SQL expression over the other columns, not over computed ones. It is converted to
	// Type by a plain CAST. An error of it is no bad row but a DataError that names the column.
	Computed string
}

// Check is a condition on a row, over its columns. As in SQL a row passes when it is NULL.
type Check struct {
	Name string // "" when the author gave none
	SQL  string
	Text string // as the author wrote it, for messages; "" is SQL
	Fail bool   // a violation fails the batch, whatever max_rejects says
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
//
// A range from 0 of a split that the position has already replaces what was read of it: only sources
// whose splits may be replaced have such.
type Range struct {
	Split string
	From  int64
	To    int64
	Rows  int64 // rows in it, accepted or rejected; -1 until it is known
	// Rejected is how many of Rows are in the Scan's Rejects. Known after Finish.
	Rejected int64
	// Next is the split's entry in the position once the range is committed.
	Next checkpoints.Split
}

// Source is a place rows come from, made of splits.
type Source interface {
	// Plan looks at what exists now and returns the next ranges after seen, in a deterministic
	// order, none when caught up. It returns an InputError when input that seen still needs is
	// gone or was changed. waiting counts the splits with unread input, the planned ones included.
	Plan(ctx context.Context, seen checkpoints.Splits, limit Limit) (Batch, error)
	// Survey holds every split that was read or is there against what was read of it, in the order of their
	// ids. Unlike Plan it goes on after what was changed. What cannot be told is an error, as in Plan. Those
	// that named tells, which may be nil, are read to know, whatever their size and time say; it is given
	// their Split and Shown.
	Survey(ctx context.Context, seen checkpoints.Splits, named func(Standing) bool) ([]Standing, error)
	// Losses lists the splits that was read from and that a run would stop at: changed since, or gone before
	// all of it was read. Each comes with the entry of the position that makes a run go on. So are those
	// whose loss was accepted before; a run stops at them only when they have a reason.
	Losses(ctx context.Context, seen checkpoints.Splits) ([]Loss, error)
	// Recorded makes ranges that were committed before ready to be read again, in their order. Those of
	// splits that are gone are an InputError; so is, by Finish at the latest, what was changed since. With
	// find, one that is gone is looked for under another name, by its content: its Range is of that name.
	Recorded(ctx context.Context, ranges []checkpoints.Range, find bool) ([]Range, error)
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

// How a split stands to what was read of it.
const (
	StandsSame    = "same"    // what was read can be read again
	StandsChanged = "changed" // it is another one now
	StandsGone    = "gone"
	StandsNew     = "new" // nothing of it was read
)

// Standing is one split as a Survey finds it.
type Standing struct {
	Split string
	State string
	Shown string            // how messages write it
	Was   checkpoints.Split // what was read of it; zero of a new one
	Moved string            // the id it was read under, when it has another one now
	Once  string            // how messages wrote it then
	Now   Range             // all of it, of a changed or new one
}

// Loss is a split whose read or unread rows are not there any more.
type Loss struct {
	Split  string
	Shown  string // how messages write it
	Reason string // as an InputError has it
	Next   checkpoints.Split
	Unread int64 // rows that were not read yet, and never will be
	// Accepted: its loss was, before. What was read of it is counted there.
	Accepted bool
}

// Scan is the input of one batch from one source. The rows are had in one of three ways: as Records
// when that is not nil; else as a fused Relation, or by Copy. They are the accepted rows: those with
// a bad value, or that break NOT NULL or a check, are in Rejects instead, or are an error.
type Scan interface {
	// Relation is a SQL table expression that yields the declared columns, in order, under their
	// names. When fused it may be scanned inside a larger query, any number of times. Otherwise sql
	// is "" and the rows must be copied.
	Relation() (sql string, fused bool)
	// Copy creates the temp table from the rows, once and before Finish. It has the declared columns
	// and a last column _split (VARCHAR) with the id of the split each row is from. More bad rows than
	// max_rejects allows are a DataError that shows the first ones; there is no table then. It must
	// not be called in a transaction.
	Copy(ctx context.Context, table string) error
	// Records yields the rows as Arrow, once. The caller releases the reader.
	Records() array.RecordReader
	// Rejects names a temp table of the bad rows: source, split_id, reason and raw are VARCHAR, off (the
	// row's ordinal in its split, from 0) and line (from 1, NULL where there are none) BIGINT. "" when
	// there are none. It is known after Copy, or for a fused Relation at once, and goes with Close.
	Rejects() string
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
