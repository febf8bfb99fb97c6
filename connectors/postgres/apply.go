package postgres

import (
	"context"
	dbsql "database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"lockstep/connectors"
	"lockstep/connectors/staged"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

const (
	// analyzed is from how many rows on the planner is told about staged rows.
	analyzed = 1000
	// counted is up to which size, in bytes, a table's rows are counted at every commit. Larger ones are
	// counted when a run starts.
	counted = 8 << 20
)

// applyTx brings a sink's table to what is staged. Every staged row says what it is: an insert, an update
// or a delete. MERGE does to it that or nothing: a row whose key is, or is not, in the table against what
// it says, or is there with a newer sequence, is left. The key is unique in the table and among the staged
// rows, so the number of rows that MERGE touched is the number staged if and only if all of them did what
// they say. Otherwise somebody edited the table, and nothing is committed.
func (d *Destination) applyTx(ctx context.Context, tx *tx, seq int64, number int, change connectors.SinkChange) error {
	a := apply{d: d, tx: tx, seq: seq, sink: change.Sink, staged: fmt.Sprintf("pg_temp.etl_staged_%d", number), target: tableOf(change.Sink), any: change.Against != nil}
	c := change.Staged()
	total := c.Inserted + c.Updated + c.Deleted
	if total > 0 {
		if err := a.copyTx(ctx, change, total); err != nil {
			return err
		}
		connectors.Failpoint("after-copy")
		if err := a.mergeTx(ctx, change.Table, total); err != nil {
			return err
		}
		connectors.Failpoint("after-merge")
	}
	return a.checkCountTx(ctx, c.Rows)
}

// apply is one sink's part of a commit.
type apply struct {
	d      *Destination
	tx     *tx
	seq    int64
	sink   connectors.SinkSpec
	staged string
	target string
	any    bool // rows of every change may be written: a correction has compared them
}

func (a apply) columns() []string {
	names := make([]string, len(a.sink.Columns))
	for i, c := range a.sink.Columns {
		names[i] = c.Name
	}
	return names
}

// copyTx brings the staged rows to the server.
func (a apply) copyTx(ctx context.Context, change connectors.SinkChange, want int64) error {
	table, query := make([]string, 0, len(a.sink.Columns)+1), make([]string, 0, len(a.sink.Columns)+1)
	for _, c := range a.sink.Columns {
		m := typeOf(c.Type)
		table = append(table, duck.Quote(c.Name)+" "+m.name)
		value := duck.Quote(c.Name)
		if m.out != "" {
			value = fmt.Sprintf(m.out, value)
		}
		query = append(query, value)
	}
	table, query = append(table, opColumn+" text"), append(query, opColumn)
	if err := a.tx.script(ctx, "CREATE TEMPORARY TABLE "+strings.TrimPrefix(a.staged, "pg_temp.")+" ("+strings.Join(table, ", ")+") ON COMMIT DROP"); err != nil {
		return err
	}
	rows, err := a.d.eng.Arrow(ctx, "SELECT "+strings.Join(query, ", ")+" FROM temp."+duck.Quote(change.Table))
	if err != nil {
		return fmt.Errorf("read the staged rows: %w", err)
	}
	defer rows.Release()
	encoder := newEncoder(rows, a.sink)
	lent := &lent{from: encoder}
	tag, err := a.tx.conn.PgConn().CopyFrom(ctx, lent, "COPY "+a.staged+" FROM STDIN (FORMAT binary)")
	lent.takeBack()
	if encoder.err != nil {
		return encoder.err
	}
	if err != nil {
		return err
	}
	if n := tag.RowsAffected(); n != want || encoder.count != want {
		return a.broken("%d rows were copied and %d arrived instead of %d", encoder.count, n, want)
	}
	if want < analyzed {
		return nil
	}
	if len(a.sink.Key) == 0 {
		return nil
	}
	// The columns that are joined on are all that the planner needs to know about.
	return a.tx.script(ctx, "ANALYZE "+a.staged+" ("+strings.Join(quoted(a.sink.Key), ", ")+")")
}

// broken is a promise that does not hold: a mistake of ours, never the analyst's.
func (a apply) broken(format string, args ...any) error {
	return &staged.Broken{Table: a.sink.Name, Reason: fmt.Sprintf(format, args...)}
}

// mergeTx merges the rows whose key has no NULL, and then those of every pattern of NULLs that occurs:
// equality can use the index on the key, "is not distinct from" cannot.
func (a apply) mergeTx(ctx context.Context, table string, want int64) error {
	patterns, err := a.patterns(ctx, table)
	if err != nil {
		return err
	}
	var n int64
	for _, nulls := range patterns {
		touched, err := a.tx.count(ctx, a.mergeSQL(nulls))
		if err != nil {
			return a.writeError(err)
		}
		n += touched
	}
	if n == want {
		return nil
	}
	return a.explain(ctx, patterns, n, want)
}

// patterns lists which columns of the key are NULL together in staged rows: for every pattern one bool a
// column. It is asked of the engine's table, which is fast.
func (a apply) patterns(ctx context.Context, table string) ([][]bool, error) {
	if len(a.sink.Key) == 0 {
		return [][]bool{nil}, nil
	}
	tests := make([]string, len(a.sink.Key))
	for i, k := range quoted(a.sink.Key) {
		tests[i] = "CASE WHEN " + k + " IS NULL THEN '1' ELSE '0' END"
	}
	var out [][]bool
	err := a.d.eng.Each(ctx, "SELECT DISTINCT "+strings.Join(tests, " || ")+" FROM temp."+duck.Quote(table)+" ORDER BY 1", nil, func(rows *dbsql.Rows) error {
		var text string
		err := rows.Scan(&text)
		nulls := make([]bool, len(text))
		for i := range nulls {
			nulls[i] = text[i] == '1'
		}
		out = append(out, nulls)
		return err
	})
	if err != nil {
		err = fmt.Errorf("read the staged rows: %w", err)
	}
	return out, err
}

// match is the condition that t and s have the same key, of one pattern of NULLs. Without key columns the
// table has at most one row, and that is it.
func (a apply) match(nulls []bool) string {
	if len(a.sink.Key) == 0 {
		return "true"
	}
	conds := make([]string, len(a.sink.Key))
	for i, k := range quoted(a.sink.Key) {
		if conds[i] = "t." + k + " = s." + k; nulls[i] {
			conds[i] = "t." + k + " IS NULL"
		}
	}
	return strings.Join(conds, " AND ")
}

// source selects the staged rows of one pattern.
func (a apply) source(nulls []bool) string {
	if len(a.sink.Key) == 0 {
		return a.staged
	}
	conds := make([]string, len(a.sink.Key))
	for i, k := range quoted(a.sink.Key) {
		if conds[i] = k + " IS NOT NULL"; nulls[i] {
			conds[i] = k + " IS NULL"
		}
	}
	return "(SELECT * FROM " + a.staged + " WHERE " + strings.Join(conds, " AND ") + ")"
}

// mergeSQL names its columns: others of the table are somebody else's and keep their values.
func (a apply) mergeSQL(nulls []bool) string {
	seq := duck.Quote(seqColumn)
	key := map[string]bool{}
	for _, k := range a.sink.Key {
		key[k] = true
	}
	sets := []string{fmt.Sprintf("%s = %d", seq, a.seq)}
	var names, values []string
	for _, c := range a.columns() {
		name := duck.Quote(c)
		names, values = append(names, name), append(values, "s."+name)
		if !key[c] {
			sets = append(sets, name+" = s."+name)
		}
	}
	older := fmt.Sprintf("t.%s <= %d", seq, a.seq)
	if a.any {
		older = "true"
	}
	matched := fmt.Sprintf("WHEN MATCHED AND %s AND s.%s", older, opColumn)
	return fmt.Sprintf("MERGE INTO %s AS t USING %s AS s ON %s %s = 'D' THEN DELETE %s = 'U' THEN UPDATE SET %s "+
		"WHEN NOT MATCHED AND s.%s = 'I' THEN INSERT (%s, %s) VALUES (%s, %d)",
		a.target, a.source(nulls), a.match(nulls), matched, matched, strings.Join(sets, ", "),
		opColumn, strings.Join(names, ", "), seq, strings.Join(values, ", "), a.seq)
}

// What somebody did to the rows.
const (
	rowsGone  = "rows that the pipeline wrote are gone, or their keys were changed (%d)"
	rowsNewer = "rows to be changed carry a newer %s than %d (%d)"
	rowsThere = "rows with keys that are new to the pipeline, or doubled, are in it already (%d)"
)

// explain looks why MERGE did not touch every staged row once. What it wrote carries this change's
// sequence; a row of an earlier one that matches was left.
func (a apply) explain(ctx context.Context, patterns [][]bool, n, want int64) error {
	seq := duck.Quote(seqColumn)
	var newer, there int64
	for _, nulls := range patterns {
		var newerHere, thereHere int64
		query := fmt.Sprintf("SELECT count(*) FILTER (WHERE coalesce(t.%[1]s > %[2]d, true)), count(*) FILTER (WHERE t.%[1]s <= %[2]d AND s.%[3]s = 'I' AND t.%[1]s < %[2]d) FROM %[4]s AS t JOIN %[5]s AS s ON %[6]s",
			seq, a.seq, opColumn, a.target, a.source(nulls), a.match(nulls))
		if err := a.tx.row(ctx, query, nil, &newerHere, &thereHere); err != nil {
			return err
		}
		newer, there = newer+newerHere, there+thereHere
	}
	switch {
	case newer > 0 && !a.any:
		return a.edited(fmt.Sprintf(rowsNewer, seqColumn, a.seq, newer))
	case there > 0:
		return a.edited(fmt.Sprintf(rowsThere, there))
	case n > want:
		return a.edited(fmt.Sprintf(rowsThere, n-want))
	}
	return a.edited(fmt.Sprintf(rowsGone, want-n))
}

func (a apply) edited(reason string) error {
	return &connectors.TargetError{Table: a.sink.Name, Reason: reason + ": it was edited by hand or by another program. Nothing was written", Hint: targets.WaysOn}
}

// checkCountTx catches rows that were added or removed by hand under keys this change does not touch.
func (a apply) checkCountTx(ctx context.Context, want int64) error {
	var size int64
	if err := a.tx.row(ctx, "SELECT pg_relation_size("+duck.Literal(a.target)+"::regclass)", nil, &size); err != nil || size > counted && !a.any {
		return err
	}
	n, err := countOf(ctx, a.tx, a.sink)
	if err == nil && n != want {
		err = a.edited(fmt.Sprintf("after this change it should have %d rows, but would have %d", want, n))
	}
	return err
}

// writeError says when the table refused a row.
func (a apply) writeError(err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return err
	}
	switch server.Code {
	case "23505": // no other UNIQUE than that on the key is let be when a table is made or taken over
		return &conflictError{&connectors.TargetError{Table: a.sink.Name, Reason: "two rows would have the same key: " + server.Detail + " Nothing was written",
			Hint: "either another program wrote that row, or the SELECT has two keys that are one in Postgres, or somebody added a UNIQUE constraint (" + server.ConstraintName + "). " + targets.WaysOn}}
	case "21000": // two staged rows for one of the table
		return a.broken("two rows to write have the same key in Postgres")
	case "42P01", "42703": // dropped or altered since it was looked at
		return a.edited(server.Message)
	}
	return refusal("table "+a.sink.Name, err)
}

// refusal makes a fault of the data of what a constraint, a trigger or a type refused.
func refusal(table string, err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return err
	}
	var what string
	switch server.Code {
	case "23502":
		what = "NOT NULL of column " + server.ColumnName
	case "23503":
		what = "FOREIGN KEY " + server.ConstraintName
	case "23505":
		what = "UNIQUE " + server.ConstraintName
	case "23514":
		what = "CHECK " + server.ConstraintName
	case "23P01":
		what = "EXCLUDE " + server.ConstraintName
	default:
		if !strings.HasPrefix(server.Code, "22") && server.Code != "54000" && server.Code != "P0001" {
			return err
		}
		return &connectors.DataError{Where: table, Err: errors.New("the table does not take a row of the SELECT: " + server.Message),
			Hint: "nothing was written. Leave such rows out of the SELECT, or make room for them in the table"}
	}
	if server.Detail != "" {
		what += ": " + server.Detail
	}
	return &connectors.DataError{Where: table,
		Err:  errors.New("a row of the SELECT breaks a constraint of the table: " + what),
		Hint: "nothing was written. Leave such rows out of the SELECT, or take the constraint off the table"}
}
