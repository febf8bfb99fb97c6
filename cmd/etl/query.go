package main

import (
	"context"
	dbsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/connectors/postgres"
	"lockstep/engine/duck"
	"lockstep/sql"
)

func queryCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "query FILE SQL",
		Short: "Ask the destination of a pipeline",
		Long: `Ask the destination of a pipeline, in DuckDB's SQL, or in that of Postgres when it is
a Postgres database: there the server answers.

The database is opened only to read, under the name the pipeline file gives it; its
tables can be named without it. The schema etl holds what the engine knows: the views
etl.status and etl.history are a good start. One SELECT, FROM, WITH, DESCRIBE,
SHOW TABLES or SUMMARIZE is taken.

Formats: a table (NULL shown as NULL, at most 10,000 rows), csv (NULL is empty, an
empty text is ""), json (an array of objects). Values are written as DuckDB prints
them, times with zone in UTC. In JSON, booleans, integers of up to 64 bits, finite
floating-point numbers and columns of type JSON are values; all else is text, so that
no reader rounds a DECIMAL or HUGEINT.`,
		Example: `  etl query daily_sales.sql 'FROM daily_sales ORDER BY day'
  etl query daily_sales.sql 'SHOW TABLES'
  etl query daily_sales.sql 'FROM etl.history' --format csv`,
		Args: takes("FILE", "SQL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON(cmd) && !cmd.Flags().Changed("format") {
				format = "json"
			}
			newOutput, ok := outputs[format]
			if !ok {
				hint := "there are table, csv, json"
				if near := sql.Suggest(format, []string{"table", "csv", "json"}); near != "" {
					hint = "did you mean " + near + "?"
				}
				return &usageError{fmt.Sprintf("there is no format %q", format), hint}
			}
			return waiting(cmd.Context(), time.Now().Add(readWait), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return query(cmd.Context(), s, args[1], newOutput(cmd.OutOrStdout())) })
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "table", "table, csv or json")
	completeFlag(cmd, "format", oneOf("table", "csv", "json"))
	return takesFiles(cmd)
}

func query(ctx context.Context, s *session, text string, out output) (err error) {
	exists, err := s.openDestinationOnly(ctx)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("%s does not exist yet\n  etl run %s creates it", s.shown, s.script.File)
	}
	if dest, ok := s.dest.(*postgres.Destination); ok {
		return queryPostgres(ctx, dest, text, out)
	}
	if err := s.duck.Exec(ctx, "USE "+duck.Quote(s.alias)); err != nil {
		return err
	}
	// The database in use cannot be detached.
	defer func() { err = errors.Join(err, s.duck.Exec(context.WithoutCancel(ctx), "USE memory")) }()
	q := question{duck: s.duck, text: text, session: s}
	if err := q.check(ctx); err != nil {
		return err
	}
	return q.run(ctx, out)
}

// question is the user's query. It runs wrapped, with every value cast to text by DuckDB, which alone
// prints all of its types faithfully.
type question struct {
	duck    *duck.Engine
	session *session // nil: of no pipeline
	text    string
	body    string // the text without what may follow the statement
}

const oneQuery = "one SELECT, FROM, WITH, VALUES, DESCRIBE, SHOW TABLES or SUMMARIZE; nothing can be changed here"

// check makes sure that the text is one query. DuckDB's parser decides; nothing is run.
func (q *question) check(ctx context.Context) error {
	var parsed string
	if err := q.duck.QueryRow(ctx, "SELECT json_serialize_sql("+duck.Literal(q.text)+")::VARCHAR", nil, &parsed); err != nil {
		return errors.New("the query cannot be read: is it UTF-8 text?")
	}
	var tree struct {
		Error      bool              `json:"error"`
		Kind       string            `json:"error_type"`
		Message    string            `json:"error_message"`
		Position   string            `json:"position"`
		Statements []json.RawMessage `json:"statements"`
	}
	if err := json.Unmarshal([]byte(parsed), &tree); err != nil {
		return fmt.Errorf("DuckDB's reading of the query: %w", err)
	}
	switch {
	case tree.Error && tree.Kind == "parser":
		return q.syntaxError(tree.Message, tree.Position)
	case tree.Error:
		return &usageError{"this is not a query", "etl query takes " + oneQuery}
	case len(tree.Statements) != 1:
		return &usageError{fmt.Sprintf("there are %d statements", len(tree.Statements)), "etl query takes " + oneQuery}
	}
	q.body = strings.TrimRight(q.text, "; \t\r\n")
	if !strings.Contains(q.body, ";") {
		return nil
	}
	// A semicolon in a text, or one before a comment: DuckDB writes the statement anew.
	return q.duck.QueryRow(ctx, "SELECT json_deserialize_sql("+duck.Literal(parsed)+"::JSON)", nil, &q.body)
}

func (q *question) syntaxError(message, position string) error {
	at := 0
	if _, err := fmt.Sscan(position, &at); err != nil {
		return errors.New(message)
	}
	return sql.Errors{sql.NewError("", q.text, sql.Span{Start: at, End: at}, "", "%s", message)}
}

func (q *question) run(ctx context.Context, out output) error {
	columns, err := q.columns(ctx)
	if err != nil {
		return q.explain(ctx, err)
	}
	texts := make([]string, len(columns))
	for i, c := range columns {
		texts[i] = "CAST(" + duck.Quote(c.name) + " AS VARCHAR)"
	}
	rows, err := q.duck.Query(ctx, "SELECT "+strings.Join(texts, ", ")+" FROM (\n"+q.body+"\n)")
	if err != nil {
		return q.explain(ctx, err)
	}
	defer rows.Close()
	if err := out.begin(columns); err != nil {
		return err
	}
	values, into := make([]dbsql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := out.row(values); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return q.explain(ctx, err)
	}
	return out.end()
}

// columns are the names, made different where two are the same, and the types of the result.
func (q *question) columns(ctx context.Context) ([]column, error) {
	var columns []column
	err := q.duck.Each(ctx, "SELECT column_name, column_type FROM (DESCRIBE FROM (\n"+q.body+"\n))", nil, func(rows *dbsql.Rows) error {
		var c column
		err := rows.Scan(&c.name, &c.typ)
		columns = append(columns, c)
		return err
	})
	return columns, err
}

var (
	errorKind = regexp.MustCompile(`^[A-Z][A-Za-z-]*( [A-Z][A-Za-z]*)* Error: `)
	blankLine = regexp.MustCompile(`\n\n+`)
)

// explain gives DuckDB's message about the user's own text: the error of the wrapped query quotes
// what was put around it, so the text is run as it is.
func (q *question) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	message, _, _ := strings.Cut(err.Error(), "\nLINE ")
	if rows, own := q.duck.Query(ctx, q.text); own != nil {
		message = own.Error()
	} else {
		_ = rows.Close() // the text alone does not fail
	}
	message = blankLine.ReplaceAllString(errorKind.ReplaceAllString(strings.TrimSpace(message), ""), "\n")
	return errors.New(q.suggest(ctx, message))
}

var (
	noTable   = regexp.MustCompile(`^Table with name "?([^"\n]*?)"? does not exist`)
	systemOne = regexp.MustCompile(`\nDid you mean "(?:pg_|information_schema|duckdb_|sqlite_|pragma_)[^\n]*`)
)

// suggest puts what the pipeline knows of a missing table in the place of DuckDB's guess, which is the
// nearest name of its own catalog.
func (q *question) suggest(ctx context.Context, message string) string {
	m := noTable.FindStringSubmatch(message)
	if m == nil || q.session == nil {
		return message
	}
	message = systemOne.ReplaceAllString(message, "")
	_, table, dotted := strings.Cut(m[1], ".")
	if !dotted {
		table = m[1]
	}
	for _, sink := range q.session.script.Sinks {
		name := sink.Name.Parts[len(sink.Name.Parts)-1].Text
		if strings.EqualFold(name, table) && !strings.Contains(message, "\nDid you mean") {
			return message + fmt.Sprintf("\n  it is a sink that never ran: etl run %s makes it", q.session.shell)
		}
	}
	if strings.Contains(message, "\nDid you mean") {
		return message
	}
	return message + fmt.Sprintf("\n  etl query %s 'SHOW ALL TABLES' lists what there is", q.session.shell)
}

// column is a column of a result.
type column struct{ name, typ string }

// output writes a result in one format.
type output interface {
	begin(columns []column) error
	row(values []dbsql.NullString) error
	end() error
}

var outputs = map[string]func(io.Writer) output{
	"table": func(w io.Writer) output { return &tableOutput{to: w} },
	"csv":   func(w io.Writer) output { return newCSV(w) },
	"json":  func(w io.Writer) output { return newJSON(w) },
}
