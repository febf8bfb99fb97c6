package duckdb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// TestMain is also the other program that holds a file.
func TestMain(m *testing.M) {
	if path := os.Getenv("LOCKSTEP_TEST_HOLD"); path != "" {
		hold(path)
		return
	}
	verifyMain(m)
}

// hold attaches a file, says so, and waits for the end of its input.
func hold(path string) {
	eng, err := duck.Open(context.Background(), duck.Options{Dirs: []string{filepath.Dir(path)}})
	if err == nil {
		err = eng.Attach(context.Background(), path, "held", false)
	}
	fmt.Println("held", err)
	_, _ = io.ReadAll(os.Stdin)
}

func openErr(t *testing.T, path string, readOnly bool) error {
	t.Helper()
	eng := engine(t, filepath.Dir(path))
	dest, err := Open(context.Background(), eng, path, "mart", Access{ReadOnly: readOnly})
	if err == nil {
		must(t, dest.Close())
	}
	return err
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(path("text.duckdb"), []byte(strings.Repeat("no database ", 5000)), 0o644))
	must(t, os.WriteFile(path("empty.duckdb"), nil, 0o644))
	must(t, os.Mkdir(path("folder"), 0o755))
	must(t, openErr(t, path("good.duckdb"), false))
	good, err := os.ReadFile(path("good.duckdb"))
	must(t, err)
	for _, at := range []int{100, 4096 + 16} {
		damaged := append([]byte(nil), good...)
		for i := range 16 {
			damaged[at+i] ^= 0x55
		}
		must(t, os.WriteFile(path(fmt.Sprintf("damaged%d.duckdb", at)), damaged, 0o644))
	}
	for _, c := range []struct {
		name     string
		readOnly bool
		say      string
	}{
		{"missing.duckdb", true, "does not exist yet"},
		{"none/x.duckdb", false, "its folder does not exist"},
		{"none/x.duckdb", true, "its folder does not exist"},
		{"text.duckdb/x.duckdb", false, "what should be its folder is a file"},
		{"folder", false, "it is a folder"},
		{"text.duckdb", false, "it is not a DuckDB database"},
		{"text.duckdb", true, "it is not a DuckDB database"},
		{"empty.duckdb", false, "it is not a DuckDB database"},
		{"damaged100.duckdb", false, "the file is damaged"},
		{"damaged4112.duckdb", true, "the file is damaged"},
	} {
		err := openErr(t, path(c.name), c.readOnly)
		var unavailable *connectors.UnavailableError
		if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), path(c.name)) {
			t.Errorf("%s: the error is %v, want an UnavailableError with %q", c.name, err, c.say)
		}
	}
	if _, err := os.Stat(path("missing.duckdb")); err == nil {
		t.Error("opening to read created the file")
	}
}

func TestOpenHeldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mart.duckdb")
	must(t, openErr(t, path, false))
	self, err := os.Executable()
	must(t, err)
	other := exec.Command(self)
	other.Env = append(os.Environ(), "LOCKSTEP_TEST_HOLD="+path)
	in, err := other.StdinPipe()
	must(t, err)
	out, err := other.StdoutPipe()
	must(t, err)
	must(t, other.Start())
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil || said != "held <nil>\n" {
		t.Fatalf("the other program says %q, %v", said, err)
	}
	for _, readOnly := range []bool{false, true} {
		err = openErr(t, path, readOnly)
		var held *connectors.HeldError
		if !errors.As(err, &held) || !strings.Contains(held.By, fmt.Sprintf("pid %d (", other.Process.Pid)) {
			t.Errorf("the error is %v, want a HeldError by pid %d", err, other.Process.Pid)
		}
	}
	must(t, in.Close())
	must(t, other.Wait())
	must(t, openErr(t, path, false))

	_, dest := open(t, path)
	var held *connectors.HeldError
	if err := openErr(t, path, false); !errors.As(err, &held) || held.By != "this process" {
		t.Errorf("a second engine of this process gets %v", err)
	}
	must(t, dest.Close())
	must(t, dest.Close())
	must(t, openErr(t, path, false))
}

func TestOpenToRead(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "mart.duckdb")
	eng := engine(t, filepath.Dir(path))
	must(t, eng.Attach(ctx, path, "plain", false))
	must(t, eng.Exec(ctx, "CREATE TABLE plain.daily_sales (x INTEGER)"))
	must(t, eng.Detach(ctx, "plain"))

	// A file that no pipeline wrote to reads as fresh, and stays as it is.
	dest, err := Open(ctx, eng, path, "mart", Access{ReadOnly: true})
	must(t, err)
	head, err := dest.Head(ctx, "p")
	if err != nil || !head.Fresh {
		t.Errorf("the head is %+v, %v", head, err)
	}
	names, err := dest.Pipelines(ctx)
	if err != nil || len(names) != 0 {
		t.Errorf("the pipelines are %v, %v", names, err)
	}
	if err := dest.CheckTargets(ctx, head, []connectors.SinkSpec{{Name: "daily_sales", Table: "daily_sales"}}); err == nil {
		t.Error("somebody's table is free")
	}
	if _, _, err := dest.Take(ctx, "p"); err == nil {
		t.Error("a lease was taken to read")
	}
	must(t, dest.Close())
	must(t, eng.Attach(ctx, path, "plain", true))
	if schemas := texts(t, eng, "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'plain' AND schema_name = 'etl'"); len(schemas) != 0 {
		t.Error("opening to read created the schema etl")
	}
	must(t, eng.Detach(ctx, "plain"))

	dest, err = Open(ctx, eng, path, "mart", Access{})
	must(t, err)
	_, _, err = dest.Take(ctx, "p")
	must(t, err)
	must(t, dest.Close())
	dest, err = Open(ctx, eng, path, "mart", Access{ReadOnly: true})
	must(t, err)
	if names, err := dest.Pipelines(ctx); err != nil || len(names) != 1 || names[0] != "p" {
		t.Errorf("the pipelines are %v, %v", names, err)
	}
	if history, err := dest.History(ctx, "p", 0); err != nil || len(history) != 0 {
		t.Errorf("the history is %v, %v", history, err)
	}
	must(t, dest.Close())
}

func TestOpenOtherSchemas(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "mart.duckdb")
	eng, dest := open(t, path)
	must(t, dest.Close())
	must(t, eng.Close())
	var target *connectors.TargetError
	for which, version := range map[string]int{"a newer": schemaVersion + 1, "an older": schemaVersion - 1} {
		eng := engine(t, filepath.Dir(path))
		must(t, eng.Attach(ctx, path, "x", false))
		must(t, eng.Exec(ctx, fmt.Sprintf("UPDATE x.etl.meta SET schema_version = %d", version)))
		must(t, eng.Close())
		for _, readOnly := range []bool{false, true} {
			if err := openErr(t, path, readOnly); !errors.As(err, &target) || !strings.Contains(err.Error(), which+" version of etl") {
				t.Errorf("of %s schema the error is %v", which, err)
			}
		}
	}

	path = filepath.Join(t.TempDir(), "theirs.duckdb")
	eng = engine(t, filepath.Dir(path))
	must(t, eng.Attach(ctx, path, "x", false))
	must(t, eng.Exec(ctx, "CREATE SCHEMA x.etl"))
	must(t, eng.Exec(ctx, "CREATE TABLE x.etl.jobs (id INTEGER)"))
	must(t, eng.Detach(ctx, "x"))
	if err := openErr(t, path, false); !errors.As(err, &target) || !strings.Contains(err.Error(), "a schema named etl that is not ours") {
		t.Errorf("of a foreign schema the error is %v", err)
	}
}

func TestCopiedAndMovedFile(t *testing.T) {
	dir := t.TempDir()
	old, moved, copied, link := filepath.Join(dir, "old.duckdb"), filepath.Join(dir, "moved.duckdb"), filepath.Join(dir, "copy.duckdb"), filepath.Join(dir, "link.duckdb")
	must(t, openErr(t, old, false))
	must(t, os.Symlink(old, link))
	must(t, openErr(t, link, false))
	must(t, os.Rename(old, moved))
	must(t, openErr(t, moved, false))

	data, err := os.ReadFile(moved)
	must(t, err)
	must(t, os.WriteFile(copied, data, 0o644))
	must(t, openErr(t, copied, true)) // a backup may be looked at
	err = openErr(t, copied, false)
	var target *connectors.TargetError
	if !errors.As(err, &target) || !strings.Contains(err.Error(), "is a copy of "+moved) {
		t.Fatalf("of a copy the error is %v", err)
	}
	must(t, openErr(t, moved, false)) // the first one goes on

	// Adopted, the copy is a database of its own.
	eng := engine(t, dir)
	dest, err := Open(context.Background(), eng, copied, "c", Access{Adopt: true})
	must(t, err)
	if dest.CopyOf() != moved {
		t.Fatalf("it was a copy of %q", dest.CopyOf())
	}
	must(t, dest.Close())
	must(t, openErr(t, copied, false))
}

// TestSchema checks the fixed SQL: all statements can be planned, and the views work under any name of
// the database.
func TestSchema(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "mart.duckdb")
	eng, dest := open(t, path)
	for name := range statements {
		if name == "" || strings.Contains(name, " ") {
			t.Errorf("a statement is named %q", name)
		}
		must(t, eng.Exec(ctx, "PREPARE p AS "+strings.ReplaceAll(dest.sql(name), "{pipeline}", "'p'")))
		must(t, eng.Exec(ctx, "DEALLOCATE p"))
	}
	must(t, dest.Close())
	must(t, eng.Attach(ctx, path, "other name", true))
	for _, view := range []string{"status", "history"} {
		texts(t, eng, `FROM "other name".etl.`+view)
	}
	must(t, eng.Detach(ctx, "other name"))
}

// TestErrorsShowNoSQL: DuckDB quotes the statement below its message.
func TestErrorsShowNoSQL(t *testing.T) {
	eng, dest := open(t, filepath.Join(t.TempDir(), "mart.duckdb"))
	err := dest.failed("write table sales", eng.Exec(context.Background(), "SELECT nothing FROM nowhere"))
	if err == nil || strings.Contains(err.Error(), "SELECT") || !strings.Contains(err.Error(), "mart.duckdb: cannot write table sales: Catalog Error: Table with name nowhere does not exist") {
		t.Errorf("the error is %v", err)
	}
	must(t, dest.Close())
}
