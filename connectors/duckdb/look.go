package duckdb

import (
	"context"
	"database/sql"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// What the commands that only look ask for.

// BatchOf is the number of the batch that a change was, or that it came after.
func (d *Destination) BatchOf(ctx context.Context, pipeline string, seq int64) (int64, error) {
	var batch int64
	err := d.eng.QueryRow(ctx, d.sql("batch-of"), []any{pipeline, seq}, &batch)
	return batch, d.failed("look up a batch", err)
}

// SeqOf is the change that a batch was; 0 when there is no such batch.
func (d *Destination) SeqOf(ctx context.Context, pipeline string, batch int64) (int64, error) {
	if d.empty {
		return 0, nil
	}
	var seq int64
	err := d.eng.QueryRow(ctx, d.sql("seq-of"), []any{pipeline, batch}, &seq)
	return seq, d.failed("look up a batch", err)
}

// OfKind lists the changes of a kind, oldest first.
func (d *Destination) OfKind(ctx context.Context, pipeline, kind string) ([]checkpoints.Manifest, error) {
	if d.empty {
		return nil, nil
	}
	var seqs []int64
	err := d.eng.Each(ctx, d.sql("of-kind"), []any{pipeline, kind}, func(rows *sql.Rows) error {
		var seq int64
		err := rows.Scan(&seq)
		seqs = append(seqs, seq)
		return err
	})
	if err != nil {
		return nil, d.failed("read the manifests of "+pipeline, err)
	}
	out := make([]checkpoints.Manifest, len(seqs))
	for i, seq := range seqs {
		if out[i], err = d.Manifest(ctx, pipeline, seq); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Ranges lists everything a pipeline has read, oldest first.
func (d *Destination) Ranges(ctx context.Context, pipeline string) ([]connectors.FileRange, error) {
	if d.empty {
		return nil, nil
	}
	var out []connectors.FileRange
	err := d.eng.Each(ctx, d.sql("ranges"), []any{pipeline}, func(rows *sql.Rows) error {
		var r connectors.FileRange
		err := rows.Scan(&r.Source, &r.Split, &r.Content, &r.Seq, &r.Batch, &r.From, &r.To, &r.Rows, &r.Rejected)
		out = append(out, r)
		return err
	})
	return out, d.readError("read the ranges of "+pipeline, err)
}

// Rejects is a query of everything a pipeline has rejected: source, split_id, off, line, reason, raw and
// the number of the batch.
func (d *Destination) Rejects(_ context.Context, pipeline string) (string, error) {
	if d.empty {
		return "SELECT ''::VARCHAR AS source, ''::VARCHAR AS split_id, 0::BIGINT AS off, 0::BIGINT AS line, ''::VARCHAR AS reason, ''::VARCHAR AS raw, 0::BIGINT AS batch, 0::BIGINT AS seq WHERE false", nil
	}
	return strings.ReplaceAll(d.sql("rejects"), "{pipeline}", duck.Literal(pipeline)), nil
}
