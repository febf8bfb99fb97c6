package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"strings"

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
	return d.inTx(ctx, "save what was folded", func() error {
		if err := d.forgetJobTx(ctx, job.Pipeline, job.Kind); err != nil {
			return err
		}
		if err := d.storeSegmentsTx(ctx, job.Pipeline, segments); err != nil {
			return err
		}
		return d.failed("save what was folded", d.eng.Exec(ctx, d.sql("insert-job"), job.Pipeline, job.Kind, job.BaseSeq, job.Spec, strings.Join(ids, " ")))
	})
}

// Job finds what was saved.
func (d *Destination) Job(ctx context.Context, pipeline, kind string) (connectors.Job, error) {
	job := connectors.Job{Pipeline: pipeline, Kind: kind}
	if d.empty {
		return job, nil
	}
	var staging string
	err := d.eng.QueryRow(ctx, d.sql("job"), []any{pipeline, kind}, &job.BaseSeq, &job.Spec, &staging)
	if errors.Is(err, sql.ErrNoRows) {
		return job, nil
	}
	if err != nil {
		return job, d.failed("look for what was folded before", err)
	}
	ids := strings.Fields(staging)
	err = d.eng.Each(ctx, d.sql("job-segments"), []any{pipeline, ids}, func(rows *sql.Rows) error {
		var s checkpoints.Segment
		err := rows.Scan(&s.ID, &s.Step, &s.Level, &s.SeqLo, &s.SeqHi, &s.Rows, &s.Bytes, &s.Schema, &s.SHA256)
		job.Segments = append(job.Segments, s)
		return err
	})
	if err == nil && len(job.Segments) != len(ids) {
		job.Segments = nil // not whole
	}
	return job, d.failed("look for what was folded before", err)
}

// Jobs lists what was saved.
func (d *Destination) Jobs(ctx context.Context, pipeline string) (jobs []connectors.Job, err error) {
	if d.empty {
		return nil, nil
	}
	err = d.eng.Each(ctx, d.sql("jobs"), []any{pipeline}, func(rows *sql.Rows) error {
		job := connectors.Job{Pipeline: pipeline}
		err := rows.Scan(&job.Kind, &job.BaseSeq, &job.Spec)
		jobs = append(jobs, job)
		return err
	})
	return jobs, d.failed("look for what was folded before", err)
}

// ForgetJob removes what was saved.
func (d *Destination) ForgetJob(ctx context.Context, pipeline, kind string) error {
	job, err := d.Job(ctx, pipeline, kind)
	if err != nil || job.Spec == "" {
		return err
	}
	return d.inTx(ctx, "remove what was saved", func() error { return d.forgetJobTx(ctx, pipeline, kind) })
}

func (d *Destination) forgetJobTx(ctx context.Context, pipeline, kind string) error {
	for _, name := range []string{"forget-job-parts", "forget-job-segments", "forget-job"} {
		if err := d.eng.Exec(ctx, d.sql(name), pipeline, kind); err != nil {
			return d.failed("remove what was saved", err)
		}
	}
	return nil
}
