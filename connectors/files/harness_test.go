package files

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a folder of input, an engine that may read it, and a position: as much of a pipeline as
// a source needs.
type world struct {
	t    testing.TB
	dir  string
	eng  *duck.Engine
	spec connectors.SourceSpec
	src  *Source
	seen checkpoints.Splits
	seq  int64
}

// newWorld reads glob below a new folder. columns are "name TYPE" or "name TYPE NOT NULL".
func newWorld(t testing.TB, glob string, columns ...string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), seen: checkpoints.Splits{}}
	w.spec = connectors.SourceSpec{Name: "orders", From: glob, Base: w.dir, Columns: declare(columns...)}
	w.eng = newEngine(t, w.dir)
	return w
}

func newEngine(t testing.TB, dirs ...string) *duck.Engine {
	t.Helper()
	eng, err := duck.Open(t.Context(), duck.Options{Dirs: dirs, Threads: 2})
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

func declare(columns ...string) []connectors.SourceColumn {
	var out []connectors.SourceColumn
	for _, c := range columns {
		c, notNull := strings.CutSuffix(c, " NOT NULL")
		name, typ, _ := strings.Cut(c, " ")
		out = append(out, connectors.SourceColumn{Name: name, Type: typ, NotNull: notNull})
	}
	return out
}

func (w *world) with(name, value string) *world {
	if w.spec.Options == nil {
		w.spec.Options = map[string]connectors.Option{}
	}
	w.spec.Options[name] = connectors.Option{Raw: duck.Literal(value), Text: value}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// write puts a file with the given content; it is older than any test.
func (w *world) write(name, content string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
	w.must(os.WriteFile(w.path(name), []byte(content), 0o644))
	w.touch(name, time.Unix(1_700_000_000, 0))
}

func (w *world) touch(name string, at time.Time) {
	w.t.Helper()
	w.must(os.Chtimes(w.path(name), at, at))
}

// parquet writes the result of a query, in row groups of 2048 rows.
func (w *world) parquet(name, query string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
	w.must(w.eng.Exec(w.t.Context(), "COPY ("+query+") TO "+duck.Literal(w.path(name))+" (FORMAT parquet, ROW_GROUP_SIZE 2048)"))
	w.touch(name, time.Unix(1_700_000_000, 0))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) source() *Source {
	w.t.Helper()
	if w.src == nil {
		var err error
		w.src, err = Open(w.t.Context(), w.eng, w.spec)
		w.must(err)
		w.t.Cleanup(func() { w.must(w.src.Close()) })
	}
	return w.src
}

func (w *world) plan(limit connectors.Limit) (connectors.Batch, error) {
	return w.source().Plan(w.t.Context(), w.seen, limit)
}

// read gives the rows of ranges, each as its values joined by "|", and the finished ranges.
func (w *world) read(ranges []connectors.Range) (rows []string, done []connectors.Range, err error) {
	w.t.Helper()
	ctx := w.t.Context()
	sc, err := w.source().Read(ctx, ranges)
	if err != nil {
		return nil, nil, err
	}
	defer func() { w.must(sc.Close()) }()
	rel, fused := sc.Relation()
	copied := ""
	if !fused {
		copied = "copied"
		if err := sc.Copy(ctx, copied); err != nil {
			return nil, nil, err
		}
		rel = "(SELECT * EXCLUDE (_split) FROM copied)"
	}
	if rows, err = rowsOf(ctx, w.eng, "FROM "+rel); err != nil {
		return nil, nil, sc.Explain(ctx, err)
	}
	done, err = sc.Finish(ctx, copied)
	return rows, done, err
}

func rowsOf(ctx context.Context, eng *duck.Engine, query string) ([]string, error) {
	var out []string
	var values []any
	err := eng.Each(ctx, query, nil, func(r *sql.Rows) error {
		if values == nil {
			names, err := r.Columns()
			if err != nil {
				return err
			}
			for range names {
				values = append(values, new(any))
			}
		}
		if err := r.Scan(values...); err != nil {
			return err
		}
		texts := make([]string, len(values))
		for i, v := range values {
			if texts[i] = fmt.Sprint(*v.(*any)); *v.(*any) == nil {
				texts[i] = "NULL"
			}
		}
		out = append(out, strings.Join(texts, "|"))
		return nil
	})
	return out, err
}

// batch plans, reads and commits once.
func (w *world) batch(limit connectors.Limit) (rows []string, err error) {
	w.t.Helper()
	b, err := w.plan(limit)
	if err != nil {
		return nil, err
	}
	rows, done, err := w.read(b.Ranges)
	if err != nil {
		return nil, err
	}
	w.commit(b, done)
	return rows, nil
}

func (w *world) commit(b connectors.Batch, done []connectors.Range) {
	w.seq++
	maps.Copy(w.seen, b.Moved)
	for _, id := range b.Gone {
		delete(w.seen, id)
	}
	for _, r := range done {
		r.Next.Seq = w.seq
		w.seen[r.Split] = r.Next
	}
}

// take runs one batch without limits and expects these rows.
func (w *world) take(want ...string) {
	w.t.Helper()
	rows, err := w.batch(connectors.Limit{})
	w.must(err)
	same(w.t, rows, want)
}

// fails runs one batch and expects an error of a type with exactly this text.
func fails[E error](w *world, want string) {
	w.t.Helper()
	_, err := w.batch(connectors.Limit{})
	failed[E](w.t, err, want)
}

func same(t testing.TB, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func failed[E error](t testing.TB, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want\n%s", want)
	}
	if _, ok := err.(E); !ok {
		t.Fatalf("a %T: %v", err, err)
	}
	if err.Error() != want {
		t.Fatalf("got\n%s\nwant\n%s", err, want)
	}
}
