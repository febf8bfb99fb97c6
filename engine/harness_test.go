package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
	"go.uber.org/goleak"

	"lockstep/connectors"
	"lockstep/connectors/duckdb"
	"lockstep/connectors/files"
	"lockstep/connectors/postgres"
	"lockstep/engine"
	"lockstep/engine/duck"
	"lockstep/planner"
	etlsql "lockstep/sql"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// rowsOfT is the data of the tests, from its own generator; id numbers the rows from 1.
const rowsOfT = `SELECT i AS id,
	CASE WHEN hash(i) %% 10 = 0 THEN NULL ELSE (hash(i*3) %% 8)::INTEGER END AS k,
	CASE WHEN hash(i*5) %% 7 = 0 THEN NULL ELSE (hash(i*7) %% 100)::INTEGER - 50 END AS a,
	CASE WHEN hash(i*11) %% 10 = 0 THEN NULL ELSE ((hash(i*13) %% 100000)::BIGINT / 100)::DECIMAL(12,2) END AS b,
	CASE WHEN hash(i*17) %% 10 = 0 THEN NULL ELSE chr(97 + (hash(i*19) %% 5)::INTEGER) END AS c,
	CASE hash(i*23) %% 40 WHEN 0 THEN NULL WHEN 1 THEN -0.0 ELSE (hash(i*29) %% 1000)::BIGINT / 7.0 END::DOUBLE AS d,
	(hash(i*31) %% 1000000000000)::BIGINT AS e,
	TIMESTAMP '2026-03-28' + to_minutes((hash(i*37) %% 5000)::BIGINT) AS ts,
	CASE hash(i*41) %% 3 WHEN 0 THEN NULL WHEN 1 THEN true ELSE false END AS f
	FROM range(1, %d + 1) r(i)`

const columnsOfT = `(id BIGINT NOT NULL, k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, e BIGINT, ts TIMESTAMP, f BOOLEAN)`

// writeFiles cuts the rows into files of the given sizes, in the order of their names.
func writeFiles(t *testing.T, dir, format string, sizes []int) {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	total := 0
	for _, n := range sizes {
		total += n
	}
	exec := func(stmt string) {
		t.Helper()
		if _, err := db.Exec(stmt); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE rows AS " + fmt.Sprintf(rowsOfT, total))
	from := 0
	for i, n := range sizes {
		options := "FORMAT parquet"
		if format == "csv" {
			options = "FORMAT csv, HEADER"
		}
		exec(fmt.Sprintf("COPY (SELECT * FROM rows WHERE id > %d AND id <= %d ORDER BY id) TO '%s' (%s)",
			from, from+n, filepath.Join(dir, fmt.Sprintf("%05d.%s", i, format)), options))
		from += n
	}
}

// project is a pipeline file in a folder of its own.
type project struct {
	t    testing.TB
	dir  string
	text string
	dsn  string // of a Postgres database to be the destination; "": m.duckdb
	// source replaces the file source of the pipeline when set.
	source connectors.Source
}

// opened is a project's pipeline with everything open, as in one process.
type opened struct {
	*engine.Pipeline
	tables engine.Tables
	close  func()
}

func (p *project) compile(ctx context.Context, text string) (*planner.Plan, error) {
	script, err := etlsql.Parse("p.sql", text)
	if err != nil {
		return nil, err
	}
	return planner.Compile(ctx, script, nil)
}

// open starts a fresh engine, as a new process would.
func (p *project) open() *opened {
	p.t.Helper()
	ctx := context.Background()
	fatal := func(err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatal(err)
		}
	}
	plan, err := p.compile(ctx, p.text)
	fatal(err)
	eng, err := duck.Open(ctx, duck.Options{Dirs: []string{p.dir}, TempDir: p.t.TempDir(), Threads: 1})
	fatal(err)
	var dest connectors.Destination
	var tables engine.Tables
	if p.dsn != "" {
		server, err := postgres.Open(ctx, eng, p.dsn, postgres.Access{Name: "m"})
		fatal(err)
		dest, tables = server, server.Relation
	} else {
		file, err := duckdb.Open(ctx, eng, filepath.Join(p.dir, "m.duckdb"), "m", duckdb.Access{})
		fatal(err)
		dest, tables = file, file.Relation
	}
	sources := map[string]connectors.Source{}
	for _, s := range plan.Sources {
		if p.source != nil {
			sources[s.Name] = p.source
			continue
		}
		from, err := s.Decl.From.Resolve(os.LookupEnv)
		fatal(err)
		spec := connectors.SourceSpec{Name: s.Name, Base: p.dir, From: filepath.Join(p.dir, from), EventTime: s.EventTime}
		for _, c := range s.Columns {
			spec.Columns = append(spec.Columns, connectors.SourceColumn{Name: c.Name, Type: c.Type, NotNull: c.NotNull, Metadata: c.Metadata, Computed: c.Computed})
		}
		if s.Replaced {
			spec.Options = map[string]connectors.Option{"files": {Raw: "'replace'", Text: "replace"}}
		}
		src, err := files.Open(ctx, eng, spec)
		fatal(err)
		sources[s.Name] = src
	}
	return &opened{
		tables:   tables,
		Pipeline: &engine.Pipeline{Plan: plan, Duck: eng, Sources: sources, Destination: dest, Now: time.Now, Version: "test", Recompile: p.compile},
		close: func() {
			for _, s := range sources {
				fatal(s.Close())
			}
			fatal(dest.Close())
			fatal(eng.Close())
		},
	}
}

// oneBatch runs a single batch, unless everything is up to date.
func (o *opened) oneBatch() (*engine.Report, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sum, err := o.Run(ctx, func(engine.Report) { cancel() })
	if len(sum.Reports) > 0 {
		return &sum.Reports[0], nil
	}
	return nil, err
}

// reference makes the rows a table of the engine, apart from everything the pipeline does.
func (o *opened) reference(t testing.TB, rows int) {
	t.Helper()
	if err := o.Duck.Exec(t.Context(), "CREATE OR REPLACE TEMP TABLE _reference AS "+fmt.Sprintf(rowsOfT, rows)); err != nil {
		t.Fatal(err)
	}
}

// expectEqual compares the first sink with its query over the first n rows of the reference.
func (o *opened) expectEqual(t testing.TB, n int64, query string) {
	t.Helper()
	o.expectSink(t, 0, fmt.Sprintf("id <= %d", n), query)
}

// table is where the rows of a sink can be read.
func (o *opened) table(t testing.TB, sink planner.Sink) string {
	t.Helper()
	spec := connectors.SinkSpec{Name: sink.Name, Schema: sink.Schema, Table: sink.Table, Key: sink.Key}
	for _, c := range sink.Columns {
		spec.Columns = append(spec.Columns, connectors.SinkColumn{Name: c.Name, Type: c.Type})
	}
	relation, err := o.tables(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return relation
}

// withSeq is table, with the change that wrote each row.
func (o *opened) withSeq(t testing.TB, sink planner.Sink) string {
	t.Helper()
	spec := connectors.SinkSpec{Name: sink.Name, Schema: sink.Schema, Table: sink.Table, Key: sink.Key}
	for _, c := range sink.Columns {
		spec.Columns = append(spec.Columns, connectors.SinkColumn{Name: c.Name, Type: c.Type})
	}
	found, err := o.Destination.Found(t.Context(), o.Plan.Name, spec)
	if err != nil {
		t.Fatal(err)
	}
	return found.Relation
}

// expectSink compares one sink with a query over the rows of the reference that satisfy where.
func (o *opened) expectSink(t testing.TB, index int, where, query string) {
	t.Helper()
	ctx := t.Context()
	if err := o.Duck.Exec(ctx, "CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM _reference WHERE "+where); err != nil {
		t.Fatal(err)
	}
	sink := o.Plan.Sinks[index]
	table := o.table(t, sink)
	on, same := []string{"true"}, []string{"_w._there AND _g._there"}
	for _, c := range sink.Columns {
		w, g := "_w."+duck.Quote(c.Name), "_g."+duck.Quote(c.Name)
		cond := w + " IS NOT DISTINCT FROM " + g
		if slices.Contains(sink.Key, c.Name) {
			on = append(on, cond)
		} else if c.Inexact {
			cond = fmt.Sprintf("(%s OR abs(%s - %s) <= 1e-9 * greatest(abs(%s), abs(%s)))", cond, w, g, w, g)
		}
		same = append(same, "coalesce("+cond+", false)")
	}
	diff := fmt.Sprintf("SELECT coalesce(_w::VARCHAR, '-') || ' got ' || coalesce(_g::VARCHAR, '-') FROM (SELECT *, true AS _there FROM (%s)) _w FULL JOIN (SELECT *, true AS _there FROM %s) _g ON %s WHERE NOT coalesce(%s, false) LIMIT 5",
		query, table, strings.Join(on, " AND "), strings.Join(same, " AND "))
	err := o.Duck.Each(ctx, diff, nil, func(rows *sql.Rows) error {
		var s string
		if err := rows.Scan(&s); err != nil {
			return err
		}
		t.Errorf("for the rows with %s: want %s", where, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		t.FailNow()
	}
}

type namedQuery struct{ name, key, text string }

func queries(t testing.TB) []namedQuery {
	t.Helper()
	data, err := os.ReadFile("testdata/queries.sql")
	if err != nil {
		t.Fatal(err)
	}
	var out []namedQuery
	for _, block := range strings.Split(string(data), "\n\n")[1:] {
		head, text, _ := strings.Cut(strings.TrimSpace(block), "\n")
		name, key, _ := strings.Cut(strings.TrimPrefix(head, "-- "), ":")
		out = append(out, namedQuery{name: name, key: strings.TrimSpace(key), text: strings.TrimSuffix(strings.TrimSpace(text), ";")})
	}
	return out
}

func pipelineText(format string, q namedQuery) string {
	return fmt.Sprintf("ATTACH 'm.duckdb' AS m;\nCREATE SOURCE t %s FROM '*.%s';\nCREATE SINK m.out PRIMARY KEY (%s) AS\n%s;\n", columnsOfT, format, q.key, q.text)
}
