package lockstep_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Runs, applied changes, corrected files and backfills, edits by hand and repairs of one pipeline, all at once: every command ends with a
// documented code, and the last ones leave tables that equal their SELECTs.
func TestEverythingAtOnce(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow")
	for destination, newJob := range destinations {
		t.Run(destination, func(t *testing.T) {
			t.Parallel()
			everythingAtOnce(t, newJob(t, etl))
		})
	}
}

func everythingAtOnce(t *testing.T, j *job) {
	text, err := os.ReadFile(filepath.Join(j.dir, "p.sql"))
	j.check(err)
	plain := "CREATE PIPELINE p;\n" + string(text)
	for name, revenue := range map[string]string{"a.sql": "sum(amount)", "b.sql": "sum(amount * 2)::DECIMAL(38,2)", "p.sql": "sum(amount)"} {
		j.check(os.WriteFile(filepath.Join(j.dir, name), []byte(strings.Replace(plain, "sum(amount) AS revenue", revenue+" AS revenue", 1)), 0o644))
	}
	j.land(4)
	j.run()
	until := time.Now().Add(max(8*time.Second, soak()))
	var mu sync.Mutex
	ended := map[string]map[int]int{}
	var all sync.WaitGroup
	again := func(what string, allowed map[int]bool, pause time.Duration, args func() []string) {
		all.Go(func() {
			for time.Now().Before(until) {
				cmd := exec.Command(j.etl, args()...)
				cmd.Dir = j.dir
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				// A file that is replaced while it is read is told as one that was being written.
				replaced := strings.Contains(string(out), "while it was read")
				if code := cmd.ProcessState.ExitCode(); err != nil && !errors.As(err, &exit) || !allowed[code] && !replaced {
					t.Errorf("%v: %v\n%s", cmd.Args[1:], err, out)
				} else {
					mu.Lock()
					if ended[what] == nil {
						ended[what] = map[int]int{}
					}
					ended[what][code]++
					mu.Unlock()
				}
				time.Sleep(time.Duration(rand.Int64N(int64(pause))))
			}
		})
	}
	either := func() string { return []string{"a.sql", "b.sql"}[rand.IntN(2)] }
	// 3: the pipeline has the other meaning, or the table was edited. 4: a file was changed.
	codes := map[int]bool{0: true, 3: true, 4: true, 75: true}
	all.Go(func() {
		for time.Now().Before(until) {
			j.land(1)
			time.Sleep(300 * time.Millisecond)
		}
	})
	again("run", codes, 100*time.Millisecond, func() []string { return []string{"run", either(), "--max-batch-bytes", "1", "--wait", "1s"} })
	again("apply", codes, 5*time.Second, func() []string { return []string{"apply", either(), "--yes", "--wait", "1s"} })
	again("repair", codes, 2*time.Second, func() []string { return []string{"reconcile", either(), "--repair", "--yes", "--wait", "1s"} })
	again("backfill", codes, 5*time.Second, func() []string {
		j.rewrite(rand.IntN(4))
		return []string{"backfill", either(), "--files", "in/*.csv", "--yes", "--wait", "1s"}
	})
	if j.dsn != "" {
		all.Go(func() { j.editNowAndThen(until) })
	}
	all.Wait()
	t.Logf("%d files; codes of %v", j.files, ended)
	for what, codes := range ended {
		if soak() >= time.Minute && codes[0] == 0 {
			t.Errorf("in all that time no %s came to its end", what)
		}
	}
	for _, command := range [][]string{{"apply", "p.sql", "--yes"}, {"backfill", "p.sql", "--files", "in/*.csv", "--yes"}, {"reconcile", "p.sql", "--repair", "--yes"}} {
		cmd := exec.Command(j.etl, command...)
		cmd.Dir = j.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	j.expectRight()
}

// rewrite puts another file in the place of one.
func (j *job) rewrite(n int) {
	name := filepath.Join(j.dir, "in", fmt.Sprintf("%06d.csv", n))
	j.check(os.WriteFile(name+".tmp", []byte(someOrders(n)), 0o644))
	j.check(os.Rename(name+".tmp", name))
}

// editNowAndThen is somebody with a shell.
func (j *job) editNowAndThen(until time.Time) {
	conn, err := pgx.Connect(j.t.Context(), j.dsn)
	if err != nil {
		j.t.Error(err)
		return
	}
	defer conn.Close(j.t.Context())
	for time.Now().Before(until) {
		edit := []string{"UPDATE stores SET n = n + 1 WHERE store = 's%d'", "DELETE FROM stores WHERE store = 's%d'"}[rand.IntN(2)]
		if _, err := conn.Exec(j.t.Context(), fmt.Sprintf(edit, rand.IntN(12))); err != nil && !strings.Contains(err.Error(), "deadlock") {
			j.t.Error(err)
			return
		}
		time.Sleep(3 * time.Second)
	}
}
