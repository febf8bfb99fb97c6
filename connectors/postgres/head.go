package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Head reads the newest committed state, all of it as of one moment, and verifies it against its own
// checksums.
func (d *Destination) Head(ctx context.Context, pipeline string) (connectors.Head, error) {
	head := freshHead(pipeline)
	if d.empty {
		return head, nil
	}
	err := d.read(ctx, "read the record of pipeline "+pipeline, func(tx *tx) (err error) {
		head, err = d.head(ctx, tx, pipeline)
		return err
	})
	return head, err
}

func freshHead(pipeline string) connectors.Head {
	fresh := connectors.Head{Fresh: true, LastBatch: -1}
	fresh.Manifest.Pipeline, fresh.Manifest.Incarnation = pipeline, 1
	return fresh
}

func (d *Destination) head(ctx context.Context, tx *tx, pipeline string) (connectors.Head, error) {
	row, err := pipelineOf(ctx, tx, pipeline)
	if err != nil {
		return connectors.Head{}, err
	}
	if err := d.checkTraces(ctx, tx, pipeline, row); err != nil {
		return connectors.Head{}, err
	}
	if row.seq == 0 {
		fresh := freshHead(pipeline)
		fresh.Fence, fresh.File = row.fence, row.file
		return fresh, nil
	}
	head := connectors.Head{Fence: row.fence, LastBatch: row.lastBatch, File: row.file, SHA: row.manifestSHA}
	m, err := manifestOf(ctx, tx, pipeline, row.seq)
	if err == nil {
		if disagrees := row.agrees(m); disagrees != nil {
			err = &connectors.DamagedError{What: "the record of pipeline " + pipeline, Reason: disagrees.Error()}
		}
	}
	var damage *connectors.DamagedError
	if errors.As(err, &damage) {
		return withoutManifest(ctx, tx, pipeline, head, row), err
	}
	if err != nil {
		return connectors.Head{}, err
	}
	head.Manifest = m
	head.Plan, err = planOf(ctx, tx, m.PlanID)
	return head, err
}

// withoutManifest fills a head from the row alone. Without a position that fits its checksum, or a plan,
// nothing can be made of it.
func withoutManifest(ctx context.Context, tx *tx, pipeline string, head connectors.Head, row pipelineRow) connectors.Head {
	m := checkpoints.Manifest{Pipeline: pipeline, Seq: row.seq, Incarnation: row.incarnation, Batch: row.lastBatch, PlanID: row.planID}
	if json.Unmarshal([]byte(row.position), &m.Position) != nil || m.Texts().PositionSHA() != row.positionSHA {
		return head
	}
	plan, err := planOf(ctx, tx, row.planID)
	if err != nil {
		return head
	}
	head.Manifest, head.Plan = m, plan
	return head
}

// pipelineRow is a row of etl.pipelines; all zero when there is none.
type pipelineRow struct {
	incarnation, fence, seq, lastBatch         int64
	planID, position, positionSHA, manifestSHA string
	file                                       string
}

func pipelineOf(ctx context.Context, tx *tx, pipeline string) (pipelineRow, error) {
	var r pipelineRow
	err := tx.row(ctx, sql("pipeline"), []any{pipeline},
		&r.incarnation, &r.fence, &r.seq, &r.lastBatch, &r.planID, &r.position, &r.positionSHA, &r.manifestSHA, &r.file)
	if errors.Is(err, pgx.ErrNoRows) {
		return pipelineRow{}, nil
	}
	return r, err
}

// agrees compares the row with the manifest it points to.
func (r pipelineRow) agrees(m checkpoints.Manifest) error {
	texts := m.Texts()
	switch {
	case r.manifestSHA != m.Checksum():
		return fmt.Errorf("manifest %d is not the one that was recorded last", m.Seq)
	case r.position != texts.Position || r.positionSHA != texts.PositionSHA():
		return fmt.Errorf("its position is not that of manifest %d", m.Seq)
	case r.incarnation != m.Incarnation || r.lastBatch != m.Batch || r.planID != m.PlanID:
		return fmt.Errorf("its batch or plan is not that of manifest %d", m.Seq)
	}
	return nil
}

// checkTraces notices a record that is missing or older than what was written after it: missing is
// not fresh, and starting over would double every row.
func (d *Destination) checkTraces(ctx context.Context, tx *tx, pipeline string, row pipelineRow) error {
	var traces int64
	if err := tx.row(ctx, sql("traces"), []any{pipeline, row.seq}, &traces); err != nil || traces == 0 {
		return err
	}
	reason := fmt.Sprintf("the record of pipeline %s is missing, but what it wrote is there", pipeline)
	if row.seq > 0 {
		reason = fmt.Sprintf("the record of pipeline %s stands at change %d, but newer ones are there", pipeline, row.seq)
	}
	return &connectors.TargetError{Table: "etl.pipelines", Reason: reason,
		Hint: "put the database back from a backup. To start over, `etl drop FILE` removes what is left of it, tables included"}
}

// Manifest reads one manifest and verifies it.
func (d *Destination) Manifest(ctx context.Context, pipeline string, seq int64) (m checkpoints.Manifest, err error) {
	err = d.read(ctx, "read the manifests of "+pipeline, func(tx *tx) (err error) {
		m, err = manifestOf(ctx, tx, pipeline, seq)
		return err
	})
	return m, err
}

func manifestOf(ctx context.Context, tx *tx, pipeline string, seq int64) (checkpoints.Manifest, error) {
	found, err := manifestsOf(ctx, tx, pipeline, seq, seq, 1)
	switch {
	case len(found) == 1:
		return found[0], err
	case err != nil:
		return checkpoints.Manifest{}, err
	}
	return checkpoints.Manifest{}, &connectors.DamagedError{What: fmt.Sprintf("manifest %d of %s", seq, pipeline), Reason: "it is not there"}
}

// manifestsOf reads up to limit manifests from seq lo to hi, newest first, and verifies each by itself.
func manifestsOf(ctx context.Context, tx *tx, pipeline string, lo, hi int64, limit int) ([]checkpoints.Manifest, error) {
	var found []checkpoints.Manifest
	err := tx.each(ctx, sql("manifests"), []any{pipeline, lo, hi, limit}, func(rows pgx.Rows) error {
		m := checkpoints.Manifest{Pipeline: pipeline}
		var texts checkpoints.Texts
		var checksum string
		if err := rows.Scan(&m.Seq, &m.Incarnation, &m.Batch, &m.Attempt, &m.Kind, &m.ParentSeq, &m.ParentSHA, &m.PlanID,
			&texts.Env, &m.BatchTime, &texts.Position, &texts.Counts, &m.RangesSHA, &texts.Live, &checksum); err != nil {
			return err
		}
		m.BatchTime = m.BatchTime.In(time.UTC)
		err := verify(&m, texts, checksum)
		found = append(found, m)
		if err != nil {
			return &connectors.DamagedError{What: fmt.Sprintf("manifest %d of %s", m.Seq, pipeline), Reason: err.Error()}
		}
		return nil
	})
	return found, err
}

func verify(m *checkpoints.Manifest, texts checkpoints.Texts, checksum string) error {
	if err := m.SetTexts(texts); err != nil {
		return err
	}
	if m.Checksum() != checksum {
		return errors.New("its checksum does not fit")
	}
	return m.Check()
}

func planOf(ctx context.Context, tx *tx, id string) (connectors.PlanRecord, error) {
	var p connectors.PlanRecord
	err := tx.row(ctx, sql("plan"), []any{id}, &p.ID, &p.Canon, &p.Input, &p.State, &p.Output, &p.Env, &p.SQL, &p.Canonical)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, &connectors.DamagedError{What: "plan " + id, Reason: "it is not in etl.plans"}
	}
	return p, err
}

// History lists the newest n manifests, newest first; n ≤ 0 lists all. Each is verified by itself.
func (d *Destination) History(ctx context.Context, pipeline string, n int) (found []checkpoints.Manifest, err error) {
	if d.empty {
		return nil, nil
	}
	if n <= 0 {
		n = math.MaxInt32
	}
	err = d.read(ctx, "read the manifests of "+pipeline, func(tx *tx) (err error) {
		found, err = manifestsOf(ctx, tx, pipeline, 0, math.MaxInt64, n)
		return err
	})
	return found, err
}

// Pipelines lists the pipelines that have taken a lease in this database, by name.
func (d *Destination) Pipelines(ctx context.Context) (names []string, err error) {
	if d.empty {
		return nil, nil
	}
	err = d.read(ctx, "list the pipelines", func(tx *tx) error {
		names = nil
		return tx.each(ctx, sql("pipelines"), nil, func(rows pgx.Rows) error {
			var name string
			err := rows.Scan(&name)
			names = append(names, name)
			return err
		})
	})
	return names, err
}
