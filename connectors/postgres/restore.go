package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Segments lists the segments live at seq, oldest first, without their data. The list must add up to
// what the manifest of seq recorded: one that is lost would give a state that looks good.
func (d *Destination) Segments(ctx context.Context, pipeline string, incarnation, seq int64) (live []checkpoints.Segment, err error) {
	if d.empty {
		return nil, nil
	}
	err = d.read(ctx, "read the segments of "+pipeline, func(tx *tx) error {
		m, err := manifestOf(ctx, tx, pipeline, seq)
		if err != nil {
			return err
		}
		if live, err = segmentsOf(ctx, tx, pipeline, incarnation, seq); err != nil {
			return err
		}
		sum := checkpoints.SumLive(live)
		if sum == m.Live {
			return nil
		}
		if !d.beat.writes(pipeline) {
			// Nothing keeps another run from compacting what this one only looks at.
			if err := d.checkHead(ctx, tx, pipeline, seq); err != nil {
				return err
			}
		}
		return &connectors.DamagedError{What: "the state of " + pipeline,
			Reason: fmt.Sprintf("the %d segments that are there are not the %d that manifest %d recorded", sum.Segments, m.Live.Segments, seq)}
	})
	return live, err
}

// Listed is the list as it is stored.
func (d *Destination) Listed(ctx context.Context, pipeline string, incarnation, seq int64) (live []checkpoints.Segment, err error) {
	err = d.read(ctx, "read the segments of "+pipeline, func(tx *tx) (err error) {
		live, err = segmentsOf(ctx, tx, pipeline, incarnation, seq)
		return err
	})
	return live, err
}

func segmentsOf(ctx context.Context, tx *tx, pipeline string, incarnation, seq int64) ([]checkpoints.Segment, error) {
	var live []checkpoints.Segment
	err := tx.each(ctx, sql("segments"), []any{pipeline, incarnation, seq}, func(rows pgx.Rows) error {
		var s checkpoints.Segment
		err := rows.Scan(&s.ID, &s.Step, &s.Level, &s.SeqLo, &s.SeqHi, &s.Rows, &s.Bytes, &s.Schema, &s.SHA256)
		live = append(live, s)
		return err
	})
	return live, err
}

// Consumed lists what a change read, in the order it was written down.
func (d *Destination) Consumed(ctx context.Context, pipeline string, seq int64) (ranges []checkpoints.Range, err error) {
	err = d.read(ctx, "read the ranges of "+pipeline, func(tx *tx) error {
		ranges = nil
		return tx.each(ctx, sql("consumed"), []any{pipeline, seq}, func(rows pgx.Rows) error {
			var r checkpoints.Range
			err := rows.Scan(&r.Source, &r.Split, &r.From, &r.To, &r.Rows, &r.Content)
			ranges = append(ranges, r)
			return err
		})
	})
	return ranges, err
}

// Points lists what can be restored: the checkpoints kept by the last compaction, and all since.
func (d *Destination) Points(ctx context.Context, pipeline string, incarnation int64) (points []checkpoints.Point, err error) {
	err = d.read(ctx, "list the checkpoints of "+pipeline, func(tx *tx) error {
		points = nil
		return tx.each(ctx, sql("points"), []any{pipeline, incarnation}, func(rows pgx.Rows) error {
			var p checkpoints.Point
			err := rows.Scan(&p.Seq, &p.Time)
			points = append(points, p)
			return err
		})
	})
	return points, err
}

// Load reads the data of a listed segment. It does not verify the bytes.
func (d *Destination) Load(ctx context.Context, seg *checkpoints.Segment) error {
	return d.read(ctx, "read the state of step "+seg.Step, func(tx *tx) error {
		seg.Parts = nil
		return tx.each(ctx, sql("parts"), []any{seg.ID}, func(rows pgx.Rows) error {
			var number int
			var data []byte
			if err := rows.Scan(&number, &data); err != nil {
				return err
			}
			if number != len(seg.Parts) {
				return &connectors.DamagedError{What: "segment " + seg.ID + " of step " + seg.Step, Reason: fmt.Sprintf("part %d is missing or doubled", len(seg.Parts))}
			}
			seg.Parts = append(seg.Parts, data)
			return nil
		})
	})
}
