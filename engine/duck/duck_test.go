package duck_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"go.uber.org/goleak"

	"lockstep/engine/duck"
)

// holdEnv makes the test binary a second process that opens a database file and says how that went.
const holdEnv = "LOCKSTEP_TEST_OPEN"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		os.Exit(openElsewhere(path))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

func openElsewhere(path string) int {
	eng, err := duck.Open(context.Background(), duck.Options{Dirs: []string{filepath.Dir(path)}})
	if err != nil {
		return 3
	}
	defer eng.Close()
	if err := eng.Attach(context.Background(), path, "m", false); err != nil {
		var open *duck.OpenError
		if errors.As(err, &open) && open.Held && open.PID != "" {
			os.Stdout.WriteString("held by " + open.PID)
			return 75
		}
		os.Stdout.WriteString(err.Error())
		return 1
	}
	return 0
}

// elsewhere tries to open the file in another process.
func elsewhere(t *testing.T, path string) (code int, said string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func open(t *testing.T, dirs ...string) *duck.Engine {
	t.Helper()
	eng, err := duck.Open(t.Context(), duck.Options{Dirs: dirs, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, eng *duck.Engine, query string) int {
	t.Helper()
	var n int
	must(t, eng.QueryRow(t.Context(), query, nil, &n))
	return n
}

func TestSandbox(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "secret.csv"), []byte("a\n1\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "open.csv"), []byte("a\n1\n"), 0o600))
	eng := open(t, dir)
	if n := count(t, eng, "SELECT count(*) FROM read_csv("+duck.Literal(filepath.Join(dir, "open.csv"))+")"); n != 1 {
		t.Errorf("read %d rows of an allowed folder", n)
	}
	for _, stmt := range []string{
		"SELECT * FROM read_csv(" + duck.Literal(filepath.Join(other, "secret.csv")) + ")",
		"SELECT * FROM read_text('/etc/passwd')",
		"COPY (SELECT 1) TO " + duck.Literal(filepath.Join(other, "out.csv")),
		"ATTACH " + duck.Literal(filepath.Join(other, "x.duckdb")) + " AS x",
		"SET enable_external_access = true",
		"SET TimeZone = 'Asia/Tokyo'",
		"INSTALL httpfs",
		"LOAD httpfs",
		"SELECT getenv('HOME')",
	} {
		if err := eng.Exec(t.Context(), stmt); err == nil {
			t.Errorf("%s was allowed", stmt)
		}
	}
}

// The driver gives nil from COMMIT of an aborted transaction; the rows are gone.
func TestCommitAfterAFailedStatement(t *testing.T) {
	dir := t.TempDir()
	eng := open(t, dir)
	must(t, eng.Attach(t.Context(), filepath.Join(dir, "m.duckdb"), "m", false))
	must(t, eng.Exec(t.Context(), "CREATE TABLE m.a (i INTEGER)"))
	tx, err := eng.Begin(t.Context())
	must(t, err)
	must(t, eng.Exec(t.Context(), "INSERT INTO m.a VALUES (1)"))
	if eng.Exec(t.Context(), "SELECT error('no')") == nil {
		t.Fatal("error() did not fail")
	}
	if err := tx.Commit(); err == nil || !strings.Contains(err.Error(), "no") {
		t.Fatalf("commit of an aborted transaction: %v", err)
	}
	if n := count(t, eng, "SELECT count(*) FROM m.a"); n != 0 {
		t.Errorf("%d rows", n)
	}
	// The engine is usable afterwards.
	tx, err = eng.Begin(t.Context())
	must(t, err)
	must(t, eng.Exec(t.Context(), "INSERT INTO m.a VALUES (1)"))
	must(t, tx.Commit())
	must(t, tx.Rollback())
	if n := count(t, eng, "SELECT count(*) FROM m.a"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestRollbackTakesTempAndFileBack(t *testing.T) {
	dir := t.TempDir()
	eng := open(t, dir)
	must(t, eng.Attach(t.Context(), filepath.Join(dir, "m.duckdb"), "m", false))
	must(t, eng.Exec(t.Context(), "CREATE TABLE m.a (i INTEGER)"))
	must(t, eng.Exec(t.Context(), "CREATE TEMP TABLE s (i INTEGER)"))
	tx, err := eng.Begin(t.Context())
	must(t, err)
	for _, stmt := range []string{"INSERT INTO m.a VALUES (1)", "INSERT INTO s VALUES (1)", "CREATE OR REPLACE TEMP TABLE n AS SELECT 1 AS i", "CREATE TABLE m.b (i INTEGER)"} {
		must(t, eng.Exec(t.Context(), stmt))
	}
	if _, err := eng.Begin(t.Context()); err == nil {
		t.Error("a transaction inside a transaction")
	}
	must(t, tx.Rollback())
	if n := count(t, eng, "SELECT (SELECT count(*) FROM m.a) + (SELECT count(*) FROM s) + (SELECT count(*) FROM duckdb_tables() WHERE table_name IN ('n', 'b'))"); n != 0 {
		t.Errorf("%d things survived the roll back", n)
	}
}

// A file is locked for the process that attached it, until it detaches; a second engine of the same
// process is refused even under another name of the file.
func TestOneEnginePerFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.duckdb")
	first := open(t, dir)
	must(t, first.Attach(t.Context(), path, "m", false))
	link := filepath.Join(dir, "link.duckdb")
	must(t, os.Link(path, link))
	second := open(t, dir)
	for _, p := range []string{path, link, filepath.Join(dir, ".", "m.duckdb")} {
		var held *duck.OpenError
		if err := second.Attach(t.Context(), p, "m", true); !errors.As(err, &held) || !held.Held {
			t.Errorf("%s was opened twice: %v", p, err)
		}
	}
	if code, said := elsewhere(t, path); code != 75 || !strings.Contains(said, "held by") {
		t.Errorf("another process: %d %s", code, said)
	}
	must(t, first.Detach(t.Context(), "m"))
	if code, said := elsewhere(t, path); code != 0 {
		t.Errorf("after the detach: %d %s", code, said)
	}
	must(t, second.Attach(t.Context(), path, "m", false))
}

// Opening and closing a locked file in this process would drop the lock: POSIX locks belong to the
// process, not to the descriptor. Nothing here does that: looking a file up must not open it.
func TestLookingAFileUpKeepsItsLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.duckdb")
	eng := open(t, dir)
	must(t, eng.Attach(t.Context(), path, "m", false))
	other := open(t, dir)
	for range 3 {
		if err := other.Attach(t.Context(), path, "m", false); err == nil {
			t.Fatal("opened twice")
		}
	}
	if code, said := elsewhere(t, path); code != 75 {
		t.Fatalf("the lock was lost: %d %s", code, said)
	}
	f, err := os.Open(path)
	must(t, err)
	must(t, f.Close())
	if code, _ := elsewhere(t, path); code == 75 {
		t.Log("this system keeps the lock when another descriptor is closed")
	}
}

func TestLoad(t *testing.T) {
	eng := open(t)
	must(t, eng.Exec(t.Context(), "CREATE TEMP TABLE a AS SELECT i, i::HUGEINT * 100000000000000000000000000 AS h FROM range(5000) r(i)"))
	rows, err := eng.Arrow(t.Context(), "FROM a")
	must(t, err)
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(rows.Schema()))
	for rows.Next() {
		must(t, w.Write(rows.RecordBatch()))
	}
	must(t, rows.Err())
	rows.Release()
	must(t, w.Close())
	for i := range 3 { // the view is made anew each time
		r, err := ipc.NewReader(bytes.NewReader(buf.Bytes()))
		must(t, err)
		must(t, eng.Load(t.Context(), "b", r))
		r.Release()
		if n := count(t, eng, "SELECT count(*) FROM (FROM a INTERSECT FROM b)"); n != 5000 {
			t.Errorf("load %d: %d rows are the same", i, n)
		}
	}
	if n := count(t, eng, "SELECT count(*) FROM duckdb_views() WHERE NOT internal"); n != 0 {
		t.Errorf("%d views are left", n)
	}
	tx, err := eng.Begin(t.Context())
	must(t, err)
	r, err := ipc.NewReader(bytes.NewReader(buf.Bytes()))
	must(t, err)
	defer r.Release()
	if eng.Load(t.Context(), "c", r) == nil {
		t.Error("loaded inside a transaction")
	}
	must(t, tx.Rollback())
}

func TestCancel(t *testing.T) {
	eng := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := eng.Exec(ctx, "SELECT count(*) FROM range(100000000000) a WHERE random() > 2"); err == nil {
		t.Fatal("not cancelled")
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("the cancellation took %v", took)
	}
	if n := count(t, eng, "SELECT 1"); n != 1 {
		t.Error("the engine is not usable after a cancelled statement")
	}
}

func TestQuote(t *testing.T) {
	eng := open(t)
	for _, name := range []string{"a", "A b", `qu"ote`, "select", "ümläut", "a.b", "'", ";--"} {
		must(t, eng.Exec(t.Context(), "CREATE OR REPLACE TEMP TABLE "+duck.Quote(name)+" AS SELECT "+duck.Literal(name)+" AS "+duck.Quote(name)))
		var back string
		must(t, eng.QueryRow(t.Context(), "SELECT "+duck.Quote(name)+" FROM "+duck.Quote(name), nil, &back))
		if back != name {
			t.Errorf("%q came back as %q", name, back)
		}
	}
}

// DuckDB's own rewriting of this query takes the last row where the first date is NULL.
func TestFirstRowOfAPartition(t *testing.T) {
	eng := open(t, t.TempDir())
	var got string
	err := eng.QueryRow(t.Context(), `SELECT string_agg(v, ',') FROM (SELECT v, n FROM (
		SELECT k, d, v, unnest(range(n)) AS n FROM (VALUES (1, NULL, 'null', 1), (1, 2, 'two', 1), (1, 1, 'one', 1), (1, 3, 'three', 1)) t(k, d, v, n))
		QUALIFY row_number() OVER (PARTITION BY k ORDER BY d NULLS LAST) = 1)`, nil, &got)
	if err != nil || got != "one" {
		t.Errorf("%s %v", got, err)
	}
}
