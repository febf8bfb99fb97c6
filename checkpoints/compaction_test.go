package checkpoints_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockstep/checkpoints"
)

// Whatever happened to a position, and however often it was compacted, it decodes to the same.
func TestCompactedPositionIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := checkpoints.Splits{}
		var live []checkpoints.Segment
		seq := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			seq++
			moved, gone := checkpoints.Splits{}, []string{}
			for range rapid.IntRange(1, 4).Draw(t, "splits") {
				id := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "id"))
				if _, there := want[id]; there && rapid.Bool().Draw(t, "gone") {
					gone = append(gone, id)
				} else {
					moved[id] = checkpoints.Split{Next: seq, Rows: seq, Content: "c", Seq: seq}
				}
			}
			want.Apply(moved, gone)
			seg, err := checkpoints.EncodePosition("orders", seq, moved, gone)
			if err != nil {
				t.Fatal(err)
			}
			live = append(live, *seg)
			for _, m := range checkpoints.Merges(live) {
				if len(m.Inputs) < 2 {
					t.Fatalf("a merge of %d segments", len(m.Inputs))
				}
				merged, err := checkpoints.MergePosition(m, seq)
				if err != nil {
					t.Fatal(err)
				}
				live = slices.DeleteFunc(live, func(s checkpoints.Segment) bool {
					return slices.ContainsFunc(m.Inputs, func(in checkpoints.Segment) bool { return in.ID == s.ID })
				})
				if merged != nil {
					live = append(live, *merged)
				}
			}
			slices.SortFunc(live, func(a, b checkpoints.Segment) int { return int(a.SeqLo - b.SeqLo) })
			for i := 1; i < len(live); i++ {
				if live[i-1].SeqHi >= live[i].SeqLo || live[i-1].Level < live[i].Level {
					t.Fatalf("segments out of order: %v", live)
				}
			}
		}
		got, err := checkpoints.DecodePosition(live)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("compacted to %v, want %v", got, want)
		}
		if len(live) > 7*3 {
			t.Fatalf("%d segments are left of %d", len(live), seq)
		}
	})
}

// A choice made later never asks for a checkpoint that an earlier choice dropped.
func TestRetentionNeverAsksForWhatIsGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := checkpoints.Retention{Newest: rapid.IntRange(1, 12).Draw(t, "newest"), Hourly: 24 * time.Hour, Daily: 7 * 24 * time.Hour}
		now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		var there []checkpoints.Point
		seq := int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "changes") {
			now = now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "minutes")) * time.Minute)
			seq++
			there = append(there, checkpoints.Point{Seq: seq, Time: now})
			kept := r.Keep(there, now)
			if len(kept) == 0 || kept[0].Seq != seq {
				t.Fatalf("the newest is not kept: %v", kept)
			}
			if most := r.Newest + 25 + 8; len(kept) > most {
				t.Fatalf("%d are kept, more than %d", len(kept), most)
			}
			there = slices.DeleteFunc(there, func(p checkpoints.Point) bool {
				return !slices.ContainsFunc(kept, func(k checkpoints.Kept) bool { return k.Seq == p.Seq })
			})
		}
		// Every day of the last week with a change has one left.
		days := map[time.Time]bool{}
		for _, p := range there {
			days[p.Time.Truncate(24*time.Hour)] = true
		}
		if !days[now.Truncate(24*time.Hour)] {
			t.Fatal("today has no checkpoint")
		}
	})
}
