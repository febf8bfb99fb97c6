// Package duck is the embedded DuckDB: opened in memory, closed off from the file system and the
// network except for the folders it is told of, with the destination attached as a database.
//
// One Engine has one connection, because temp tables, and so all state, belong to a connection.
// Calls on an Engine must not overlap. A transaction may write temp tables and one attached
// database together, but not the in-memory main database as well.
//
// Two traps are handled here and nowhere else. The driver returns nil from COMMIT of a transaction
// that a failed statement has aborted: Tx remembers the failure and refuses. And opening a database
// file that this process has attached, then closing it, drops the process's lock on it: nobody opens
// such a file, and Attach refuses a second engine for the same file.
package duck

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2"
)

// Options bound what an Engine may use. The zero value is a sandbox without files.
type Options struct {
	Dirs        []string // folders DuckDB may read and write, the destination's own among them
	TempDir     string   // where it spills; "" = nowhere
	MemoryLimit string   // as DuckDB spells it, "1GB"; "" = DuckDB's default, 80 % of the machine
	Threads     int      // 0 = all cores
}

// Engine is one in-memory DuckDB with one connection.
type Engine struct {
	connector *duckdb.Connector
	db        *sql.DB
	conn      *sql.Conn
	attached  map[string]fileKey // by alias
	tx        *Tx
	names     int
}

// Open starts an engine and locks its configuration.
func Open(ctx context.Context, o Options) (*Engine, error) {
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return nil, fmt.Errorf("start DuckDB: %w", err)
	}
	e := &Engine{connector: connector, db: sql.OpenDB(connector), attached: map[string]fileKey{}}
	if e.conn, err = e.db.Conn(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start DuckDB: %w", err), e.db.Close())
	}
	// The order matters: the folders can only be named before external access goes, and nothing can
	// be changed once the configuration is locked.
	settings := []string{
		"SET allowed_directories = [" + literals(o.Dirs) + "]",
		"SET temp_directory = " + Literal(o.TempDir),
	}
	if o.MemoryLimit != "" {
		settings = append(settings, "SET memory_limit = "+Literal(o.MemoryLimit))
	}
	if o.Threads > 0 {
		settings = append(settings, fmt.Sprintf("SET threads = %d", o.Threads))
	}
	settings = append(settings,
		"SET TimeZone = 'UTC'",
		"SET arrow_lossless_conversion = true", // HUGEINT as 16 bytes, not as DOUBLE
		"SET preserve_insertion_order = true",
		// It makes the first rows of a partition a minimum by the order, which goes wrong in 1.5.6 where the
		// first value of the order is NULL and a row has several columns: then the last row is taken.
		"SET disabled_optimizers = 'top_n_window_elimination'",
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	)
	for _, s := range settings {
		if err := e.Exec(ctx, s); err != nil {
			return nil, errors.Join(fmt.Errorf("set up DuckDB: %w", err), e.Close())
		}
	}
	return e, nil
}

// Close rolls back an open transaction, detaches everything and ends the engine.
func (e *Engine) Close() error {
	if e.conn == nil {
		return nil
	}
	var errs []error
	if e.tx != nil {
		errs = append(errs, e.tx.Rollback())
	}
	for alias := range e.attached {
		errs = append(errs, e.Detach(context.Background(), alias))
	}
	errs = append(errs, e.conn.Close(), e.db.Close())
	e.conn = nil
	return errors.Join(errs...)
}

// Version is DuckDB's, like "v1.5.6".
func (e *Engine) Version(ctx context.Context) (string, error) {
	var v string
	err := e.QueryRow(ctx, "SELECT version()", nil, &v)
	return v, err
}

// Exec runs one statement.
func (e *Engine) Exec(ctx context.Context, stmt string, args ...any) error {
	_, err := e.ExecCount(ctx, stmt, args...)
	return err
}

// ExecCount runs one statement and returns how many rows it changed.
func (e *Engine) ExecCount(ctx context.Context, stmt string, args ...any) (int64, error) {
	res, err := e.conn.ExecContext(ctx, stmt, args...)
	if err != nil {
		return 0, e.failed(err)
	}
	n, err := res.RowsAffected()
	return n, e.failed(err)
}

// Query runs one statement and returns its rows; the caller closes them.
func (e *Engine) Query(ctx context.Context, stmt string, args ...any) (*sql.Rows, error) {
	rows, err := e.conn.QueryContext(ctx, stmt, args...)
	return rows, e.failed(err)
}

// QueryRow reads the first row of a query into dest. No row is sql.ErrNoRows.
func (e *Engine) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	err := e.conn.QueryRowContext(ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return e.failed(err)
}

// Each calls scan for every row of a query.
func (e *Engine) Each(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := e.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return e.failed(rows.Err())
}

// Arrow runs a query and returns its result as Arrow; the caller releases the reader before the
// next call on the engine.
func (e *Engine) Arrow(ctx context.Context, query string) (array.RecordReader, error) {
	var reader array.RecordReader
	err := e.conn.Raw(func(c any) error {
		a, err := duckdb.NewArrowFromConn(c.(driver.Conn))
		if err != nil {
			return err
		}
		reader, err = a.QueryContext(ctx, query)
		return err
	})
	return reader, e.failed(err)
}

// Load copies an Arrow stream into a new temp table. The stream is read once and not released. It
// must not be called inside a transaction: the view it reads through lives in the in-memory
// database, which a transaction with an attached database may not write.
func (e *Engine) Load(ctx context.Context, table string, rows array.RecordReader) error {
	return e.load(ctx, table, rows, func(view string) string { return "FROM " + view })
}

// LoadAs is Load of a query over the stream, which must read it once and whole: it may use any of the
// columns but must not filter rows, because the driver's scan of a stream ignores the filters that
// DuckDB hands down to it. It ignores as well which columns are asked for, and gives the first ones
// under the names of those: so the stream is scanned as one column, and taken apart above.
func (e *Engine) LoadAs(ctx context.Context, table string, rows array.RecordReader, query func(rows string) string) error {
	packed := pack(rows)
	defer packed.Release()
	return e.load(ctx, table, packed, func(view string) string {
		return query("(SELECT unnest(" + packedColumn + ") FROM " + view + ")")
	})
}

func (e *Engine) load(ctx context.Context, table string, rows array.RecordReader, query func(view string) string) error {
	if e.tx != nil {
		return errors.New("duck: Load inside a transaction")
	}
	e.names++
	view := fmt.Sprintf("_arrow_%d", e.names)
	// A registered view can be scanned once only, so it is copied and dropped before its release.
	return e.failed(e.conn.Raw(func(c any) error {
		a, err := duckdb.NewArrowFromConn(c.(driver.Conn))
		if err != nil {
			return err
		}
		release, err := a.RegisterView(rows, view)
		if err != nil {
			return err
		}
		defer release()
		exec := c.(driver.ExecerContext)
		_, err = exec.ExecContext(ctx, "CREATE OR REPLACE TEMP TABLE "+Quote(table)+" AS "+query("memory.main."+Quote(view)), nil)
		_, dropErr := exec.ExecContext(context.WithoutCancel(ctx), "DROP VIEW memory.main."+Quote(view), nil)
		return errors.Join(err, dropErr, rows.Err())
	}))
}

// failed marks an open transaction as aborted by err.
func (e *Engine) failed(err error) error {
	if err != nil && e.tx != nil {
		e.tx.err = err
	}
	return err
}

// Quote writes a name as a SQL identifier.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Literal writes a text as a SQL string.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func literals(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = Literal(t)
	}
	return strings.Join(out, ", ")
}
