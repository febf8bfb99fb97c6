package postgres

import (
	"bytes"
	"context"
	dbsql "database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// insertRejectsTx keeps the rows that were left out, as many as the manifest counts.
func (d *Destination) insertRejectsTx(ctx context.Context, tx *tx, change *connectors.Change) error {
	rejected := map[string]int64{}
	for _, r := range change.Rejects {
		n, err := d.copyRejectsTx(ctx, tx, change.Manifest, r)
		if err != nil {
			return err
		}
		rejected[r.Source] += n
	}
	for source, c := range change.Manifest.Sources {
		if rejected[source] != c.Rejected {
			return &mistakeError{fmt.Sprintf("source %s: %d rejects were written, the manifest counts %d; nothing was committed. This is a mistake in etl: please report it",
				source, rejected[source], c.Rejected)}
		}
	}
	return nil
}

// visible writes what Postgres cannot hold in a text so that it can be seen.
func visible(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", `\x00`)
}

// copyRejectsTx sends some thousand rows with one statement.
func (d *Destination) copyRejectsTx(ctx context.Context, tx *tx, m checkpoints.Manifest, r connectors.Rejects) (total int64, err error) {
	const most = 10_000
	var source, split, reason []string
	var off []int64
	var line []*int64
	var raw []*string
	flush := func() error {
		n, err := tx.count(ctx, sql("insert-rejects"), m.Pipeline, m.Seq, source, split, off, line, reason, raw)
		total += n
		source, split, reason, off, line, raw = nil, nil, nil, nil, nil, nil
		return err
	}
	err = d.eng.Each(ctx, "SELECT source, split_id, off, line, reason, raw FROM temp."+duck.Quote(r.Table), nil, func(rows *dbsql.Rows) error {
		var s, id, why string
		var o int64
		var l *int64
		var text *string
		if err := rows.Scan(&s, &id, &o, &l, &why, &text); err != nil {
			return err
		}
		if text != nil {
			*text = visible(*text)
		}
		source, split, off, line, reason, raw = append(source, s), append(split, visible(id)), append(off, o), append(line, l), append(reason, visible(why)), append(raw, text)
		if len(source) < most {
			return nil
		}
		return flush()
	})
	if err == nil && len(source) > 0 {
		err = flush()
	}
	return total, err
}

// insertSegmentsTx writes the segments a change adds and makes them live.
func insertSegmentsTx(ctx context.Context, tx *tx, m checkpoints.Manifest, segments []*checkpoints.Segment) error {
	if len(segments) == 0 {
		return nil
	}
	if err := storeSegmentsTx(ctx, tx, m.Pipeline, segments); err != nil {
		return err
	}
	ids := make([]string, len(segments))
	for i, s := range segments {
		ids[i] = s.ID
	}
	return tx.exec(ctx, sql("use-segments"), m.Pipeline, m.Incarnation, ids, m.Seq)
}

// storeSegmentsTx writes segments and makes none of them live.
func storeSegmentsTx(ctx context.Context, tx *tx, pipeline string, segments []*checkpoints.Segment) error {
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
	if err := copyPartsTx(ctx, tx, segments); err != nil {
		return err
	}
	return tx.exec(ctx, sql("insert-segments"), pipeline, ids, steps, levels, los, his, rows, sizes, parts, schemas, sums)
}

// copyPartsTx sends the parts as they are, by COPY.
func copyPartsTx(ctx context.Context, tx *tx, segments []*checkpoints.Segment) error {
	var pieces []io.Reader
	buf := append([]byte(nil), copyHeader...)
	want := int64(0)
	for _, s := range segments {
		for number, part := range s.Parts {
			buf = binary.BigEndian.AppendUint16(buf, 3)
			var err error
			if buf, err = putUUID(buf, s.ID); err != nil {
				return err
			}
			buf = put32(buf, int32(number))
			buf = binary.BigEndian.AppendUint32(buf, uint32(len(part)))
			pieces = append(pieces, bytes.NewReader(buf), bytes.NewReader(part))
			buf = nil
			want++
		}
	}
	pieces = append(pieces, bytes.NewReader(buf), bytes.NewReader(copyTrailer))
	tag, err := tx.conn.PgConn().CopyFrom(ctx, io.MultiReader(pieces...), "COPY etl.segment_parts (segment_id, part, data) FROM STDIN (FORMAT binary)")
	if err == nil && tag.RowsAffected() != want {
		err = &mistakeError{fmt.Sprintf("%d parts of the state were written instead of %d", tag.RowsAffected(), want)}
	}
	return err
}

// removeSegmentsTx ends the life of segments; a compaction also drops the data that no kept checkpoint
// needs.
func removeSegmentsTx(ctx context.Context, tx *tx, change *connectors.Change) error {
	m := change.Manifest
	if change.Whole {
		return tx.exec(ctx, sql("remove-all-segments"), m.Seq, m.Pipeline, m.Incarnation)
	}
	if n := len(change.Removed); n > 0 {
		ids := make([]string, n)
		for i, s := range change.Removed {
			ids[i] = s.ID
		}
		removed, err := tx.count(ctx, sql("remove-segments"), m.Seq, m.Pipeline, m.Incarnation, ids)
		if err != nil {
			return err
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
		if err := tx.exec(ctx, sql(s.name), s.args...); err != nil {
			return err
		}
	}
	return nil
}

// insertManifestTx writes the plan when it is new, the ranges and the manifest.
func (d *Destination) insertManifestTx(ctx context.Context, tx *tx, change *connectors.Change) error {
	m, p := change.Manifest, change.Plan
	if !d.settled[settledPlan(p.ID)] {
		if err := tx.exec(ctx, sql("insert-plan"), p.ID, p.Canon, p.Input, p.State, p.Output, p.Env, p.SQL, p.Canonical); err != nil {
			return err
		}
	}
	if err := insertRangesTx(ctx, tx, m, change.Ranges); err != nil {
		return err
	}
	if change.Mended != nil {
		if err := tx.exec(ctx, sql("forget-manifest"), m.Pipeline, change.Mended.Seq); err != nil {
			return err
		}
		if err := putManifestTx(ctx, tx, *change.Mended); err != nil {
			return err
		}
	}
	return putManifestTx(ctx, tx, m)
}

func putManifestTx(ctx context.Context, tx *tx, m checkpoints.Manifest) error {
	texts := m.Texts()
	return tx.exec(ctx, sql("insert-manifest"),
		m.Pipeline, m.Seq, m.Incarnation, m.Batch, m.Attempt, string(m.Kind), m.ParentSeq, m.ParentSHA, m.PlanID, texts.Env,
		m.BatchTime, texts.Position, texts.Counts, m.RangesSHA, texts.Live, m.Checksum())
}

func insertRangesTx(ctx context.Context, tx *tx, m checkpoints.Manifest, ranges []checkpoints.Range) error {
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
	return tx.exec(ctx, sql("insert-ranges"), m.Pipeline, m.Seq, source, split, from, to, rows, content)
}

// advanceTx moves the head, if this run still is the newest that took the lease and the head is the
// parent of the change, and gives the number of heads that it moved.
func advanceTx(ctx context.Context, tx *tx, lease connectors.Lease, m checkpoints.Manifest) (int64, error) {
	texts := m.Texts()
	return tx.count(ctx, sql("advance"),
		m.Seq, m.Batch, m.PlanID, texts.Position, texts.PositionSHA(), m.Checksum(),
		m.Pipeline, m.Incarnation, lease.Fence, m.ParentSeq, m.ParentSHA)
}
