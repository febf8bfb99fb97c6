package duckdb

import (
	"context"
	"fmt"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// Rows of a kind are written by one statement, as whole columns: a statement costs 0.5 ms, and 5,000
// ranges take a tenth of what they take as rows of parameters.

// insertRejectsTx keeps the rows that were left out, as many as the manifest counts.
func (d *Destination) insertRejectsTx(ctx context.Context, change *connectors.Change) error {
	rejected := map[string]int64{}
	for _, r := range change.Rejects {
		n, err := d.eng.ExecCount(ctx, d.inDatabase("INSERT INTO {db}.etl.rejects (pipeline, seq, source, split_id, off, line, reason, raw) "+
			"SELECT ?, ?, source, split_id, off, line, reason, raw FROM temp.")+duck.Quote(r.Table),
			change.Manifest.Pipeline, change.Manifest.Seq)
		if err != nil {
			return d.failed("write the rejects of source "+r.Source, err)
		}
		rejected[r.Source] += n
	}
	for source, c := range change.Manifest.Sources {
		if rejected[source] != c.Rejected {
			return fmt.Errorf("source %s: %d rejects were written, the manifest counts %d; nothing was committed. This is a mistake in etl: please report it",
				source, rejected[source], c.Rejected)
		}
	}
	return nil
}

// insertSegmentsTx writes the segments a change adds and makes them live.
func (d *Destination) insertSegmentsTx(ctx context.Context, m checkpoints.Manifest, segments []*checkpoints.Segment) error {
	if len(segments) == 0 {
		return nil
	}
	if err := d.storeSegmentsTx(ctx, m.Pipeline, segments); err != nil {
		return err
	}
	ids := make([]string, len(segments))
	for i, s := range segments {
		ids[i] = s.ID
	}
	return d.failed("write the state", d.eng.Exec(ctx, d.sql("use-segments"), m.Pipeline, m.Incarnation, ids, m.Seq))
}

// storeSegmentsTx writes segments and makes none of them live.
func (d *Destination) storeSegmentsTx(ctx context.Context, pipeline string, segments []*checkpoints.Segment) error {
	n := len(segments)
	if n == 0 {
		return nil
	}
	ids, steps, schemas, sums := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	levels, los, his, rows, sizes, parts := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, s := range segments {
		ids[i], steps[i], schemas[i], sums[i] = s.ID, s.Step, s.Schema, s.SHA256
		levels[i], los[i], his[i] = int64(s.Level), s.SeqLo, s.SeqHi
		rows[i], sizes[i], parts[i] = s.Rows, s.Bytes, int64(len(s.Parts))
	}
	if err := d.insertPartsTx(ctx, segments); err != nil {
		return d.failed("write the state", err)
	}
	return d.failed("write the state", d.eng.Exec(ctx, d.sql("insert-segments"), pipeline, ids, steps, levels, los, his, rows, sizes, parts, schemas, sums))
}

// removeSegmentsTx ends the life of segments; a compaction also drops the data that no kept checkpoint
// needs.
func (d *Destination) removeSegmentsTx(ctx context.Context, change *connectors.Change) error {
	m := change.Manifest
	if change.Whole {
		return d.failed("replace the state", d.eng.Exec(ctx, d.sql("remove-all-segments"), m.Seq, m.Pipeline, m.Incarnation))
	}
	if n := len(change.Removed); n > 0 {
		ids := make([]string, n)
		for i, s := range change.Removed {
			ids[i] = s.ID
		}
		removed, err := d.eng.ExecCount(ctx, d.sql("remove-segments"), m.Seq, m.Pipeline, m.Incarnation, ids)
		if err != nil {
			return d.failed("remove segments", err)
		}
		if removed != int64(n) {
			return &connectors.DamagedError{What: "the state of " + m.Pipeline, Reason: fmt.Sprintf("%d of %d merged segments are live", removed, n)}
		}
	}
	if m.Kind != checkpoints.KindCompaction {
		return nil
	}
	seqs, reasons := []int64{m.Seq}, []string{"newest"}
	for _, k := range change.Kept {
		seqs, reasons = append(seqs, k.Seq), append(reasons, k.Reason)
	}
	steps := []struct {
		name string
		args []any
	}{
		{"forget-uses", []any{m.Pipeline, m.Incarnation, seqs}},
		{"collect-parts", []any{m.Pipeline}},
		{"collect-segments", []any{m.Pipeline}},
		{"forget-checkpoints", []any{m.Pipeline, m.Incarnation}},
		{"keep-checkpoints", []any{m.Pipeline, m.Incarnation, seqs, reasons}},
	}
	for _, s := range steps {
		if err := d.eng.Exec(ctx, d.sql(s.name), s.args...); err != nil {
			return d.failed("collect old segments", err)
		}
	}
	return nil
}

// insertPartsTx writes several parts with one statement while they are small.
func (d *Destination) insertPartsTx(ctx context.Context, segments []*checkpoints.Segment) error {
	const maxParts, maxBytes = 64, 4 << 20
	var args []any
	size := 0
	flush := func() error {
		if len(args) == 0 {
			return nil
		}
		more := strings.Repeat(", (?, ?, ?)", len(args)/3-1)
		err := d.eng.Exec(ctx, d.sql("insert-parts")+more, args...)
		args, size = args[:0], 0
		return err
	}
	for _, s := range segments {
		for number, part := range s.Parts {
			if len(args) >= 3*maxParts || size+len(part) > maxBytes {
				if err := flush(); err != nil {
					return err
				}
			}
			args, size = append(args, s.ID, number, part), size+len(part)
		}
	}
	return flush()
}

// insertManifestTx writes the plan when it is new, the ranges and the manifest.
func (d *Destination) insertManifestTx(ctx context.Context, change *connectors.Change) error {
	m, p := change.Manifest, change.Plan
	var err error
	if !d.settled[settledPlan(p.ID)] {
		err = d.eng.Exec(ctx, d.sql("insert-plan"), p.ID, p.Canon, p.Input, p.State, p.Output, p.Env, p.SQL, p.Canonical)
	}
	if err == nil {
		err = d.insertRangesTx(ctx, m, change.Ranges)
	}
	if err == nil && change.Mended != nil {
		if err = d.eng.Exec(ctx, d.sql("forget-manifest"), m.Pipeline, change.Mended.Seq); err == nil {
			err = d.putManifestTx(ctx, *change.Mended)
		}
	}
	if err == nil {
		err = d.putManifestTx(ctx, m)
	}
	return d.failed("write the manifest", err)
}

func (d *Destination) putManifestTx(ctx context.Context, m checkpoints.Manifest) error {
	texts := m.Texts()
	return d.eng.Exec(ctx, d.sql("insert-manifest"),
		m.Pipeline, m.Seq, m.Incarnation, m.Batch, m.Attempt, m.Kind, m.ParentSeq, m.ParentSHA, m.PlanID, texts.Env,
		m.BatchTime, texts.Position, texts.Counts, m.RangesSHA, texts.Live, m.Checksum())
}

func (d *Destination) insertRangesTx(ctx context.Context, m checkpoints.Manifest, ranges []checkpoints.Range) error {
	if len(ranges) == 0 {
		return nil
	}
	n := len(ranges)
	source, split, content := make([]string, n), make([]string, n), make([]string, n)
	from, to, rows := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, r := range ranges {
		source[i], split[i], content[i] = r.Source, r.Split, r.Content
		from[i], to[i], rows[i] = r.From, r.To, r.Rows
	}
	return d.eng.Exec(ctx, d.sql("insert-ranges"), m.Pipeline, m.Seq, source, split, from, to, rows, content)
}

// advanceTx moves the head, if this run still is the newest that took the lease and the head is the
// parent of the change.
func (d *Destination) advanceTx(ctx context.Context, lease connectors.Lease, m checkpoints.Manifest) error {
	texts := m.Texts()
	n, err := d.eng.ExecCount(ctx, d.sql("advance"),
		m.Seq, m.Batch, m.PlanID, texts.Position, texts.PositionSHA(), m.Checksum(),
		m.Pipeline, m.Incarnation, lease.Fence, m.ParentSeq, m.ParentSHA)
	if err != nil {
		return d.failed("move the head of pipeline "+m.Pipeline, err)
	}
	if n != 1 {
		return &connectors.FencedError{Pipeline: m.Pipeline}
	}
	return nil
}

// confirm looks the change up after COMMIT, because the driver may report success of a transaction
// that was aborted.
func (d *Destination) confirm(ctx context.Context, m checkpoints.Manifest) error {
	var n int
	if err := d.eng.QueryRow(ctx, d.sql("confirm"), []any{m.Pipeline, m.Seq, m.Attempt}, &n); err != nil {
		return d.failed("confirm the commit", err)
	}
	if n != 1 {
		return d.failed("confirm the commit", fmt.Errorf("change %d is not there", m.Seq))
	}
	return nil
}
