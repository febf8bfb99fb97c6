package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

const seqColumn = targets.Seq

func (d *Destination) owners(ctx context.Context) (map[string]targets.Owner, error) {
	owners := map[string]targets.Owner{}
	if d.empty {
		return owners, nil
	}
	err := d.eng.Each(ctx, d.sql("targets"), nil, func(rows *sql.Rows) error {
		var schema, table string
		var o targets.Owner
		var key, columns []any
		if err := rows.Scan(&schema, &table, &o.Pipeline, &o.Sink, &o.Identity, &key, &columns, &o.File); err != nil {
			return err
		}
		for _, k := range key {
			o.Key = append(o.Key, fmt.Sprint(k))
		}
		for _, c := range columns {
			o.Columns = append(o.Columns, fmt.Sprint(c))
		}
		if _, ok := owners[targets.Key(schema, table)]; ok {
			return &connectors.DamagedError{What: "etl.targets", Reason: fmt.Sprintf("%s.%s is in it twice", schema, table)}
		}
		owners[targets.Key(schema, table)] = o
		return nil
	})
	return owners, d.readError("read the owners of tables", err)
}

// CheckTargets compares every sink with the table that is there, or is not.
func (d *Destination) CheckTargets(ctx context.Context, head connectors.Head, sinks []connectors.SinkSpec) error {
	owners, err := d.owners(ctx)
	if err != nil {
		return err
	}
	var errs []error // all sinks are looked at: the analyst sees every difference at once
	for _, sink := range sinks {
		errs = append(errs, d.checkTarget(ctx, head.Manifest, sink, owners))
	}
	return errors.Join(errs...)
}

func (d *Destination) checkTarget(ctx context.Context, m checkpoints.Manifest, sink connectors.SinkSpec, owners map[string]targets.Owner) error {
	own, owned := owners[targets.Key(schemaOf(sink), sink.Table)]
	rows, err := targets.Kept(m, sink, own, owned, d.file)
	if err == nil && !owned {
		_, err = d.checkFree(ctx, sink)
	} else if err == nil {
		err = d.checkOwn(ctx, sink, own, rows)
	}
	return err
}

// checkFree makes sure that the sink's table can be made, or taken over as it stands.
func (d *Destination) checkFree(ctx context.Context, sink connectors.SinkSpec) (exists bool, err error) {
	if err := targets.CheckNames(sink); err != nil {
		return false, err
	}
	_, exists, err = d.comment(ctx, sink)
	if err != nil || exists {
		return exists, errors.Join(err, d.checkAdoptable(ctx, sink))
	}
	var views int
	if err := d.eng.QueryRow(ctx, d.sql("has-view"), []any{d.alias, schemaOf(sink), sink.Table}, &views); err != nil {
		return false, d.failed("look for table "+sink.Name, err)
	}
	if views > 0 {
		return false, &connectors.TargetError{Table: sink.Name, Reason: "a view of that name exists already", Hint: "drop or rename it, or choose another name"}
	}
	return false, nil
}

// checkOwn compares a table of this pipeline with what the pipeline left.
func (d *Destination) checkOwn(ctx context.Context, sink connectors.SinkSpec, own targets.Owner, rows int64) error {
	differs := func(hint, format string, args ...any) error {
		return &connectors.TargetError{Table: sink.Name, Reason: fmt.Sprintf(format, args...), Hint: hint}
	}
	comment, ok, err := d.comment(ctx, sink)
	if err != nil {
		return err
	}
	if !ok {
		if err := d.renamed(ctx, sink, own); err != nil {
			return err
		}
		return differs(targets.WaysOn, "it is gone, with the %d rows the pipeline kept in it", rows)
	}
	if !strings.Contains(comment, own.Identity) {
		return d.replaced(sink)
	}
	if !slices.EqualFunc(own.Key, sink.Key, strings.EqualFold) {
		return differs(targets.WaysOn, "its key is (%s), the pipeline now says (%s)", strings.Join(own.Key, ", "), strings.Join(sink.Key, ", "))
	}
	there, err := d.describe(ctx, d.table(schemaOf(sink), sink.Table))
	if err != nil {
		return err
	}
	want, err := d.specColumns(ctx, sink)
	if err != nil {
		return err
	}
	want[seqColumn] = "BIGINT"
	if difference := compareColumns(there, want); difference != "" {
		return differs("undo the ALTER TABLE, or: "+targets.WaysOn, "%s", difference)
	}
	if problem := unfilled(there, want); problem != nil {
		return differs(problem.Mend(tableSQL(sink), withAny), "%s", problem.Say)
	}
	indexes, err := d.indexes(ctx, sink)
	if err != nil {
		return err
	}
	if len(indexes) > 0 {
		return differs(indexes[0].Mend(tableSQL(sink), withAny), "%s", indexes[0].Say)
	}
	count, err := d.count(ctx, sink)
	if err != nil {
		return err
	}
	if count != rows {
		return differs(targets.WaysOn, "it should have %d rows, but has %d: it was edited or truncated", rows, count)
	}
	return nil
}

// compareColumns says how the columns of a table lack those wanted, "" when they do not. Columns
// besides are somebody else's and left alone.
func compareColumns(there map[string]column, want map[string]string) string {
	for _, name := range sortedKeys(want) {
		c, ok := there[name]
		if !ok {
			return "its column " + name + " is gone"
		}
		if c.typ != want[name] {
			return fmt.Sprintf("its column %s is %s, the pipeline writes %s", name, c.typ, want[name])
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// createTargetTx makes the sink's table, or takes over the one that is there. What it makes has no
// PRIMARY KEY: an index would never give space back, and the commit asserts what it would.
func (d *Destination) createTargetTx(ctx context.Context, pipeline string, sink connectors.SinkSpec) error {
	exists, err := d.checkFree(ctx, sink)
	if err != nil {
		return err
	}
	names, key := make([]string, len(sink.Columns)), sink.Key
	for i, c := range sink.Columns {
		names[i] = c.Name
	}
	if key == nil {
		key = []string{}
	}
	identity := uuid.NewString()
	comment := targets.Mark(pipeline, identity)
	if exists {
		comment, err = d.adoptTx(ctx, sink, comment)
	} else {
		err = d.makeTableTx(ctx, sink)
	}
	if err == nil {
		err = d.eng.Exec(ctx, "COMMENT ON TABLE "+d.table(schemaOf(sink), sink.Table)+" IS "+duck.Literal(comment))
	}
	if err == nil {
		err = d.eng.Exec(ctx, d.sql("insert-target"), schemaOf(sink), sink.Table, pipeline, sink.Name, key, names, identity, exists)
	}
	return d.failed("create table "+sink.Name, err)
}

func (d *Destination) makeTableTx(ctx context.Context, sink connectors.SinkSpec) error {
	columns := make([]string, 0, len(sink.Columns)+1)
	for _, c := range sink.Columns {
		columns = append(columns, duck.Quote(c.Name)+" "+c.Type)
	}
	columns = append(columns, duck.Quote(seqColumn)+" BIGINT NOT NULL")
	if err := d.eng.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+duck.Quote(d.alias)+"."+duck.Quote(schemaOf(sink))); err != nil {
		return err
	}
	return d.eng.Exec(ctx, "CREATE TABLE "+d.table(schemaOf(sink), sink.Table)+" ("+strings.Join(columns, ", ")+")")
}

func schemaOf(sink connectors.SinkSpec) string {
	if sink.Schema == "" {
		return "main"
	}
	return sink.Schema
}

func (d *Destination) comment(ctx context.Context, sink connectors.SinkSpec) (comment string, exists bool, err error) {
	err = d.eng.QueryRow(ctx, d.sql("table"), []any{d.alias, schemaOf(sink), sink.Table}, &comment)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return comment, err == nil, d.failed("look for table "+sink.Name, err)
}

// specColumns maps the lower-case names of a sink's columns to their types, as DuckDB spells them.
func (d *Destination) specColumns(ctx context.Context, sink connectors.SinkSpec) (map[string]string, error) {
	values := make([]string, len(sink.Columns))
	for i, c := range sink.Columns {
		values[i] = "CAST(NULL AS " + c.Type + ") AS " + duck.Quote(c.Name)
	}
	columns, err := d.describe(ctx, "(SELECT "+strings.Join(values, ", ")+")")
	types := make(map[string]string, len(columns))
	for name, c := range columns {
		types[name] = c.typ
	}
	return types, err
}

// column is a column of a relation as DuckDB describes it.
type column struct {
	name, typ string
	notNull   bool
	unique    bool // it is in a PRIMARY KEY or UNIQUE constraint
	filled    bool // it has a default
}

// describe maps the lower-case names of a relation's columns to what they are. DESCRIBE takes 1 ms where
// duckdb_columns() takes 12.
func (d *Destination) describe(ctx context.Context, relation string) (map[string]column, error) {
	columns := map[string]column{}
	err := d.eng.Each(ctx, `SELECT column_name, column_type, "null" = 'NO', "key" IS NOT NULL, "default" IS NOT NULL FROM (DESCRIBE FROM `+relation+")", nil, func(rows *sql.Rows) error {
		var c column
		err := rows.Scan(&c.name, &c.typ, &c.notNull, &c.unique, &c.filled)
		columns[strings.ToLower(c.name)] = c
		return err
	})
	return columns, d.failed("read the columns of a table", err)
}

func (d *Destination) count(ctx context.Context, sink connectors.SinkSpec) (int64, error) {
	var n int64
	err := d.eng.QueryRow(ctx, "SELECT count(*) FROM "+d.table(schemaOf(sink), sink.Table), nil, &n)
	return n, d.failed("count the rows of table "+sink.Name, err)
}

// Relation names a sink's table in the engine's DuckDB, for reading it. Unlike CheckTargets it allows
// rows that were edited.
func (d *Destination) Relation(ctx context.Context, sink connectors.SinkSpec) (string, error) {
	_, ok, err := d.comment(ctx, sink)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", &connectors.TargetError{Table: sink.Name, Reason: "it is gone", Hint: targets.WaysOn}
	}
	table := d.table(schemaOf(sink), sink.Table)
	there, err := d.describe(ctx, table)
	if err != nil {
		return "", err
	}
	want, err := d.specColumns(ctx, sink)
	if err != nil {
		return "", err
	}
	want[seqColumn] = "BIGINT"
	if difference := compareColumns(there, want); difference != "" {
		return "", &connectors.TargetError{Table: sink.Name, Reason: difference, Hint: "undo the ALTER TABLE, or: " + targets.WaysOn}
	}
	return table, nil
}
