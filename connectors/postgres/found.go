package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// Found copies a sink's table, as of now, to a temp table of the engine's DuckDB. What is edited until the
// correction is committed makes the correction fail, if it touches a row that the correction writes or
// the number of rows.
func (d *Destination) Found(ctx context.Context, pipeline string, sink connectors.SinkSpec) (f connectors.Found, err error) {
	copied := "_found_in_postgres_" + sink.Schema + "_" + sink.Table
	err = d.read(ctx, "read table "+sink.Name, func(tx *tx) error {
		f = connectors.Found{}
		owners := map[string]targets.Owner{}
		if !d.empty {
			if owners, err = ownersOf(ctx, tx); err != nil {
				return err
			}
		}
		own, owned := owners[targets.Key(schemaOf(sink), sink.Table)]
		if owned && own.Pipeline != pipeline {
			return own.Taken(sink, d.file)
		}
		there, err := find(ctx, tx, sink)
		if err != nil {
			return err
		}
		exists := there != nil && there.name == sink.Table
		if owned && !exists {
			if err := renamed(ctx, tx, sink, own); err != nil {
				return err
			}
		}
		if !owned || !exists {
			_, err := checkFree(ctx, tx, sink)
			return err
		}
		if f, err = foundTable(ctx, tx, sink, own, there); err != nil {
			return err
		}
		f.Relation = "temp." + duck.Quote(copied)
		columns := slices.DeleteFunc(slices.Clone(sink.Columns), func(c connectors.SinkColumn) bool { return !slices.Contains(f.Columns, c.Name) })
		if f.Seq {
			columns = append(columns, connectors.SinkColumn{Name: seqColumn, Type: "BIGINT"})
		}
		if len(columns) == 0 {
			return replaced(sink)
		}
		return d.fetch(ctx, tx, sink, columns, copied)
	})
	return f, err
}

func foundTable(ctx context.Context, tx *tx, sink connectors.SinkSpec, own targets.Owner, there *relation) (connectors.Found, error) {
	none := connectors.Found{}
	if there.kind != "r" {
		return none, replaced(sink)
	}
	columns, err := columnsOf(ctx, tx, there.oid)
	if err != nil {
		return none, err
	}
	types := ownColumns(sink)
	has := func(c connectors.SinkColumn) bool {
		return holds(columns[c.Name].typ, types[c.Name]) && !columns[c.Name].generated
	}
	if columns[seqColumn].typ != seqType && !strings.Contains(there.comment, own.Identity) {
		return none, replaced(sink)
	}
	f, err := targets.Compare(sink, own, "", sortedKeys(columns), has)
	if err != nil {
		return none, err
	}
	left := map[string]column{}
	for name, c := range columns {
		if !slices.Contains(f.Lost, name) {
			left[name] = c
		}
	}
	if problem := unfilled(left, sink); problem != nil {
		return none, &connectors.TargetError{Table: sink.Name, Reason: problem.Say, Hint: problem.Mend(tableOf(sink), "")}
	}
	_, misfits, err := keysOf(ctx, tx, there.oid, sink, own)
	if err != nil {
		return none, err
	}
	return f, targets.Unfit(sink, tableOf(sink), "", misfits)
}

// keysOf tells the constraints on keys that are not on the sink's: the pipeline's own of before, which it
// may drop, and those of others.
func keysOf(ctx context.Context, tx *tx, oid int64, sink connectors.SinkSpec, own targets.Owner) (drop []string, misfits []targets.Misfit, err error) {
	err = tx.each(ctx, sql("keys-of"), []any{oid}, func(rows pgx.Rows) error {
		var name, kind string
		var columns []string
		if err := rows.Scan(&name, &kind, &columns); err != nil {
			return err
		}
		switch {
		case targets.SameKey(columns, sink.Key):
		case kind == "u" && targets.SameKey(columns, own.Key):
			drop = append(drop, name)
		default:
			misfits = append(misfits, targets.Misfit{Say: "its constraint " + name + " is on other columns than the sink's key",
				Fix: "ALTER TABLE %s DROP CONSTRAINT " + duck.Quote(name) + ";"})
		}
		return nil
	})
	return drop, misfits, err
}

// renamed finds the table under another name.
func renamed(ctx context.Context, tx *tx, sink connectors.SinkSpec, own targets.Owner) error {
	var schema, table string
	err := tx.row(ctx, sql("marked"), []any{own.Identity}, &schema, &table)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	now := duck.Quote(schema) + "." + duck.Quote(table)
	if schema != schemaOf(sink) {
		return &connectors.TargetError{Table: sink.Name, Reason: "it was moved to schema " + schema,
			Hint: "move it back:\n  ALTER TABLE " + now + " SET SCHEMA " + duck.Quote(schemaOf(sink)) + ";"}
	}
	return &connectors.TargetError{Table: sink.Name, Reason: "it was renamed to " + now,
		Hint: "rename it back:\n  ALTER TABLE " + now + " RENAME TO " + duck.Quote(sink.Table) + ";"}
}

func replaced(sink connectors.SinkSpec) error {
	return &connectors.TargetError{Table: sink.Name,
		Reason: "it was replaced by another table, or its comment was changed: the mark of the pipeline is not on it",
		Hint:   "if it has the rows of the pipeline all the same, `etl adopt FILE` takes it back. Otherwise: " + targets.WaysOn}
}

// fitTx brings a table that was found to the columns and the key of its sink, and takes the leaving rows
// out.
func (d *Destination) fitTx(ctx context.Context, tx *tx, pipeline string, s connectors.SinkChange) error {
	sink := s.Sink
	if s.Against.Relation == "" {
		if err := tx.exec(ctx, sql("forget-target"), pipeline, schemaOf(sink), sink.Table); err != nil {
			return err
		}
		return createTargetTx(ctx, tx, pipeline, sink)
	}
	a := apply{d: d, tx: tx, sink: sink, target: tableOf(sink)}
	owners, err := ownersOf(ctx, tx)
	if err != nil {
		return err
	}
	own := owners[targets.Key(schemaOf(sink), sink.Table)]
	there, err := find(ctx, tx, sink)
	if err != nil {
		return err
	}
	if there == nil || there.name != sink.Table || there.kind != "r" {
		return a.edited("it is gone since it was looked at")
	}
	if err := a.alter(ctx, own, there, s.Against); err != nil {
		return err
	}
	if err := a.leave(ctx, s); err != nil {
		return err
	}
	if keyed, err := hasKeyIndex(ctx, tx, there.oid, sink); err != nil {
		return err
	} else if !keyed {
		if err := tx.script(ctx, keyStatement(sink)); err != nil {
			return a.writeError(err)
		}
	}
	names, key := a.columns(), sink.Key
	if key == nil {
		key = []string{}
	}
	return tx.exec(ctx, sql("fit-target"), pipeline, schemaOf(sink), sink.Table, sink.Name, key, names)
}

// alter gives the table the sink's columns and takes from it what stands in their way.
func (a apply) alter(ctx context.Context, own targets.Owner, there *relation, f *connectors.Found) error {
	columns, err := columnsOf(ctx, a.tx, there.oid)
	if err != nil {
		return err
	}
	drop, _, err := keysOf(ctx, a.tx, there.oid, a.sink, own)
	if err != nil {
		return err
	}
	var stmts []string
	for _, name := range drop {
		stmts = append(stmts, "DROP CONSTRAINT "+duck.Quote(name))
	}
	for _, name := range f.Lost {
		if _, ok := columns[name]; ok {
			stmts = append(stmts, "DROP COLUMN "+duck.Quote(name))
		}
	}
	types := ownColumns(a.sink)
	for _, c := range append(slices.Clone(a.sink.Columns), connectors.SinkColumn{Name: seqColumn}) {
		old, ok := columns[c.Name]
		if ok && holds(old.typ, types[c.Name]) && !old.generated {
			continue
		}
		if ok {
			stmts = append(stmts, "DROP COLUMN "+duck.Quote(c.Name))
		}
		add := "ADD COLUMN " + duck.Quote(c.Name) + " " + types[c.Name]
		if c.Name == seqColumn {
			add += " NOT NULL DEFAULT 0"
		}
		stmts = append(stmts, add)
	}
	for _, stmt := range stmts {
		if err := a.tx.script(ctx, "ALTER TABLE "+a.target+" "+stmt); err != nil {
			return a.alterError(err)
		}
	}
	if strings.Contains(there.comment, own.Identity) {
		return nil
	}
	return a.tx.script(ctx, "COMMENT ON TABLE "+a.target+" IS "+duck.Literal(targets.Marked(there.comment, own.Pipeline, own.Identity)))
}

// alterError says when something that depends on a column keeps it.
func (a apply) alterError(err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "2BP01" {
		return err
	}
	return &connectors.TargetError{Table: a.sink.Name, Reason: "its columns cannot be changed: " + server.Message + ": " + server.Detail,
		Hint: "nothing was written. Drop what depends on the column, and make it again afterwards; or give the sink another table"}
}

// leave takes rows out that are not told from others by the key.
func (a apply) leave(ctx context.Context, s connectors.SinkChange) error {
	if s.Leaving == 0 {
		return nil
	}
	stmt := "DELETE FROM " + a.target
	if !s.Against.OtherKey {
		over := ""
		if len(a.sink.Key) > 0 {
			over = "PARTITION BY " + strings.Join(quoted(a.sink.Key), ", ")
		}
		stmt += " WHERE ctid IN (SELECT ctid FROM (SELECT ctid, row_number() OVER (" + over + ") AS n FROM " + a.target + ") AS x WHERE n > 1)"
	}
	n, err := a.tx.count(ctx, stmt)
	if err == nil && n != s.Leaving {
		err = a.edited(fmt.Sprintf("%d rows were to leave it, but %d would", s.Leaving, n))
	}
	return err
}
