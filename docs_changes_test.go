package lockstep_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/engine/duck"
)

// The test binary can be the DuckDB shell of the documentation's consoles: "duckdb FILE SQL".
func init() {
	if os.Getenv("LOCKSTEP_DUCKDB_SHELL") == "" {
		return
	}
	if err := duckdbShell(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// putDuckDB makes that shell a command.
func putDuckDB(t *testing.T, bin string) {
	t.Helper()
	self, err := os.Executable()
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, "duckdb"), []byte("#!/bin/sh\nLOCKSTEP_DUCKDB_SHELL=1 exec '"+self+"' \"$@\"\n"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func duckdbShell(file, stmt string) error {
	ctx, dir := context.Background(), filepath.Dir(file)
	db, err := duck.Open(ctx, duck.Options{Dirs: []string{dir}, Threads: 1})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Attach(ctx, file, "file", false); err != nil {
		return err
	}
	if err := db.Exec(ctx, "USE file"); err != nil {
		return err
	}
	return db.Exec(ctx, stmt)
}

const changedPipeline = `ATTACH 'm.duckdb' AS m;

CREATE SOURCE orders (
  id BIGINT NOT NULL, day DATE, store VARCHAR, amount DECIMAL(12,2), discount DECIMAL(12,2),
  CONSTRAINT paid CHECK (amount >= 0)
) FROM 'in/*.csv' WITH (max_rejects = '50%');

CREATE SINK m.daily PRIMARY KEY (day, store) AS
SELECT day, store, count(*) AS orders, sum(amount) AS revenue, avg(amount) AS mean
FROM orders WHERE amount > 1
GROUP BY day, store
HAVING count(*) > 1;

CREATE SINK m.stores PRIMARY KEY (store) AS
SELECT store, count(*) AS n FROM orders GROUP BY store;
`

// pipelineChanges are what authors do: pairs of a text and what takes its place.
var pipelineChanges = []struct {
	name  string
	pairs []string
}{
	{"a comment, letter case, an alias inside", []string{"FROM orders WHERE amount > 1", "FROM ORDERS AS o -- paid\nWHERE o.amount > 1"}},
	{"an output expression", []string{"sum(amount) AS", "round(sum(amount), 1) AS"}},
	{"its type", []string{"count(*) AS orders", "count(*)::INTEGER AS orders"}},
	{"a column of aggregates that are kept", []string{", avg(amount) AS mean", ", avg(amount) AS mean, sum(amount) / count(*) AS per_order"}},
	{"a column less", []string{", avg(amount) AS mean", ""}},
	{"another name of a column", []string{"AS revenue", "AS turnover"}},
	{"HAVING", []string{"HAVING count(*) > 1", "HAVING sum(amount) > 20"}},
	{"an aggregate", []string{"sum(amount) AS", "sum(amount - discount) AS"}},
	{"a new aggregate", []string{"avg(amount) AS mean", "avg(amount) AS mean, max(discount) AS most"}},
	{"two aggregates change places", []string{"count(*) AS orders, sum(amount) AS revenue", "sum(amount) AS orders, count(*) AS revenue"}},
	{"DISTINCT in an aggregate", []string{"count(*) AS orders", "count(DISTINCT id) AS orders"}},
	{"a filter", []string{"amount > 1", "amount > 5"}},
	{"no filter", []string{" WHERE amount > 1", ""}},
	{"a group of another value", []string{"SELECT day, store", "SELECT date_trunc('month', day)::DATE AS day, store", "GROUP BY day, store", "GROUP BY ALL"}},
	{"a group and the key", []string{"PRIMARY KEY (day, store)", "PRIMARY KEY (store)", "SELECT day, store,", "SELECT store,", "GROUP BY day, store", "GROUP BY store"}},
	{"a group more", []string{"PRIMARY KEY (store)", "PRIMARY KEY (store, day)", "SELECT store, count(*) AS n FROM orders GROUP BY store", "SELECT store, day, count(*) AS n FROM orders GROUP BY store, day"}},
	{"the newest row in place of a sum", []string{"SELECT store, count(*) AS n FROM orders GROUP BY store", "SELECT store, id, amount FROM orders QUALIFY row_number() OVER (PARTITION BY store ORDER BY id DESC) = 1"}},
	{"a new sink", []string{"CREATE SINK m.stores", "CREATE SINK m.days PRIMARY KEY (day) AS\nSELECT day, sum(discount) AS discounts FROM orders GROUP BY day;\n\nCREATE SINK m.stores"}},
	{"a sink less", []string{"CREATE SINK m.stores PRIMARY KEY (store) AS\nSELECT store, count(*) AS n FROM orders GROUP BY store;\n", ""}},
	{"another table", []string{"CREATE SINK m.daily ", "CREATE SINK m.per_day "}},
	{"the type of a source's column", []string{"amount DECIMAL(12,2)", "amount DECIMAL(14,3)"}},
	{"a column less in the source", []string{", discount DECIMAL(12,2)", ""}},
	{"a CHECK", []string{"CHECK (amount >= 0)", "CHECK (amount >= 2)"}},
	{"an option of the reader", []string{"max_rejects = '50%'", "max_rejects = '50%', nullstr = 'b'"}},
	{"WATERMARK FOR", []string{"day DATE,", "day DATE, dated TIMESTAMP AS (day::TIMESTAMP),", "CONSTRAINT", "WATERMARK FOR dated AS dated - INTERVAL 1 DAY,\n  CONSTRAINT"}},
	{"a path to the same files", []string{"'in/*.csv'", "'in/2*.csv'"}},
	{"a source more", []string{"CREATE SINK m.daily", "CREATE SOURCE others (id BIGINT NOT NULL, store VARCHAR) FROM 'others/*.csv';\n\nCREATE SINK m.daily",
		"SELECT store, count(*) AS n FROM orders GROUP BY store", "SELECT store, count(*) AS n FROM (SELECT store FROM orders UNION ALL SELECT store FROM others) GROUP BY store"}},
	{"several of these", []string{"amount > 1", "amount > 2", "AS revenue", "AS turnover", "SELECT store, count(*) AS n", "SELECT store, count(*) * 2 AS n"}},
}

// testChanges makes every change to a table of three files, applies it, and lets a fourth come: each time
// the tables are what their SELECTs give for the files that were read. It writes the table of changes.
func testChanges(t *testing.T) {
	base := t.TempDir()
	write := func(dir, name, text string) {
		t.Helper()
		err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	etl := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("etl", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil && args[0] != "plan" {
			t.Fatalf("etl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	write(base, "p.sql", changedPipeline)
	file := func(i int) string {
		text := "id,day,store,amount,discount\n"
		for row := range 40 {
			id := i*40 + row
			text += fmt.Sprintf("%d,2026-%02d-%02d,%s,%d.%02d,%d.50\n", id, 1+id%3, 1+id%5, []string{"a", "b", "c", ""}[id%4], id%9-1, id%100, id%2)
		}
		return text
	}
	for i := range 3 {
		write(base, fmt.Sprintf("in/2026-%d.csv", i), file(i))
	}
	write(base, "others/1.csv", "id,store\n1,a\n2,z\n")
	etl(base, "run", "p.sql")

	table := "| change | class | the first thing a run says | `etl apply` reads |\n|---|---|---|---|\n"
	for _, change := range pipelineChanges {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		// A copy of a database is refused while the original is there.
		text := changedPipeline
		for i := 0; i < len(change.pairs); i += 2 {
			if strings.Count(text, change.pairs[i]) != 1 {
				t.Fatalf("%s: %q is in the pipeline %d times", change.name, change.pairs[i], strings.Count(text, change.pairs[i]))
			}
			text = strings.Replace(text, change.pairs[i], change.pairs[i+1], 1)
		}
		etl(dir, "adopt", "p.sql")
		write(dir, "p.sql", text)
		var plan struct {
			Fit struct {
				Comparison *struct {
					Class       string
					Differences []struct{ Name, Old, New string }
				}
			}
		}
		if err := json.Unmarshal([]byte(etl(dir, "plan", "p.sql", "--json")), &plan); err != nil {
			t.Fatalf("%s: %v", change.name, err)
		}
		class, says, reads := "none", "", "no need"
		if c := plan.Fit.Comparison; c != nil {
			class = c.Class
			d := c.Differences[0]
			says = d.Name
			for _, side := range [][2]string{{" − ", d.Old}, {" + ", d.New}} {
				if side[1] != "" {
					says += side[0] + "`" + strings.ReplaceAll(side[1], "|", `\|`) + "`"
				}
			}
			reads = applied(t, dir, change.name, class, etl)
		}
		reconciled(t, change.name+", applied", etl(dir, "reconcile", "p.sql", "--json"))
		write(dir, "in/2026-9.csv", file(3))
		etl(dir, "run", "p.sql")
		reconciled(t, change.name+", and a file later", etl(dir, "reconcile", "p.sql", "--json"))
		table += fmt.Sprintf("| %s | %s | %s | %s |\n", change.name, class, says, reads)
	}
	generated(t, "docs/protocol.md", "changes", table)
}

// applied applies a change; what reads no input does so with all files away.
func applied(t *testing.T, dir, name, class string, etl func(string, ...string) string) string {
	t.Helper()
	away := func(from, to string) {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	var done struct {
		Kind  string
		Files int
	}
	if class == "refinalise" {
		away("in", "away")
		if err := os.Mkdir(filepath.Join(dir, "in"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err := json.Unmarshal([]byte(etl(dir, "apply", "p.sql", "--yes", "--json")), &done)
	if err != nil || class == "refinalise" && (done.Kind != class || done.Files > 0) {
		t.Errorf("%s: %+v, %v", name, done, err)
	}
	if class == "refinalise" {
		if err := os.Remove(filepath.Join(dir, "in")); err != nil {
			t.Fatal(err)
		}
		away("away", "in")
	}
	if done.Files == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d files", done.Files)
}

func reconciled(t *testing.T, what, out string) {
	t.Helper()
	var found struct{ Differ int }
	found.Differ = -1
	if err := json.Unmarshal([]byte(out), &found); err != nil || found.Differ != 0 {
		t.Errorf("%s: %v\n%s", what, err, out)
	}
}
