package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// What is done to a pipeline as a whole. The lock on the file is the lease: whoever has the file attached is
// alone with it.

// Known tells what the file has of a pipeline.
func (d *Destination) Known(ctx context.Context, pipeline string) (connectors.Known, error) {
	k := connectors.Known{Batch: -1}
	if d.empty {
		return k, nil
	}
	err := d.eng.QueryRow(ctx, d.sql("known"), []any{pipeline}, &k.Traces, &k.Batch, &k.Changes, &k.Splits, &k.Rejected, &k.Bytes)
	if err != nil {
		return k, d.failed("read the record of pipeline "+pipeline, err)
	}
	owned, err := d.owned(ctx, pipeline)
	for _, o := range owned {
		k.Tables = append(k.Tables, o.known)
	}
	return k, err
}

// ownedTable is a table that a pipeline keeps, as etl.targets lists it.
type ownedTable struct {
	sink     connectors.SinkSpec // its name and place
	identity string
	comment  string
	known    connectors.KnownTable
}

func (d *Destination) owned(ctx context.Context, pipeline string) ([]ownedTable, error) {
	var owned []ownedTable
	err := d.eng.Each(ctx, d.sql("owned"), []any{pipeline}, func(rows *sql.Rows) error {
		var o ownedTable
		err := rows.Scan(&o.sink.Schema, &o.sink.Table, &o.sink.Name, &o.identity, &o.known.TakenOver)
		o.known.Sink = o.sink.Name
		owned = append(owned, o)
		return err
	})
	if err != nil {
		return nil, d.failed("read the owners of tables", err)
	}
	for i := range owned {
		o := &owned[i]
		comment, there, err := d.comment(ctx, o.sink)
		if err != nil {
			return nil, err
		}
		if o.known.Gone = !there || !strings.Contains(comment, o.identity); o.known.Gone {
			continue
		}
		o.comment = comment
		if o.known.Rows, err = d.count(ctx, o.sink); err != nil {
			return nil, err
		}
	}
	return owned, nil
}

// Drop removes everything of a pipeline.
func (d *Destination) Drop(ctx context.Context, pipeline string, keep bool) error {
	clear(d.settled)
	return d.inTx(ctx, "drop pipeline "+pipeline, func() error { return d.dropTx(ctx, pipeline, keep) })
}

func (d *Destination) dropTx(ctx context.Context, pipeline string, keep bool) error {
	owned, err := d.owned(ctx, pipeline)
	if err != nil {
		return err
	}
	for _, o := range owned {
		switch {
		case o.known.Gone:
		case keep || o.known.TakenOver:
			err = d.disownTx(ctx, o, pipeline)
		default:
			err = d.eng.Exec(ctx, "DROP TABLE "+d.table(o.sink.Schema, o.sink.Table))
		}
		if err != nil {
			return d.failed("drop table "+o.sink.Name, err)
		}
	}
	return d.forgetTx(ctx, pipeline)
}

// disownTx makes a table nobody's.
func (d *Destination) disownTx(ctx context.Context, o ownedTable, pipeline string) error {
	table := d.table(o.sink.Schema, o.sink.Table)
	comment := "NULL"
	if rest := targets.Unmarked(o.comment, pipeline, o.identity); rest != "" {
		comment = duck.Literal(rest)
	}
	if err := d.eng.Exec(ctx, "COMMENT ON TABLE "+table+" IS "+comment); err != nil {
		return err
	}
	return d.eng.Exec(ctx, "ALTER TABLE "+table+" DROP COLUMN IF EXISTS "+duck.Quote(seqColumn))
}

// forgetTx removes the rows of a pipeline from every table of the schema etl that has some, and plans that
// nobody else has.
func (d *Destination) forgetTx(ctx context.Context, pipeline string) error {
	var tables []string
	err := d.eng.Each(ctx, d.sql("of-pipelines"), []any{d.alias}, func(rows *sql.Rows) error {
		var table string
		err := rows.Scan(&table)
		tables = append(tables, table)
		return err
	})
	for _, name := range []string{"forget-plans", "forget-parts"} {
		if err == nil {
			err = d.eng.Exec(ctx, d.sql(name), pipeline)
		}
	}
	for _, table := range tables {
		if err == nil {
			err = d.eng.Exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE pipeline = ?", d.table("etl", table)), pipeline)
		}
	}
	return d.failed("remove the record of pipeline "+pipeline, err)
}
