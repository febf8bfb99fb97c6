package lockstep_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lockstep/connectors/postgres/pgtest"
)

// Faults other than kills: of the wire, of the server, and of a run that stalls. As with kills (kill_test.go) the
// tables must afterwards equal the SELECTs run once over the files that were read, and `etl reconcile` must say so.
//
// LOCKSTEP_FAULTS is about how many every kind gets; LOCKSTEP_SOAK=10m goes on for so long. All faults of a
// process, kills too, are printed in one table at its end; with LOCKSTEP_AT_LEAST=300 fewer are a failure.

type fault struct{ destination, kind string }

var (
	faultsMu sync.Mutex
	faults   = map[fault][2]int{} // how many, and how many tests of them went wrong
)

// count enters faults that were survived, or not.
func count(t *testing.T, destination, kind string, n int) {
	faultsMu.Lock()
	defer faultsMu.Unlock()
	c := faults[fault{destination, kind}]
	if c[0] += n; t.Failed() {
		c[1]++
	}
	faults[fault{destination, kind}] = c
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range builds.dirs {
		os.RemoveAll(dir)
	}
	if total := printFaults(); total < envInt("LOCKSTEP_AT_LEAST", 0) {
		fmt.Printf("%d faults are too few: LOCKSTEP_AT_LEAST is %d\n", total, envInt("LOCKSTEP_AT_LEAST", 0))
		code = max(code, 1)
	}
	os.Exit(code)
}

func printFaults() (total int) {
	if len(faults) == 0 {
		return 0
	}
	byName := func(a, b fault) int {
		return slices.Compare([]string{a.destination, a.kind}, []string{b.destination, b.kind})
	}
	wrong := 0
	fmt.Printf("%-10s %-42s %6s %6s\n", "database", "fault", "count", "wrong")
	for _, f := range slices.SortedFunc(maps.Keys(faults), byName) {
		fmt.Printf("%-10s %-42s %6d %6d\n", f.destination, f.kind, faults[f][0], faults[f][1])
		total, wrong = total+faults[f][0], wrong+faults[f][1]
	}
	fmt.Printf("%-10s %-42s %6d %6d\n", "both", "all", total, wrong)
	return total
}

// until repeats a round of faults until there are enough, and the time to soak is over.
func until(t *testing.T, destination, kind string, enough int, round func() int) {
	n, start := 0, time.Now()
	defer func() { count(t, destination, kind, n) }()
	for rounds := 0; n < enough || time.Since(start) < soak()/8; rounds++ {
		if rounds > 20*enough && soak() == 0 {
			t.Fatalf("only %d of %d faults after %d rounds", n, enough, rounds)
		}
		n += round()
	}
}

func TestFaultsOfTheWire(t *testing.T) {
	cluster := pgtest.Start(t)
	etl := buildETL(t, "duckdb_arrow")
	commits := func(m pgtest.Message) bool { return m.Text == "COMMIT" }
	for _, c := range []struct {
		kind  string
		cut   pgtest.Cut
		every int // how many of such messages one is cut at
		at    func(pgtest.Message) bool
	}{
		{"connection cut before COMMIT", pgtest.Before, 2, commits},
		{"connection cut inside COMMIT", pgtest.Inside, 2, commits},
		{"answer to COMMIT swallowed", pgtest.After, 2, commits},
		{"connection cut inside COPY", pgtest.Inside, 4, func(m pgtest.Message) bool { return m.Kind == 'd' }},
		{"connection cut before any message", pgtest.Before, 40, func(pgtest.Message) bool { return true }},
		{"answer to any message swallowed", pgtest.After, 40, func(m pgtest.Message) bool { return m.Kind != 'd' }},
	} {
		t.Run(c.kind, func(t *testing.T) {
			dsn := cluster.Database(t)
			p := cluster.Proxy(t)
			j := newJobIn(t, etl, "'"+p.DSN(t, dsn)+"' AS m (TYPE postgres)", dsn)
			j.run() // makes the schema, which a first run does not try again either
			until(t, "postgres", c.kind, envInt("LOCKSTEP_FAULTS", 4), func() int {
				j.land(5)
				seen, cut := 0, 0
				p.Set(func(m pgtest.Message) pgtest.Cut {
					if !c.at(m) {
						return pgtest.Not
					}
					// The first look at a database is not tried again: a server that is not there is said at once.
					// And patience ends when the connection is cut again and again.
					if seen++; seen < 4 || cut > 8 || rand.IntN(c.every) != 0 {
						return pgtest.Not
					}
					cut++
					return c.cut
				})
				if code, out := j.tell("run", "p.sql", "--max-batch-bytes", "1"); code != 0 {
					t.Fatalf("exit %d: %s", code, out)
				}
				cuts := p.Set(nil)
				j.expectConsumed()
				if j.waiting() != 0 {
					t.Fatalf("%d files were not read", j.waiting())
				}
				return cuts
			})
			j.expectRight()
		})
	}
}

// A server that ends sessions, and one that is killed and comes back, in the middle of runs. Either comes at any
// time, also before a run has looked at the database once: then it says so, and the next one goes on.
func TestFaultsOfTheServer(t *testing.T) {
	cluster := pgtest.Start(t)
	etl := buildETL(t, "duckdb_arrow")
	during := func(j *job, disturb func(done <-chan struct{})) {
		t.Helper()
		j.land(5)
		done, over := make(chan struct{}), make(chan struct{})
		go func() { defer close(over); disturb(done) }()
		code, out := j.tell("run", "p.sql", "--max-batch-bytes", "1")
		close(done)
		<-over
		if code != 0 && code != 5 {
			j.t.Fatalf("exit %d: %s", code, out)
		}
		j.expectConsumed()
	}
	t.Run("sessions", func(t *testing.T) {
		j := newPostgresJob(t, etl)
		until(t, "postgres", "session ended by the server", envInt("LOCKSTEP_FAULTS", 4), func() int {
			n := 0
			during(j, func(done <-chan struct{}) {
				shell, err := pgx.Connect(context.Background(), j.dsn)
				if err != nil {
					return
				}
				defer shell.Close(context.Background())
				for {
					select {
					case <-done:
						return
					case <-time.After(5 * time.Millisecond):
					}
					var hit int
					if shell.QueryRow(context.Background(), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'etl %' AND state <> 'idle' AND random() < 0.1").Scan(&hit) == nil {
						n += hit
					}
				}
			})
			return n
		})
		j.expectRight()
	})
	t.Run("kills", func(t *testing.T) {
		j := newPostgresJob(t, etl)
		until(t, "postgres", "server killed and started again", (envInt("LOCKSTEP_FAULTS", 4)+1)/2, func() int {
			n := 0
			during(j, func(done <-chan struct{}) {
				time.Sleep(time.Duration(50+rand.IntN(300)) * time.Millisecond)
				select {
				case <-done: // it came to its end
				default:
					cluster.Restart(t, []string{"KILL", "KILL", "QUIT", "INT"}[rand.IntN(4)])
					n++
				}
			})
			return n
		})
		j.expectRight()
	})
}

// A run is stopped anywhere, and goes on after another one has done its work. On Postgres time is made to pass for
// its lease; in a DuckDB file nobody can do its work meanwhile.
func TestFaultsOfAStalledRun(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow")
	for destination, newJob := range destinations {
		t.Run(destination, func(t *testing.T) {
			j := newJob(t, etl)
			until(t, destination, "run stalled, another one came, woken up", envInt("LOCKSTEP_FAULTS", 4), func() int {
				j.land(4)
				first := exec.Command(j.etl, "run", "p.sql", "--max-batch-bytes", "1")
				first.Dir = j.dir
				j.check(first.Start())
				time.Sleep(time.Duration(30+rand.IntN(250)) * time.Millisecond)
				j.check(first.Process.Signal(syscall.SIGSTOP))
				stalled := 0
				if destination == "postgres" {
					stalled = j.expireLease()
				}
				code, out := j.tell("run", "p.sql", "--max-batch-bytes", "1")
				switch {
				case code == 75:
					if destination == "duckdb" {
						stalled = 1
					}
				case code != 0:
					t.Errorf("the other run: exit %d: %s", code, out)
				}
				_ = first.Process.Signal(syscall.SIGCONT)
				_ = first.Wait()
				if code := first.ProcessState.ExitCode(); code != 0 && code != 75 {
					t.Errorf("the run that stalled: exit %d", code)
				}
				j.expectConsumed()
				return stalled
			})
			j.expectRight()
		})
	}
}

// expireLease lets the lease end; 0 when there is none, or the run stalls while it takes it.
func (j *job) expireLease() int {
	j.t.Helper()
	ctx := j.t.Context()
	conn, err := pgx.Connect(ctx, j.dsn)
	j.check(err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "SET lock_timeout = '200ms'")
	j.check(err)
	tag, err := conn.Exec(ctx, "UPDATE etl.leases SET expires_at = clock_timestamp()")
	if err != nil { // no such table yet, or locked
		return 0
	}
	return int(tag.RowsAffected())
}
