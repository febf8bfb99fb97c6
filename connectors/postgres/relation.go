package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// Relation copies a sink's table, as of now, to a temp table of the engine's DuckDB and names it. Unlike
// CheckTargets it allows rows that were edited.
func (d *Destination) Relation(ctx context.Context, sink connectors.SinkSpec) (string, error) {
	copied := "_in_postgres_" + sink.Schema + "_" + sink.Table
	err := d.read(ctx, "read table "+sink.Name, func(tx *tx) error {
		there, err := find(ctx, tx, sink)
		if err != nil {
			return err
		}
		if there == nil || there.name != sink.Table {
			return &connectors.TargetError{Table: sink.Name, Reason: "it is gone", Hint: targets.WaysOn}
		}
		columns, err := columnsOf(ctx, tx, there.oid)
		if err != nil {
			return err
		}
		if difference := compareColumns(columns, sink); difference != "" {
			return &connectors.TargetError{Table: sink.Name, Reason: difference, Hint: "undo the ALTER TABLE, or: " + targets.WaysOn}
		}
		return d.fetch(ctx, tx, sink, sink.Columns, copied)
	})
	return "temp." + duck.Quote(copied), err
}

// fetch reads columns of the table by a binary COPY, so that no value is rounded or read in the wrong way.
func (d *Destination) fetch(ctx context.Context, tx *tx, sink connectors.SinkSpec, of []connectors.SinkColumn, into string) error {
	var names, query, casts []string
	var forms []form
	var zoned []bool
	for i, c := range of {
		m := typeOf(c.Type)
		name, column := fmt.Sprintf("c%d", i), duck.Quote(c.Name)
		value, f := column, m.form
		if m.in != "" {
			value, f = fmt.Sprintf(m.in, column), asText
		}
		cast := fmt.Sprintf("CAST(%s AS %s)", name, c.Type)
		if m.back != "" {
			cast = fmt.Sprintf(m.back, name)
		}
		names, query, forms = append(names, name), append(query, value), append(forms, f)
		casts, zoned = append(casts, cast+" AS "+column), append(zoned, m.name == "timestamp with time zone")
	}
	from := "SELECT " + strings.Join(query, ", ") + " FROM " + tableOf(sink)
	return d.copyOut(ctx, tx, from, newDecoderOf(names, forms, zoned), into, "SELECT "+strings.Join(casts, ", "))
}

// copyOut runs a query on the server and makes a temp table of the engine's DuckDB of its rows.
func (d *Destination) copyOut(ctx context.Context, tx *tx, query string, decode func(io.Reader) *decoder, into, selecting string) error {
	pipe, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := tx.conn.PgConn().CopyTo(ctx, to, "COPY ("+query+") TO STDOUT (FORMAT binary)")
		_ = to.CloseWithError(err)
		done <- err
	}()
	rows := decode(pipe)
	defer rows.Release()
	err := d.eng.LoadAs(ctx, into, rows, func(rows string) string { return selecting + " FROM " + rows })
	if err == nil {
		err = rows.Err()
	}
	_ = pipe.CloseWithError(errors.New("not read to its end"))
	if copyErr := <-done; copyErr != nil && (err == nil || rows.Err() != nil) {
		return copyErr
	}
	return err
}
