package lockstep_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockstep/connectors/postgres/pgtest"
)

// The examples run on Postgres when their ATTACH line says so, and nothing else is changed.
func TestExamplesOnPostgres(t *testing.T) {
	cluster := pgtest.Start(t)
	etl := buildETL(t, "duckdb_arrow")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("examples/pipelines")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	attach := regexp.MustCompile(`(?m)^ATTACH '[^']*' AS (\w+);$`)
	dsn := cluster.Database(t)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(attach.FindAll(text, -1)); n != 1 {
			t.Fatalf("%s has %d ATTACH lines", path, n)
		}
		if err := os.WriteFile(path, attach.ReplaceAll(text, []byte("ATTACH getenv('MART_DSN') AS $1 (TYPE postgres);")), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, c := range [][]string{{"check"}, {"run", "--max-batch-rows", "20000"}, {"run"}, {"status"}, {"reconcile"}} {
			cmd := exec.Command(etl, append(c, filepath.Base(path))...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "MART_DSN="+dsn)
			out, err := cmd.CombinedOutput()
			if err != nil || c[0] == "reconcile" && !strings.Contains(string(out), " 0 differ") {
				t.Fatalf("etl %v %s: %v\n%s", c, filepath.Base(path), err, out)
			}
		}
	}
}

// A follower goes on when the server was killed and has come back.
func TestFollowThroughRestarts(t *testing.T) {
	cluster := pgtest.Start(t)
	j := newPostgresJob(t, buildETL(t, "duckdb_arrow"))
	j.land(1)
	f := j.follow("100ms")
	f.batches(1)
	for _, signal := range []string{"KILL", "INT", "QUIT"} {
		cluster.Restart(t, signal)
		j.land(2)
		f.batches(2)
	}
	f.signal(os.Interrupt)
	f.exit(0)
	j.expectRight()
}

// A follower whose server is away says so once, and goes on when it is back.
func TestFollowWhileServerIsAway(t *testing.T) {
	cluster := pgtest.Start(t)
	dsn := cluster.Database(t)
	p := cluster.Proxy(t)
	j := newJobIn(t, buildETL(t, "duckdb_arrow"), "'"+p.DSN(t, dsn)+"' AS m (TYPE postgres)", dsn)
	j.land(1)
	f := j.follow("50ms")
	f.batches(1)
	for range 2 {
		told := strings.Count(f.said(), "looking again every 50ms")
		p.Away(true)
		j.land(2)
		for start := time.Now(); strings.Count(f.said(), "looking again every 50ms") == told; time.Sleep(20 * time.Millisecond) {
			if time.Since(start) > time.Minute {
				t.Fatalf("it says nothing of it: %s", f.said())
			}
		}
		time.Sleep(500 * time.Millisecond)
		if now := strings.Count(f.said(), "looking again every 50ms"); now != told+1 {
			t.Errorf("it was said %d times: %s", now-told, f.said())
		}
		p.Away(false)
		f.batches(2)
	}
	f.signal(os.Interrupt)
	f.exit(0)
	j.expectRight()
}
