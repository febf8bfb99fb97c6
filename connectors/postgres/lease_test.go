package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
)

// holder enters a lease of somebody into the database.
func holder(t *testing.T, shell *pgx.Conn, p process, ttl time.Duration) string {
	t.Helper()
	id := uuid.NewString()
	_, err := shell.Exec(context.Background(), `INSERT INTO etl.leases VALUES ('p', 'live', $1, $2, $3, $4, $5, $6, 0, now(), now() + $7 * interval '1 second')
		ON CONFLICT (pipeline, lane) DO UPDATE SET holder = excluded.holder, host = excluded.host, boot_id = excluded.boot_id, pid_space = excluded.pid_space,
		pid = excluded.pid, pid_started = excluded.pid_started, renewed_at = excluded.renewed_at, expires_at = excluded.expires_at`,
		id, p.host, p.bootID, p.pidSpace, p.pid, p.started, ttl.Seconds())
	must(t, err)
	return id
}

// TestTakeover: whose lease is taken over at once, and whose is not.
func TestTakeover(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	alive, dead := self(), self()
	dead.started++
	elsewhere := dead
	elsewhere.host = "elsewhere"
	before := dead
	before.bootID = "another boot"
	space := dead
	space.pidSpace = "pid:[1]"
	gone := dead
	gone.pid = 1 << 30
	for _, c := range []struct {
		name  string
		who   process
		ttl   time.Duration
		taken bool
	}{
		{"alive", alive, time.Minute, false},
		{"alive, but its lease ended", alive, -time.Second, true},
		{"its pid is another process now", dead, time.Minute, true},
		{"its pid is gone", gone, time.Minute, true},
		{"on another machine", elsewhere, time.Minute, false},
		{"on another machine, ended", elsewhere, -time.Second, true},
		{"before a restart of the machine", before, time.Minute, false},
		{"in another pid namespace", space, time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			holder(t, shell, c.who, c.ttl)
			lease, head, err := dest.Take(ctx, "p")
			var held *connectors.HeldError
			switch {
			case c.taken && err != nil:
				t.Fatalf("it was not taken: %v", err)
			case c.taken && (head.Fence != lease.Fence || lease.Fence == 0):
				t.Fatalf("the lease is %+v, the head %+v", lease, head)
			case !c.taken && (!errors.As(err, &held) || !strings.Contains(held.By, fmt.Sprintf("pid %d on %s", c.who.pid, c.who.host))):
				t.Fatalf("the error is %v", err)
			}
			if c.taken {
				must(t, dest.Release(ctx, lease))
			}
		})
	}
}

// TestOneWins: of many that try at the same time, one gets the lease, and only that one bumps the fence.
func TestOneWins(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, first := open(t, dsn)
	const many = 12
	dests := make([]*Destination, many)
	for i := range dests {
		dests[i] = &Destination{config: first.config, name: "mart", settled: map[string]bool{}, replaced: map[string]string{}, patience: patience}
		dests[i].beat = &heartbeat{d: dests[i]}
		defer dests[i].Close()
	}
	for round := range 5 {
		var wg sync.WaitGroup
		errs, leases := make([]error, many), make([]connectors.Lease, many)
		for i, d := range dests {
			wg.Go(func() { leases[i], _, errs[i] = d.Take(ctx, "p") })
		}
		wg.Wait()
		winners := 0
		for i, err := range errs {
			var held *connectors.HeldError
			switch {
			case err == nil:
				winners++
				if leases[i].Fence != int64(round+1) {
					t.Errorf("round %d: the fence is %d", round, leases[i].Fence)
				}
				must(t, dests[i].Release(ctx, leases[i]))
			case !errors.As(err, &held):
				t.Errorf("round %d: %v", round, err)
			}
		}
		if winners != 1 {
			t.Fatalf("round %d: %d got the lease", round, winners)
		}
	}
}

// TestStalledHolder: a run that stalls between its last statement and COMMIT holds the row of the
// pipeline. Who takes over ends that session, and no other one.
func TestStalledHolder(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	lease, _, err := dest.Take(ctx, "p")
	must(t, err)
	must(t, dest.Release(ctx, lease))
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	stalled, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer stalled.Close(ctx)
	old := holder(t, shell, process{host: "elsewhere"}, -time.Second)
	_, err = stalled.Exec(ctx, "BEGIN; SET LOCAL application_name = 'etl "+old+"'; UPDATE etl.pipelines SET seq = seq WHERE pipeline = 'p'")
	must(t, err)
	if _, _, err = dest.Take(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if _, err := stalled.Exec(ctx, "COMMIT"); err == nil {
		t.Error("the stalled session lives")
	}

	// Somebody else's session that holds the row is left alone.
	other, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer other.Close(ctx)
	holder(t, shell, process{host: "elsewhere"}, -time.Second)
	_, err = other.Exec(ctx, "BEGIN; UPDATE etl.pipelines SET seq = seq WHERE pipeline = 'p'")
	must(t, err)
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, _, err := dest.Take(short, "p"); err == nil {
		t.Error("the row of the pipeline was had although it is locked")
	}
	_, err = other.Exec(ctx, "COMMIT")
	must(t, err)
}

// TestStalledOnRows: a run that stalls with rows of its table locked does not keep its successor from writing them.
func TestStalledOnRows(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	commit := func(row int) {
		t.Helper()
		change := wireChange(t, dest, head, row)
		must(t, dest.Commit(ctx, lease, change))
		head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
	}
	commit(1)
	must(t, dest.Release(ctx, lease))
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	stalled := func(holder string) *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(ctx, dsn)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close(ctx) })
		_, err = conn.Exec(ctx, "BEGIN; SET LOCAL application_name = 'etl "+holder+"'; LOCK TABLE wire")
		must(t, err)
		return conn
	}
	// It stalls before it is taken over.
	old := holder(t, shell, process{host: "elsewhere"}, -time.Second)
	first := stalled(old)
	lease, head, err = dest.Take(ctx, "p")
	must(t, err)
	start := time.Now()
	commit(2)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the commit waited for %v", took)
	}
	// It wakes up, and stalls again.
	second := stalled(old)
	commit(3)
	for _, conn := range []*pgx.Conn{first, second} {
		if _, err := conn.Exec(ctx, "COMMIT"); err == nil {
			t.Error("the stalled session lives")
		}
	}
}

// TestStalledInTake: a process that hangs while it takes a lease has none that could end. The server ends its session
// before those that wait for its lock give up.
func TestStalledInTake(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, stalled := open(t, dsn)
	_, other := open(t, dsn)
	lease, _, err := other.Take(ctx, "p")
	must(t, err)
	must(t, other.Release(ctx, lease))
	took := make(chan error, 1)
	stalled.patience = 0
	err = stalled.inTx(ctx, "hang", func(tx *tx) error {
		if err := tx.script(ctx, "LOCK TABLE etl.leases"); err != nil {
			return err
		}
		go func() {
			_, _, err := other.Take(ctx, "p")
			took <- err
		}()
		must(t, <-took)
		return tx.script(ctx, "SELECT 1")
	})
	if err == nil {
		t.Error("the stalled session lives")
	}
}

// TestHeartbeat: a lease is renewed while its run does something long, and a run whose lease is another's
// by now is told before it commits.
func TestHeartbeat(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	lease, _, err := dest.Take(ctx, "p")
	must(t, err)
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	dest.beat.renew(ctx, shell)
	must(t, dest.beat.check(lease))
	holder(t, shell, process{host: "elsewhere"}, time.Minute)
	dest.beat.renew(ctx, shell)
	var fenced *connectors.FencedError
	if err := dest.beat.check(lease); !errors.As(err, &fenced) {
		t.Errorf("of a lease that was taken over the run hears %v", err)
	}
	second, _, err := dest.Take(ctx, "q")
	must(t, err)
	must(t, dest.beat.check(second))
	dest.beat.mu.Lock()
	dest.beat.renewed[second.Holder] = time.Now().Add(-leaseTTL - time.Second)
	dest.beat.mu.Unlock()
	if err := dest.beat.check(second); !connectors.Away(err) {
		t.Errorf("of a lease that ended the run hears %v", err)
	}
}

// TestDeadProcess: what /proc says of this process, and of none.
func TestDeadProcess(t *testing.T) {
	if processStarted(int64(os.Getpid())) == 0 {
		t.Error("this process never started")
	}
	if processStarted(1<<30) != 0 {
		t.Error("a process that is not there started")
	}
}
