package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Segments lists the segments live at seq, oldest first, without their data. It checks first that the
// manifests up to seq added exactly the segments that are recorded: one that is lost would give a
// state that looks good.
func (d *Destination) Segments(ctx context.Context, pipeline string, incarnation, seq int64) ([]checkpoints.Segment, error) {
	if d.empty {
		return nil, nil
	}
	var live []checkpoints.Segment
	added := map[int64][]*checkpoints.Segment{}
	err := d.eng.Each(ctx, d.sql("segments"), []any{pipeline, incarnation, seq}, func(rows *sql.Rows) error {
		var s checkpoints.Segment
		var addedSeq int64
		var removed sql.NullInt64
		var there bool
		if err := rows.Scan(&addedSeq, &removed, &s.ID, &there, &s.Step, &s.Level, &s.SeqLo, &s.SeqHi, &s.Rows, &s.Bytes, &s.Schema, &s.SHA256); err != nil {
			return err
		}
		if there {
			added[addedSeq] = append(added[addedSeq], &s)
		}
		if there && (!removed.Valid || removed.Int64 > seq) {
			live = append(live, s)
		}
		return nil
	})
	if err == nil {
		err = d.eng.Each(ctx, d.sql("segment-sums"), []any{pipeline, incarnation, seq}, func(rows *sql.Rows) error {
			var at int64
			var sum string
			if err := rows.Scan(&at, &sum); err != nil {
				return err
			}
			if checkpoints.SegmentsSHA(added[at]) != sum {
				return &connectors.DamagedError{What: fmt.Sprintf("the state of %s", pipeline),
					Reason: fmt.Sprintf("the segments of manifest %d are not those it recorded", at)}
			}
			return nil
		})
	}
	if err != nil {
		return nil, d.readError("read the segments of "+pipeline, err)
	}
	return live, nil
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
