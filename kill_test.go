package lockstep_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"lockstep/connectors/postgres/pgtest"
)

// These tests kill the real binary with SIGKILL and look at the database it leaves: its tables must equal
// the SELECTs run once over the files it says were read. A kill counts when the process ended by signal 9
// with input left to read. Now and then a run to the end, and `etl reconcile`, must find all in order.
//
// LOCKSTEP_KILLS is how many kills every failpoint gets, LOCKSTEP_SOAK=10m repeats them all for so long.
// `make test` and `make soak` set them.

// failpoints are the places where a process can be killed, in their order.
func failpoints(destination string) []string {
	apply := map[string][]string{"duckdb": {"after-delete", "after-update", "after-insert"}, "postgres": {"after-copy", "after-merge"}}
	return slices.Concat([]string{
		"after-wake", "before-recovery", "after-recovery", "after-read", "after-compute", "after-collapse", "before-change",
		"commit-begin", "after-ddl"}, apply[destination], []string{"after-segments", "after-manifest",
		"before-commit", "after-commit", "after-confirm", "before-compaction", "after-compaction",
	})
}

func TestKillAtEveryFailpoint(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow,failpoints")
	kills := envInt("LOCKSTEP_KILLS", 2)
	var mu sync.Mutex
	counted := map[string]int{}
	start := time.Now()
	for again := true; again && !t.Failed(); again = time.Since(start) < soak() {
		t.Run("all", func(t *testing.T) {
			for destination, newJob := range destinations {
				for _, name := range failpoints(destination) {
					t.Run(destination+"/"+name, func(t *testing.T) {
						t.Parallel()
						want := kills
						if destination == "postgres" { // which takes three times as long
							want = (kills + 1) / 2
						}
						n := killAt(t, newJob, etl, name, want)
						mu.Lock()
						counted[destination+" "+name] += n
						mu.Unlock()
					})
				}
			}
		})
	}
	total := 0
	for _, destination := range slices.Sorted(maps.Keys(destinations)) {
		for _, name := range failpoints(destination) {
			n := counted[destination+" "+name]
			t.Logf("%-9s %-18s %5d kills", destination, name, n)
			count(t, destination, "killed at "+name, n)
			if total += n; n == 0 && !t.Failed() && (destination == "duckdb" || pgtest.Available()) {
				t.Errorf("%s %s: no kill", destination, name)
			}
		}
	}
	t.Logf("%-28s %5d kills, 0 wrong, in %.0f s", "all", total, time.Since(start).Seconds())
}

// killAt kills at one failpoint until so many kills count.
func killAt(t *testing.T, newJob func(*testing.T, string) *job, etl, name string, kills int) int {
	j := newJob(t, etl)
	counted := 0
	for round := 0; counted < kills; round++ {
		if round > 3*kills+5 {
			t.Fatalf("only %d of %d kills after %d rounds", counted, kills, round)
		}
		nth := 1 + rand.IntN(3)
		waiting := nth + 2
		switch name {
		case "after-wake", "before-recovery", "after-recovery":
			nth = 1 // once in a run
		case "before-compaction", "after-compaction":
			nth, waiting = 1, 10 // a compaction comes after 8 batches
		case "after-ddl":
			nth = 1
			j = newJob(t, etl) // tables are made in batch 0 only
		}
		j.land(max(0, waiting-j.waiting()))
		if name == "before-recovery" || name == "after-recovery" {
			j.damageState()
		}
		killed := j.killedAt(name, nth)
		j.expectConsumed()
		if killed && j.waiting() > 0 {
			counted++
		}
		if round%6 == 5 {
			j.expectRight()
		}
	}
	j.expectRight()
	return counted
}

func TestKillAtRandom(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow")
	for destination, newJob := range destinations {
		t.Run(destination, func(t *testing.T) { killAtRandom(t, destination, newJob(t, etl)) })
	}
}

func killAtRandom(t *testing.T, destination string, j *job) {
	kills := envInt("LOCKSTEP_RANDOM_KILLS", 5)
	longest := 300 * time.Millisecond
	start, counted := time.Now(), 0
	defer func() { count(j.t, destination, "killed at random", counted) }()
	for round := 0; counted < kills || time.Since(start) < soak(); round++ {
		if round > 40*kills && soak() == 0 {
			t.Fatalf("only %d of %d kills after %d rounds", counted, kills, round)
		}
		j.land(max(0, 8-j.waiting()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(longest))))
		killed := j.runContext(ctx)
		cancel()
		j.expectConsumed()
		if killed && j.waiting() > 0 {
			counted++
		} else {
			longest = max(longest*9/10, 20*time.Millisecond) // it came to its end
		}
		if round%10 == 9 {
			longest = longest * 3 / 2 // and reach its last batches again
			j.expectRight()
		}
	}
	j.expectRight()
	t.Logf("%d kills at random, 0 wrong, in %.0f s", counted, time.Since(start).Seconds())
}

// soak is how long the tests that can go on do so.
func soak() time.Duration {
	d, err := time.ParseDuration(os.Getenv("LOCKSTEP_SOAK"))
	if err != nil {
		return 0
	}
	return d
}
