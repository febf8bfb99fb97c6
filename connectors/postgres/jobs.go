package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// SaveJob stores a job in the place of what was stored of its kind before.
func (d *Destination) SaveJob(ctx context.Context, job connectors.Job) error {
	var ids []string
	segments := make([]*checkpoints.Segment, len(job.Segments))
	for i := range job.Segments {
		ids, segments[i] = append(ids, job.Segments[i].ID), &job.Segments[i]
	}
	return d.inTx(ctx, "save what was folded", func(tx *tx) error {
		if err := forgetJobTx(ctx, tx, job.Pipeline, job.Kind); err != nil {
			return err
		}
		if err := storeSegmentsTx(ctx, tx, job.Pipeline, segments); err != nil {
			return err
		}
		return tx.exec(ctx, sql("insert-job"), job.Pipeline, job.Kind, job.BaseSeq, job.Spec, strings.Join(ids, " "))
	})
}

// Job finds what was saved.
func (d *Destination) Job(ctx context.Context, pipeline, kind string) (job connectors.Job, err error) {
	if d.empty {
		return connectors.Job{}, nil
	}
	err = d.read(ctx, "look for what was folded before", func(tx *tx) error {
		job = connectors.Job{Pipeline: pipeline, Kind: kind}
		var staging string
		err := tx.row(ctx, sql("job"), []any{pipeline, kind}, &job.BaseSeq, &job.Spec, &staging)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		ids := strings.Fields(staging)
		err = tx.each(ctx, sql("job-segments"), []any{pipeline, ids}, func(rows pgx.Rows) error {
			var s checkpoints.Segment
			err := rows.Scan(&s.ID, &s.Step, &s.Level, &s.SeqLo, &s.SeqHi, &s.Rows, &s.Bytes, &s.Schema, &s.SHA256)
			job.Segments = append(job.Segments, s)
			return err
		})
		if err == nil && len(job.Segments) != len(ids) {
			job.Segments = nil // not whole
		}
		return err
	})
	return job, err
}

// Jobs lists what was saved.
func (d *Destination) Jobs(ctx context.Context, pipeline string) (jobs []connectors.Job, err error) {
	if d.empty {
		return nil, nil
	}
	err = d.read(ctx, "look for what was folded before", func(tx *tx) error {
		jobs = nil
		return tx.each(ctx, sql("jobs"), []any{pipeline}, func(rows pgx.Rows) error {
			job := connectors.Job{Pipeline: pipeline}
			err := rows.Scan(&job.Kind, &job.BaseSeq, &job.Spec)
			jobs = append(jobs, job)
			return err
		})
	})
	return jobs, err
}

// ForgetJob removes what was saved.
func (d *Destination) ForgetJob(ctx context.Context, pipeline, kind string) error {
	job, err := d.Job(ctx, pipeline, kind)
	if err != nil || job.Spec == "" {
		return err
	}
	return d.inTx(ctx, "remove what was saved", func(tx *tx) error { return forgetJobTx(ctx, tx, pipeline, kind) })
}

func forgetJobTx(ctx context.Context, tx *tx, pipeline, kind string) error {
	for _, name := range []string{"forget-job-parts", "forget-job-segments", "forget-job"} {
		if err := tx.exec(ctx, sql(name), pipeline, kind); err != nil {
			return err
		}
	}
	return nil
}
