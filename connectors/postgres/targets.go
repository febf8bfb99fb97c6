package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

const (
	seqColumn = targets.Seq
	seqType   = "bigint"
	opColumn  = targets.Op
)

func schemaOf(sink connectors.SinkSpec) string {
	if sink.Schema == "" {
		return "public"
	}
	return sink.Schema
}

// tableOf writes the full name of a sink's table.
func tableOf(sink connectors.SinkSpec) string {
	return duck.Quote(schemaOf(sink)) + "." + duck.Quote(sink.Table)
}

func ownersOf(ctx context.Context, tx *tx) (map[string]targets.Owner, error) {
	owners := map[string]targets.Owner{}
	err := tx.each(ctx, sql("targets"), nil, func(rows pgx.Rows) error {
		var schema, table string
		var o targets.Owner
		if err := rows.Scan(&schema, &table, &o.Pipeline, &o.Sink, &o.Identity, &o.Key, &o.Columns, &o.File); err != nil {
			return err
		}
		owners[targets.Key(schema, table)] = o
		return nil
	})
	return owners, err
}

// CheckTargets compares every sink with the table that is there, or is not.
func (d *Destination) CheckTargets(ctx context.Context, head connectors.Head, sinks []connectors.SinkSpec) error {
	return d.read(ctx, "look at the tables", func(tx *tx) error {
		owners := map[string]targets.Owner{}
		if !d.empty {
			if err := d.checkHead(ctx, tx, head.Manifest.Pipeline, head.Manifest.Seq); err != nil {
				return err
			}
			var err error
			if owners, err = ownersOf(ctx, tx); err != nil {
				return err
			}
		}
		var errs []error // all sinks are looked at: the analyst sees every difference at once
		for _, sink := range sinks {
			errs = append(errs, d.checkTarget(ctx, tx, head.Manifest, sink, owners))
		}
		return errors.Join(errs...)
	})
}

// checkHead makes sure that what is compared with a head is as of that head: without a lease another run
// may have committed since it was read.
func (d *Destination) checkHead(ctx context.Context, tx *tx, pipeline string, seq int64) error {
	row, err := pipelineOf(ctx, tx, pipeline)
	if err == nil && row.seq > seq {
		return &connectors.HeldError{What: "pipeline " + pipeline + " in " + d.name, By: "another run, which has just committed a batch"}
	}
	return err
}

func (d *Destination) checkTarget(ctx context.Context, tx *tx, m checkpoints.Manifest, sink connectors.SinkSpec, owners map[string]targets.Owner) error {
	own, owned := owners[targets.Key(schemaOf(sink), sink.Table)]
	rows, err := targets.Kept(m, sink, own, owned, d.file)
	if err == nil && !owned {
		_, err = checkFree(ctx, tx, sink)
	} else if err == nil {
		err = checkOwn(ctx, tx, sink, own, rows)
	}
	return err
}

// relation is something of the database that has the name of a table.
type relation struct {
	oid        int64
	name, kind string // kind as in pg_class
	comment    string
}

// find looks for the relation of a sink's name.
func find(ctx context.Context, tx *tx, sink connectors.SinkSpec) (*relation, error) {
	var found []relation
	err := tx.each(ctx, sql("relations"), []any{schemaOf(sink), sink.Table}, func(rows pgx.Rows) error {
		var r relation
		err := rows.Scan(&r.oid, &r.name, &r.kind, &r.comment)
		found = append(found, r)
		return err
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	for i := range found {
		if found[i].name == sink.Table {
			return &found[i], nil
		}
	}
	return &found[0], nil
}

// checkFree makes sure that the sink's table can be made, or taken over as it stands: then it is given.
func checkFree(ctx context.Context, tx *tx, sink connectors.SinkSpec) (*relation, error) {
	if err := checkNames(sink); err != nil {
		return nil, err
	}
	if err := checkTypes(sink); err != nil {
		return nil, err
	}
	there, err := find(ctx, tx, sink)
	if err != nil || there == nil {
		return nil, err
	}
	refuse := func(reason, hint string) (*relation, error) {
		return nil, &connectors.TargetError{Table: sink.Name, Reason: reason, Hint: hint}
	}
	switch {
	case there.kind == "v" || there.kind == "m":
		return refuse("a view of that name exists already", "drop or rename it, or choose another name")
	case there.kind == "p":
		return refuse("a partitioned table of that name exists already", "choose another name; a pipeline writes plain tables")
	case there.kind != "r":
		return refuse("something else of that name exists already", "choose another name")
	case there.name != sink.Table:
		return refuse("a table "+there.name+" exists already, and its name differs only in letter case", "write its name as it is there, or choose another name")
	}
	return there, checkAdoptable(ctx, tx, sink, there)
}

// checkNames refuses names that the engine needs for itself, or that Postgres would cut.
func checkNames(sink connectors.SinkSpec) error {
	refuse := func(reason, hint string) error {
		return &connectors.TargetError{Table: sink.Name, Reason: reason, Hint: hint}
	}
	if err := targets.CheckNames(sink); err != nil {
		return err
	}
	names := []string{sink.Table, sink.Schema}
	for _, c := range sink.Columns {
		names = append(names, c.Name)
	}
	for _, name := range names {
		if len(name) > 63 {
			return refuse("the name "+name+" has more than the 63 bytes that Postgres keeps of a name", "choose a shorter one")
		}
	}
	if len(sink.Key) > 32 {
		return refuse("its key has more than 32 columns", "choose fewer: it is an index in Postgres")
	}
	return nil
}

// checkOwn compares a table of this pipeline with what the pipeline left.
func checkOwn(ctx context.Context, tx *tx, sink connectors.SinkSpec, own targets.Owner, rows int64) error {
	differs := func(hint, format string, args ...any) error {
		return &connectors.TargetError{Table: sink.Name, Reason: fmt.Sprintf(format, args...), Hint: hint}
	}
	there, err := find(ctx, tx, sink)
	if err != nil {
		return err
	}
	if there == nil || there.name != sink.Table {
		if err := renamed(ctx, tx, sink, own); err != nil {
			return err
		}
		return differs(targets.WaysOn, "it is gone, with the %d rows the pipeline kept in it", rows)
	}
	if there.kind != "r" || !strings.Contains(there.comment, own.Identity) {
		return replaced(sink)
	}
	if !slices.EqualFunc(own.Key, sink.Key, strings.EqualFold) {
		return differs(targets.WaysOn, "its key is (%s), the pipeline now says (%s)", strings.Join(own.Key, ", "), strings.Join(sink.Key, ", "))
	}
	columns, err := columnsOf(ctx, tx, there.oid)
	if err != nil {
		return err
	}
	if difference := compareColumns(columns, sink); difference != "" {
		return differs("undo the ALTER TABLE, or: "+targets.WaysOn, "%s", difference)
	}
	if problem := unfilled(columns, sink); problem != nil {
		return differs(problem.Mend(tableOf(sink), ""), "%s", problem.Say)
	}
	if keyed, err := hasKeyIndex(ctx, tx, there.oid, sink); err != nil {
		return err
	} else if !keyed {
		return differs("put it back:\n  "+keyStatement(sink), "its UNIQUE constraint on the key is gone")
	}
	count, err := countOf(ctx, tx, sink)
	if err != nil {
		return err
	}
	if count != rows {
		return differs(targets.WaysOn, "it should have %d rows, but has %d: it was edited or truncated", rows, count)
	}
	return nil
}

// column is a column of a table.
type column struct {
	name, typ string // as Postgres writes the type
	notNull   bool
	generated bool // it takes no value
	filled    bool // it has a default
}

func columnsOf(ctx context.Context, tx *tx, oid int64) (map[string]column, error) {
	columns := map[string]column{}
	err := tx.each(ctx, sql("columns"), []any{oid}, func(rows pgx.Rows) error {
		var c column
		err := rows.Scan(&c.name, &c.typ, &c.notNull, &c.generated, &c.filled)
		columns[c.name] = c
		return err
	})
	return columns, err
}

// ownColumns maps the names of the columns that the pipeline writes to their types.
func ownColumns(sink connectors.SinkSpec) map[string]string {
	own := map[string]string{seqColumn: seqType}
	for _, c := range sink.Columns {
		own[c.Name] = typeOf(c.Type).name
	}
	return own
}

// compareColumns says how the columns of a table lack those wanted, "" when they do not. Columns
// besides are somebody else's and left alone.
func compareColumns(there map[string]column, sink connectors.SinkSpec) string {
	own := ownColumns(sink)
	for _, name := range sortedKeys(own) {
		c, ok := there[name]
		if !ok {
			return "its column " + name + " is gone"
		}
		if !holds(c.typ, own[name]) {
			return fmt.Sprintf("its column %s is %s, the pipeline writes %s", name, c.typ, own[name])
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

// hasKeyIndex looks for what keeps keys unique, NULL counting as a value.
func hasKeyIndex(ctx context.Context, tx *tx, oid int64, sink connectors.SinkSpec) (bool, error) {
	if len(sink.Key) == 0 {
		return true, nil
	}
	var n int
	err := tx.row(ctx, sql("key-index"), []any{oid, sink.Key}, &n)
	return n > 0, err
}

// keyStatement gives a table its key. It is no PRIMARY KEY: a column of the key may be NULL.
func keyStatement(sink connectors.SinkSpec) string {
	return "ALTER TABLE " + tableOf(sink) + " ADD UNIQUE NULLS NOT DISTINCT (" + strings.Join(quoted(sink.Key), ", ") + ");"
}

// createTargetTx makes the sink's table, or takes over the one that is there.
func createTargetTx(ctx context.Context, tx *tx, pipeline string, sink connectors.SinkSpec) error {
	there, err := checkFree(ctx, tx, sink)
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
	if there != nil {
		if there.comment != "" {
			comment = there.comment + "; " + comment
		}
		err = adoptTx(ctx, tx, sink, there)
	} else {
		err = makeTableTx(ctx, tx, sink)
	}
	if err == nil {
		err = tx.script(ctx, "COMMENT ON TABLE "+tableOf(sink)+" IS "+duck.Literal(comment))
	}
	if err == nil {
		err = tx.exec(ctx, sql("insert-target"), schemaOf(sink), sink.Table, pipeline, sink.Name, key, names, identity, there != nil)
	}
	return err
}

func makeTableTx(ctx context.Context, tx *tx, sink connectors.SinkSpec) error {
	columns := make([]string, 0, len(sink.Columns)+1)
	for _, c := range sink.Columns {
		columns = append(columns, duck.Quote(c.Name)+" "+typeOf(c.Type).name)
	}
	columns = append(columns, duck.Quote(seqColumn)+" "+seqType+" NOT NULL")
	if sink.Schema != "" { // CREATE SCHEMA IF NOT EXISTS needs the right to create it even when it exists
		var schemas int
		if err := tx.row(ctx, "SELECT count(*) FROM pg_namespace WHERE nspname = $1", []any{sink.Schema}, &schemas); err != nil {
			return err
		}
		if schemas == 0 { // another pipeline may make it at the same time
			if err := tx.exec(ctx, sql("lock-schema")); err != nil {
				return err
			}
			if err := tx.script(ctx, "CREATE SCHEMA IF NOT EXISTS "+duck.Quote(sink.Schema)); err != nil {
				return err
			}
		}
	}
	if err := tx.script(ctx, "CREATE TABLE "+tableOf(sink)+" ("+strings.Join(columns, ", ")+")"); err != nil || len(sink.Key) == 0 {
		return err
	}
	return tx.script(ctx, keyStatement(sink))
}

func countOf(ctx context.Context, tx *tx, sink connectors.SinkSpec) (int64, error) {
	var n int64
	err := tx.row(ctx, "SELECT count(*) FROM "+tableOf(sink), nil, &n)
	return n, err
}
