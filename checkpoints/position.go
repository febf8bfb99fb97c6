package checkpoints

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Position is the set of next-unread offsets of a pipeline, per source. It has an entry for every
// split that was ever read from; a position that misses one is invalid.
type Position map[string]Splits

// Splits maps a split's id to its place. For files the id is the path relative to the fixed prefix
// of the glob.
type Splits map[string]Split

// Split is how far one split was read, and what it looked like.
type Split struct {
	Next    int64  // next unread offset; rows for Parquet, bytes for CSV, offsets for a log
	Rows    int64  // rows read from it so far
	Size    int64  // files: bytes
	ModTime int64  // files: nanoseconds since 1970; only saves hashing again, never decides
	Content string // files: xxh3-128 of the bytes, hex; "" elsewhere
	Seq     int64  // the change that last moved it
	Times   Times  // of the rows read from it
	// Lost: what was read of it, or was still to be read, is not there any more, and that was accepted. Content
	// is then that of the split since, and Next and Rows are of what was read.
	Lost bool
}

// Times are the earliest and the latest event time of some rows, in microseconds since 1970, both rounded
// down: as written for a time without zone, in UTC otherwise. An infinite time is the least or the greatest
// number. Rows whose time is NULL are left out. The zero value is that of no rows.
type Times struct {
	Some     bool
	Min, Max int64
}

// With are the times of both.
func (t Times) With(o Times) Times {
	switch {
	case !t.Some:
		return o
	case !o.Some:
		return t
	}
	return Times{Some: true, Min: min(t.Min, o.Min), Max: max(t.Max, o.Max)}
}

// PositionSum is the checkable summary of a source's position; its splits are in segments.
type PositionSum struct {
	Splits int    `json:"splits"`
	Hash   string `json:"hash"` // Digest over id, Next, Rows and Content of every split
	Rows   int64  `json:"rows"`
}

// Clone copies the map.
func (s Splits) Clone() Splits {
	if s == nil {
		return Splits{}
	}
	return maps.Clone(s)
}

// Apply moves the splits in place: gone leave, then moved enter. A split in both was replaced.
func (s Splits) Apply(moved Splits, gone []string) {
	for _, id := range gone {
		delete(s, id)
	}
	maps.Copy(s, moved)
}

// Sum summarises all splits. It reads every one: After is cheaper when few moved.
func (s Splits) Sum() PositionSum {
	return PositionSum{Hash: Digest{}.String()}.After(nil, s, nil)
}

// Sums summarises every source.
func (p Position) Sums() map[string]PositionSum {
	sums := make(map[string]PositionSum, len(p))
	for source, splits := range p {
		sums[source] = splits.Sum()
	}
	return sums
}

// After is the summary that before.Apply(moved, gone) would have, at the cost of the change only.
// p must be the summary of before, which stays as it is.
func (p PositionSum) After(before, moved Splits, gone []string) PositionSum {
	hash, err := ParseDigest(p.Hash)
	if err != nil {
		// Sums that come from outside were checked by Manifest.Check.
		panic(err)
	}
	remove := func(id string) {
		if old, ok := before[id]; ok {
			p.Splits--
			p.Rows -= old.Rows
			hash = hash.Sub(old.digest(id))
		}
	}
	left := make(map[string]bool, len(gone))
	for _, id := range gone {
		if !left[id] {
			remove(id)
			left[id] = true
		}
	}
	for id, split := range moved {
		if !left[id] {
			remove(id)
		}
		p.Splits++
		p.Rows += split.Rows
		hash = hash.Add(split.digest(id))
	}
	p.Hash = hash.String()
	return p
}

// digest covers what decides which rows were read. Size follows from the content, ModTime may change
// without meaning (a copy, a checkout), Times follow from the rows, and Seq only says when.
func (s Split) digest(id string) Digest {
	b := make([]byte, 0, 96)
	b = appendText(b, id)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Next))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Rows))
	b = appendText(b, s.Content)
	if s.Lost {
		b = append(b, opLost)
	}
	return digestOf(b)
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// Verify compares loaded splits with the sums of a manifest. The error names the first source that
// differs and how.
func (p Position) Verify(sums map[string]PositionSum) error {
	for _, source := range slices.Sorted(maps.Keys(sums)) {
		splits, ok := p[source]
		if !ok && sums[source].Splits > 0 {
			return fmt.Errorf("source %s: the position is missing; the manifest records %d splits", source, sums[source].Splits)
		}
		if err := splits.Sum().differs(sums[source]); err != nil {
			return fmt.Errorf("source %s: %w", source, err)
		}
	}
	for _, source := range slices.Sorted(maps.Keys(p)) {
		if _, ok := sums[source]; !ok && len(p[source]) > 0 {
			return fmt.Errorf("source %s: there is a position of %d splits; the manifest records none", source, len(p[source]))
		}
	}
	return nil
}

func (p PositionSum) differs(want PositionSum) error {
	hash, err := ParseDigest(want.Hash)
	if err != nil {
		return err
	}
	switch {
	case p.Splits != want.Splits:
		return fmt.Errorf("the position has %d splits, the manifest records %d", p.Splits, want.Splits)
	case p.Rows != want.Rows:
		return fmt.Errorf("the splits of the position count %d rows read, the manifest records %d", p.Rows, want.Rows)
	case p.Hash != hash.String():
		return fmt.Errorf("the number of splits and rows is right, but a split's offset, name or content is not what the manifest records")
	}
	return nil
}
