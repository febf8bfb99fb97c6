package duckdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Head reads the newest committed state and verifies it against its own checksums.
func (d *Destination) Head(ctx context.Context, pipeline string) (connectors.Head, error) {
	fresh := connectors.Head{Fresh: true, LastBatch: -1}
	fresh.Manifest.Pipeline, fresh.Manifest.Incarnation = pipeline, 1
	if d.empty {
		return fresh, nil
	}
	row, err := d.pipelineRow(ctx, pipeline)
	if err != nil {
		return connectors.Head{}, err
	}
	if err := d.checkTraces(ctx, pipeline, row); err != nil {
		return connectors.Head{}, err
	}
	if row.seq == 0 {
		fresh.Fence, fresh.File = row.fence, row.file
		return fresh, nil
	}
	head := connectors.Head{Fence: row.fence, LastBatch: row.lastBatch, File: row.file, SHA: row.manifestSHA}
	m, err := d.Manifest(ctx, pipeline, row.seq)
	if err == nil {
		if disagrees := row.agrees(m); disagrees != nil {
			err = &connectors.DamagedError{What: "the record of pipeline " + pipeline, Reason: disagrees.Error()}
		}
	}
	var damage *connectors.DamagedError
	if errors.As(err, &damage) {
		return d.withoutManifest(ctx, pipeline, head, row), err
	}
	if err != nil {
		return connectors.Head{}, err
	}
	head.Manifest = m
	head.Plan, err = d.plan(ctx, m.PlanID)
	return head, err
}

// withoutManifest fills a head from the row alone. Without a position that fits its checksum, or a plan,
// nothing can be made of it.
func (d *Destination) withoutManifest(ctx context.Context, pipeline string, head connectors.Head, row pipelineRow) connectors.Head {
	m := checkpoints.Manifest{Pipeline: pipeline, Seq: row.seq, Incarnation: row.incarnation, Batch: row.lastBatch, PlanID: row.planID}
	if json.Unmarshal([]byte(row.position), &m.Position) != nil || m.Texts().PositionSHA() != row.positionSHA {
		return head
	}
	plan, err := d.plan(ctx, row.planID)
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

func (d *Destination) pipelineRow(ctx context.Context, pipeline string) (pipelineRow, error) {
	var r pipelineRow
	err := d.eng.QueryRow(ctx, d.sql("pipeline"), []any{pipeline},
		&r.incarnation, &r.fence, &r.seq, &r.lastBatch, &r.planID, &r.position, &r.positionSHA, &r.manifestSHA, &r.file)
	if errors.Is(err, sql.ErrNoRows) {
		return pipelineRow{}, nil
	}
	return r, d.failed("read the record of pipeline "+pipeline, err)
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
func (d *Destination) checkTraces(ctx context.Context, pipeline string, row pipelineRow) error {
	var traces int64
	if err := d.eng.QueryRow(ctx, d.sql("traces"), []any{pipeline, row.seq}, &traces); err != nil {
		return d.failed("read the history of pipeline "+pipeline, err)
	}
	if traces == 0 {
		return nil
	}
	reason := fmt.Sprintf("the record of pipeline %s is missing, but what it wrote is there", pipeline)
	if row.seq > 0 {
		reason = fmt.Sprintf("the record of pipeline %s stands at change %d, but newer ones are there", pipeline, row.seq)
	}
	return &connectors.TargetError{Table: "etl.pipelines", Reason: reason,
		Hint: "put " + d.path + " back from a backup. To start over, `etl drop FILE` removes what is left of it, tables included"}
}

// Manifest reads one manifest and verifies it.
func (d *Destination) Manifest(ctx context.Context, pipeline string, seq int64) (checkpoints.Manifest, error) {
	found, err := d.manifests(ctx, pipeline, seq, seq, 2)
	if err != nil && len(found) == 1 {
		return found[0], err
	}
	if err != nil {
		return checkpoints.Manifest{}, err
	}
	if len(found) != 1 {
		return checkpoints.Manifest{}, &connectors.DamagedError{What: fmt.Sprintf("manifest %d of %s", seq, pipeline),
			Reason: fmt.Sprintf("it is there %d times", len(found))}
	}
	return found[0], nil
}

// manifests reads up to limit manifests from seq lo to hi, newest first, and verifies each by itself.
func (d *Destination) manifests(ctx context.Context, pipeline string, lo, hi int64, limit int) ([]checkpoints.Manifest, error) {
	var found []checkpoints.Manifest
	err := d.eng.Each(ctx, d.sql("manifests"), []any{pipeline, lo, hi, limit}, func(rows *sql.Rows) error {
		m := checkpoints.Manifest{Pipeline: pipeline}
		var texts checkpoints.Texts
		var checksum string
		if err := rows.Scan(&m.Seq, &m.Incarnation, &m.Batch, &m.Attempt, &m.Kind, &m.ParentSeq, &m.ParentSHA, &m.PlanID,
			&texts.Env, &m.BatchTime, &texts.Position, &texts.Counts, &m.RangesSHA, &texts.Live, &checksum); err != nil {
			return err
		}
		m.BatchTime = m.BatchTime.UTC()
		err := verify(&m, texts, checksum)
		found = append(found, m)
		if err != nil {
			return &connectors.DamagedError{What: fmt.Sprintf("manifest %d of %s", m.Seq, pipeline), Reason: err.Error()}
		}
		return nil
	})
	return found, d.readError("read the manifests of "+pipeline, err)
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

func (d *Destination) plan(ctx context.Context, id string) (connectors.PlanRecord, error) {
	var p connectors.PlanRecord
	err := d.eng.QueryRow(ctx, d.sql("plan"), []any{id}, &p.ID, &p.Canon, &p.Input, &p.State, &p.Output, &p.Env, &p.SQL, &p.Canonical)
	if errors.Is(err, sql.ErrNoRows) {
		return p, &connectors.DamagedError{What: "plan " + id, Reason: "it is not in etl.plans"}
	}
	return p, d.failed("read the plan", err)
}

// Take bumps the fence and enters this process as the holder. Whoever held the lease before has given
// the file back or is dead, or it would not be attached here.
func (d *Destination) Take(ctx context.Context, pipeline string) (connectors.Lease, connectors.Head, error) {
	lease := connectors.Lease{Pipeline: pipeline, Holder: uuid.NewString()}
	// A record that was lost must not be replaced by a new one.
	var damage *connectors.DamagedError
	if head, err := d.Head(ctx, pipeline); err != nil && (!errors.As(err, &damage) || head.Manifest.Seq == 0) {
		return lease, head, err
	}
	doing := "take the lease of pipeline " + pipeline
	err := d.inTx(ctx, doing, func() error {
		n, err := d.eng.ExecCount(ctx, d.sql("bump-fence"), pipeline, d.file)
		if err == nil && n == 0 {
			err = d.eng.Exec(ctx, d.sql("insert-pipeline"), pipeline, d.file)
		}
		if err == nil {
			err = d.eng.Exec(ctx, d.sql("take-lease"), pipeline, lease.Holder, hostname(), bootID(), os.Getpid())
		}
		return d.failed(doing, err)
	})
	if err != nil {
		return lease, connectors.Head{}, err
	}
	head, err := d.Head(ctx, pipeline)
	lease.Fence = head.Fence
	return lease, head, err
}

// Release gives the lease back; one that was taken over is left alone.
func (d *Destination) Release(ctx context.Context, lease connectors.Lease) error {
	return d.failed("release the lease of pipeline "+lease.Pipeline,
		d.eng.Exec(ctx, d.sql("release-lease"), lease.Pipeline, lease.Holder))
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// bootID tells a pid of this boot from the same number before a restart; "" where there is none.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
