// Package duckdb is the destination that is a DuckDB file.
//
// The file is attached to the engine's own DuckDB, so a batch's state (temp tables), its target rows,
// its segments and its manifest are one transaction of one database. DuckDB locks the file for the
// process that has it attached: that lock is the lease. The fence still counts, because a run may
// give the file back while it waits for input.
//
// Reading order: open.go (which file is this?), head.go, targets.go and adopt.go, commit.go, apply.go and record.go,
// restore.go.
package duckdb

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

//go:embed schema.sql
var schemaSQL string

//go:embed statements.sql
var statementsSQL string

var statements = parseStatements(statementsSQL)

// parseStatements splits the file at its "-- name:" lines.
func parseStatements(text string) map[string]string {
	named := map[string]string{}
	for _, block := range strings.Split(text, "-- name: ")[1:] {
		name, stmt, _ := strings.Cut(block, "\n")
		named[name] = strings.TrimSpace(stmt)
	}
	return named
}

// Destination is an attached DuckDB file. It implements connectors.Destination.
type Destination struct {
	eng      *duck.Engine
	path     string // absolute
	alias    string
	readOnly bool
	hidePath bool
	file     string // of the pipeline
	adopt    bool   // a copy
	copyOf   string // another file, until it was adopted
	refused  error
	empty    bool // opened to read, and no pipeline ever wrote to it

	// settled holds what a confirmed commit of this process has established, so that the next one need
	// not look again: plans that are stored, tables that are this pipeline's and fit their sinks. Nobody
	// else can change them while the file is attached. It is forgotten after any error.
	settled map[string]bool
	inPlace map[string]bool // sinks whose rows are updated in place; known while they are settled
}

var _ connectors.Destination = (*Destination)(nil)

// Close detaches the file, so that other programs can open it.
func (d *Destination) Close() error {
	return d.failed("close", d.eng.Detach(context.Background(), d.alias))
}

// sql returns a statement of statements.sql. A name that is not there is a mistake in this package.
func (d *Destination) sql(name string) string {
	stmt, ok := statements[name]
	if !ok {
		panic("duckdb: no statement named " + name)
	}
	return d.inDatabase(stmt)
}

func (d *Destination) inDatabase(stmt string) string {
	return strings.ReplaceAll(stmt, "{db}", duck.Quote(d.alias))
}

// table writes the full name of a table of the file.
func (d *Destination) table(schema, table string) string {
	return duck.Quote(d.alias) + "." + duck.Quote(schema) + "." + duck.Quote(table)
}

// inTx runs fn in a transaction of its own.
func (d *Destination) inTx(ctx context.Context, doing string, fn func() error) error {
	if d.readOnly {
		return fmt.Errorf("%s: the database was opened only to read", doing)
	}
	tx, err := d.eng.Begin(ctx)
	if err != nil {
		return d.failed(doing, err)
	}
	if err := fn(); err != nil {
		return errors.Join(err, d.failed("roll back", tx.Rollback()))
	}
	return d.failed(doing, tx.Commit())
}

// failed says in which file and at what DuckDB failed. It keeps DuckDB's own words, but not the
// statement that it quotes below them.
func (d *Destination) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &connectors.UnavailableError{What: d.path, Err: &storeError{doing, err}}
}

// readError is failed, except for damage, which says itself who has to act.
func (d *Destination) readError(doing string, err error) error {
	var damaged *connectors.DamagedError
	if errors.As(err, &damaged) {
		return damaged
	}
	return d.failed(doing, err)
}

type storeError struct {
	doing string
	err   error
}

func (e *storeError) Error() string {
	text, _, _ := strings.Cut(e.err.Error(), "\nLINE ")
	return "cannot " + e.doing + ": " + strings.TrimSpace(text)
}
func (e *storeError) Unwrap() error { return e.err }
