package lockstep_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/engine/duck"
)

// Commands that change a pipeline as a whole, killed at random: each has done all of it or nothing, and what is
// to be done next is what its messages say.
func TestKillDeeds(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow")
	kills := envInt("LOCKSTEP_DEED_KILLS", 3)
	for destination, newJob := range destinations {
		for name, once := range map[string]func(*job) (killed bool){"rename": (*job).renameOnce, "drop": (*job).dropOnce, "accept-loss": (*job).loseOnce} {
			t.Run(destination+"/"+name, func(t *testing.T) {
				j := newJob(t, etl)
				counted := 0
				for round := 0; counted < kills && round < 20*kills; round++ {
					if once(j) {
						counted++
					}
				}
				count(t, destination, name+" killed at random", counted)
			})
		}
	}
}

// tell runs etl to its end.
func (j *job) tell(args ...string) (code int, said string) {
	j.t.Helper()
	cmd := exec.Command(j.etl, args...)
	cmd.Dir = j.dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		j.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (j *job) expect(code int, args ...string) string {
	j.t.Helper()
	got, said := j.tell(args...)
	if got != code {
		j.t.Fatalf("etl %s ends with %d, not %d: %s", strings.Join(args, " "), got, code, said)
	}
	return said
}

// tellKilled runs etl and kills it after a while.
func (j *job) tellKilled(args ...string) bool {
	ctx, cancel := context.WithTimeout(j.t.Context(), time.Duration(rand.Int64N(int64(200*time.Millisecond))))
	defer cancel()
	return j.killed(exec.CommandContext(ctx, j.etl, args...))
}

func (j *job) renameOnce() bool {
	j.land(2)
	j.expect(0, "run", "p.sql")
	p, q := filepath.Join(j.dir, "p.sql"), filepath.Join(j.dir, "q.sql")
	j.check(os.Rename(p, q))
	killed := j.tellKilled("rename", "p", "q.sql")
	if code, said := j.tell("run", "q.sql", "--wait", "60s"); code == 3 && strings.Contains(said, "etl rename p q.sql") {
		j.expect(0, "rename", "p", "q.sql")
		j.expect(0, "run", "q.sql")
	} else if code != 0 {
		j.t.Fatalf("after a rename etl run ends with %d: %s", code, said)
	}
	j.check(os.Rename(q, p))
	j.expect(0, "rename", "q", "p.sql")
	j.expectRight()
	return killed
}

func (j *job) dropOnce() bool {
	j.land(2)
	j.expect(0, "run", "p.sql")
	killed := j.tellKilled("drop", "p.sql", "--yes")
	if code, said := j.tell("run", "p.sql", "--wait", "60s"); code == 3 && strings.Contains(said, "no pipeline wrote its rows") {
		if j.dsn != "" { // the table that was there before
			j.postgres("DELETE FROM sizes")
		} else {
			j.open(filepath.Join(j.dir, "m.duckdb"), func(db *duck.Engine) { j.check(db.Exec(j.t.Context(), "DELETE FROM m.sizes")) })
		}
	} else if code != 0 {
		j.t.Fatalf("after a drop etl run ends with %d: %s", code, said)
	}
	j.expectRight()
	return killed
}

func (j *job) loseOnce() bool {
	j.land(2)
	j.expect(0, "run", "p.sql")
	lost := filepath.Join(j.dir, "in", "000000.csv")
	text, err := os.ReadFile(lost)
	j.check(err)
	j.check(os.WriteFile(lost, append(text, "1,s1,1.00,2026-01-01 10:00:00\n"...), 0o644))
	said := j.expect(4, "run", "p.sql")
	if !strings.Contains(said, "etl accept-loss p.sql --source orders --split 000000.csv") {
		j.t.Fatal(said)
	}
	before := j.expect(0, "query", "p.sql", "SELECT sum(n), sum(revenue) FROM stores", "--format", "csv")
	killed := j.tellKilled("accept-loss", "p.sql", "--source", "orders", "--split", "000000.csv", "--yes")
	if code, said := j.tell("run", "p.sql", "--wait", "60s"); code == 4 {
		j.expect(0, "accept-loss", "p.sql", "--source", "orders", "--split", "000000.csv", "--yes")
		said = j.expect(0, "run", "p.sql")
		if !strings.Contains(said, "up to date") {
			j.t.Fatal(said)
		}
	} else if code != 0 || !strings.Contains(said, "up to date") {
		j.t.Fatalf("after a loss etl run ends with %d: %s", code, said)
	}
	if after := j.expect(0, "query", "p.sql", "SELECT sum(n), sum(revenue) FROM stores", "--format", "csv"); after != before {
		j.t.Fatalf("a loss changed the table: %s, was %s", after, before)
	}
	if said := j.expect(4, "reconcile", "p.sql"); !strings.Contains(said, "is lost, as was accepted") {
		j.t.Fatal(said)
	}
	return killed
}
