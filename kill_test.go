package lockstep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/engine/duck"
)

// These tests kill the real binary with SIGKILL, start it again, and compare the table with the SELECT
// run once over everything. A kill counts when the process ended by signal 9 with input left to read.

// failpoints are the places of a batch where a process can be killed, in their order.
var failpoints = []string{
	"after-read", "after-compute", "after-collapse", "before-change",
	"commit-begin", "after-ddl", "after-delete", "after-update", "after-insert", "after-segments", "after-manifest",
	"before-commit", "after-commit", "after-confirm", "before-compaction", "after-compaction",
}

func TestKillAtEveryFailpoint(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow,failpoints")
	kills := envInt("LOCKSTEP_KILLS", 5)
	for _, name := range failpoints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, etl)
			for killed, round := 0, 0; killed < kills; round++ {
				if round > 3*kills+5 {
					t.Fatalf("only %d of %d kills after %d rounds", killed, kills, round)
				}
				// The first table is made in batch 0 only, so after-ddl starts anew each time.
				if name == "after-ddl" {
					j = newJob(t, etl)
				}
				j.land(3)
				nth := 1
				switch {
				case strings.HasSuffix(name, "-compaction"):
					j.land(6) // enough batches for a compaction in every round
				case name != "after-ddl":
					nth += rand.IntN(3)
				}
				if j.run(fmt.Sprintf("LOCKSTEP_FAILPOINT=%s:%d", name, nth)) {
					killed++
				}
				j.expectRight()
			}
			t.Logf("%s: %d kills, 0 wrong", name, kills)
		})
	}
}

func TestKillAtRandom(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow")
	j := newJob(t, etl)
	kills := envInt("LOCKSTEP_RANDOM_KILLS", 15)
	longest := 300 * time.Millisecond
	for killed, round := 0, 0; killed < kills; round++ {
		if round > 40*kills {
			t.Fatalf("only %d of %d kills after %d rounds", killed, kills, round)
		}
		j.land(6)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(longest))))
		if j.runContext(ctx) {
			killed++
		}
		cancel()
		if round%5 == 4 {
			j.expectRight()
		}
	}
	j.expectRight()
	t.Logf("%d kills at random, 0 wrong", kills)
}

// job is a pipeline over CSV and Parquet files that come a few at a time.
type job struct {
	t     *testing.T
	etl   string
	dir   string
	files int
}

func newJob(t *testing.T, etl string) *job {
	j := &job{t: t, etl: etl, dir: t.TempDir()}
	pipeline := `
ATTACH 'm.duckdb' AS m;
CREATE SOURCE orders (id BIGINT NOT NULL, store VARCHAR, amount DECIMAL(12,2), sold_at TIMESTAMP) FROM 'in/*.csv';
CREATE SINK m.stores PRIMARY KEY (store) AS
SELECT store, count(*) AS n, sum(amount) AS revenue, avg(amount) AS mean, max(sold_at) AS newest FROM orders GROUP BY store;
CREATE SINK m.sizes PRIMARY KEY (n) AS
SELECT n, count(*) AS stores FROM (SELECT store, count(*) AS n FROM orders WHERE amount > 5 GROUP BY store) GROUP BY n HAVING count(*) < 4;
`
	j.check(os.WriteFile(filepath.Join(j.dir, "p.sql"), []byte(pipeline), 0o644))
	j.check(os.Mkdir(filepath.Join(j.dir, "in"), 0o755))
	// The second table is made by hand and taken over, with a key and a column of its own.
	ctx := t.Context()
	db, err := duck.Open(ctx, duck.Options{Dirs: []string{j.dir}, Threads: 1})
	j.check(err)
	j.check(db.Attach(ctx, filepath.Join(j.dir, "m.duckdb"), "m", false))
	j.check(db.Exec(ctx, "CREATE TABLE m.sizes (n BIGINT, note VARCHAR DEFAULT 'by hand', stores BIGINT, PRIMARY KEY (n))"))
	j.check(db.Close())
	return j
}

func (j *job) check(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// land writes new files as a loader should: under another name first.
func (j *job) land(files int) {
	for range files {
		var b strings.Builder
		b.WriteString("id,store,amount,sold_at\n")
		for i := range 5 + rand.IntN(30) {
			fmt.Fprintf(&b, "%d,s%d,%d.%02d,2026-01-%02d 10:00:00\n", j.files*1000+i, rand.IntN(12), rand.IntN(20), rand.IntN(100), 1+rand.IntN(28))
		}
		name := filepath.Join(j.dir, "in", fmt.Sprintf("%06d.csv", j.files))
		j.check(os.WriteFile(name+".tmp", []byte(b.String()), 0o644))
		j.check(os.Rename(name+".tmp", name))
		j.files++
	}
}

// run starts etl with an environment; true when it was killed.
func (j *job) run(env ...string) bool {
	cmd := exec.Command(j.etl, "run", "p.sql", "--max-batch-bytes", "1")
	cmd.Env = append(os.Environ(), env...)
	return j.killed(cmd)
}

func (j *job) runContext(ctx context.Context) bool {
	// CommandContext kills with SIGKILL at the deadline.
	return j.killed(exec.CommandContext(ctx, j.etl, "run", "p.sql", "--max-batch-bytes", "1"))
}

func (j *job) killed(cmd *exec.Cmd) bool {
	j.t.Helper()
	cmd.Dir = j.dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
			return true
		}
	}
	if err != nil && cmd.ProcessState != nil {
		j.t.Fatalf("etl run: %v\n%s", err, out)
	}
	return false
}

// etlJSON runs a command with --json and reads its answer.
func (j *job) etlJSON(into any, args ...string) {
	j.t.Helper()
	cmd := exec.Command(j.etl, append(args, "--json")...)
	cmd.Dir = j.dir
	out, err := cmd.Output()
	if err != nil {
		j.t.Fatalf("etl %v: %v\n%s", args, err, out)
	}
	if err := json.Unmarshal(out, into); err != nil {
		j.t.Fatalf("etl %v: %v\n%s", args, err, out)
	}
}

// expectRight runs to the end, reconciles, and looks for gaps in the manifests and doubled input.
func (j *job) expectRight() {
	j.t.Helper()
	if j.run() {
		j.t.Fatal("killed without being asked to")
	}
	cmd := exec.Command(j.etl, "reconcile", "p.sql")
	cmd.Dir = j.dir
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), " 0 differ") != 2 {
		j.t.Fatalf("reconcile: %v\n%s", err, out)
	}
	for what, query := range map[string]string{
		"manifests without a gap":          `SELECT (count(*) = max(seq) AND min(seq) = 1 AND count(DISTINCT batch) = count(*) FILTER (kind = 'batch')) AS ok FROM etl.manifests`,
		"other columns are as they were":   `SELECT coalesce(bool_and(note = 'by hand'), true) AS ok FROM m.sizes`,
		"every manifest's parent is there": `SELECT bool_and(parent_seq = seq - 1) AS ok FROM etl.manifests`,
		"every file was read once":         fmt.Sprintf(`SELECT (count(*) = %d AND count(DISTINCT split_id) = count(*)) AS ok FROM etl.ranges`, j.files),
	} {
		var rows []map[string]any
		j.etlJSON(&rows, "query", "p.sql", query)
		if len(rows) != 1 || rows[0]["ok"] != true {
			j.t.Fatalf("%s: %v", what, rows)
		}
	}
}

func buildETL(t *testing.T, tags string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "etl")
	cmd := exec.Command("go", "build", "-tags", tags, "-o", bin, "./cmd/etl")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func envInt(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}
