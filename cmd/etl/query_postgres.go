package main

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"lockstep/connectors/postgres"
	"lockstep/sql"
)

// queryPostgres lets the server answer: the text is in its own SQL.
func queryPostgres(ctx context.Context, dest *postgres.Destination, text string, out output) error {
	return explainPostgres(text, dest.Query(ctx, text, func(columns []postgres.Column) error {
		list := make([]column, len(columns))
		for i, c := range columns {
			list[i] = column{c.Name, typeForOutput(c.Type)}
		}
		return out.begin(list)
	}, out.row, out.end))
}

// explainPostgres points at the place in the text that the server named.
func explainPostgres(text string, err error) error {
	var wrong *postgres.QueryError
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.NotAQuery {
		return &usageError{"this is not a query", "etl query takes one SELECT, WITH, VALUES or TABLE in the SQL of Postgres; nothing can be changed here"}
	}
	if wrong.Position < 0 {
		return errors.New(wrong.Message)
	}
	at := min(wrong.Position, len(text))
	return sql.Errors{sql.NewError("", text, sql.Span{Start: at, End: at}, wrong.Hint, "%s", wrong.Message)}
}

var numeric = regexp.MustCompile(`^numeric(\(|$)`)

// typeForOutput gives the types that outputs know the names of DuckDB.
func typeForOutput(typ string) string {
	switch {
	case numeric.MatchString(typ):
		return "DECIMAL"
	case typ == "json" || typ == "jsonb":
		return "JSON"
	}
	return strings.ToUpper(map[string]string{"smallint": "smallint", "integer": "integer", "bigint": "bigint", "boolean": "boolean",
		"real": "float", "double precision": "double"}[typ])
}
