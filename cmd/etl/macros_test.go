package main

import (
	"bytes"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	etlsql "lockstep/sql"
)

// TestMacros: what `etl macros` prints, and the author's SELECT, give the rows of the table in a DuckDB
// that knows nothing of etl.
func TestMacros(t *testing.T) {
	csv := "id,store,amount,when,tags\n1,Nord,1.50,2024-05-01 10:00:00,[1]\n2,\"Mit,te\",2,2024-05-01 10:00:00,\n,x,1,,\n3,Nord,1.239,,\n4,Süd,-1,,\n5, Nord ,7.5,2024-05-02,\"[1, 2]\"\n6,,\"\",,\n"
	for name, c := range map[string]struct {
		files  map[string]string
		make   string // statements of DuckDB that write files
		source string
		query  string
		env    map[string]string
	}{
		"csv": {
			files: map[string]string{"in/a.csv": csv, "in/b.csv": "store,id,tags,amount,when\nWest,9,[],3.1,2024-05-03 01:02:03.5\n", "in/_c.csv": csv, "in/d.csv.tmp": csv, "in/.e.csv": csv},
			source: `CREATE SOURCE s (id BIGINT NOT NULL, store VARCHAR, amount DECIMAL(12,2), "when" TIMESTAMP, tags INTEGER[],
				gross DECIMAL(14,4) AS (amount * getvariable('rate')), file VARCHAR METADATA FROM 'filename', n BIGINT METADATA FROM 'file_row_number',
				CHECK (amount >= 0) ON VIOLATION REJECT) FROM 'in/*.csv' WITH (max_rejects = '90%')`,
			query: `SELECT store, file, count(*) AS n, sum(gross) AS gross, sum(id) AS ids, sum(n) AS places, sum(len(tags)) AS tags, max("when") AS newest FROM s GROUP BY ALL`,
		},
		"semicolons, no header": {
			files:  map[string]string{"in/a.csv": "1;1.234,5;'x;y'\n2;7;'n'\n"},
			source: `CREATE SOURCE s (id INTEGER, amount DECIMAL(8,2), store VARCHAR) FROM 'in/*.csv' WITH (delim = ';', header = false, quote = '''', escape = '''', decimal_separator = ',', thousands = '.')`,
			query:  `SELECT store, count(*) AS n, sum(amount) AS amount FROM s GROUP BY store`,
		},
		"dates": {
			files:  map[string]string{"in/a.csv": "d;x\n31.12.2024;NA\n01.01.2025;2\n32.01.2025;2\n"},
			source: `CREATE SOURCE s (d DATE, x INTEGER) FROM 'in/**/*.csv' WITH (delim = ';', dateformat = '%d.%m.%Y', nullstr = 'NA', max_rejects = 1)`,
			query:  `SELECT d, count(x) AS n FROM s GROUP BY d`,
		},
		"json": {
			files: map[string]string{"in/a.jsonl": "{\"id\": 1, \"store\": \"Nord\", \"o\": {\"a\": 1, \"b\": \"x\"}, \"l\": [1, 2], \"f\": true}\n{\"store\": \"Süd\"}\n{\"id\": 1.5}\n{\"id\": \"7\", \"o\": null, \"more\": 1}\n"},
			source: `CREATE SOURCE s (id BIGINT, store VARCHAR, o JSON, l JSON, f BOOLEAN) FROM 'in/*.jsonl'
				WITH (max_rejects = '50%')`,
			query: `SELECT store, count(*) AS n, sum(id) AS ids, sum((o->>'a')::INTEGER) AS a, max(o->>'b') AS b, sum(json_array_length(l)::BIGINT) AS l, bool_or(f) AS f FROM s GROUP BY store`,
		},
		"parquet": {
			make: `COPY (SELECT i::INTEGER AS id, 'k' || i % 3 AS store, i / 7 AS x FROM range(100) r(i)) TO 'in/a.parquet' (FORMAT parquet);
				COPY (SELECT 'z' AS store, 1.5::DOUBLE AS x, NULL::INTEGER AS id, 1 AS other) TO 'in/b.parquet' (FORMAT parquet);`,
			source: `CREATE SOURCE s (id BIGINT NOT NULL, store VARCHAR, x DOUBLE, f VARCHAR METADATA FROM 'filename', r BIGINT METADATA FROM 'file_row_number') FROM 'in/*.parquet' WITH (max_rejects = '100%')`,
			query:  `SELECT store, f, count(*) AS n, sum(id) AS ids, sum(r) AS places FROM s GROUP BY ALL`,
		},
		"parquet, undeclared, with a view": {
			make:   `COPY (SELECT i AS id, i % 3 AS "odd ""name""" FROM range(100) r(i)) TO 'in/a.parquet' (FORMAT parquet)`,
			source: `CREATE SOURCE s FROM 'in/*.parquet'; CREATE VIEW "the view" AS SELECT "odd ""name""" AS k, id FROM s WHERE id > getvariable('rate') * 10`,
			query:  `SELECT k, count(*) AS n FROM "the view" GROUP BY k`,
		},
		"environment": {
			files:  map[string]string{"in/x/a.csv": "a|b\n1|2\n", "in/x/_b.csv": "a|b\n1|2\n"},
			source: `CREATE SOURCE s (a INTEGER, f VARCHAR METADATA FROM 'filename') FROM getenv('MACRO_DIR') || '/*.csv' WITH (delim = getenv('MACRO_DELIM'))`,
			query:  `SELECT a, f, count(*) AS n FROM s GROUP BY ALL`,
			env:    map[string]string{"MACRO_DIR": "in/x", "MACRO_DELIM": "|"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(filepath.Join(t.TempDir()))
			folder := "q'u *[1]"
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			if len(c.env) > 0 {
				folder = "plain" // relative to the folder that DuckDB runs in
			}
			must(os.MkdirAll(filepath.Join(folder, "in/x"), 0o777))
			t.Chdir(folder)
			for file, text := range c.files {
				must(os.WriteFile(file, []byte(text), 0o666))
			}
			plain, err := sql.Open("duckdb", "")
			must(err)
			defer plain.Close()
			plain.SetMaxOpenConns(1)
			if c.make != "" {
				_, err := plain.Exec(c.make)
				must(err)
			}
			for key, value := range c.env {
				t.Setenv(key, value)
			}
			key, _, _ := strings.Cut(strings.TrimPrefix(c.query, "SELECT "), ", count")
			text := "ATTACH 'm.duckdb' AS m;\nSET VARIABLE rate = 1.19;\n" + c.source + ";\nCREATE SINK m.t PRIMARY KEY (" + key + ") AS " + c.query + ";\n"
			must(os.WriteFile("p.sql", []byte(text), 0o666))
			etl := func(args ...string) string {
				t.Helper()
				var out, errs bytes.Buffer
				if code := run(args, &out, &errs); code != 0 {
					t.Fatalf("etl %v: exit %d: %s%s", args, code, errs.String(), out.String())
				}
				return out.String()
			}
			etl("run", "p.sql")
			macros := etl("macros", "p.sql")
			if dir := c.env["MACRO_DIR"]; dir != "" && strings.Contains(macros, dir) {
				t.Errorf("a value of the environment is printed:\n%s", macros)
			}
			for key, value := range c.env {
				macros = strings.ReplaceAll(macros, "getenv('"+key+"')", "'"+value+"'")
			}
			if _, err := plain.Exec(macros); err != nil {
				t.Fatalf("%v\n%s", err, macros)
			}
			script, err := etlsql.Parse("p.sql", text)
			must(err)
			want := allRows(t, plain, script.Sinks[0].Select.Text)
			_, err = plain.Exec("ATTACH 'm.duckdb' AS m (READ_ONLY)")
			must(err)
			got := allRows(t, plain, "SELECT * EXCLUDE (_etl_seq) FROM m.t")
			if !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("the SELECT in plain DuckDB gives\n%s\nthe table has\n%s\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"), macros)
			}
		})
	}
}

// allRows are the rows of a query as texts, sorted.
func allRows(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.Query("SELECT CAST(q AS VARCHAR) FROM (" + query + ") q")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	slices.Sort(out)
	return out
}

// TestMacrosRefuse: a format that only the environment knows cannot be written down.
func TestMacrosRefuse(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("FORMAT", "%d.%m.%Y")
	text := "ATTACH 'm.duckdb' AS m; CREATE SOURCE s (d DATE) FROM 'in/*.csv' WITH (dateformat = getenv('FORMAT')); CREATE SINK m.t PRIMARY KEY () AS SELECT max(d) AS d FROM s;"
	if err := os.WriteFile("p.sql", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if code := run([]string{"macros", "p.sql"}, io.Discard, &errs); code != exitWrong || !strings.Contains(errs.String(), "option dateformat comes from the environment") || strings.Contains(errs.String(), "%d") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
