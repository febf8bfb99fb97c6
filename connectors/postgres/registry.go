package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// What is done to a pipeline as a whole. The lease is taken in the transaction that does it.

// Known tells what the database has of a pipeline.
func (d *Destination) Known(ctx context.Context, pipeline string) (connectors.Known, error) {
	k := connectors.Known{Batch: -1}
	if d.empty {
		return k, nil
	}
	err := d.read(ctx, "read the record of pipeline "+pipeline, func(tx *tx) error {
		k.Tables = nil
		if err := tx.row(ctx, sql("known"), []any{pipeline}, &k.Traces, &k.Batch, &k.Changes, &k.Splits, &k.Rejected, &k.Bytes); err != nil {
			return err
		}
		owned, err := ownedOf(ctx, tx, pipeline)
		for _, o := range owned {
			k.Tables = append(k.Tables, o.known)
		}
		return err
	})
	return k, err
}

// ownedTable is a table that a pipeline keeps, as etl.targets lists it.
type ownedTable struct {
	sink     connectors.SinkSpec // its name and place
	identity string
	comment  string
	known    connectors.KnownTable
}

func ownedOf(ctx context.Context, tx *tx, pipeline string) ([]ownedTable, error) {
	var owned []ownedTable
	err := tx.each(ctx, sql("owned"), []any{pipeline}, func(rows pgx.Rows) error {
		var o ownedTable
		err := rows.Scan(&o.sink.Schema, &o.sink.Table, &o.sink.Name, &o.identity, &o.known.TakenOver)
		o.known.Sink = o.sink.Name
		owned = append(owned, o)
		return err
	})
	for i := range owned {
		o := &owned[i]
		if err != nil {
			break
		}
		var there *relation
		if there, err = find(ctx, tx, o.sink); err != nil {
			break
		}
		o.known.Gone = there == nil || there.kind != "r" || there.name != o.sink.Table || !strings.Contains(there.comment, o.identity)
		if !o.known.Gone {
			o.comment = there.comment
			o.known.Rows, err = countOf(ctx, tx, o.sink)
		}
	}
	return owned, err
}

// alone runs fn in a transaction that has the lease of a pipeline. fn may run twice.
func (d *Destination) alone(ctx context.Context, doing string, lease connectors.Lease, fn func(*tx) error) error {
	clear(d.settled)
	return d.inTx(ctx, doing, func(tx *tx) error {
		if err := d.takeTx(ctx, tx, &lease); err != nil {
			return err
		}
		var others int
		if err := tx.row(ctx, sql("other-lanes"), []any{lease.Pipeline}, &others); err != nil {
			return err
		}
		if others > 0 {
			return &connectors.HeldError{What: "pipeline " + lease.Pipeline + " in " + d.name, By: "a job beside the runs, such as a backfill"}
		}
		return fn(tx)
	})
}

// Drop removes everything of a pipeline, the lease too.
func (d *Destination) Drop(ctx context.Context, pipeline string, keep bool) error {
	lease := connectors.Lease{Pipeline: pipeline, Holder: uuid.NewString()}
	return d.alone(ctx, "drop pipeline "+pipeline, lease, func(tx *tx) error {
		owned, err := ownedOf(ctx, tx, pipeline)
		if err != nil {
			return err
		}
		for _, o := range owned {
			switch {
			case o.known.Gone:
			case keep || o.known.TakenOver:
				err = disownTx(ctx, tx, o, pipeline)
			default:
				err = tx.script(ctx, "DROP TABLE "+tableOf(o.sink))
			}
			if err != nil {
				return dependents(o.sink, err)
			}
		}
		return forgetTx(ctx, tx, pipeline)
	})
}

// dependents says what else of the database needs a table or its column.
func dependents(sink connectors.SinkSpec, err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "2BP01" {
		return err
	}
	return &connectors.TargetError{Table: sink.Name, Reason: "it cannot be let go, as other things depend on it: " + strings.ReplaceAll(server.Detail, "\n", "; "),
		Hint: "drop those first"}
}

// disownTx makes a table nobody's.
func disownTx(ctx context.Context, tx *tx, o ownedTable, pipeline string) error {
	comment := "NULL"
	if rest := targets.Unmarked(o.comment, pipeline, o.identity); rest != "" {
		comment = duck.Literal(rest)
	}
	return tx.script(ctx, "COMMENT ON TABLE "+tableOf(o.sink)+" IS "+comment+"; ALTER TABLE "+tableOf(o.sink)+" DROP COLUMN IF EXISTS "+duck.Quote(seqColumn))
}

// forgetTx removes the rows of a pipeline from every table of the schema etl that has some, and plans that
// nobody else has.
func forgetTx(ctx context.Context, tx *tx, pipeline string) error {
	var tables []string
	err := tx.each(ctx, sql("of-pipelines"), nil, func(rows pgx.Rows) error {
		var table string
		err := rows.Scan(&table)
		tables = append(tables, table)
		return err
	})
	for _, name := range []string{"forget-plans", "forget-parts"} {
		if err == nil {
			err = tx.exec(ctx, sql(name), pipeline)
		}
	}
	for _, table := range tables {
		if err == nil {
			err = tx.exec(ctx, "DELETE FROM etl."+duck.Quote(table)+" WHERE pipeline = $1", pipeline)
		}
	}
	return err
}
