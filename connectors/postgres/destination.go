// Package postgres is the destination that is a Postgres database, of version 15 or newer.
//
// The state of a batch is in the engine's DuckDB; its changed rows, its segments and its manifest are
// written in one Postgres transaction. Commit ends both: the one of DuckDB goes the way that of Postgres
// went.
//
// Nothing outside of a transaction is kept in a session of the server: no prepared statement, no setting,
// no temp table, no session lock. So a pooler that gives every transaction another session may stand in
// between. Who may write is a row, the lease, which its holder renews; what stops a run that wakes up
// after it was taken over is the fence, a number in the row of the pipeline that every commit compares.
//
// Reading order: open.go, conn.go and failure.go (how the server is talked to), lease.go, head.go,
// targets.go and adopt.go, types.go and copy.go (rows on their way), commit.go, apply.go and record.go,
// restore.go, relation.go and query.go (reading the table back).
package postgres

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

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

// sql returns a statement of statements.sql. A name that is not there is a mistake in this package.
func sql(name string) string {
	stmt, ok := statements[name]
	if !ok {
		panic("postgres: no statement named " + name)
	}
	return stmt
}

// Destination is a Postgres database. It implements connectors.Destination.
type Destination struct {
	eng      *duck.Engine
	config   *pgx.ConnConfig
	name     string // how messages call it
	readOnly bool
	file     string // of the pipeline
	patience time.Duration

	conn  *pgx.Conn // nil before it is needed, and after it was lost
	empty bool      // opened to read, and no pipeline ever wrote to it
	beat  *heartbeat

	replaced map[string]string // by pipeline: whose lease this run has taken over

	// settled holds what a confirmed commit of this process has established, so that the next one need
	// not look again: plans that are stored, tables that are this pipeline's and fit their sinks. It is
	// forgotten after any error.
	settled map[string]bool
}

var _ connectors.Destination = (*Destination)(nil)

// Close gives back the leases that are still held and ends the connections.
func (d *Destination) Close() error {
	d.letGo(context.Background())
	return nil
}

// letGo gives back what leases are still held; one that stays ends by itself.
func (d *Destination) letGo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, lease := range d.beat.held() {
		_ = d.Release(ctx, lease)
	}
	d.beat.stop()
	d.disconnect()
}

// Rest ends the connections, so that a pipeline that waits for input holds none.
func (d *Destination) Rest(ctx context.Context) error {
	clear(d.settled)
	d.letGo(ctx)
	return nil
}

// Wake connects again. It does not wait for a server that is away: whoever woke up looks again.
func (d *Destination) Wake(ctx context.Context) error {
	defer func(p time.Duration) { d.patience = p }(d.patience)
	d.patience = 0
	return d.prepare(ctx)
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = duck.Quote(n)
	}
	return out
}
