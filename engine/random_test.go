package engine_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine/duck"
	"lockstep/planner"
	"lockstep/planner/plannertest"
	etlsql "lockstep/sql"
)

// Random queries over random rows, from files on disk to the table in a database file, with a new process
// after every batch: the state comes back from its segments. After every batch the table equals the
// SELECT over the rows of the files so far.
func TestRandomPipelines(t *testing.T) {
	testRandomPipelines(t, func() string { return "" })
}

func TestRandomPipelinesOnPostgres(t *testing.T) {
	cluster := pgtest.Start(t)
	testRandomPipelines(t, func() string { return cluster.Database(t) })
}

func testRandomPipelines(t *testing.T, dsn func() string) {
	want := max(10, plannertest.Cases()/40) // each takes twenty times as long as one of the planner's
	shapes := map[string]bool{}
	accepted, batches := 0, 0
	plannertest.Draw(t, func() bool { return accepted >= want }, func(rt *rapid.T) {
		sinks := plannertest.Sinks(rt)
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p := &project{t: t, dir: dir, dsn: dsn(), text: plannertest.Pipeline(sinks, "*.parquet", "")}
		plan, err := p.compile(t.Context(), p.text)
		var faults etlsql.Errors
		if errors.As(err, &faults) {
			return // counted where the planner is tested
		}
		if err != nil {
			rt.Fatalf("%s\n%v", p.text, err)
		}
		n := rapid.IntRange(1, 24).Draw(rt, "rows")
		var sizes []int
		for left := n; left > 0; {
			size := rapid.IntRange(1, left).Draw(rt, "file")
			sizes, left = append(sizes, size), left-size
		}
		if err := randomFiles(t, dir, plannertest.Rows(rt, n), sizes); err != nil {
			rt.Fatal(err)
		}
		limit := rapid.IntRange(1, 12).Draw(rt, "batch")
		for read, more := int64(0), true; more; {
			o := p.open()
			o.Limit = connectors.Limit{Rows: int64(limit)}
			r, err := o.oneBatch()
			if more = err == nil && r != nil; more {
				batches++
				read += r.Read
				more = read < int64(n)
			}
			diff, theirs := "", o.placedReference(t, dir, read)
			if theirs == nil && err == nil {
				diff, theirs = o.differs(t)
			}
			o.close()
			switch {
			case theirs != nil: // the SELECT itself fails, on all rows or on the first
				return
			case err != nil && !failsAnyway(t, p, int64(n)):
				rt.Fatalf("%s\n%v", p.text, err)
			case err != nil:
				return
			case diff != "":
				rt.Fatalf("%s\nafter %d of %d rows in files of %v, batches of %d: %s", p.text, read, n, sizes, limit, diff)
			}
		}
		accepted++
		shapes[plan.Hash.ID] = true
	})
	t.Logf("%d random pipelines in %d batches, each by a process of its own; %d distinct plans", accepted, batches, len(shapes))
}

// failsAnyway: a SELECT over all rows fails as well, as an overflow in an expression would.
func failsAnyway(t *testing.T, p *project, rows int64) bool {
	t.Helper()
	o := p.open()
	defer o.close()
	if err := o.placedReference(t, p.dir, rows); err != nil {
		t.Fatal(err)
	}
	for _, sink := range o.Plan.Sinks {
		if o.Duck.Exec(t.Context(), "CREATE OR REPLACE TEMP TABLE _once AS "+sink.OneShot+"\n") != nil {
			return true
		}
	}
	return false
}

// randomFiles writes rows, numbered by id from 1, into files of the given sizes in the order of their names.
func randomFiles(t *testing.T, dir, values string, sizes []int) error {
	t.Helper()
	eng, err := duck.Open(t.Context(), duck.Options{Dirs: []string{dir}, Threads: 1})
	if err != nil {
		return err
	}
	defer eng.Close()
	stmts := []string{"CREATE TABLE all_t (" + plannertest.Columns + ")", "INSERT INTO all_t VALUES " + values}
	from := 0
	for i, size := range sizes {
		stmts = append(stmts, fmt.Sprintf("COPY (SELECT * FROM all_t WHERE id > %d AND id <= %d ORDER BY id) TO '%s' (FORMAT parquet)",
			from, from+size, filepath.Join(dir, fmt.Sprintf("%03d.parquet", i))))
		from += size
	}
	for _, s := range stmts {
		if err := eng.Exec(t.Context(), s); err != nil {
			return err
		}
	}
	return nil
}

// placedReference makes the first rows of the files what the SELECT is over, with their places for those
// that need them.
func (o *opened) placedReference(t *testing.T, dir string, rows int64) error {
	t.Helper()
	files := filepath.Join(dir, "*.parquet")
	for _, s := range []string{
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE _reference AS SELECT * EXCLUDE (filename, file_row_number), parse_filename(filename) AS _etl_file, file_row_number AS _etl_row "+
			"FROM read_parquet(%s, filename = true, file_row_number = true) WHERE id <= %d", duck.Literal(files), rows),
		"CREATE OR REPLACE TEMP VIEW t AS SELECT * EXCLUDE (_etl_file, _etl_row) FROM _reference",
		"CREATE OR REPLACE TEMP VIEW " + planner.PlacedRelation("t") + " AS FROM _reference",
	} {
		if err := o.Duck.Exec(t.Context(), s); err != nil {
			return err
		}
	}
	return nil
}

// differs compares the tables with their SELECTs over the reference. The error is a SELECT's own.
func (o *opened) differs(t *testing.T) (diff string, theirs error) {
	t.Helper()
	for _, sink := range o.Plan.Sinks {
		if err := o.Duck.Exec(t.Context(), "CREATE OR REPLACE TEMP TABLE _once AS "+sink.OneShot+"\n"); err != nil {
			return "", err
		}
		on, same := []string{"true"}, []string{"_w._there AND _g._there"}
		for _, c := range sink.Columns {
			w, g := "_w."+duck.Quote(c.Name), "_g."+duck.Quote(c.Name)
			cond := w + " IS NOT DISTINCT FROM " + g
			if slices.Contains(sink.Key, c.Name) {
				on = append(on, cond)
			} else if c.Inexact {
				cond = fmt.Sprintf("(%s OR abs(%s - %s) <= 1e-9 * greatest(abs(%s), abs(%s)) + 1e-9)", cond, w, g, w, g)
			}
			same = append(same, "coalesce("+cond+", false)")
		}
		query := fmt.Sprintf("SELECT coalesce(_w::VARCHAR, '-') || ' got ' || coalesce(_g::VARCHAR, '-') FROM (SELECT *, true AS _there FROM _once) _w FULL JOIN (SELECT *, true AS _there FROM %s) _g ON %s WHERE NOT coalesce(%s, false) LIMIT 5",
			o.table(t, sink), strings.Join(on, " AND "), strings.Join(same, " AND "))
		err := o.Duck.Each(t.Context(), query, nil, func(rows *sql.Rows) error {
			var row string
			err := rows.Scan(&row)
			diff += "\n" + sink.Name + ": want " + row
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return diff, nil
}
