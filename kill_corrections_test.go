package lockstep_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine/duck"
)

// Corrections are killed like runs. The table is the one of before or the one of after, whole; and the same
// command again makes it right.

// meanings are what `etl apply` turns the pipeline into, one after the other: two are made anew from the
// input, two computed from the kept state, which has sum(amount) for the mean.
var meanings = []string{"sum(amount * 2)::DECIMAL(38,2)", "sum(amount * 3)::DECIMAL(38,2)", "(sum(amount) + count(*))::DECIMAL(38,2)", "sum(amount)"}

func storesOf(revenue string) string {
	return strings.Replace(storesSelect, "sum(amount) AS revenue", revenue+" AS revenue", 1)
}

// turn is a correction that is about to be made: it sets the job up and gives the command.
type turn func(j *job, round int) []string

// toApply changes the SQL.
func toApply(j *job, round int) []string {
	was, is := meanings[(round+3)%4], meanings[round%4]
	path := filepath.Join(j.dir, "p.sql")
	text, err := os.ReadFile(path)
	j.check(err)
	changed := strings.Replace(string(text), was+" AS revenue", is+" AS revenue", 1)
	if changed == string(text) {
		j.t.Fatalf("the pipeline has no %s", was)
	}
	j.check(os.WriteFile(path, []byte(changed), 0o644))
	j.stores = []string{storesOf(was), storesOf(is)}
	return []string{"apply", "p.sql", "--max-batch-bytes", "1", "--save-every", "1ns"}
}

// toRepair edits every row by hand.
func toRepair(j *job, _ int) []string {
	if j.dsn != "" {
		j.postgres("UPDATE stores SET n = -1")
	} else {
		j.open(filepath.Join(j.dir, "m.duckdb"), func(db *duck.Engine) { j.check(db.Exec(j.t.Context(), "UPDATE m.stores SET n = -1")) })
	}
	j.stores = []string{strings.Replace(storesSelect, "count(*) AS n", "-1::BIGINT AS n", 1), storesSelect}
	return []string{"reconcile", "p.sql", "--repair"}
}

var turns = map[string]turn{"apply": toApply, "repair": toRepair}

// correctionFailpoints are the places of a correction, in their order.
func correctionFailpoints(destination, command string) []string {
	var save []string
	if command == "apply" {
		save = []string{"after-save"}
	}
	write := map[string][]string{"duckdb": {"after-delete", "after-insert"}, "postgres": {"after-copy", "after-merge"}}
	return slices.Concat(save, []string{"after-fold", "before-correction", "commit-begin", "after-ddl"}, write[destination],
		[]string{"after-segments", "after-manifest", "before-commit", "after-commit", "after-confirm", "after-correction"})
}

func TestKillCorrections(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow,failpoints")
	kills := max(1, envInt("LOCKSTEP_KILLS", 2)/8) // each is of four commands that have most of a run's places
	var mu sync.Mutex
	counted := map[string]int{}
	start := time.Now()
	for again := true; again && !t.Failed(); again = time.Since(start) < soak() {
		t.Run("all", func(t *testing.T) {
			for destination, newJob := range destinations {
				for command, prepare := range turns {
					t.Run(destination+"/"+command, func(t *testing.T) {
						t.Parallel()
						j := newJob(t, etl)
						j.land(3)
						j.run()
						for round := range len(correctionFailpoints(destination, command)) * kills {
							name := correctionFailpoints(destination, command)[round/kills]
							n := j.killCorrection(t.Context(), prepare, round, name)
							mu.Lock()
							counted[destination+" "+command+" "+name] += n
							mu.Unlock()
						}
						j.expectRight()
					})
				}
			}
		})
	}
	total := 0
	for _, destination := range slices.Sorted(maps.Keys(destinations)) {
		for _, command := range slices.Sorted(maps.Keys(turns)) {
			for _, name := range correctionFailpoints(destination, command) {
				n := counted[destination+" "+command+" "+name]
				t.Logf("%-9s %-7s %-18s %5d kills", destination, command, name, n)
				count(t, destination, command+" killed at a failpoint", n)
				if total += n; n == 0 && !t.Failed() && (destination == "duckdb" || pgtest.Available()) {
					t.Errorf("%s %s %s: no kill", destination, command, name)
				}
			}
		}
	}
	t.Logf("%-36s %5d kills, 0 wrong, in %.0f s", "all", total, time.Since(start).Seconds())
}

// killCorrection prepares a correction, kills it at a failpoint or at the end of ctx, and makes it again.
func (j *job) killCorrection(ctx context.Context, prepare turn, round int, failpoint string) (killed int) {
	j.t.Helper()
	args := prepare(j, round)
	cmd := exec.CommandContext(ctx, j.etl, args...)
	cmd.Env = append(os.Environ(), "LOCKSTEP_FAILPOINT="+failpoint)
	if j.killed(cmd) {
		killed = 1
	}
	j.expectConsumed()
	if j.killed(exec.Command(j.etl, args...)) {
		j.t.Fatal("killed without being asked to")
	}
	j.stores = j.stores[1:]
	j.expectConsumed()
	if round%4 == 3 {
		j.land(1)
		j.expectRight()
	}
	return killed
}

func TestKillCorrectionsAtRandom(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow")
	for destination, newJob := range destinations {
		for command, prepare := range turns {
			t.Run(destination+"/"+command, func(t *testing.T) {
				j := newJob(t, etl)
				j.land(5)
				j.run()
				kills, longest := max(2, envInt("LOCKSTEP_RANDOM_KILLS", 5)/3), 500*time.Millisecond
				start, counted := time.Now(), 0
				for round := 0; counted < kills || time.Since(start) < soak(); round++ {
					if round > 40*kills && soak() == 0 {
						t.Fatalf("only %d of %d kills after %d rounds", counted, kills, round)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(longest))))
					n := j.killCorrection(ctx, prepare, round, "")
					cancel()
					if counted += n; n == 0 {
						longest = max(longest*9/10, 50*time.Millisecond)
					}
				}
				j.expectRight()
				count(t, destination, command+" killed at random", counted)
				t.Logf("%d kills at random, 0 wrong, in %.0f s", counted, time.Since(start).Seconds())
			})
		}
	}
}
