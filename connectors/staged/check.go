// Package staged checks the rows that the engine hands to a destination, where they are: in a temp table
// of its DuckDB. What they must be is the same for every destination.
package staged

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// opColumn is the last column of staged rows.
const opColumn = "_op"

// Broken is a promise of the engine that does not hold: a mistake of ours, never the analyst's.
type Broken struct{ Table, Reason string }

func (e *Broken) Error() string {
	return fmt.Sprintf("table %s: %s; nothing was written. This is a mistake in etl: please report it", e.Table, e.Reason)
}

// IsBroken tells such errors from those of DuckDB.
func IsBroken(err error) bool {
	var broken *Broken
	return errors.As(err, &broken)
}

// Check asserts what the engine promises of the staged rows: columns and types, one row per key, and the
// counts. It is asked of every batch: a column of another type would be cast on its way without a word.
// nulls tells whether a key has a NULL in it: where none has, keys can be compared by =, for which DuckDB
// skips what cannot match.
func Check(ctx context.Context, eng *duck.Engine, change connectors.SinkChange) (nulls bool, err error) {
	from := "temp." + duck.Quote(change.Table)
	broken := func(format string, args ...any) (bool, error) {
		return false, &Broken{change.Sink.Name, fmt.Sprintf(format, args...)}
	}
	difference, err := compareColumns(ctx, eng, from, change.Sink)
	if err != nil {
		return false, err
	}
	if difference != "" {
		return broken("of the rows to write, %s", difference)
	}
	var doubled, rows, inserts, updates, deletes, withNull int64
	counts := "SELECT count(*) FILTER (n > 1), sum(n)::BIGINT, sum(i)::BIGINT, sum(u)::BIGINT, sum(d)::BIGINT, sum(nulls)::BIGINT FROM (SELECT count(*) AS n, " +
		"count(*) FILTER (_op = 'I') AS i, count(*) FILTER (_op = 'U') AS u, count(*) FILTER (_op = 'D') AS d, count(*) FILTER (" + keyIsNull(change.Sink) + ") AS nulls FROM " + from +
		" GROUP BY " + groups(change.Sink) + " UNION ALL SELECT 0, 0, 0, 0, 0)"
	if err := eng.QueryRow(ctx, counts, nil, &doubled, &rows, &inserts, &updates, &deletes, &withNull); err != nil {
		return false, err
	}
	if doubled > 0 {
		return broken("%d keys have more than one row to write", doubled)
	}
	c := change.Staged()
	if inserts != c.Inserted || updates != c.Updated || deletes != c.Deleted || rows != inserts+updates+deletes {
		return broken("%d rows are to be written (+%d ~%d -%d), the manifest counts +%d ~%d -%d",
			rows, inserts, updates, deletes, c.Inserted, c.Updated, c.Deleted)
	}
	return withNull > 0, nil
}

// keyIsNull is true of rows with a NULL in the key.
func keyIsNull(sink connectors.SinkSpec) string {
	conds := []string{"false"}
	for _, k := range sink.Key {
		conds = append(conds, duck.Quote(k)+" IS NULL")
	}
	return strings.Join(conds, " OR ")
}

func groups(sink connectors.SinkSpec) string {
	if len(sink.Key) == 0 {
		return "()"
	}
	names := make([]string, len(sink.Key))
	for i, k := range sink.Key {
		names[i] = duck.Quote(k)
	}
	return strings.Join(names, ", ")
}

// compareColumns says how the columns of the rows are not those of the sink, "" when they are.
func compareColumns(ctx context.Context, eng *duck.Engine, from string, sink connectors.SinkSpec) (string, error) {
	values := make([]string, len(sink.Columns))
	for i, c := range sink.Columns {
		values[i] = "CAST(NULL AS " + c.Type + ") AS " + duck.Quote(c.Name)
	}
	want, err := describe(ctx, eng, "(SELECT "+strings.Join(values, ", ")+")")
	if err != nil {
		return "", err
	}
	want[opColumn] = "VARCHAR"
	there, err := describe(ctx, eng, from)
	if err != nil {
		return "", err
	}
	for name, typ := range want {
		if got, ok := there[name]; !ok {
			return "column " + name + " is missing", nil
		} else if got != typ {
			return fmt.Sprintf("column %s is %s, not %s", name, got, typ), nil
		}
	}
	if len(there) > len(want) {
		return "there are more columns than the table's", nil
	}
	return "", nil
}

// describe maps the lower-case names of columns to their types.
func describe(ctx context.Context, eng *duck.Engine, relation string) (map[string]string, error) {
	types := map[string]string{}
	err := eng.Each(ctx, "SELECT lower(column_name), column_type FROM (DESCRIBE FROM "+relation+")", nil, func(rows *sql.Rows) error {
		var name, typ string
		err := rows.Scan(&name, &typ)
		types[name] = typ
		return err
	})
	return types, err
}
