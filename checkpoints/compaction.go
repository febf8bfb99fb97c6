package checkpoints

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// fanout is how many segments of one level are merged into one of the next. State of n rows that are
// all rewritten every few batches is then written about log(n) times, and a restore reads at most
// fanout−1 segments per level.
const fanout = 8

// spacious is how many rows may lie above the oldest segment, whatever their number, before it is asked
// whether they outgrow it.
const spacious = 100_000

// Merge is a compaction to do: segments of one step, oldest first and next to each other, become one.
type Merge struct {
	Step   string
	Level  int // of the result
	Inputs []Segment
	// Oldest: nothing older of the step is live, so rows that only say "deleted" can go.
	Oldest bool
}

// Merges finds what to compact among the live segments. The inputs of a merge are the oldest of their
// level; older segments always have a level at least as high. When the rows above the oldest segment
// exceed half of its own, all are merged into it: tiers alone would let state that is rewritten again
// and again take several times the room of its live rows.
func Merges(live []Segment) []Merge {
	byStep := map[string][]Segment{}
	for _, s := range live {
		byStep[s.Step] = append(byStep[s.Step], s)
	}
	var out []Merge
	for _, step := range slices.Sorted(maps.Keys(byStep)) {
		segments := byStep[step]
		slices.SortFunc(segments, func(a, b Segment) int {
			return cmp.Or(cmp.Compare(a.SeqLo, b.SeqLo), cmp.Compare(a.SeqHi, b.SeqHi))
		})
		if outgrown(segments) {
			out = append(out, Merge{Step: step, Level: segments[0].Level + 1, Inputs: segments, Oldest: true})
			continue
		}
		for from := 0; from < len(segments); {
			to := from
			for to < len(segments) && segments[to].Level == segments[from].Level {
				to++
			}
			if to-from >= fanout {
				out = append(out, Merge{Step: step, Level: segments[from].Level + 1, Inputs: segments[from:to], Oldest: from == 0})
				break // the next level, if it is full then, is for the next time
			}
			from = to
		}
	}
	return out
}

func outgrown(segments []Segment) bool {
	var above int64
	for _, s := range segments[1:] {
		above += s.Rows
	}
	return (len(segments) >= fanout || above >= spacious) && above > segments[0].Rows/2
}

// IsPosition tells the position of a source from the state of a step.
func IsPosition(step string) bool { return strings.HasPrefix(step, positionPrefix) }

// MergePosition is the Merge of a source's position. The segments must hold their Parts.
func MergePosition(m Merge, seq int64) (*Segment, error) {
	splits, gone := Splits{}, map[string]bool{}
	for i := range m.Inputs {
		if err := replayPosition(splits, gone, &m.Inputs[i]); err != nil {
			return nil, err
		}
	}
	deleted := slices.Sorted(maps.Keys(gone))
	if m.Oldest {
		deleted = nil
	}
	seg, err := EncodePosition(strings.TrimPrefix(m.Step, positionPrefix), seq, splits, deleted)
	return m.Merged(seg), err
}

// Merged labels a segment as the result of the merge; nil when nothing was left.
func (m Merge) Merged(seg *Segment) *Segment {
	if seg == nil {
		return nil
	}
	seg.Level, seg.SeqLo, seg.SeqHi = m.Level, m.Inputs[0].SeqLo, m.Inputs[len(m.Inputs)-1].SeqHi
	return seg
}
