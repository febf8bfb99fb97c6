package postgres

import (
	"context"
	dbsql "database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// Column is a column of a query's result. Type is as Postgres writes it.
type Column struct{ Name, Type string }

// QueryError is what the server says of the text of a query.
type QueryError struct {
	Message   string
	Hint      string
	Position  int // byte of the text; -1 when it is not about a place
	NotAQuery bool
}

func (e *QueryError) Error() string { return e.Message }

// Query answers one query in the SQL of Postgres, with every value as the server prints it; booleans are
// true and false. It is the query of a cursor, in a transaction that only reads: what is no query, or
// would write, the server refuses.
func (d *Destination) Query(ctx context.Context, text string, begin func([]Column) error, row func([]dbsql.NullString) error, end func() error) error {
	conn, err := d.connection(ctx)
	if err != nil {
		return d.failed("ask", err)
	}
	t, err := openTx(ctx, conn, beginRead+`; SET LOCAL search_path = public, pg_catalog`, applicationName(""))
	defer d.rollback(ctx, t)
	if err != nil {
		return d.failed("ask", err)
	}
	const declare = "DECLARE etl_query NO SCROLL CURSOR FOR "
	// The protocol of parameters takes one statement only; the simple one would run all of a text.
	if _, err := t.conn.PgConn().ExecParams(ctx, declare+text, nil, nil, nil, nil).Close(); err != nil {
		return d.queryError(text, utf8.RuneCountInString(declare), err)
	}
	var columns []Column
	for {
		done, err := d.some(ctx, t, &columns, begin, row)
		if err != nil {
			return d.queryError(text, -1, err)
		}
		if done {
			return end()
		}
	}
}

// some passes on the next rows; done after the last ones.
func (d *Destination) some(ctx context.Context, t *tx, columns *[]Column, begin func([]Column) error, row func([]dbsql.NullString) error) (done bool, err error) {
	result := t.conn.PgConn().ExecParams(ctx, "FETCH 1000 FROM etl_query", nil, nil, nil, nil)
	fields := result.FieldDescriptions()
	var rows [][]dbsql.NullString
	for result.NextRow() {
		values := make([]dbsql.NullString, len(fields))
		for i, v := range result.Values() {
			values[i] = dbsql.NullString{String: string(v), Valid: v != nil}
		}
		rows = append(rows, values)
	}
	if _, err := result.Close(); err != nil {
		return false, err
	}
	if *columns == nil {
		if *columns, err = columnsOfQuery(ctx, t, fields); err != nil {
			return false, err
		}
		if err := begin(*columns); err != nil {
			return false, err
		}
	}
	for _, values := range rows {
		for i, c := range *columns {
			if c.Type == "boolean" && values[i].Valid {
				values[i].String = map[string]string{"t": "true", "f": "false"}[values[i].String]
			}
		}
		if err := row(values); err != nil {
			return false, err
		}
	}
	return len(rows) == 0, nil
}

func columnsOfQuery(ctx context.Context, t *tx, fields []pgconn.FieldDescription) ([]Column, error) {
	columns, seen := make([]Column, len(fields)), map[string]int{}
	for i, f := range fields {
		columns[i].Name = f.Name
		if seen[f.Name]++; seen[f.Name] > 1 {
			columns[i].Name = fmt.Sprintf("%s_%d", f.Name, seen[f.Name]-1)
		}
		if err := t.row(ctx, "SELECT format_type($1::bigint::oid, $2)", []any{int64(f.DataTypeOID), f.TypeModifier}, &columns[i].Type); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// queryError is about the author's text; what was put in front of it has no place in the message.
func (d *Destination) queryError(text string, before int, err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		if lost(err) {
			return d.failed("ask", err)
		}
		return err
	}
	if passing[server.Code] {
		return d.failed("ask", err)
	}
	out := &QueryError{Message: ofServer(server), Hint: server.Hint, Position: -1}
	if before < 0 || server.Position == 0 {
		out.NotAQuery = server.Code == "25006" || server.Code == "42P11" || server.Code == "0A000" || strings.Contains(server.Message, "multiple commands")
		return out
	}
	at := int(server.Position) - 1 - before // in characters
	out.Position = 0
	for i := range text {
		if at <= 0 {
			out.Position = i
			break
		}
		at--
	}
	if at > 0 {
		out.Position = len(text)
	}
	// The grammar of a cursor takes nothing but queries: the first word is the fault.
	first := strings.IndexFunc(text, func(r rune) bool { return r > ' ' })
	out.NotAQuery = server.Code == "42601" && out.Position == first
	return out
}
