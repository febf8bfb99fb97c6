// Package bench measures whole runs of the etl binary against named baselines, both in the same run on
// the same machine. Single times say little on a shared machine; the ratio of pairs is what counts.
package bench

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
)

// oneShotEnv makes the test binary run one SQL statement on a database file and exit: the baseline as
// a process of its own, with the same DuckDB.
const oneShotEnv = "LOCKSTEP_BENCH_ONESHOT"

func TestMain(m *testing.M) {
	if stmt := os.Getenv(oneShotEnv); stmt != "" {
		if err := oneShot(os.Args[1], stmt); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func oneShot(path, stmt string) error {
	db, err := sql.Open("duckdb", path)
	if err != nil {
		return err
	}
	if _, err := db.Exec(stmt); err != nil {
		return err
	}
	return db.Close()
}

// measured is one finished process.
type measured struct {
	wall time.Duration
	rss  int64 // bytes at its peak
}

func run(b *testing.B, dir string, env []string, name string, args ...string) measured {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	m := measured{wall: time.Since(start)}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.rss = ru.Maxrss << 10
	}
	return m
}

func etl(b *testing.B) string {
	b.Helper()
	bin, err := filepath.Abs("../../bin/etl")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		b.Fatalf("%v: run make build first", err)
	}
	return bin
}

func write(b *testing.B, path, text string) {
	b.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

func generate(b *testing.B, stmt string) {
	b.Helper()
	if err := oneShot("", stmt); err != nil {
		b.Fatal(err)
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

const grouped = "SELECT k, count(*) AS n, sum(a) AS sa, sum(b) AS sb, avg(a) AS mean, max(ts) AS newest FROM t GROUP BY k"

// BenchmarkCatchUp: 20M Parquet rows into 100k groups, first run, against CREATE TABLE AS of the same
// SELECT. Both sides are whole processes; ours hashes the files and writes segments and manifest.
func BenchmarkCatchUp(b *testing.B) {
	catchUp(b, "parquet", 4, 5_000_000, "CREATE SOURCE t FROM 'in*.parquet'", "read_parquet('in*.parquet')", 7)
}

// BenchmarkCatchUpCSV: 4M CSV rows into 100k groups. The baseline is told the columns too; ours reads every
// field with its own strict rules, and counts the records a second time.
func BenchmarkCatchUpCSV(b *testing.B) {
	catchUp(b, "csv", 4, 1_000_000, "CREATE SOURCE t (k INTEGER, a BIGINT, b DECIMAL(12,2), ts TIMESTAMP) FROM 'in*.csv'",
		"read_csv('in*.csv', columns = {k: 'INTEGER', a: 'BIGINT', b: 'DECIMAL(12,2)', ts: 'TIMESTAMP'})", 5)
}

// catchUp runs both sides in pairs over files of random rows.
func catchUp(b *testing.B, format string, files, rows int, source, read string, n int) {
	dir, bin := b.TempDir(), etl(b)
	randomRows(b, dir, format, files, rows)
	write(b, filepath.Join(dir, "p.sql"), "ATTACH 'm.duckdb' AS m; "+source+"; CREATE SINK m.out PRIMARY KEY (k) AS "+grouped+";")
	for b.Loop() {
		pairs(b, dir, n, func(int) (string, measured) {
			os.Remove(filepath.Join(dir, "m.duckdb"))
			return "WITH t AS (FROM " + read + ") " + grouped, run(b, dir, nil, bin, "run", "p.sql")
		})
	}
}

// randomRows writes files of rows in 100k groups.
func randomRows(b *testing.B, dir, format string, files, rows int) {
	b.Helper()
	for i := range files {
		generate(b, fmt.Sprintf(`COPY (SELECT (random() * 99999)::INTEGER AS k, (random() * 1000)::BIGINT AS a, (random() * 1000)::DECIMAL(12,2) AS b,
			TIMESTAMP '2026-01-01' + to_seconds(i) AS ts FROM range(%[1]d) r(i)) TO '%[2]s/in%[3]d.%[4]s' (FORMAT %[4]s)`, rows, dir, i, format))
	}
}

// pairs does something n times, each time beside CREATE TABLE AS of the query that it names.
func pairs(b *testing.B, dir string, n int, ours func(i int) (string, measured)) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	var ratios, seconds []float64
	var rss int64
	for i := range n {
		query, etl := ours(i)
		os.Remove(filepath.Join(dir, "one.duckdb"))
		one := run(b, dir, []string{oneShotEnv + "=CREATE TABLE out AS " + query}, self, "one.duckdb")
		ratios, seconds, rss = append(ratios, float64(etl.wall)/float64(one.wall)), append(seconds, etl.wall.Seconds()), max(rss, etl.rss)
	}
	b.ReportMetric(median(ratios), "x-of-create-table-as")
	b.ReportMetric(median(seconds), "s/run")
	b.ReportMetric(float64(rss)/(1<<20), "peak-MiB")
}

// BenchmarkRebuild: after 20M Parquet rows were read, the SELECT is changed so that all of them are read again,
// against CREATE TABLE AS of the changed SELECT.
func BenchmarkRebuild(b *testing.B) {
	dir, bin := b.TempDir(), etl(b)
	randomRows(b, dir, "parquet", 4, 5_000_000)
	query := func(i int) string {
		return fmt.Sprintf("SELECT k, count(*) AS n, sum(a + %d) AS sa, sum(b) AS sb, avg(a) AS mean, max(ts) AS newest FROM t GROUP BY k", i)
	}
	pipeline := func(i int) {
		write(b, filepath.Join(dir, "p.sql"), "ATTACH 'm.duckdb' AS m; CREATE SOURCE t FROM 'in*.parquet'; CREATE SINK m.out PRIMARY KEY (k) AS "+query(i)+";")
	}
	pipeline(0)
	run(b, dir, nil, bin, "run", "p.sql")
	for b.Loop() {
		pairs(b, dir, 7, func(i int) (string, measured) {
			pipeline(i + 1)
			return "WITH t AS (FROM read_parquet('in*.parquet')) " + query(i+1), run(b, dir, nil, bin, "apply", "p.sql", "--yes")
		})
	}
}

// BenchmarkNothingNew: a cron run that finds no new file, on 1M keys of state. The whole process.
func BenchmarkNothingNew(b *testing.B) {
	dir, bin := b.TempDir(), etl(b)
	generate(b, fmt.Sprintf(`COPY (SELECT i::INTEGER AS k, i AS a, 1.5::DECIMAL(12,2) AS b, TIMESTAMP '2026-01-01' AS ts FROM range(1000000) r(i)) TO '%s/in.parquet' (FORMAT parquet)`, dir))
	write(b, filepath.Join(dir, "p.sql"), `ATTACH 'm.duckdb' AS m; CREATE SOURCE t FROM 'in*.parquet';
		CREATE SINK m.out PRIMARY KEY (k) AS `+grouped+";")
	run(b, dir, nil, bin, "run", "p.sql")
	for b.Loop() {
		var took []float64
		for range 15 {
			took = append(took, run(b, dir, nil, bin, "run", "p.sql").wall.Seconds())
		}
		b.ReportMetric(median(took), "s/run")
	}
}
