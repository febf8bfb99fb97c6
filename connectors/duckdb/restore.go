package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Segments lists the segments live at seq, oldest first, without their data. The list must add up to
// what the manifest of seq recorded: one that is lost would give a state that looks good.
func (d *Destination) Segments(ctx context.Context, pipeline string, incarnation, seq int64) ([]checkpoints.Segment, error) {
	if d.empty {
		return nil, nil
	}
	m, err := d.Manifest(ctx, pipeline, seq)
	if err != nil {
		return nil, err
	}
	live, err := d.Listed(ctx, pipeline, incarnation, seq)
	if err != nil {
		return nil, err
	}
	if sum := checkpoints.SumLive(live); sum != m.Live {
		return nil, &connectors.DamagedError{What: "the state of " + pipeline,
			Reason: fmt.Sprintf("the %d segments that are there are not the %d that manifest %d recorded", sum.Segments, m.Live.Segments, seq)}
	}
	return live, nil
}

// Listed is the list as it is stored.
func (d *Destination) Listed(ctx context.Context, pipeline string, incarnation, seq int64) ([]checkpoints.Segment, error) {
	var live []checkpoints.Segment
	err := d.eng.Each(ctx, d.sql("segments"), []any{pipeline, incarnation, seq}, func(rows *sql.Rows) error {
		var s checkpoints.Segment
		err := rows.Scan(&s.ID, &s.Step, &s.Level, &s.SeqLo, &s.SeqHi, &s.Rows, &s.Bytes, &s.Schema, &s.SHA256)
		live = append(live, s)
		return err
	})
	return live, d.readError("read the segments of "+pipeline, err)
}

// Consumed lists what a change read, in the order it was written down.
func (d *Destination) Consumed(ctx context.Context, pipeline string, seq int64) ([]checkpoints.Range, error) {
	var ranges []checkpoints.Range
	err := d.eng.Each(ctx, d.sql("consumed"), []any{pipeline, seq}, func(rows *sql.Rows) error {
		var r checkpoints.Range
		err := rows.Scan(&r.Source, &r.Split, &r.From, &r.To, &r.Rows, &r.Content)
		ranges = append(ranges, r)
		return err
	})
	return ranges, d.failed("read the ranges of "+pipeline, err)
}

// Points lists what can be restored: the checkpoints kept by the last compaction, and all since.
func (d *Destination) Points(ctx context.Context, pipeline string, incarnation int64) ([]checkpoints.Point, error) {
	var points []checkpoints.Point
	err := d.eng.Each(ctx, d.sql("points"), []any{pipeline, incarnation}, func(rows *sql.Rows) error {
		var p checkpoints.Point
		err := rows.Scan(&p.Seq, &p.Time)
		points = append(points, p)
		return err
	})
	return points, d.failed("list the checkpoints of "+pipeline, err)
}

// Load reads the data of a listed segment. It does not verify the bytes.
func (d *Destination) Load(ctx context.Context, seg *checkpoints.Segment) error {
	seg.Parts = nil
	err := d.eng.Each(ctx, d.sql("parts"), []any{seg.ID}, func(rows *sql.Rows) error {
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
	return d.readError("read the state of step "+seg.Step, err)
}

// History lists the newest n manifests, newest first; n ≤ 0 lists all. Each is verified by itself.
func (d *Destination) History(ctx context.Context, pipeline string, n int) ([]checkpoints.Manifest, error) {
	if d.empty {
		return nil, nil
	}
	if n <= 0 {
		n = math.MaxInt32
	}
	return d.manifests(ctx, pipeline, 0, math.MaxInt64, n)
}

// Pipelines lists the pipelines that have taken a lease in this database, by name.
func (d *Destination) Pipelines(ctx context.Context) ([]string, error) {
	if d.empty {
		return nil, nil
	}
	var names []string
	err := d.eng.Each(ctx, d.sql("pipelines"), nil, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, d.failed("list the pipelines", err)
}
