package main

import (
	"testing"
	"time"

	"lockstep/checkpoints"
)

// A loss is shown for good, and whether anything of it still is lost.
func TestLossLines(t *testing.T) {
	now := time.Date(2026, 5, 5, 12, 0, 0, 0, time.UTC)
	losses := []checkpoints.Manifest{{Batch: 3, BatchTime: now.Add(-3 * time.Hour), Losses: map[string]checkpoints.LossCount{
		"orders": {Splits: 2, Read: 1200, Unread: 1}, "stores": {Splits: 1, Read: 7}}}}
	for _, tc := range []struct {
		still map[string]int
		want  []string
	}{
		{map[string]int{"orders": 1}, []string{
			"orders: 2 files, 1,200 rows that nothing can check, 1 unread row given up · accepted after batch 3, 3 h ago",
			"stores: 1 file, 7 rows · accepted after batch 3, 3 h ago · taken over as it is since"}},
		{nil, []string{
			"orders: 2 files, 1,200 rows that nothing can check, 1 unread row given up · accepted after batch 3, 3 h ago",
			"stores: 1 file, 7 rows that nothing can check · accepted after batch 3, 3 h ago"}},
	} {
		for i, l := range lossesOf(losses, tc.still) {
			if got := l.line(now); got != tc.want[i] {
				t.Errorf("%s\nwant %s", got, tc.want[i])
			}
		}
	}
}
