package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	driver "github.com/duckdb/duckdb-go/v2"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// Found looks at a sink's table as it is.
func (d *Destination) Found(ctx context.Context, pipeline string, sink connectors.SinkSpec) (connectors.Found, error) {
	none := connectors.Found{}
	owners, err := d.owners(ctx)
	if err != nil {
		return none, err
	}
	own, owned := owners[targets.Key(schemaOf(sink), sink.Table)]
	if owned && own.Pipeline != pipeline {
		return none, own.Taken(sink, d.file)
	}
	comment, exists, err := d.comment(ctx, sink)
	if err != nil {
		return none, err
	}
	if owned && !exists {
		if err := d.renamed(ctx, sink, own); err != nil {
			return none, err
		}
	}
	if !owned || !exists {
		_, err := d.checkFree(ctx, sink)
		return none, err
	}
	there, err := d.describe(ctx, d.table(schemaOf(sink), sink.Table))
	if err != nil {
		return none, err
	}
	types, err := d.specColumns(ctx, sink)
	if err != nil {
		return none, err
	}
	types[seqColumn] = "BIGINT"
	has := func(c connectors.SinkColumn) bool {
		name := strings.ToLower(c.Name)
		return there[name].typ == types[name]
	}
	if there[seqColumn].typ != types[seqColumn] && !strings.Contains(comment, own.Identity) {
		return none, d.replaced(sink)
	}
	f, err := targets.Compare(sink, own, d.table(schemaOf(sink), sink.Table), sortedKeys(there), has)
	if err != nil {
		return none, err
	}
	if problem := unfilled(there, withLost(types, f.Lost)); problem != nil {
		return none, &connectors.TargetError{Table: sink.Name, Reason: problem.Say, Hint: problem.Mend(tableSQL(sink), withAny)}
	}
	constraints, err := d.constraints(ctx, sink)
	if err != nil {
		return none, err
	}
	indexes, err := d.indexes(ctx, sink)
	if err != nil {
		return none, err
	}
	return f, targets.Unfit(sink, tableSQL(sink), withAny, append(constraints, indexes...))
}

// withLost counts columns that leave as the pipeline's.
func withLost(types map[string]string, lost []string) map[string]string {
	for _, name := range lost {
		types[strings.ToLower(name)] = "any"
	}
	return types
}

// renamed finds the table under another name.
func (d *Destination) renamed(ctx context.Context, sink connectors.SinkSpec, own targets.Owner) error {
	var schema, table string
	err := d.eng.QueryRow(ctx, d.sql("marked"), []any{d.alias, own.Identity}, &schema, &table)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return d.failed("look for table "+sink.Name, err)
	}
	now := duck.Quote(schema) + "." + duck.Quote(table)
	return &connectors.TargetError{Table: sink.Name, Reason: "it was renamed to " + now,
		Hint: "rename it back, with any DuckDB:\n  ALTER TABLE " + now + " RENAME TO " + duck.Quote(sink.Table) + ";"}
}

func (d *Destination) replaced(sink connectors.SinkSpec) error {
	return &connectors.TargetError{Table: sink.Name,
		Reason: "it was replaced by another table, or its comment was changed: the mark of the pipeline is not on it",
		Hint:   "if it has the rows of the pipeline all the same, `etl adopt FILE` takes it back. Otherwise: " + targets.WaysOn}
}

// fitTx brings a table that was found to the columns and the key of its sink, and takes the leaving rows
// out. DuckDB commits no ALTER of a table whose rows were changed before it, so it comes first.
func (d *Destination) fitTx(ctx context.Context, pipeline string, s connectors.SinkChange) error {
	sink, f := s.Sink, s.Against
	if f.Relation == "" {
		err := d.eng.Exec(ctx, d.sql("forget-target"), pipeline, schemaOf(sink), sink.Table)
		if err != nil {
			return d.failed("make table "+sink.Name, err)
		}
		return d.createTargetTx(ctx, pipeline, sink)
	}
	owners, err := d.owners(ctx)
	if err != nil {
		return err
	}
	own := owners[targets.Key(schemaOf(sink), sink.Table)]
	stmts, err := d.alterations(ctx, s, own)
	if err != nil {
		return err
	}
	for _, stmt := range stmts {
		if err := d.eng.Exec(ctx, stmt); err != nil {
			return d.alterError(sink, err)
		}
	}
	names, key := make([]string, len(sink.Columns)), sink.Key
	for i, c := range sink.Columns {
		names[i] = c.Name
	}
	if key == nil {
		key = []string{}
	}
	if err := d.eng.Exec(ctx, d.sql("fit-target"), pipeline, schemaOf(sink), sink.Table, sink.Name, key, names); err != nil {
		return d.failed("note the columns of table "+sink.Name, err)
	}
	return d.leaveTx(ctx, s)
}

func (d *Destination) alterations(ctx context.Context, s connectors.SinkChange, own targets.Owner) ([]string, error) {
	table := d.table(schemaOf(s.Sink), s.Sink.Table)
	there, err := d.describe(ctx, table)
	if err != nil {
		return nil, err
	}
	var stmts []string
	drop := func(name string) { stmts = append(stmts, "ALTER TABLE "+table+" DROP COLUMN "+duck.Quote(name)) }
	for _, name := range s.Against.Lost {
		drop(name)
	}
	columns := slices.Clone(s.Sink.Columns)
	if !s.Against.Seq {
		columns = append(columns, connectors.SinkColumn{Name: seqColumn, Type: "BIGINT"})
	}
	for _, c := range columns {
		if slices.Contains(s.Against.Columns, c.Name) {
			continue
		}
		if old, ok := there[strings.ToLower(c.Name)]; ok {
			drop(old.name)
		}
		stmts = append(stmts, "ALTER TABLE "+table+" ADD COLUMN "+duck.Quote(c.Name)+" "+c.Type)
	}
	comment, _, err := d.comment(ctx, s.Sink)
	if err == nil && !strings.Contains(comment, own.Identity) {
		stmts = append(stmts, "COMMENT ON TABLE "+table+" IS "+duck.Literal(targets.Marked(comment, own.Pipeline, own.Identity)))
	}
	return stmts, err
}

// alterError says when something that depends on a column keeps it.
func (d *Destination) alterError(sink connectors.SinkSpec, err error) error {
	var statement *driver.Error
	if errors.As(err, &statement) && (statement.Type == driver.ErrorTypeCatalog || statement.Type == driver.ErrorTypeDependency) {
		text, _, _ := strings.Cut(statement.Msg, "\n")
		_, text, _ = strings.Cut(text, ": ")
		return &connectors.TargetError{Table: sink.Name, Reason: "its columns cannot be changed: " + text,
			Hint: "nothing was written. Take what depends on the column off the table, or give the sink another table"}
	}
	return d.failed("change the columns of table "+sink.Name, err)
}

// leaveTx takes rows out that are not told from others by the key.
func (d *Destination) leaveTx(ctx context.Context, s connectors.SinkChange) error {
	if s.Leaving == 0 {
		return nil
	}
	table := d.table(schemaOf(s.Sink), s.Sink.Table)
	stmt := "DELETE FROM " + table
	if !s.Against.OtherKey {
		over := ""
		if len(s.Sink.Key) > 0 {
			over = "PARTITION BY " + strings.Join(quoted(s.Sink.Key), ", ")
		}
		stmt += " WHERE rowid IN (SELECT rowid FROM " + table + " QUALIFY row_number() OVER (" + over + ") > 1)"
	}
	n, err := d.eng.ExecCount(ctx, stmt)
	if err == nil && n != s.Leaving {
		a := apply{d: d, sink: s.Sink}
		return a.edited(fmt.Sprintf("%d rows were to leave it, but %d did", s.Leaving, n))
	}
	return d.failed("write table "+s.Sink.Name, err)
}
