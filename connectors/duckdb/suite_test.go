package duckdb

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"lockstep/connectors/connectorstest"
	"lockstep/engine/duck"
)

func verifyMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alias needs quoting, as the author may choose it freely.
const alias = `ma"rt`

type file struct{ path string }

func (f file) Open(t *testing.T) *connectorstest.Session {
	t.Helper()
	eng, dest := open(t, f.path)
	ctx := context.Background()
	return &connectorstest.Session{
		Engine:      eng,
		Destination: dest,
		Table: func(schema, name string) string {
			if schema == "" {
				schema = "main"
			}
			return dest.table(schema, name)
		},
		Exec: func(t *testing.T, stmt string) { t.Helper(); must(t, eng.Exec(ctx, stmt)) },
		Mend: func(t *testing.T, statements string) {
			t.Helper()
			must(t, eng.Exec(ctx, "USE "+dest.inDatabase("{db}.main")))
			defer func() { must(t, eng.Exec(ctx, "USE memory")) }()
			must(t, eng.Exec(ctx, statements))
		},
		Rows: func(t *testing.T, query string) [][]string { t.Helper(); return texts(t, eng, query) },
		Close: func(t *testing.T) {
			t.Helper()
			must(t, dest.Close())
			must(t, eng.Close())
		},
	}
}

func TestDestination(t *testing.T) {
	connectorstest.TestDestination(t, func(t *testing.T) connectorstest.Database {
		return file{filepath.Join(t.TempDir(), "mart.duckdb")}
	})
}

// open opens a file with an engine of its own. Closing twice is allowed.
func open(t *testing.T, path string) (*duck.Engine, *Destination) {
	t.Helper()
	eng := engine(t, filepath.Dir(path))
	dest, err := Open(context.Background(), eng, path, alias, Access{})
	must(t, err)
	return eng, dest
}

func engine(t testing.TB, dir string) *duck.Engine {
	t.Helper()
	eng, err := duck.Open(context.Background(), duck.Options{Dirs: []string{dir}, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	return eng
}

func texts(t *testing.T, eng *duck.Engine, query string) [][]string {
	t.Helper()
	all := [][]string{}
	must(t, eng.Each(context.Background(), "SELECT COLUMNS(*)::VARCHAR FROM ("+query+")", nil, func(rows *sql.Rows) error {
		names, err := rows.Columns()
		if err != nil {
			return err
		}
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		out := make([]string, len(values))
		for i, v := range values {
			if out[i] = "NULL"; v.Valid {
				out[i] = v.String
			}
		}
		all = append(all, out)
		return nil
	}))
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
