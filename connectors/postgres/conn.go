package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"lockstep/connectors"
	"lockstep/connectors/staged"
)

// Every transaction begins with its own settings: a role or a database may have others, and behind a
// pooler a session is anybody's.
const settings = `;
SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL intervalstyle = 'postgres';
SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1; SET LOCAL standard_conforming_strings = on; SET LOCAL client_min_messages = warning`

// Timeouts of a transaction that writes. Somebody else's lock is waited for only so long, and a run that
// hangs or was cut off does not keep its own for ever.
const writing = `; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '5min'; SET LOCAL statement_timeout = '60min'` +
	// Keys are looked up in the index up to where that really is slower than a pass over the table: measured with a
	// million rows, 10,000 keys take 0.15 s so, and 0.8 s by the pass that a cost of 4, for disks that turn, leads to.
	`; SET LOCAL random_page_cost = 1.1`

const (
	beginRead  = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" + settings + "; SET LOCAL idle_in_transaction_session_timeout = '60min'; SET LOCAL statement_timeout = '60min'; SET LOCAL lock_timeout = '10s'"
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE" + settings + writing
	// One that only keeps records has nothing to do between its statements: a process that hangs in it, as before it
	// has a lease that could end, keeps its locks for less than others wait for them.
	beginRecord = beginWrite + "; SET LOCAL idle_in_transaction_session_timeout = '5s'"
)

// tx is an open transaction.
type tx struct{ conn *pgx.Conn }

// openTx opens a transaction, named for the server's list of sessions.
func openTx(ctx context.Context, conn *pgx.Conn, how, name string) (*tx, error) {
	t := &tx{conn}
	return t, t.script(ctx, how+"; SET LOCAL application_name = '"+name+"'")
}

// applicationName tells the sessions of one holder of a lease from all others.
func applicationName(holder string) string {
	if holder == "" {
		return "etl"
	}
	return "etl " + holder
}

// script runs statements without parameters.
func (t *tx) script(ctx context.Context, text string) error {
	return t.conn.PgConn().Exec(ctx, text).Close()
}

func (t *tx) exec(ctx context.Context, stmt string, args ...any) error {
	_, err := t.count(ctx, stmt, args...)
	return err
}

// count runs a statement and gives the number of rows it touched.
func (t *tx) count(ctx context.Context, stmt string, args ...any) (int64, error) {
	tag, err := t.conn.Exec(ctx, stmt, args...)
	return tag.RowsAffected(), err
}

func (t *tx) row(ctx context.Context, query string, args []any, into ...any) error {
	return t.conn.QueryRow(ctx, query, args...).Scan(into...)
}

func (t *tx) each(ctx context.Context, query string, args []any, scan func(pgx.Rows) error) error {
	rows, err := t.conn.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// end sends COMMIT or ROLLBACK. A transaction that a failed statement has aborted answers COMMIT with
// ROLLBACK, and no error.
func (t *tx) end(ctx context.Context, word string) error {
	tag, err := t.conn.Exec(ctx, word)
	if err == nil && tag.String() != word {
		return fmt.Errorf("%s was answered by %s", word, tag)
	}
	return err
}

// rollback undoes the transaction. A connection that cannot even do that is given up; the server then
// rolls back by itself.
func (d *Destination) rollback(ctx context.Context, t *tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if t.conn.IsClosed() || t.end(ctx, "ROLLBACK") != nil {
		d.disconnect()
	}
}

func (d *Destination) disconnect() {
	if d.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = d.conn.Close(ctx)
	d.conn = nil
}

// connection is the one connection of this run, made when it is not there.
func (d *Destination) connection(ctx context.Context) (*pgx.Conn, error) {
	if d.conn != nil && !d.conn.IsClosed() {
		return d.conn, nil
	}
	d.conn = nil
	conn, err := d.connect(ctx)
	d.conn = conn
	return conn, err
}

func (d *Destination) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return nil, &connectError{err}
	}
	if err := checkServer(conn); err != nil {
		_ = conn.Close(ctx)
		return nil, &connectors.UnavailableError{What: d.name, Err: err, Hint: fmt.Sprintf("use a Postgres of version %d or newer", oldest)}
	}
	return conn, nil
}

func checkServer(conn *pgx.Conn) error {
	if text := conn.PgConn().ParameterStatus("server_version"); tooOld(text) {
		return fmt.Errorf("the server is version %s, which lacks MERGE and UNIQUE NULLS NOT DISTINCT", text)
	}
	if encoding := conn.PgConn().ParameterStatus("client_encoding"); encoding != "" && encoding != "UTF8" {
		return fmt.Errorf("the client encoding is %s, not UTF8", encoding)
	}
	return nil
}

// tooOld reads versions as in 15.18 (Debian 15.18-0+deb12u1) and 19beta1. One that cannot be read is not.
func tooOld(version string) bool {
	major, err := strconv.Atoi(majorVersion.FindString(version))
	return err == nil && major < oldest
}

var majorVersion = regexp.MustCompile(`^\d+`)

// read runs fn in a transaction that only reads, all of it as of one moment, and again when the
// connection was lost.
func (d *Destination) read(ctx context.Context, doing string, fn func(*tx) error) error {
	return d.persist(ctx, doing, func() error {
		conn, err := d.connection(ctx)
		if err != nil {
			return err
		}
		t, err := openTx(ctx, conn, beginRead, applicationName(""))
		if err == nil {
			err = fn(t)
		}
		d.rollback(ctx, t)
		return err
	})
}

// inTx runs fn in a transaction of its own. It is for what may be done twice.
func (d *Destination) inTx(ctx context.Context, doing string, fn func(*tx) error) error {
	if d.readOnly {
		return fmt.Errorf("%s: the database was opened only to read", doing)
	}
	return d.persist(ctx, doing, func() error {
		conn, err := d.connection(ctx)
		if err != nil {
			return err
		}
		t, err := openTx(ctx, conn, beginRecord, applicationName(""))
		if err == nil {
			err = fn(t)
		}
		if err == nil {
			return t.end(ctx, "COMMIT")
		}
		d.rollback(ctx, t)
		return err
	})
}

// persist runs fn again while it fails in a way that passes, with growing pauses, until patience ends.
func (d *Destination) persist(ctx context.Context, doing string, fn func() error) error {
	started, met := time.Now(), 0
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := fn()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", doing, ctx.Err())
		}
		if conflict(err) {
			met++
		}
		if !passes(err) || met >= conflicts || time.Since(started) > d.patience {
			return d.failed(doing, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", doing, ctx.Err())
		case <-time.After(pause/2 + rand.N(pause)): // two that met do not meet again at the same moment
		}
	}
}

// failed says at what the database failed. Errors that say by themselves who has to act stay as they are.
func (d *Destination) failed(doing string, err error) error {
	if err == nil || spoken(err) {
		return err
	}
	var connect *connectError
	if errors.As(err, &connect) {
		doing = "connect"
	}
	return &connectors.UnavailableError{What: d.name, Err: &storeError{doing, err}, Hint: hintFor(err), Passes: passes(err)}
}

// spoken tells errors that are meant for the reader as they are.
func spoken(err error) bool {
	var (
		target      *connectors.TargetError
		damaged     *connectors.DamagedError
		data        *connectors.DataError
		held        *connectors.HeldError
		fenced      *connectors.FencedError
		unavailable *connectors.UnavailableError
		mistake     *mistakeError
	)
	return errors.As(err, &target) || errors.As(err, &damaged) || errors.As(err, &data) || errors.As(err, &held) ||
		errors.As(err, &fenced) || errors.As(err, &unavailable) || errors.As(err, &mistake) ||
		staged.IsBroken(err)
}

// mistakeError is a promise of the engine that does not hold: never the analyst's fault.
type mistakeError struct{ text string }

func (e *mistakeError) Error() string { return e.text }
