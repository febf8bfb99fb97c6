package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/duckdb"
	"lockstep/connectors/postgres"
	"lockstep/planner"
	"lockstep/sql"
)

// database is a destination with what the commands that look ask of it.
type database interface {
	connectors.Destination
	connectors.Registry
	// Pipelines lists the pipelines that have taken a lease, by name.
	Pipelines(ctx context.Context) ([]string, error)
	// History lists the newest n manifests, newest first; 0 lists all.
	History(ctx context.Context, pipeline string, n int) ([]checkpoints.Manifest, error)
	// OfKind lists the changes of a kind, oldest first.
	OfKind(ctx context.Context, pipeline, kind string) ([]checkpoints.Manifest, error)
	// BatchOf is the number of the batch that a change was, or that it came after.
	BatchOf(ctx context.Context, pipeline string, seq int64) (int64, error)
	// SeqOf is the change that a batch was; 0 when there is no such batch.
	SeqOf(ctx context.Context, pipeline string, batch int64) (int64, error)
	// Ranges lists everything a pipeline has read, oldest first.
	Ranges(ctx context.Context, pipeline string) ([]connectors.FileRange, error)
	// Rejects is a query for the session's DuckDB of everything a pipeline has rejected.
	Rejects(ctx context.Context, pipeline string) (string, error)
	// Relation names a sink's table, or a copy of it, in the session's DuckDB.
	Relation(ctx context.Context, sink connectors.SinkSpec) (string, error)
}

// open opens the destination that ATTACH names, of whatever type it is.
func (s *session) open(ctx context.Context, readOnly bool) (database, error) {
	if s.dsn == "" {
		dest, err := duckdb.Open(ctx, s.duck, s.path, s.alias, duckdb.Access{ReadOnly: readOnly, HidePath: s.hidePath, File: s.file(), Adopt: s.adopt})
		if err != nil {
			return nil, err
		}
		return dest, nil
	}
	dest, err := postgres.Open(ctx, s.duck, s.dsn, postgres.Access{Name: s.shown, ReadOnly: readOnly, File: s.file()})
	if err != nil {
		return nil, err
	}
	return dest, nil
}

// attached tells whether the file named a destination that could be resolved.
func (w *wiring) attached() bool { return w.path != "" || w.dsn != "" }

// destinationExists is false for a file that the first run creates. A database of a server is there, or is
// an error when it is opened.
func (s *session) destinationExists() bool {
	if s.dsn != "" {
		return true
	}
	_, err := os.Stat(s.path)
	return !errors.Is(err, fs.ErrNotExist)
}

// identity tells destinations of several pipeline files apart.
func (w *wiring) identity() string {
	if w.dsn != "" {
		return "postgres " + w.dsn
	}
	return realPath(w.path)
}

// postgresFaults finds columns that a Postgres table cannot have.
func (s *session) postgresFaults(plan *planner.Plan) sql.Errors {
	var out sql.Errors
	for _, sink := range plan.Sinks {
		for _, c := range sink.Columns {
			if reason, hint := postgres.Refusal(connectors.SinkColumn{Name: c.Name, Type: c.Type}); reason != "" {
				name := sink.Decl.Name.Parts
				out = append(out, s.script.Errorf(name[len(name)-1].Span, hint, "%s", reason))
			}
		}
	}
	return out
}
