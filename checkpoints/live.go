package checkpoints

import "encoding/binary"

// LiveSum is the checkable summary of all segments that are live after a change. A list of segments
// that does not add up to it lacks one, or has one too many: it would give a state that only looks
// good. It is kept up to date from a change alone, however long the history.
type LiveSum struct {
	Segments int    `json:"segments"`
	Digest   string `json:"digest"` // Digest over what describes each segment, its SHA-256 included
}

// SumLive summarises a list of live segments, in any order.
func SumLive(segments []Segment) LiveSum {
	var sum Digest
	for i := range segments {
		sum = sum.Add(segments[i].digest())
	}
	return LiveSum{Segments: len(segments), Digest: sum.String()}
}

// After is the summary once added have entered and removed have left. l must come from a manifest that
// was checked.
func (l LiveSum) After(added []*Segment, removed []Segment) LiveSum {
	sum, err := ParseDigest(l.Digest)
	if err != nil {
		panic(err) // Manifest.Check has looked at it
	}
	for _, s := range added {
		sum = sum.Add(s.digest())
	}
	for i := range removed {
		sum = sum.Sub(removed[i].digest())
	}
	return LiveSum{Segments: l.Segments + len(added) - len(removed), Digest: sum.String()}
}

func (s *Segment) digest() Digest {
	var b []byte
	for _, text := range []string{s.ID, s.Step, s.Schema, s.SHA256} {
		b = appendText(b, text)
	}
	for _, n := range []int64{int64(s.Level), s.SeqLo, s.SeqHi, s.Rows, s.Bytes} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return digestOf(b)
}

func (l LiveSum) wellFormed() bool {
	_, err := ParseDigest(l.Digest)
	return err == nil && l.Digest != ""
}
