package postgres

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/protocol"
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
	err := d.read(ctx, "read the record of pipeline "+pipeline, func(tx *tx) (err error) {
		k, err = knownOf(ctx, tx, pipeline)
		return err
	})
	return k, err
}

func knownOf(ctx context.Context, tx *tx, pipeline string) (k connectors.Known, err error) {
	err = tx.row(ctx, sql("known"), []any{pipeline}, &k.Traces, &k.Batch, &k.Changes, &k.Splits, &k.Rejected, &k.Bytes)
	if err != nil {
		return k, err
	}
	owned, err := ownedOf(ctx, tx, pipeline)
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

func ownedOf(ctx context.Context, tx *tx, pipeline string) ([]ownedTable, error) {
	var owned []ownedTable
	err := tx.each(ctx, sql("owned"), []any{pipeline}, func(rows pgx.Rows) error {
		var o ownedTable
		err := rows.Scan(&o.sink.Schema, &o.sink.Table, &o.sink.Name, &o.identity, &o.known.TakenOver, &o.known.Key, &o.known.Columns)
		o.known.Sink, o.known.Schema, o.known.Table = o.sink.Name, o.sink.Schema, o.sink.Table
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
		if err := d.aloneTx(ctx, tx, lease); err != nil {
			return err
		}
		return fn(tx)
	})
}

func (d *Destination) aloneTx(ctx context.Context, tx *tx, lease connectors.Lease) error {
	if err := protocol.EnterTx(ctx, &taking{d: d, pipeline: lease.Pipeline, tx: tx}, &lease); err != nil {
		return err
	}
	var others int
	err := tx.row(ctx, sql("other-lanes"), []any{lease.Pipeline}, &others)
	if err == nil && others > 0 {
		err = &connectors.HeldError{What: "pipeline " + lease.Pipeline + " in " + d.name, By: "a job beside the runs, such as a backfill"}
	}
	return err
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

// Rename gives everything of a pipeline another name. The lease moves too: by it a COMMIT whose answer was lost
// is known again.
func (d *Destination) Rename(ctx context.Context, from, to string) error {
	clear(d.settled)
	lease := connectors.Lease{Pipeline: from, Holder: uuid.NewString()}
	moved := connectors.Lease{Pipeline: to, Holder: lease.Holder}
	err := d.inTx(ctx, "rename pipeline "+from, func(tx *tx) error {
		row, there, err := d.leaseRow(ctx, tx, to)
		switch {
		case err != nil:
			return err
		case there && row.holder == moved.Holder:
			return nil // it was committed
		case there && !row.expired && !row.dead():
			return &connectors.HeldError{What: "pipeline " + to + " in " + d.name, By: row.by()}
		}
		k, err := knownOf(ctx, tx, from)
		if err != nil {
			return err
		}
		if k.Nothing() {
			return connectors.NameUnknown(from)
		}
		if err := d.aloneTx(ctx, tx, lease); err != nil {
			return err
		}
		return d.renameTx(ctx, tx, from, to)
	})
	if err != nil {
		return err
	}
	return d.Release(ctx, moved)
}

func (d *Destination) renameTx(ctx context.Context, tx *tx, from, to string) error {
	k, err := knownOf(ctx, tx, to)
	if err != nil {
		return err
	}
	if !k.Nothing() {
		return connectors.NameTaken(to)
	}
	history, err := manifestsOf(ctx, tx, from, 0, math.MaxInt64, math.MaxInt32)
	if err != nil {
		return err
	}
	slices.Reverse(history)
	renamed, err := checkpoints.Renamed(history, to)
	if err != nil {
		return &connectors.DamagedError{What: "the history of pipeline " + from, Reason: err.Error()}
	}
	owned, err := ownedOf(ctx, tx, from)
	if err != nil {
		return err
	}
	for _, o := range owned {
		if o.known.Gone {
			continue
		}
		comment := strings.Replace(o.comment, targets.Mark(from, o.identity), targets.Mark(to, o.identity), 1)
		if err := tx.script(ctx, "COMMENT ON TABLE "+tableOf(o.sink)+" IS "+duck.Literal(comment)); err != nil {
			return err
		}
	}
	if err := forgetTx(ctx, tx, to); err != nil { // of a run that never committed
		return err
	}
	tables, err := ofPipelines(ctx, tx)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := tx.exec(ctx, "UPDATE etl."+duck.Quote(table)+" SET pipeline = $1 WHERE pipeline = $2", to, from); err != nil {
			return err
		}
	}
	seqs, parents, sums := make([]int64, len(renamed)), make([]string, len(renamed)), make([]string, len(renamed))
	for i, m := range renamed {
		seqs[i], parents[i], sums[i] = m.Seq, m.ParentSHA, m.Checksum()
	}
	if err := tx.exec(ctx, sql("reseal-manifests"), to, seqs, parents, sums); err != nil {
		return err
	}
	return tx.exec(ctx, sql("reseal-pipeline"), to, d.file)
}

// Adopt puts marks back.
func (d *Destination) Adopt(ctx context.Context, head connectors.Head, sinks []connectors.SinkSpec) (tables []string, err error) {
	lease := connectors.Lease{Pipeline: head.Manifest.Pipeline, Holder: uuid.NewString()}
	err = d.alone(ctx, "adopt tables", lease, func(tx *tx) error {
		tables = nil
		if err := d.checkHead(ctx, tx, head.Manifest.Pipeline, head.Manifest.Seq); err != nil {
			return err
		}
		owners, err := ownersOf(ctx, tx)
		if err != nil {
			return err
		}
		for _, sink := range sinks {
			own, owned := owners[targets.Key(schemaOf(sink), sink.Table)]
			there, err := find(ctx, tx, sink)
			if err != nil {
				return err
			}
			if !owned || own.Pipeline != head.Manifest.Pipeline || there == nil || there.kind != "r" || there.name != sink.Table || strings.Contains(there.comment, own.Identity) {
				continue
			}
			marked := targets.Marked(there.comment, own.Pipeline, own.Identity)
			if err := tx.script(ctx, "COMMENT ON TABLE "+tableOf(sink)+" IS "+duck.Literal(marked)); err != nil {
				return err
			}
			if err := d.checkTarget(ctx, tx, head.Manifest, sink, owners); err != nil {
				return err
			}
			tables = append(tables, sink.Name)
		}
		return tx.exec(ctx, sql("release-lease"), lease.Pipeline, lease.Holder)
	})
	if err != nil {
		return nil, err
	}
	return tables, nil
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
	tables, err := ofPipelines(ctx, tx)
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

// ofPipelines lists the tables of the schema etl whose rows belong to pipelines.
func ofPipelines(ctx context.Context, tx *tx) (tables []string, err error) {
	err = tx.each(ctx, sql("of-pipelines"), nil, func(rows pgx.Rows) error {
		var table string
		err := rows.Scan(&table)
		tables = append(tables, table)
		return err
	})
	return tables, err
}
