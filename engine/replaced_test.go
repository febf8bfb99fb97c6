package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine/duck"
	"lockstep/planner/plannertest"
	etlsql "lockstep/sql"
)

// Files are written, written anew and renamed between runs, each of which is a process of its own. When a
// run has read all, the tables equal the SELECTs over the files as they are.
func TestReplacedFiles(t *testing.T) {
	testReplacedFiles(t, func() string { return "" }, max(6, plannertest.Cases()/40))
}

func TestReplacedFilesOnPostgres(t *testing.T) {
	cluster := pgtest.Start(t)
	testReplacedFiles(t, func() string { return cluster.Database(t) }, 3)
}

func testReplacedFiles(t *testing.T, dsn func() string, want int) {
	accepted, batches := 0, 0
	plannertest.Draw(t, func() bool { return accepted >= want }, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p := &project{t: t, dir: dir, text: plannertest.Pipeline(plannertest.Sinks(rt), "*.parquet", "WITH (files = 'replace')")}
		_, err = p.compile(t.Context(), p.text)
		var faults etlsql.Errors
		if errors.As(err, &faults) {
			return
		}
		if err != nil {
			rt.Fatalf("%s\n%v", p.text, err)
		}
		p.dsn = dsn()
		did := ""
		for range rapid.IntRange(2, 4).Draw(rt, "runs") {
			renamed := false
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(rt, "changes") {
				did += "\n" + changeFile(t, rt, dir, name, &renamed)
			}
			did += "\nrun"
			o := p.open()
			o.Limit = connectors.Limit{Rows: int64(rapid.IntRange(1, 12).Draw(rt, "batch"))}
			sum, err := o.Run(t.Context(), nil)
			batches += len(sum.Reports)
			diff, theirs := "", o.placedReference(t, dir, 1<<40)
			if theirs == nil && err == nil {
				diff, theirs = o.differs(t)
			}
			o.close()
			if theirs != nil || err != nil && failsAnyway(t, p, 1<<40) {
				return
			}
			if err != nil || diff != "" {
				rt.Fatalf("%s%s\n%v%s", p.text, did, err, diff)
			}
		}
		accepted++
	})
	t.Logf("%d pipelines over files that are replaced, in %d batches", accepted, batches)
}

// changeFile writes a file, new or again, or renames it, perhaps over another that was renamed before; it
// tells what it did.
func changeFile(t *testing.T, rt *rapid.T, dir, name string, renamed *bool) string {
	name = filepath.Join(dir, name+".parquet")
	if _, err := os.Stat(name); err == nil && !*renamed && rapid.IntRange(0, 3).Draw(rt, "rename") == 0 {
		to := filepath.Join(dir, "x.parquet")
		if err := os.Rename(name, to); err != nil {
			rt.Fatal(err)
		}
		*renamed = true // the next would take its place before it is seen there
		return "rename " + filepath.Base(name)
	}
	n := rapid.IntRange(1, 8).Draw(rt, "rows")
	temp, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		rt.Fatal(err)
	}
	if err := randomFiles(t, temp, plannertest.Rows(rt, n), []int{n}); err != nil {
		rt.Fatal(err)
	}
	made := filepath.Join(temp, "000.parquet")
	clock = clock.Add(time.Second) // a clock of a file system may be coarse
	if err := errors.Join(os.Chtimes(made, clock, clock), os.Rename(made, name)); err != nil {
		rt.Fatal(err)
	}
	return fmt.Sprintf("write %s, %d rows", filepath.Base(name), n)
}

// A row is taken back with the sign of its zero, also by a process that has the state from segments.
func TestNegativeZeroTakenBack(t *testing.T) {
	p := &project{t: t, dir: t.TempDir(), text: "ATTACH 'm.duckdb' AS m; CREATE SOURCE t (k INTEGER, n INTEGER, r DOUBLE) FROM '*.parquet' WITH (files = 'replace');\n" +
		"CREATE SINK m.out PRIMARY KEY (k) AS SELECT k, min(r) AS r FROM (SELECT DISTINCT ON (k) k, n, r FROM t ORDER BY k, n) GROUP BY k;"}
	for n, run := range [][2]string{{"a", "-0.0"}, {"b", "5"}, {"a", "2"}} {
		eng, err := duck.Open(t.Context(), duck.Options{Dirs: []string{p.dir}})
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.Exec(t.Context(), fmt.Sprintf("COPY (SELECT 1 AS k, %d AS n, '%s'::DOUBLE AS r) TO '%s/%s.parquet' (FORMAT parquet)", n, run[1], p.dir, run[0])); err != nil {
			t.Fatal(err)
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(time.Second)
		if err := os.Chtimes(filepath.Join(p.dir, run[0]+".parquet"), clock, clock); err != nil {
			t.Fatal(err)
		}
		o := p.open()
		_, err = o.Run(t.Context(), nil)
		o.close()
		if err != nil {
			t.Fatal(err)
		}
	}
}

var clock = time.Now()
