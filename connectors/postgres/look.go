package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// What the commands that only look ask for.

// BatchOf is the number of the batch that a change was, or that it came after.
func (d *Destination) BatchOf(ctx context.Context, pipeline string, seq int64) (batch int64, err error) {
	err = d.read(ctx, "look up a batch", func(tx *tx) error {
		return tx.row(ctx, sql("batch-of"), []any{pipeline, seq}, &batch)
	})
	return batch, err
}

// SeqOf is the change that a batch was; 0 when there is no such batch.
func (d *Destination) SeqOf(ctx context.Context, pipeline string, batch int64) (seq int64, err error) {
	if d.empty {
		return 0, nil
	}
	err = d.read(ctx, "look up a batch", func(tx *tx) error {
		return tx.row(ctx, sql("seq-of"), []any{pipeline, batch}, &seq)
	})
	return seq, err
}

// OfKind lists the changes of a kind, oldest first.
func (d *Destination) OfKind(ctx context.Context, pipeline, kind string) (out []checkpoints.Manifest, err error) {
	if d.empty {
		return nil, nil
	}
	err = d.read(ctx, "read the manifests of "+pipeline, func(tx *tx) error {
		var seqs []int64
		err := tx.each(ctx, sql("of-kind"), []any{pipeline, kind}, func(rows pgx.Rows) error {
			var seq int64
			err := rows.Scan(&seq)
			seqs = append(seqs, seq)
			return err
		})
		out = make([]checkpoints.Manifest, len(seqs))
		for i, seq := range seqs {
			if err == nil {
				out[i], err = manifestOf(ctx, tx, pipeline, seq)
			}
		}
		return err
	})
	return out, err
}

// Ranges lists everything a pipeline has read, oldest first.
func (d *Destination) Ranges(ctx context.Context, pipeline string) (out []connectors.FileRange, err error) {
	if d.empty {
		return nil, nil
	}
	err = d.read(ctx, "read the ranges of "+pipeline, func(tx *tx) error {
		out = nil
		return tx.each(ctx, sql("ranges"), []any{pipeline}, func(rows pgx.Rows) error {
			var r connectors.FileRange
			err := rows.Scan(&r.Source, &r.Split, &r.Content, &r.Seq, &r.Batch, &r.From, &r.To, &r.Rows, &r.Rejected)
			out = append(out, r)
			return err
		})
	})
	return out, err
}

// Rejects copies everything a pipeline has rejected to a temp table, and gives the query of it: source,
// split_id, off, line, reason, raw and the number of the batch.
func (d *Destination) Rejects(ctx context.Context, pipeline string) (string, error) {
	const copied = "_rejects_in_postgres"
	from := "SELECT j.source, j.split_id, j.off, j.line, j.reason, j.raw, m.batch, j.seq" +
		" FROM etl.rejects j JOIN etl.manifests m ON m.pipeline = j.pipeline AND m.seq = j.seq" +
		" LEFT JOIN (SELECT lower(a.source) AS source, max(a.seq) AS seq FROM etl.ranges a" +
		" JOIN etl.manifests b ON b.pipeline = a.pipeline AND b.seq = a.seq" +
		" WHERE b.kind = 'rebuild' AND a.pipeline = " + duck.Literal(pipeline) + " GROUP BY lower(a.source)) anew ON anew.source = lower(j.source)" +
		" LEFT JOIN (SELECT lower(source) AS source, split_id, max(seq) AS seq FROM etl.ranges" +
		" WHERE from_off = 0 AND pipeline = " + duck.Literal(pipeline) + " GROUP BY lower(source), split_id) begun ON begun.source = lower(j.source) AND begun.split_id = j.split_id" +
		" WHERE j.seq >= coalesce(anew.seq, 0) AND j.seq >= coalesce(begun.seq, 0) AND j.pipeline = " + duck.Literal(pipeline)
	if d.empty {
		from = "SELECT ''::text, ''::text, 0::bigint, 0::bigint, ''::text, ''::text, 0::bigint, 0::bigint WHERE false"
	}
	names := []string{"source", "split_id", "off", "line", "reason", "raw", "batch", "seq"}
	forms := []form{asText, asText, asInt8, asInt8, asText, asText, asInt8, asInt8}
	err := d.read(ctx, "read the rejects of "+pipeline, func(tx *tx) error {
		return d.copyOut(ctx, tx, from, newDecoderOf(names, forms, make([]bool, len(names))), copied, "SELECT *")
	})
	return "SELECT * FROM temp." + copied, err
}
