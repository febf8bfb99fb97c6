package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
)

// beside is a pipeline with a table of one column, and somebody else who writes to that.
type beside struct {
	t      *testing.T
	dest   *Destination
	lease  connectors.Lease
	head   connectors.Head
	shell  *pgx.Conn
	dsn    string
	landed int
}

func startBeside(t *testing.T) *beside {
	b := &beside{t: t, dsn: pgtest.Start(t).Database(t)}
	_, b.dest = open(t, b.dsn)
	var err error
	b.lease, b.head, err = b.dest.Take(context.Background(), "p")
	must(t, err)
	b.shell = b.connect()
	for row := range 3 {
		b.commit(row + 1)
	}
	return b
}

func (b *beside) connect() *pgx.Conn {
	b.t.Helper()
	conn, err := pgx.Connect(context.Background(), b.dsn)
	must(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (b *beside) exec(conn *pgx.Conn, stmt string) {
	b.t.Helper()
	_, err := conn.Exec(context.Background(), stmt)
	must(b.t, err)
}

func (b *beside) try(change *connectors.Change) error {
	err := b.dest.Commit(context.Background(), b.lease, change)
	if err == nil {
		b.head.Fresh, b.head.Manifest, b.head.LastBatch = false, change.Manifest, change.Manifest.Batch
		b.landed++
	}
	return err
}

func (b *beside) commit(row int) {
	b.t.Helper()
	must(b.t, b.try(wireChange(b.t, b.dest, b.head, row)))
	b.expect()
}

// expect: the changes that were committed are there, and as many rows.
func (b *beside) expect() {
	b.t.Helper()
	n := strconv.Itoa(b.landed)
	if got := texts(b.t, b.shell, "SELECT count(*), (SELECT count(*) FROM etl.manifests), (SELECT seq FROM etl.pipelines) FROM wire")[0]; got[0] != n || got[1] != n || got[2] != n {
		b.t.Fatalf("after %s changes there are %v", n, got)
	}
}

// waits waits until somebody waits for a lock.
func (b *beside) waits() {
	b.t.Helper()
	for range 1000 {
		if texts(b.t, b.shell, "SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0] != "0" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Fatal("nobody waits for a lock")
}

// TestForeignWriters: another program writes to the table in transactions of its own.
func TestForeignWriters(t *testing.T) {
	const insert = "BEGIN; INSERT INTO wire (k, _etl_seq) VALUES (9, 0)"
	t.Run("the key of a new row, taken back", func(t *testing.T) {
		b := startBeside(t)
		other := b.connect()
		b.exec(other, insert)
		done := make(chan struct{})
		go func() { defer close(done); b.waits(); b.exec(other, "ROLLBACK") }()
		b.commit(9)
		<-done
	})
	t.Run("the key of a new row, and soon deleted", func(t *testing.T) {
		b := startBeside(t)
		other := b.connect()
		b.exec(other, insert)
		done := make(chan struct{})
		go func() { defer close(done); b.waits(); b.exec(other, "COMMIT; DELETE FROM wire WHERE k = 9") }()
		b.commit(9)
		<-done
	})
	t.Run("the key of a new row, which stays", func(t *testing.T) {
		b := startBeside(t)
		other := b.connect()
		b.exec(other, insert)
		done := make(chan struct{})
		go func() { defer close(done); b.waits(); b.exec(other, "COMMIT") }()
		var target *connectors.TargetError
		if err := b.try(wireChange(t, b.dest, b.head, 9)); !errors.As(err, &target) || !strings.Contains(err.Error(), "edited by hand or by another program") {
			t.Errorf("the error is %v", err)
		}
		<-done
		b.exec(b.shell, "DELETE FROM wire WHERE k = 9")
		b.expect()
		b.commit(9)
	})
	t.Run("a deadlock", func(t *testing.T) {
		b := startBeside(t)
		b.exec(b.shell, "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM 1 FROM public.wire WHERE k IN (1, 2) ORDER BY k FOR UPDATE; RETURN NEW; END'")
		b.exec(b.shell, "CREATE TRIGGER slow BEFORE INSERT ON wire FOR EACH ROW EXECUTE FUNCTION slow()")
		other := b.connect()
		b.exec(other, "SET deadlock_timeout = '1h'") // it is not the one that is sacrificed
		before := texts(t, other, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0][0]
		b.exec(other, "BEGIN; UPDATE wire SET k = k WHERE k = 2")
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.waits() // for row 2, with row 1 locked
			b.exec(other, "UPDATE wire SET k = k WHERE k = 1")
			b.exec(other, "COMMIT")
		}()
		must(t, b.try(wireChange(t, b.dest, b.head, 9)))
		<-done
		b.expect()
		for range 100 { // the statistics come late
			if texts(t, b.shell, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0][0] != before {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error("there was no deadlock")
	})
	t.Run("failures to serialize", func(t *testing.T) {
		b := startBeside(t)
		b.exec(b.shell, "CREATE SEQUENCE public.met") // it is not rolled back
		b.exec(b.shell, "CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF nextval('public.met') < 4 THEN RAISE serialization_failure; END IF; RETURN NEW; END$$")
		b.exec(b.shell, "CREATE TRIGGER meet BEFORE INSERT ON wire FOR EACH ROW EXECUTE FUNCTION meet()")
		b.commit(9)
		if got := texts(t, b.shell, "SELECT last_value FROM public.met")[0][0]; got != "4" {
			t.Errorf("it was tried %s times", got)
		}
	})
}

// TestNoRoom: a server that runs out of disk, or over a limit for temporary files, while rows are staged or
// merged. Nothing is written, the message says why, and with room again the same change goes through.
func TestNoRoom(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		b := startBeside(t)
		conn, err := b.dest.connection(context.Background())
		must(t, err)
		pgtest.LimitFiles(t, int(conn.PgConn().PID()), 20<<20+512) // a write that goes beyond is cut short, as on a full disk
		b.refused("the server's disk is full")
		must(t, conn.Close(context.Background()))
		b.goesOn()
	})
	t.Run("temporary files", func(t *testing.T) {
		b := startBeside(t)
		name := texts(t, b.shell, "SELECT current_database()")[0][0]
		b.exec(b.shell, "ALTER DATABASE "+name+" SET temp_file_limit = '64kB'; ALTER DATABASE "+name+" SET work_mem = '64kB'")
		// Whether the MERGE itself needs a file depends on the statistics of the moment.
		b.exec(b.shell, "CREATE FUNCTION sorts() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM g FROM generate_series(1, 100000) g ORDER BY md5(g::text); RETURN NULL; END'")
		b.exec(b.shell, "CREATE TRIGGER sorts AFTER INSERT ON wire FOR EACH STATEMENT EXECUTE FUNCTION sorts()")
		b.dest.disconnect()
		b.refused("temp_file_limit")
		b.exec(b.shell, "ALTER DATABASE "+name+" RESET ALL")
		b.dest.disconnect()
		b.goesOn()
	})
}

const many = 700_000 // rows that need more than 20 MB on the server

func (b *beside) large() *connectors.Change {
	change := wireChange(b.t, b.dest, b.head, 0)
	must(b.t, b.dest.eng.Exec(context.Background(), "CREATE OR REPLACE TEMP TABLE staged AS SELECT (1000 + range)::INTEGER AS k, 'I' AS _op FROM range("+strconv.Itoa(many)+")"))
	c := &change.Sinks[0].Counts
	c.Inserted, c.Rows = many, b.head.Manifest.Sinks["mart.wire"].Rows+many
	change.Manifest.Sinks["mart.wire"] = *c
	return change
}

func (b *beside) refused(why string) {
	b.t.Helper()
	var unavailable *connectors.UnavailableError
	err := b.try(b.large())
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "nothing was written") {
		b.t.Errorf("the error is %v", err)
	}
	b.expect()
}

func (b *beside) goesOn() {
	b.t.Helper()
	must(b.t, b.try(b.large()))
	b.landed += many - 1
	if got := texts(b.t, b.shell, "SELECT count(*) FROM wire")[0][0]; got != strconv.Itoa(b.landed) {
		b.t.Errorf("there are %s rows", got)
	}
}
