package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"go.uber.org/goleak"

	"lockstep/connectors"
)

// TestNothingIsLeft runs commands in this process: no goroutine and no folder outlives them.
func TestNothingIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Chdir(t.TempDir())
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, args := range [][]string{
		{"init"}, {"check", "."}, {"plan", "daily_sales.sql"}, {"run", "daily_sales.sql"}, {"run", "daily_sales.sql"}, {"status"},
		{"history", "daily_sales.sql"}, {"query", "daily_sales.sql", "FROM daily_sales"}, {"reconcile", "daily_sales.sql"},
	} {
		var stderr bytes.Buffer
		if code := run(args, io.Discard, &stderr); code != exitOK {
			t.Fatalf("etl %v: exit %d: %s", args, code, stderr.String())
		}
	}
	if code := run([]string{"query", "daily_sales.sql", "nonsense"}, io.Discard, io.Discard); code != exitWrong {
		t.Errorf("a faulty query exits with %d", code)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestDeadRunsAreCleanedUp: the folder of a killed run goes with the next run, that of a living one stays.
func TestDeadRunsAreCleanedUp(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	living, err := newTempDir()
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newTempDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.lock.Close(); err != nil { // as the kernel does for a process that ends
		t.Fatal(err)
	}
	next, err := newTempDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.path); !os.IsNotExist(err) {
		t.Errorf("the folder of a dead run is still there: %v", err)
	}
	for _, dir := range []*tempDir{living, next} {
		if _, err := os.Stat(dir.path); err != nil {
			t.Errorf("the folder of a living run is gone: %v", err)
		}
		if err := dir.remove(); err != nil {
			t.Error(err)
		}
	}
}

// TestBug: a panic prints one line and no stack, and what was opened is closed.
func TestBug(t *testing.T) {
	var stderr bytes.Buffer
	code := guarded(&stderr, func() int {
		_ = withFile(context.Background(), examplePath(t), func(*session) error { panic("index out of range\ngoroutine 1 [running]") })
		return exitOK
	})
	if code != exitWrong || bytes.Contains(stderr.Bytes(), []byte("goroutine")) || !bytes.HasPrefix(stderr.Bytes(), []byte("error: this is a bug in etl: index out of range\n")) {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
}

func examplePath(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.sql")
	if err := os.WriteFile(path, []byte(examplePipeline), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNoGeneratedSQL: DuckDB quotes the statement that failed; it is ours, not the author's.
func TestNoGeneratedSQL(t *testing.T) {
	err := fmt.Errorf("read it: %w (and more)", &duckdb.Error{Msg: "Conversion Error: no number\n\nLINE 1: SELECT CAST(_x AS BIGINT)\n               ^"})
	if got, want := message(err), "read it: Conversion Error: no number (and more)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSecrets(t *testing.T) {
	t.Setenv("LONG", "/data/secret/")
	t.Setenv("LONGER", "/data/secret/more")
	t.Setenv("SHORT", ",")
	s := newSecrets("/data", os.LookupEnv)
	for _, name := range []string{"LONG", "LONGER", "SHORT"} {
		if _, ok := s.lookup(name); !ok {
			t.Fatal(name)
		}
	}
	for msg, want := range map[string]string{
		"/data/secret/a.csv, b":         "getenv('LONG')a.csv, b",
		"/data/secret is not a folder":  "getenv('LONG') is not a folder",
		"secret/a.csv is gone":          "getenv('LONG')/a.csv is gone",
		"/data/secret/more: no, not it": "getenv('LONGER'): no, not it",
	} {
		if got := s.text(msg); got != want {
			t.Errorf("%q is shown as %q, want %q", msg, got, want)
		}
	}
}

func TestHuman(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{thousands(0), "0"}, {thousands(999), "999"}, {thousands(1000), "1,000"}, {thousands(-1234567), "-1,234,567"}, {thousands(-100), "-100"},
		{plural(1, "file"), "1 file"}, {plural(2000, "file"), "2,000 files"},
		{size(999), "999 B"}, {size(1000), "1.0 kB"}, {size(3_140_000), "3.1 MB"}, {size(5e15), "5000.0 TB"},
		{ago(-time.Hour), "just now"}, {ago(30 * time.Second), "30 s ago"}, {ago(4 * time.Minute), "4 min ago"}, {ago(30 * time.Hour), "30 h ago"}, {ago(72 * time.Hour), "3 days ago"},
		{oneLine("a\tb\x00\u009b"), `a\tb\x00\x9b`}, {oneLine("日本"), "日本"},
		{connectors.ShellWord("it's"), `'it'\''s'`}, {connectors.ShellWord("a/b-c.sql"), "a/b-c.sql"}, {connectors.ShellWord(""), "''"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	out, err := exec.Command("sh", "-c", "printf %s "+connectors.ShellWord("a $b `c` \"d\" 'e' *")).Output()
	if err != nil || string(out) != "a $b `c` \"d\" 'e' *" {
		t.Errorf("the shell reads %q (%v)", out, err)
	}
}
