package connectors

import "context"

// Registry changes what a database knows of a pipeline as a whole. Each change is one transaction under the
// lease of the pipeline: it is a HeldError while a run has that, and a run that wakes up later is fenced off.
type Registry interface {
	// Known tells what is here of a pipeline, also when its record is damaged.
	Known(ctx context.Context, pipeline string) (Known, error)
	// Drop removes all of it, and the tables that the pipeline made. With keep those stay too, as those do that
	// it took over: as tables of nobody, without the engine's column.
	Drop(ctx context.Context, pipeline string, keep bool) error
	// Rename gives everything of a pipeline another name, which no other has: a TargetError otherwise.
	Rename(ctx context.Context, from, to string) error
	// Adopt puts the mark of the head's pipeline back on tables of its sinks that lost it, and names them. It is
	// a TargetError when one is not what the pipeline left in every other way.
	Adopt(ctx context.Context, head Head, sinks []SinkSpec) (tables []string, err error)
}

// Known is what a database has of a pipeline.
type Known struct {
	Traces   int64 // rows of the schema etl that say that there is one; 0: it is not known here
	Batch    int64 // the last one; -1 before batch 0
	Changes  int64
	Splits   int64 // that were read
	Rejected int64 // rows
	Bytes    int64 // of state, as stored
	Tables   []KnownTable
}

// Nothing tells that the pipeline is not known, or never committed anything.
func (k Known) Nothing() bool { return k.Changes == 0 && len(k.Tables) == 0 && k.Traces <= 1 }

// NameTaken says that a pipeline cannot be given a name.
func NameTaken(name string) error {
	return &TargetError{Table: "etl.pipelines", Reason: "there is a pipeline " + name + " already", Hint: "`etl drop FILE` removes it; or choose another name with CREATE PIPELINE"}
}

// NameUnknown says that there is no pipeline to give another name.
func NameUnknown(name string) error {
	return &TargetError{Table: "etl.pipelines", Reason: "there is no pipeline " + name}
}

// KnownTable is a table that a pipeline keeps.
type KnownTable struct {
	Sink      string // as the author wrote it
	Schema    string
	Table     string
	Key       []string
	Columns   []string // that the pipeline writes, besides its own
	Rows      int64
	TakenOver bool // it was there before the pipeline
	Gone      bool // there is no table of that name, or another one
}
