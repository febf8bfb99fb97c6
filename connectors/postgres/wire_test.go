package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
)

// wireChange is a change that inserts one row.
func wireChange(t *testing.T, d *Destination, head connectors.Head, row int) *connectors.Change {
	t.Helper()
	ctx := context.Background()
	sink := connectors.SinkSpec{Name: "mart.wire", Table: "wire", Key: []string{"k"}, Columns: []connectors.SinkColumn{{Name: "k", Type: "INTEGER"}}}
	tx, err := d.eng.Begin(ctx)
	must(t, err)
	must(t, d.eng.Exec(ctx, "CREATE OR REPLACE TEMP TABLE staged AS SELECT CAST(? AS INTEGER) AS k, 'I' AS _op", row))
	plan := connectors.PlanRecord{ID: "plan", Canon: 1, SQL: "SELECT", Canonical: "{}"}
	counts := checkpoints.SinkCount{Inserted: 1, Rows: head.Manifest.Sinks["mart.wire"].Rows + 1, Digest: checkpoints.Digest{}.String()}
	m := checkpoints.Manifest{Pipeline: "p", Seq: head.Manifest.Seq + 1, Incarnation: 1, Batch: head.LastBatch + 1, Attempt: uuid.NewString(), Kind: checkpoints.KindBatch,
		ParentSeq: head.Manifest.Seq, PlanID: plan.ID, BatchTime: checkpoints.Time(time.Now()), Env: checkpoints.Env{Engine: "1", DuckDB: "1", TimeZone: "UTC"},
		Position: map[string]checkpoints.PositionSum{}, Sinks: map[string]checkpoints.SinkCount{"mart.wire": counts}, RangesSHA: checkpoints.RangesSHA(nil), Live: head.Manifest.Live.After(nil, nil)}
	if head.Manifest.Seq > 0 {
		m.ParentSHA = head.Manifest.Checksum()
	}
	return &connectors.Change{Manifest: m, Plan: plan, Before: head.Manifest.Live, Local: tx, Sinks: []connectors.SinkChange{{Sink: sink, Table: "staged", Counts: counts}}}
}

// TestWire cuts the connection at every statement of a commit, and inside its COPY: before the message reaches the
// server, in the middle of it, and before its answer comes back. At COMMIT the answer that nobody hears is a commit all the same. Each
// time the change is there once, because the run asks, and writes it again only if it is not.
func TestWire(t *testing.T) {
	ctx := context.Background()
	cluster := pgtest.Start(t)
	dsn := cluster.Database(t)
	p := cluster.Proxy(t)
	_, dest := open(t, p.DSN(t, dsn))
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)

	row := 0
	commit := func() {
		t.Helper()
		row++
		change := wireChange(t, dest, head, row)
		if err := dest.Commit(ctx, lease, change); err != nil {
			t.Fatalf("row %d: %v", row, err)
		}
		head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
		if got := texts(t, shell, "SELECT count(*), max(k), (SELECT count(*) FROM etl.manifests), (SELECT seq FROM etl.pipelines) FROM wire")[0]; got[0] != strconv.Itoa(row) || got[1] != strconv.Itoa(row) || got[2] != strconv.Itoa(row) || got[3] != strconv.Itoa(row) {
			t.Fatalf("after row %d there are %v", row, got)
		}
	}
	commit()
	// How many statements a commit has.
	statements := 0
	p.Set(func(pgtest.Message) pgtest.Cut { statements++; return pgtest.Not })
	commit()
	p.Set(nil)
	for _, cut := range []pgtest.Cut{pgtest.Before, pgtest.Inside, pgtest.After} {
		for at := range statements {
			n := 0
			p.Set(func(pgtest.Message) pgtest.Cut {
				if n++; n == at+1 {
					return cut
				}
				return pgtest.Not
			})
			commit()
			if cuts := p.Set(nil); cuts != 1 {
				t.Errorf("cut %d was made %d times", at, cuts)
			}
		}
	}
	// The answer to COMMIT is swallowed, several times in a row.
	for range 5 {
		swallowed := 0
		p.Set(func(m pgtest.Message) pgtest.Cut {
			if m.Text == "COMMIT" && swallowed < 2 {
				swallowed++
				return pgtest.After
			}
			return pgtest.Not
		})
		commit()
		if p.Set(nil) == 0 {
			t.Error("no COMMIT went by")
		}
	}
	// COMMIT never arrives: not committed, and then written again.
	lost := 0
	p.Set(func(m pgtest.Message) pgtest.Cut {
		if m.Text == "COMMIT" && lost < 2 {
			lost++
			return pgtest.Before
		}
		return pgtest.Not
	})
	commit()
	p.Set(nil)
	t.Logf("%d commits, each of %d messages", row, statements)
}

// TestTerminated: the server ends the session while it writes, again and again.
func TestTerminated(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	stop, done := make(chan struct{}), make(chan struct{})
	ended := 0
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(7 * time.Millisecond):
			}
			var n int
			if shell.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'etl "+lease.Holder+"' AND random() < 0.3").Scan(&n) == nil {
				ended += n
			}
		}
	}()
	rows := 0
	for range 60 {
		rows++
		change := wireChange(t, dest, head, rows)
		must(t, dest.Commit(ctx, lease, change))
		head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
	}
	close(stop)
	<-done
	if got := texts(t, shell, "SELECT count(*), (SELECT count(*) FROM etl.manifests) FROM wire")[0]; got[0] != strconv.Itoa(rows) || got[1] != strconv.Itoa(rows) {
		t.Errorf("after %d commits there are %v", rows, got)
	}
	t.Logf("%d sessions were ended in %d commits", ended, rows)
}

// TestServerGone: a server that is killed and comes back is waited for; one that stays away is an error
// that says who has to act.
func TestServerGone(t *testing.T) {
	ctx := context.Background()
	cluster := pgtest.Start(t)
	dsn := cluster.Database(t)
	_, dest := open(t, dsn)
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	for i, signal := range []string{"QUIT", "KILL", "INT"} {
		done := make(chan struct{})
		go func() { defer close(done); cluster.Restart(t, signal) }()
		time.Sleep(20 * time.Millisecond)
		change := wireChange(t, dest, head, i+1)
		must(t, dest.Commit(ctx, lease, change))
		head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
		<-done
	}
	again, err := dest.Head(ctx, "p")
	must(t, err)
	if again.Manifest.Checksum() != head.Manifest.Checksum() {
		t.Errorf("the head is %+v", again)
	}

	dest.patience = 0
	dest.disconnect()
	dest.beat.stop()
	dest.config.Host = "/nowhere"
	var unavailable *connectors.UnavailableError
	if err := dest.Commit(ctx, lease, wireChange(t, dest, head, 9)); !errors.As(err, &unavailable) {
		t.Errorf("of a server that is gone the error is %v", err)
	}
}

// TestForeignLock: a lock that somebody else holds on the table ends in a plain message.
func TestForeignLock(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	change := wireChange(t, dest, head, 1)
	must(t, dest.Commit(ctx, lease, change))
	head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	_, err = shell.Exec(ctx, "BEGIN; LOCK TABLE wire IN ACCESS EXCLUSIVE MODE")
	must(t, err)
	dest.patience = 0
	err = dest.Commit(ctx, lease, wireChange(t, dest, head, 2))
	var unavailable *connectors.UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "another session held a lock on it for longer than 10 seconds") {
		t.Errorf("the error is %v", err)
	}
	_, err = shell.Exec(ctx, "COMMIT")
	must(t, err)
	dest.patience = patience
	must(t, dest.Commit(ctx, lease, wireChange(t, dest, head, 2)))
}
