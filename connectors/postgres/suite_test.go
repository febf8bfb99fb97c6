package postgres

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"lockstep/connectors/connectorstest"
	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine/duck"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.Stop()
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreTopFunction("os/signal.loop")); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// database is one of the throwaway cluster.
type database struct{ dsn string }

func (db database) Open(t *testing.T) *connectorstest.Session { return session(t, db.dsn, db.dsn) }

// session opens a destination by one address, and a shell by another.
func session(t *testing.T, dsn, direct string) *connectorstest.Session {
	t.Helper()
	eng, dest := open(t, dsn)
	ctx := context.Background()
	shell, err := pgx.Connect(ctx, direct)
	must(t, err)
	exec := func(t *testing.T, stmt string) {
		t.Helper()
		if _, err := shell.PgConn().Exec(ctx, stmt).ReadAll(); err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
	return &connectorstest.Session{
		Engine:      eng,
		Destination: dest,
		Table: func(schema, name string) string {
			if schema == "" {
				schema = "public"
			}
			return duck.Quote(schema) + "." + duck.Quote(name)
		},
		Exec:  exec,
		Mend:  exec,
		Rows:  func(t *testing.T, query string) [][]string { t.Helper(); return texts(t, shell, query) },
		Type:  func(duck string) string { return typeOf(duck).name },
		Keyed: true,
		Close: func(t *testing.T) {
			t.Helper()
			must(t, dest.Close())
			must(t, eng.Close())
			_ = shell.Close(ctx)
		},
	}
}

func TestDestination(t *testing.T) {
	cluster := pgtest.Start(t)
	connectorstest.TestDestination(t, func(t *testing.T) connectorstest.Database {
		return database{cluster.Database(t)}
	})
}

// open opens a database with an engine of its own. Closing twice is allowed.
func open(t testing.TB, dsn string) (*duck.Engine, *Destination) {
	t.Helper()
	eng := engine(t)
	dest, err := Open(context.Background(), eng, dsn, Access{Name: "mart"})
	must(t, err)
	t.Cleanup(func() { _ = dest.Close() })
	return eng, dest
}

func engine(t testing.TB) *duck.Engine {
	t.Helper()
	eng, err := duck.Open(context.Background(), duck.Options{Threads: 1})
	must(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	return eng
}

// texts are a query's rows as the server prints them.
func texts(t testing.TB, conn *pgx.Conn, query string) [][]string {
	t.Helper()
	results, err := conn.PgConn().Exec(context.Background(), query).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	all := [][]string{}
	for _, row := range results[len(results)-1].Rows {
		out := make([]string, len(row))
		for i, v := range row {
			if out[i] = "NULL"; v != nil {
				out[i] = string(v)
			}
		}
		all = append(all, out)
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
