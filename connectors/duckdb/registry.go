package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/checkpoints"
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
		var key, columns []any
		err := rows.Scan(&o.sink.Schema, &o.sink.Table, &o.sink.Name, &o.identity, &o.known.TakenOver, &key, &columns)
		o.known.Sink, o.known.Schema, o.known.Table = o.sink.Name, o.sink.Schema, o.sink.Table
		for _, k := range key {
			o.known.Key = append(o.known.Key, fmt.Sprint(k))
		}
		for _, c := range columns {
			o.known.Columns = append(o.known.Columns, fmt.Sprint(c))
		}
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

// Rename gives everything of a pipeline another name.
func (d *Destination) Rename(ctx context.Context, from, to string) error {
	clear(d.settled)
	return d.inTx(ctx, "rename pipeline "+from, func() error { return d.renameTx(ctx, from, to) })
}

func (d *Destination) renameTx(ctx context.Context, from, to string) error {
	failed := func(err error) error { return d.failed("rename pipeline "+from, err) }
	k, err := d.Known(ctx, to)
	if err != nil {
		return err
	}
	if !k.Nothing() {
		return connectors.NameTaken(to)
	}
	if k, err = d.Known(ctx, from); err != nil {
		return err
	}
	if k.Nothing() {
		return connectors.NameUnknown(from)
	}
	history, err := d.manifests(ctx, from, 0, math.MaxInt64, math.MaxInt32)
	if err != nil {
		return err
	}
	slices.Reverse(history)
	renamed, err := checkpoints.Renamed(history, to)
	if err != nil {
		return &connectors.DamagedError{What: "the history of pipeline " + from, Reason: err.Error()}
	}
	owned, err := d.owned(ctx, from)
	if err != nil {
		return err
	}
	for _, o := range owned {
		if o.known.Gone {
			continue
		}
		comment := strings.Replace(o.comment, targets.Mark(from, o.identity), targets.Mark(to, o.identity), 1)
		if err := d.eng.Exec(ctx, "COMMENT ON TABLE "+d.table(o.sink.Schema, o.sink.Table)+" IS "+duck.Literal(comment)); err != nil {
			return failed(err)
		}
	}
	if err := d.forgetTx(ctx, to); err != nil { // of a run that never committed
		return err
	}
	tables, err := d.ofPipelines(ctx)
	if err != nil {
		return err
	}
	if err := d.eng.Exec(ctx, d.sql("forget-leases"), from); err != nil { // of runs that died
		return failed(err)
	}
	for _, table := range tables {
		if err := d.eng.Exec(ctx, fmt.Sprintf("UPDATE %s SET pipeline = ? WHERE pipeline = ?", d.table("etl", table)), to, from); err != nil {
			return failed(err)
		}
	}
	seqs, parents, sums := make([]int64, len(renamed)), make([]string, len(renamed)), make([]string, len(renamed))
	for i, m := range renamed {
		seqs[i], parents[i], sums[i] = m.Seq, m.ParentSHA, m.Checksum()
	}
	if err := d.eng.Exec(ctx, d.sql("reseal-manifests"), to, seqs, parents, sums); err != nil {
		return failed(err)
	}
	return failed(d.eng.Exec(ctx, d.sql("reseal-pipeline"), to, d.file))
}

// Adopt puts marks back.
func (d *Destination) Adopt(ctx context.Context, head connectors.Head, sinks []connectors.SinkSpec) (tables []string, err error) {
	clear(d.settled)
	err = d.inTx(ctx, "adopt tables", func() error {
		owners, err := d.owners(ctx)
		if err != nil {
			return err
		}
		for _, sink := range sinks {
			own, owned := owners[targets.Key(schemaOf(sink), sink.Table)]
			comment, there, err := d.comment(ctx, sink)
			if err != nil {
				return err
			}
			if !owned || own.Pipeline != head.Manifest.Pipeline || !there || strings.Contains(comment, own.Identity) {
				continue
			}
			marked := targets.Marked(comment, own.Pipeline, own.Identity)
			if err := d.eng.Exec(ctx, "COMMENT ON TABLE "+d.table(schemaOf(sink), sink.Table)+" IS "+duck.Literal(marked)); err != nil {
				return d.failed("mark table "+sink.Name, err)
			}
			if err := d.checkTarget(ctx, head.Manifest, sink, owners); err != nil {
				return err
			}
			tables = append(tables, sink.Name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return tables, nil
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
	tables, err := d.ofPipelines(ctx)
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

// ofPipelines lists the tables of the schema etl whose rows belong to pipelines.
func (d *Destination) ofPipelines(ctx context.Context) (tables []string, err error) {
	err = d.eng.Each(ctx, d.sql("of-pipelines"), []any{d.alias}, func(rows *sql.Rows) error {
		var table string
		err := rows.Scan(&table)
		tables = append(tables, table)
		return err
	})
	return tables, d.failed("list the tables of the schema etl", err)
}
