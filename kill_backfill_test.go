package lockstep_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/engine/duck"
)

// backfillFailpoints are the places in a backfill where a process can be killed, in their order.
func backfillFailpoints(destination string) []string {
	apply := map[string][]string{"duckdb": {"after-delete", "after-insert"}, "postgres": {"after-copy", "after-merge"}}
	return slices.Concat([]string{"after-save", "after-fold", "before-correction", "commit-begin"}, apply[destination],
		[]string{"after-segments", "after-manifest", "before-commit", "after-commit", "after-confirm", "after-correction"})
}

// daily is a pipeline over one file a day, and what its files held when they were read.
type daily struct {
	*job
	days  int
	was   map[string]string
	wrong []string // the files that were changed since, and not taken over
	asked []string // what the backfill is of
	done  int64    // backfills that committed
	used  int      // that went on from what was saved
}

const dailySelect = "SELECT sold_at::DATE AS day, store, count(*) AS n, sum(amount) AS revenue FROM orders GROUP BY ALL"

func newDaily(t *testing.T, etl string, newJob func(*testing.T, string) *job, days int) *daily {
	d := &daily{job: newJob(t, etl), days: days, was: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(d.dir, "p.sql"))
	d.check(err)
	attach, _, _ := strings.Cut(string(text), "CREATE SOURCE")
	d.check(os.WriteFile(filepath.Join(d.dir, "d.sql"), []byte(attach+`
CREATE SOURCE orders (id BIGINT NOT NULL, store VARCHAR, amount DECIMAL(12,2), sold_at TIMESTAMP NOT NULL, WATERMARK FOR sold_at AS sold_at - INTERVAL '1 day') FROM 'in/*.csv';
CREATE SINK m.daily PRIMARY KEY (day, store) AS
`+dailySelect+`;
CREATE SINK m.days PRIMARY KEY (day) AS
SELECT sold_at::DATE AS day, count(DISTINCT store) AS stores, max(amount) AS most FROM orders GROUP BY day;
`), 0o644))
	for day := range days {
		d.write(day)
		d.was[d.name(day)] = d.now(day)
	}
	d.must("run", "d.sql")
	return d
}

func (d *daily) name(day int) string { return fmt.Sprintf("%03d.csv", day) }

func (d *daily) now(day int) string {
	data, err := os.ReadFile(filepath.Join(d.dir, "in", d.name(day)))
	d.check(err)
	return string(data)
}

// write makes the file of a day, other than it is.
func (d *daily) write(day int) {
	var b strings.Builder
	b.WriteString("id,store,amount,sold_at\n")
	for i := range 1 + rand.IntN(20) {
		fmt.Fprintf(&b, "%d,s%d,%d.%02d,%s %02d:00:00\n", day*1000+i, rand.IntN(6), rand.IntN(20), rand.IntN(100),
			time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), rand.IntN(24))
	}
	name := filepath.Join(d.dir, "in", d.name(day))
	d.check(os.WriteFile(name+".tmp", []byte(b.String()), 0o644))
	d.check(os.Rename(name+".tmp", name))
}

func (d *daily) must(args ...string) string {
	d.t.Helper()
	cmd := exec.Command(d.etl, args...)
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("etl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// goWrong changes the file of one of the first days, and draws how to ask for it: with all others, so that what
// was folded can be saved between them, or alone.
func (d *daily) goWrong(alone bool) {
	d.t.Helper()
	name := d.name(rand.IntN(d.days))
	d.rewrite(name)
	switch {
	case alone:
		d.asked = []string{"--files", "in/" + name}
	case rand.IntN(2) == 0:
		d.asked = []string{"--files", "in/*.csv"}
	default:
		d.asked = []string{"--where", "day < DATE '2026-01-01' + " + fmt.Sprint(d.days)}
	}
}

func (d *daily) rewrite(name string) {
	d.t.Helper()
	var day int
	_, err := fmt.Sscanf(name, "%d.csv", &day)
	d.check(err)
	d.write(day)
	if !slices.Contains(d.wrong, name) {
		d.wrong = append(d.wrong, name)
	}
}

func (d *daily) backfill() []string {
	return append([]string{"backfill", "d.sql", "--yes", "--max-batch-bytes", "1", "--save-every", "1ns"}, d.asked...)
}

// between is what happens between a kill and what goes on: nothing, another file is changed, or the changed ones
// are put back for a run, which takes a new file in.
func (d *daily) between() {
	d.t.Helper()
	switch rand.IntN(3) {
	case 0:
		if d.asked[1] != "in/"+d.wrong[0] {
			d.rewrite(d.name(rand.IntN(d.days)))
		}
	case 1:
		now := map[string]string{}
		for _, name := range d.wrong {
			path := filepath.Join(d.dir, "in", name)
			text, err := os.ReadFile(path)
			d.check(err)
			now[name] = string(text)
			d.check(os.WriteFile(path, []byte(d.was[name]), 0o644))
		}
		day := len(d.was)
		d.write(day)
		d.was[d.name(day)] = d.now(day)
		d.must("run", "d.sql")
		for name, text := range now {
			d.check(os.WriteFile(filepath.Join(d.dir, "in", name), []byte(text), 0o644))
		}
		d.expect()
	}
}

var savedID = regexp.MustCompile(`"id": "([0-9a-f]{8})"`)

// goOn goes on with a backfill that was killed: by its id, when something was saved of it, or by the command.
func (d *daily) goOn() {
	d.t.Helper()
	saved := savedID.FindStringSubmatch(d.must("backfill", "list", "d.sql", "--json"))
	if len(d.wrong) == 0 {
		if saved != nil {
			d.t.Fatalf("a backfill has committed, and %s is still listed", saved[1])
		}
		return
	}
	d.between()
	args := d.backfill()
	if saved != nil && rand.IntN(2) == 0 {
		args = []string{"backfill", "resume", "d.sql", saved[1], "--yes"}
	}
	if out := d.must(args...); strings.Contains(out, " before it was stopped") {
		d.used++
	} else if saved != nil && !strings.Contains(out, "backfill "+saved[1]) {
		d.t.Fatalf("%s was saved, and there was\n%s", saved[1], out)
	}
	d.expect()
	if len(d.wrong) > 0 {
		d.t.Fatalf("%v were not taken over", d.wrong)
	}
}

// expect compares the tables with the SELECT over what was read: of the changed file what it held then, unless
// a backfill committed.
func (d *daily) expect() {
	d.t.Helper()
	d.look(func(db *duck.Engine) {
		if n := d.count(db, "SELECT count(*) FROM m.etl.manifests WHERE kind = 'backfill'"); n > d.done {
			d.done = n
			for _, name := range d.wrong {
				text, err := os.ReadFile(filepath.Join(d.dir, "in", name))
				d.check(err)
				d.was[name] = string(text)
			}
			d.wrong = nil
		}
		var rows []string
		for _, text := range d.was {
			for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
				f := strings.Split(line, ",")
				rows = append(rows, fmt.Sprintf("(%s, '%s', %s, '%s')", f[0], f[1], f[2], f[3]))
			}
		}
		d.check(db.Exec(d.t.Context(), "CREATE OR REPLACE TEMP TABLE orders (id BIGINT, store VARCHAR, amount DECIMAL(12,2), sold_at TIMESTAMP)"))
		d.check(db.Exec(d.t.Context(), "INSERT INTO orders VALUES "+strings.Join(rows, ", ")))
		for table, want := range map[string]string{
			"SELECT day, store, n, revenue FROM m.daily": dailySelect,
			"SELECT day, stores, most FROM m.days":       "SELECT sold_at::DATE AS day, count(DISTINCT store) AS stores, max(amount) AS most FROM orders GROUP BY day",
		} {
			if n := d.count(db, fmt.Sprintf("SELECT count(*) FROM ((FROM (%[1]s) EXCEPT ALL FROM (%[2]s)) UNION ALL (FROM (%[2]s) EXCEPT ALL FROM (%[1]s)))", table, want)); n != 0 {
				d.t.Fatalf("%d rows differ between %s and the SELECT; changed files are %q", n, table, d.wrong)
			}
		}
	})
}

// A backfill that is killed has changed nothing or everything, and is right when it goes on.
func TestKillBackfill(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow,failpoints")
	kills := max(1, envInt("LOCKSTEP_KILLS", 2)/5)
	for destination, newJob := range destinations {
		t.Run(destination, func(t *testing.T) {
			t.Parallel()
			const days = 12
			d := newDaily(t, etl, newJob, days)
			start, counted, anywhere := time.Now(), 0, 0
			for again := true; again; again = time.Since(start) < soak() {
				for _, name := range backfillFailpoints(destination) {
					for range kills {
						d.goWrong(name != "after-save" && rand.IntN(2) == 0)
						cmd := exec.Command(d.etl, d.backfill()...)
						cmd.Env = append(os.Environ(), "LOCKSTEP_FAILPOINT="+name)
						if name == "after-save" {
							cmd.Env[len(cmd.Env)-1] += fmt.Sprint(":", 1+rand.IntN(days-1))
						}
						if d.killed(cmd) {
							counted++
						} else {
							t.Errorf("%s: no kill", name)
						}
						d.expect()
						d.goOn()
						d.must("run", "d.sql")
						d.expect()
					}
				}
				for range max(2, envInt("LOCKSTEP_RANDOM_KILLS", 5)/3) { // and anywhere
					d.goWrong(rand.IntN(4) == 0)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(600*time.Millisecond))))
					if d.killed(exec.CommandContext(ctx, d.etl, d.backfill()...)) {
						anywhere++
					}
					cancel()
					d.expect()
					d.goOn()
				}
				d.must("reconcile", "d.sql")
			}
			count(t, destination, "backfill killed at a failpoint", counted)
			count(t, destination, "backfill killed at random", anywhere)
			t.Logf("%d kills of a backfill, %d of them at random, 0 wrong; %d went on from what was saved", counted+anywhere, anywhere, d.used)
			if d.used == 0 {
				t.Error("nothing went on from what was saved")
			}
		})
	}
}
