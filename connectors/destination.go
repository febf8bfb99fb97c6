package connectors

import (
	"context"

	"lockstep/checkpoints"
)

// Destination is the database that holds a pipeline's tables and its progress.
//
// The order of calls is Open, Head, then — only when there is something to do — Take, Segments,
// and any number of Commit. After any error of Commit the caller forgets what it knows and opens
// again: progress is read from the destination, never remembered.
type Destination interface {
	// Head reads the newest committed state of the pipeline without taking anything. A pipeline that
	// never ran has Head.Fresh. A damaged head is a DamagedError; when only its manifest is, the Head
	// beside the error has what is recorded elsewhere, and of the manifest the names, numbers and position.
	Head(ctx context.Context, pipeline string) (Head, error)
	// Take makes the caller the pipeline's only writer: it takes the lease and bumps the fence in one
	// transaction, then reads the head in a later statement. A lease held by another run is a HeldError.
	// When only the manifest of the head is damaged the lease is taken, and the error says so.
	Take(ctx context.Context, pipeline string) (Lease, Head, error)
	// CheckTargets compares the sinks with the tables that exist: owner, columns, key, identity and
	// row count. A difference is a TargetError.
	CheckTargets(ctx context.Context, head Head, sinks []SinkSpec) error
	// Found looks at a sink's table as it is, for a correction. What keeps a correction from making it right
	// is a TargetError.
	Found(ctx context.Context, pipeline string, sink SinkSpec) (Found, error)
	// Segments lists the segments live at seq, oldest first, and checks the list against the manifest.
	Segments(ctx context.Context, pipeline string, incarnation, seq int64) ([]checkpoints.Segment, error)
	// Listed is Segments without the check.
	Listed(ctx context.Context, pipeline string, incarnation, seq int64) ([]checkpoints.Segment, error)
	// Manifest reads one manifest and verifies it. Beside a DamagedError it is what could be read of it.
	Manifest(ctx context.Context, pipeline string, seq int64) (checkpoints.Manifest, error)
	// Consumed lists the ranges that a change read, in its order.
	Consumed(ctx context.Context, pipeline string, seq int64) ([]checkpoints.Range, error)
	// Load fills the Parts of a listed segment. The caller verifies them.
	Load(ctx context.Context, seg *checkpoints.Segment) error
	// Points lists the changes that a checkpoint could be kept of: those that still have all segments.
	Points(ctx context.Context, pipeline string, incarnation int64) ([]checkpoints.Point, error)
	// Commit applies the change, writes manifest, segments and head, and commits, all in one
	// transaction; then it reads the manifest back to confirm. It also ends change.Local: committed
	// when the destination is, rolled back when it is not. A cancelled ctx does not stop a commit that
	// was already sent.
	Commit(ctx context.Context, lease Lease, change *Change) error
	// SaveJob stores a job with its segments in the place of what was stored of its kind before. They are kept
	// until another one is saved, or it is forgotten.
	SaveJob(ctx context.Context, job Job) error
	// Job finds what was saved; without segments there is nothing. Their data is had with Load.
	Job(ctx context.Context, pipeline, kind string) (Job, error)
	// Jobs lists what was saved, by kind, without the segments.
	Jobs(ctx context.Context, pipeline string) ([]Job, error)
	ForgetJob(ctx context.Context, pipeline, kind string) error
	// Release gives the lease back.
	Release(ctx context.Context, lease Lease) error
	// Rest lets other programs use the database while nothing waits; until Wake no other method but Close
	// may be called. Wake is a HeldError while another program has the database, and an UnavailableError
	// when it is gone. Whoever woke up knows nothing: others may have changed everything.
	Rest(ctx context.Context) error
	Wake(ctx context.Context) error
	Close() error
}

// Head is the newest committed state of a pipeline. A fresh one has a manifest with nothing but the
// pipeline and the incarnation that its first change belongs to.
type Head struct {
	Fresh     bool
	File      string // the pipeline file that ran last, absolute; "" when it is not known
	Fence     int64
	LastBatch int64 // -1 before batch 0
	Manifest  checkpoints.Manifest
	SHA       string // the manifest's checksum as the head records it
	Plan      PlanRecord
}

// Lease is the right to write a pipeline until it is released or taken over.
type Lease struct {
	Pipeline string
	Holder   string // uuid of this run
	Fence    int64
}

// PlanRecord identifies what a pipeline means, in the four parts that decide compatibility.
type PlanRecord struct {
	ID        string // hash over the four parts
	Canon     int    // version of the canonical form
	Input     string
	State     string
	Output    string
	Env       string
	SQL       string // the whole pipeline file
	Canonical string // the canonical form itself, JSON
}

// SinkSpec is a keyed table of the destination.
type SinkSpec struct {
	Name    string // as the author wrote it, for messages
	Schema  string // "" = the database's default
	Table   string
	Columns []SinkColumn
	Key     []string // names of columns; none: a table of at most one row
}

// SinkColumn is one column that the pipeline owns.
type SinkColumn struct {
	Name string
	Type string // DuckDB type
}

// Change is everything one durable step writes.
type Change struct {
	Manifest checkpoints.Manifest
	Plan     PlanRecord
	Ranges   []checkpoints.Range
	Segments []*checkpoints.Segment // that enter
	Removed  []checkpoints.Segment  // that are not live any more; their data stays while a kept checkpoint needs it
	Before   checkpoints.LiveSum    // of the parent
	Whole    bool                   // Segments are all there is: whatever was live is not any more
	Mended   *checkpoints.Manifest  // the parent, to be stored again, when it was damaged
	Kept     []checkpoints.Kept     // compactions: the checkpoints to keep besides this change; others are dropped
	Sinks    []SinkChange
	Rejects  []Rejects
	Job      string // the kind of a job that was saved for it and is to be forgotten; "": none
	Local    LocalTx
}

// Rejects are the rows of one source that a batch left out, in a temp table as Scan.Rejects describes
// it.
type Rejects struct {
	Source string
	Table  string
	Rows   int64
}

// LocalTx is the engine's own transaction around state kept outside the destination.
type LocalTx interface {
	Commit() error
	Rollback() error
}

// Ops of a staged row.
const (
	OpInsert = "I" // the key is new
	OpUpdate = "U" // the key exists with other values
	OpDelete = "D" // the key must go
)

// SinkChange is what a batch changes in one sink. The staged rows have the sink's columns under
// their names and types, and a last column _op. A sink that has no table yet gets one with its first
// SinkChange, also an empty one. The manifest counts sinks under SinkSpec.Name.
type SinkChange struct {
	Sink   SinkSpec
	Table  string // temp table of the engine's DuckDB that holds the staged rows; "" when there are none
	Counts checkpoints.SinkCount
	// Against is set in corrections: the staged rows were found by comparing with this, not with what
	// the pipeline left. The table is first brought to the sink's columns and key, and made when there
	// is none; then Leaving rows leave it; then the staged rows do what they say, whatever change a row
	// is of. Counts.Deleted includes the leaving rows.
	Against *Found
	Leaving int64
}

// Found is a sink's table as it is. It may be another one than the pipeline left, and of other columns.
type Found struct {
	// Relation is what the engine's DuckDB reads its rows from: Columns, and _etl_seq when Seq is set. ""
	// when the table is to be made, or to be taken over as it stands, empty.
	Relation string
	Columns  []string // those of the sink that it has, in the sink's types
	Seq      bool
	Lost     []string // the pipeline's own columns that the sink has no more: they leave
	// OtherKey: its rows are not told apart by the sink's key, so all of them leave.
	OtherKey bool
}

// Staged are the counts of the rows that are staged.
func (s SinkChange) Staged() checkpoints.SinkCount {
	c := s.Counts
	c.Deleted -= s.Leaving
	return c
}

// FileRange is a range of a split that a change read.
type FileRange struct {
	Source, Split, Content string
	Seq, Batch             int64
	From, To               int64
	Rows, Rejected         int64
}
