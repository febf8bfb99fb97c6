package checkpoints

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Check tells whether the manifest is well formed and its counts agree with each other.
func (m Manifest) Check() error {
	checks := []struct {
		ok  bool
		say string
	}{
		{m.Pipeline != "" && utf8.ValidString(m.Pipeline), fmt.Sprintf("%q is not the name of a pipeline", m.Pipeline)},
		{m.Seq >= 1, fmt.Sprintf("seq is %d; the first is 1", m.Seq)},
		{m.ParentSeq == m.Seq-1, fmt.Sprintf("it follows seq %d but is seq %d", m.ParentSeq, m.Seq)},
		{(m.ParentSHA == "") == (m.ParentSeq == 0), "only the first manifest has no parent's checksum"},
		{m.Incarnation >= 1, fmt.Sprintf("incarnation is %d; the first is 1", m.Incarnation)},
		{m.Batch >= 0 && m.Batch < m.Seq, fmt.Sprintf("batch %d cannot be at seq %d", m.Batch, m.Seq)},
		{isUUID(m.Attempt), fmt.Sprintf("its attempt %q is not a uuid", m.Attempt)},
		{Corrects(m.Kind) || slices.Contains([]string{KindBatch, KindCompaction, KindRecovery, KindEnvironment, KindLoss}, m.Kind), fmt.Sprintf("%q is not a kind of change this version knows", m.Kind)},
		{m.PlanID != "", "it names no plan"},
		{!m.BatchTime.IsZero(), "it has no time"},
		{m.BatchTime.Equal(Time(m.BatchTime)), "its time is finer than a microsecond"},
		{m.RangesSHA != "", "it has no checksum of its ranges"},
		{m.Live.Segments >= 0 && m.Live.wellFormed(), "it has no sum of its live segments"},
		{m.Kind == KindBatch || Corrects(m.Kind) || m.quiet(), "a " + m.Kind + " changes no table"},
		{m.Kind == KindBatch || m.Kind == KindRebuild || m.Kind == KindBackfill || len(m.Sources) == 0, "a " + m.Kind + " reads no input"},
		{(m.Kind == KindLoss) == (len(m.Losses) > 0), "only a loss, and every one, counts what was lost"},
	}
	for _, c := range checks {
		if !c.ok {
			return m.wrong("%s", c.say)
		}
	}
	return cmp.Or(m.checkPositions(), m.checkLosses(), m.checkSources(), m.checkSinks())
}

// quiet: no sink was changed.
func (m Manifest) quiet() bool {
	for _, c := range m.Sinks {
		if c.Inserted+c.Updated+c.Deleted != 0 {
			return false
		}
	}
	return true
}

// isUUID also asks for the usual spelling, which is how a database gives a uuid back.
func isUUID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}

func (m Manifest) wrong(format string, args ...any) error {
	return fmt.Errorf("manifest %d of %s: %s", m.Seq, m.Pipeline, fmt.Sprintf(format, args...))
}

func (m Manifest) checkPositions() error {
	for _, source := range slices.Sorted(maps.Keys(m.Position)) {
		p := m.Position[source]
		if p.Splits < 0 || p.Rows < 0 {
			return m.wrong("source %s: the position has %d splits and %d rows", source, p.Splits, p.Rows)
		}
		if _, err := ParseDigest(p.Hash); err != nil {
			return m.wrong("source %s: position: %v", source, err)
		}
	}
	return nil
}

func (m Manifest) checkLosses() error {
	for _, source := range slices.Sorted(maps.Keys(m.Losses)) {
		c := m.Losses[source]
		if _, ok := m.Position[source]; !ok || c.Splits < 0 || c.Read < 0 || c.Unread < 0 {
			return m.wrong("source %s: %d splits with %d and %d rows cannot be lost", source, c.Splits, c.Read, c.Unread)
		}
	}
	return nil
}

func (m Manifest) checkSources() error {
	for _, source := range slices.Sorted(maps.Keys(m.Sources)) {
		c := m.Sources[source]
		if c.Splits < 0 || c.Read < 0 || c.Accepted < 0 || c.Rejected < 0 {
			return m.wrong("source %s: a count is negative", source)
		}
		if c.Read != c.Accepted+c.Rejected {
			return m.wrong("source %s: %d rows were read, but %d accepted and %d rejected", source, c.Read, c.Accepted, c.Rejected)
		}
		if _, ok := m.Position[source]; !ok {
			return m.wrong("source %s: rows were counted but there is no position", source)
		}
	}
	return nil
}

func (m Manifest) checkSinks() error {
	for _, sink := range slices.Sorted(maps.Keys(m.Sinks)) {
		c := m.Sinks[sink]
		if c.Inserted < 0 || c.Updated < 0 || c.Deleted < 0 || c.Rows < 0 {
			return m.wrong("sink %s: a count is negative", sink)
		}
		if c.Rows < c.Inserted+c.Updated {
			return m.wrong("sink %s: %d rows were written, but the table has %d", sink, c.Inserted+c.Updated, c.Rows)
		}
		if _, err := ParseDigest(c.Digest); err != nil {
			return m.wrong("sink %s: %v", sink, err)
		}
	}
	return nil
}

// CheckRanges tells whether the ranges are what the manifest counts: they add up to the rows read
// per source, and no row is in two of them.
func CheckRanges(ranges []Range, m Manifest) error {
	sorted := sortRanges(ranges)
	rows, splits := map[string]int64{}, map[string]int{}
	for i, r := range sorted {
		where := fmt.Sprintf("source %s: %s", r.Source, r.Split)
		if !utf8.ValidString(r.Split) {
			return m.wrong("source %s: the name %q is not valid UTF-8", r.Source, r.Split)
		}
		if r.From < 0 || r.From > r.To || r.Rows < 0 {
			return m.wrong("%s: offsets [%d, %d) with %d rows are not a range", where, r.From, r.To, r.Rows)
		}
		sameSplit := i > 0 && sorted[i-1].Source == r.Source && sorted[i-1].Split == r.Split
		if sameSplit && sorted[i-1].To > r.From {
			return m.wrong("%s: offsets from %d to %d are in two ranges", where, r.From, min(sorted[i-1].To, r.To))
		}
		if !sameSplit {
			splits[r.Source]++
		}
		if _, ok := m.Sources[r.Source]; !ok {
			return m.wrong("source %s: ranges were read that are not counted", r.Source)
		}
		rows[r.Source] += r.Rows
	}
	for _, source := range slices.Sorted(maps.Keys(m.Sources)) {
		if c := m.Sources[source]; rows[source] != c.Read || splits[source] != c.Splits {
			return m.wrong("source %s: %d rows of %d splits are counted, its ranges hold %d rows of %d splits", source, c.Read, c.Splits, rows[source], splits[source])
		}
	}
	if RangesSHA(ranges) != m.RangesSHA {
		return m.wrong("the ranges are not those it was made with")
	}
	return nil
}
