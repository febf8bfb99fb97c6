package duckdb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	driver "github.com/duckdb/duckdb-go/v2"

	"lockstep/connectors"
	"lockstep/connectors/staged"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// opColumn is the last column of staged rows.
const opColumn = "_op"

// applyTx brings a sink's table to what is staged: rows of all staged keys leave, then the staged
// rows that are not deletes enter. (MERGE … UPDATE in place rewrites whole row groups at COMMIT.)
// Where somebody else's columns are to keep their values it is updated in place: inplace.go.
//
// The number of rows that leave must be the number of staged updates and deletes. It is not when
// somebody edited the table, or when a newer change wrote a row, which the guard on _etl_seq keeps.
func (d *Destination) applyTx(ctx context.Context, seq int64, change connectors.SinkChange) error {
	a := apply{d: d, seq: seq, sink: change.Sink, staged: "temp." + duck.Quote(change.Table), target: d.table(schemaOf(change.Sink), change.Sink.Table)}
	if change.Against != nil {
		a.any = true
	}
	c := change.Staged()
	if c.Inserted+c.Updated+c.Deleted == 0 && change.Table == "" {
		return a.checkCountTx(ctx, c.Rows)
	}
	var err error
	if a.nulls, err = staged.Check(ctx, d.eng, change); err != nil {
		return d.failed("count the rows to write to table "+change.Sink.Name, err)
	}
	if d.inPlace[change.Sink.Name] {
		if err := a.updateTx(ctx, c); err != nil {
			return err
		}
	} else {
		if err := a.deleteTx(ctx, c.Updated+c.Deleted); err != nil {
			return err
		}
		connectors.Failpoint("after-delete")
		if err := a.insertTx(ctx, "_op IN ('I', 'U')", c.Inserted+c.Updated); err != nil {
			return err
		}
	}
	connectors.Failpoint("after-insert")
	return a.checkCountTx(ctx, c.Rows)
}

// apply is one sink's part of a commit.
type apply struct {
	d      *Destination
	seq    int64
	sink   connectors.SinkSpec
	staged string
	target string
	nulls  bool // a staged key has a NULL in it
	any    bool // rows of every change may be written: a correction has compared them
}

// older is the condition that a row of the table is of this change or one before.
func (a apply) older() string {
	if a.any {
		return "true"
	}
	return fmt.Sprintf("t.%s <= %d", duck.Quote(seqColumn), a.seq)
}

// broken is a promise of the engine that does not hold: a mistake of ours, never the analyst's.
func (a apply) broken(format string, args ...any) error {
	return fmt.Errorf("table %s: %s; nothing was written. This is a mistake in etl: please report it", a.sink.Name, fmt.Sprintf(format, args...))
}

func (a apply) deleteTx(ctx context.Context, want int64) error {
	n, err := a.d.eng.ExecCount(ctx, fmt.Sprintf("MERGE INTO %s AS t USING %s AS s ON %s WHEN MATCHED AND %s THEN DELETE",
		a.target, a.staged, a.match(), a.older()))
	if err != nil {
		return a.d.failed("write table "+a.sink.Name, err)
	}
	if n == want {
		return nil
	}
	// What still matches was kept by the guard.
	var newer int64
	if err := a.d.eng.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s AS t, %s AS s WHERE %s", a.target, a.staged, a.match()), nil, &newer); err != nil {
		return a.d.failed("write table "+a.sink.Name, err)
	}
	reason := fmt.Sprintf(rowsGone, want-n)
	switch {
	case newer > 0:
		reason = fmt.Sprintf(rowsNewer, seqColumn, a.seq, newer)
	case n > want:
		reason = fmt.Sprintf(rowsThere, n-want)
	}
	return a.edited(reason)
}

// What somebody did to the rows.
const (
	rowsGone  = "rows that the pipeline wrote are gone, or their keys were changed (%d)"
	rowsNewer = "rows to be changed carry a newer %s than %d (%d)"
	rowsThere = "rows with keys that are new to the pipeline, or doubled, are in it already (%d)"
)

// insertTx writes the staged rows of which where is true, as many as wanted.
func (a apply) insertTx(ctx context.Context, where string, want int64) error {
	columns := strings.Join(quoted(a.columns()), ", ")
	n, err := a.d.eng.ExecCount(ctx, fmt.Sprintf("INSERT INTO %s (%s, %s) SELECT %s, %d FROM %s WHERE %s",
		a.target, columns, duck.Quote(seqColumn), columns, a.seq, a.staged, where))
	return a.wrote(err, n, want)
}

// wrote checks the outcome of a statement that writes rows.
func (a apply) wrote(err error, n, want int64) error {
	if err != nil {
		return a.writeError(err)
	}
	if n != want {
		return a.broken("%d rows were written instead of %d", n, want)
	}
	return nil
}

// writeError says when a constraint that somebody put on the table refused a row.
func (a apply) writeError(err error) error {
	var statement *driver.Error
	if !errors.As(err, &statement) || statement.Type != driver.ErrorTypeConstraint {
		return a.d.failed("write table "+a.sink.Name, err)
	}
	text, _, _ := strings.Cut(statement.Msg, "\n")
	return &connectors.DataError{Where: "table " + a.sink.Name,
		Err:  fmt.Errorf("a row of the SELECT breaks a constraint of the table: %s", strings.TrimPrefix(text, "Constraint Error: ")),
		Hint: "nothing was written. Leave such rows out of the SELECT, or take the constraint off the table"}
}

func (a apply) columns() []string {
	names := make([]string, len(a.sink.Columns))
	for i, c := range a.sink.Columns {
		names[i] = c.Name
	}
	return names
}

// checkCountTx catches rows that were added or removed by hand under keys this change does not touch.
func (a apply) checkCountTx(ctx context.Context, want int64) error {
	n, err := a.d.count(ctx, a.sink)
	if err == nil && n != want {
		err = a.edited(fmt.Sprintf("after this change it should have %d rows, but would have %d", want, n))
	}
	return err
}

func (a apply) edited(reason string) error {
	return &connectors.TargetError{Table: a.sink.Name, Reason: reason + ": it was edited by hand or by another program. Nothing was written", Hint: targets.WaysOn}
}

// match is the condition that t and s have the same key, NULL being equal to NULL. Without key
// columns the table has at most one row, and that is it. Where no staged key has a NULL, = says the same:
// for it, and not for IS NOT DISTINCT FROM, DuckDB looks only where the keys can be.
func (a apply) match() string {
	if len(a.sink.Key) == 0 {
		return "true"
	}
	same := " = "
	if a.nulls {
		same = " IS NOT DISTINCT FROM "
	}
	conds := make([]string, len(a.sink.Key))
	for i, k := range quoted(a.sink.Key) {
		conds[i] = "t." + k + same + "s." + k
	}
	return strings.Join(conds, " AND ")
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = duck.Quote(n)
	}
	return out
}
