package lockstep_test

import (
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Runs that overlap: each ends with 0 (it worked, or found nothing left) or 75 (another one held the
// database and is named), nothing is doubled, and those that wait all get through.
func TestRunsAtOnce(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow")
	for destination, newJob := range destinations {
		t.Run(destination, func(t *testing.T) { runsAtOnce(t, etl, newJob) })
	}
}

func runsAtOnce(t *testing.T, etl string, newJob func(*testing.T, string) *job) {
	for _, tc := range []struct {
		name string
		runs int
		wait string
	}{{"two", 2, "0s"}, {"twenty", 20, "0s"}, {"eight that wait", 8, "120s"}} {
		t.Run(tc.name, func(t *testing.T) {
			j := newJob(t, etl)
			for range 3 {
				j.land(4)
				ended := map[int]int{}
				var mu sync.Mutex
				var all sync.WaitGroup
				for range tc.runs {
					all.Go(func() {
						cmd := exec.Command(etl, "run", "p.sql", "--max-batch-bytes", "1", "--wait", tc.wait)
						cmd.Dir = j.dir
						out, err := cmd.CombinedOutput()
						var exit *exec.ExitError
						if err != nil && !errors.As(err, &exit) {
							t.Error(err)
							return
						}
						code := cmd.ProcessState.ExitCode()
						if code == 75 && !strings.Contains(string(out), "held by") {
							t.Errorf("exit 75 does not say who holds it: %s", out)
						}
						if code != 0 && code != 75 {
							t.Errorf("exit %d: %s", code, out)
						}
						mu.Lock()
						ended[code]++
						mu.Unlock()
					})
				}
				all.Wait()
				if ended[0] == 0 || tc.wait != "0s" && ended[0] != tc.runs {
					t.Errorf("of %d runs ended with %v", tc.runs, ended)
				}
				t.Logf("%d runs: %d worked, %d were turned away", tc.runs, ended[0], ended[75])
			}
			j.expectRight()
		})
	}
}
