package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// What can go wrong with a server, told apart in this file and nowhere else. No text of pgx about a
// connection is shown: it names host, user and database, which may come from the environment.

// connectError: a connection could not be made.
type connectError struct{ err error }

func (e *connectError) Error() string { return plain(e.err) }
func (e *connectError) Unwrap() error { return e.err }

// storeError says what was being done when the server failed.
type storeError struct {
	doing string
	err   error
}

func (e *storeError) Error() string { return "cannot " + e.doing + ": " + plain(e.err) }
func (e *storeError) Unwrap() error { return e.err }

// passing are the errors of the server after which the same transaction may go through. None of them
// leaves anything of it behind.
var passing = map[string]bool{
	"40001": true, // serialization_failure
	"40P01": true, // deadlock_detected
	"55P03": true, // lock_not_available: lock_timeout
	"55006": true, // object_in_use
	"57P01": true, // admin_shutdown
	"57P02": true, // crash_shutdown
	"57P03": true, // cannot_connect_now
	"57P05": true, // idle_session_timeout
	"25P03": true, // idle_in_transaction_session_timeout
	"53300": true, // too_many_connections
	"53200": true, // out_of_memory
	"25006": true, // read_only_sql_transaction: a standby, before it is promoted
	"XX000": false,
}

// conflictError is a key that another program wrote at the same time. Once that one has ended the rows are what
// they are: what is there then can be told, or is gone again.
type conflictError struct{ err error }

func (e *conflictError) Error() string { return e.err.Error() }
func (e *conflictError) Unwrap() error { return e.err }

// conflicts is how many of them in a row are taken for chance.
const conflicts = 4

func conflict(err error) bool {
	var c *conflictError
	return errors.As(err, &c)
}

// passes tells whether trying again may help. It is asked about errors before COMMIT was sent.
func passes(err error) bool {
	if conflict(err) {
		return true
	}
	if spoken(err) {
		return false
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return passing[server.Code] || strings.HasPrefix(server.Code, "08")
	}
	return lost(err)
}

// blocked tells that a lock was waited for in vain.
func blocked(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "55P03"
}

// lost tells errors of the connection itself from answers of the server.
func lost(err error) bool {
	var network net.Error
	var connect *connectError
	return errors.As(err, &connect) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, os.ErrDeadlineExceeded) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "conn busy")
}

// plain is an error in words that show nothing of the connection string.
func plain(err error) string {
	var server *pgconn.PgError
	var dns *net.DNSError
	var connect *connectError
	switch {
	case errors.As(err, &server) && errors.As(err, &connect):
		if said := ofServer(server); said != server.Message {
			return said
		}
		return "the server refused it (" + server.Code + ")"
	case errors.As(err, &server):
		return ofServer(server)
	case errors.As(err, &dns):
		return "its host name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused: no server listens there"
	case errors.Is(err, syscall.ENOENT):
		return "the server's socket is not there"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "there was no answer in time"
	case errors.As(err, &connect):
		return "no connection could be made"
	case lost(err):
		return "the connection was lost"
	}
	return err.Error()
}

func ofServer(e *pgconn.PgError) string {
	switch e.Code {
	case "28P01", "28000":
		return "the server refused the user or the password"
	case "3D000":
		return "the database does not exist"
	case "57P01", "57P02":
		return "the server ended the session"
	case "57P03":
		return "the server is starting or stopping"
	case "53300":
		return "the server has no connection left"
	case "55P03":
		return "another session held a lock on it for longer than 10 seconds"
	case "53100":
		return "the server's disk is full (" + e.Message + ")"
	case "57014":
		return "the statement took longer than is allowed, or was cancelled on the server"
	case "25006":
		return "the server is read only: a standby?"
	}
	return e.Message
}

func hintFor(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch server.Code {
		case "55P03":
			return "SELECT pid, query, application_name FROM pg_stat_activity WHERE state <> 'idle' shows who; end that session, or run again later"
		case "42501":
			return "the user needs the rights to create schemas and temporary tables in the database, and to write its own tables"
		case "53100":
			return "nothing was written. Make room on the server; the next run goes on"
		case "53400":
			return "nothing was written. Raise that limit for the user or the database; the next run goes on"
		}
	}
	return ""
}
