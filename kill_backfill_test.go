package lockstep_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/engine/duck"
)

// backfillFailpoints are the places in a backfill where a process can be killed, in their order.
func backfillFailpoints(destination string) []string {
	apply := map[string][]string{"duckdb": {"after-delete", "after-insert"}, "postgres": {"after-copy", "after-merge"}}
	return slices.Concat([]string{"after-fold", "before-correction", "commit-begin"}, apply[destination],
		[]string{"after-segments", "after-manifest", "before-commit", "after-commit", "after-confirm", "after-correction"})
}

// daily is a pipeline over one file a day, and what its files held when they were read.
type daily struct {
	*job
	was   map[string]string
	wrong string // the file that was changed since, and not taken over
	done  int64  // backfills that committed
}

const dailySelect = "SELECT sold_at::DATE AS day, store, count(*) AS n, sum(amount) AS revenue FROM orders GROUP BY ALL"

func newDaily(t *testing.T, etl string, newJob func(*testing.T, string) *job, days int) *daily {
	d := &daily{job: newJob(t, etl), was: map[string]string{}}
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

func (d *daily) must(args ...string) {
	d.t.Helper()
	cmd := exec.Command(d.etl, args...)
	cmd.Dir = d.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("etl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (d *daily) backfill() []string {
	return []string{"backfill", "d.sql", "--files", "in/" + d.wrong, "--yes"}
}

// expect compares the tables with the SELECT over what was read: of the changed file what it held then, unless
// a backfill committed.
func (d *daily) expect() {
	d.t.Helper()
	d.look(func(db *duck.Engine) {
		if n := d.count(db, "SELECT count(*) FROM m.etl.manifests WHERE kind = 'backfill'"); n > d.done {
			d.done = n
			var day int
			_, err := fmt.Sscanf(d.wrong, "%d.csv", &day)
			d.check(err)
			d.was[d.wrong], d.wrong = d.now(day), ""
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
				d.t.Fatalf("%d rows differ between %s and the SELECT; the changed file is %q", n, table, d.wrong)
			}
		}
	})
}

// A backfill that is killed has changed nothing or everything, and is right when it is run again.
func TestKillBackfill(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow,failpoints")
	kills := max(1, envInt("LOCKSTEP_KILLS", 2)/5)
	for destination, newJob := range destinations {
		t.Run(destination, func(t *testing.T) {
			t.Parallel()
			const days = 12
			d := newDaily(t, etl, newJob, days)
			start, counted := time.Now(), 0
			for again := true; again; again = time.Since(start) < soak() {
				for _, name := range backfillFailpoints(destination) {
					for range kills {
						day := rand.IntN(days)
						d.wrong = d.name(day)
						d.write(day)
						cmd := exec.Command(d.etl, d.backfill()...)
						cmd.Env = append(os.Environ(), "LOCKSTEP_FAILPOINT="+name)
						if d.killed(cmd) {
							counted++
						} else {
							t.Errorf("%s: no kill", name)
						}
						d.expect()
						if d.wrong != "" {
							d.must(d.backfill()...)
							d.expect()
						}
						d.must("run", "d.sql")
						d.expect()
					}
				}
				for range 5 * kills { // and anywhere
					day := rand.IntN(days)
					d.wrong = d.name(day)
					d.write(day)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(300*time.Millisecond))))
					if d.killed(exec.CommandContext(ctx, d.etl, d.backfill()...)) {
						counted++
					}
					cancel()
					d.expect()
					if d.wrong != "" {
						d.must(d.backfill()...)
						d.expect()
					}
				}
				d.must("reconcile", "d.sql")
			}
			t.Logf("%d kills of a backfill, 0 wrong", counted)
		})
	}
}
