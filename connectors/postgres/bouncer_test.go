package postgres

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"lockstep/connectors"
	"lockstep/connectors/connectorstest"
	"lockstep/connectors/postgres/pgtest"
)

// TestPgBouncer: behind a pooler that gives every transaction another of its few sessions, runs that
// overlap write a pipeline one after the other, and nothing is left in a session.
func TestPgBouncer(t *testing.T) {
	ctx := context.Background()
	cluster := pgtest.Start(t)
	dsn := cluster.Database(t)
	through := cluster.Bouncer(t, dsn, 3)
	const runs, each = 6, 5
	var wg sync.WaitGroup
	var mu sync.Mutex
	committed := 0
	for range runs {
		_, dest := open(t, through)
		wg.Go(func() {
			for done := 0; done < each; {
				lease, head, err := dest.Take(ctx, "p")
				var held *connectors.HeldError
				if errors.As(err, &held) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				change := wireChange(t, dest, head, int(head.Manifest.Seq)+1)
				if err := dest.Commit(ctx, lease, change); err != nil {
					t.Error(err)
					return
				}
				if err := dest.Release(ctx, lease); err != nil {
					t.Error(err)
					return
				}
				done++
				mu.Lock()
				committed++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	want := strconv.Itoa(committed)
	if got := texts(t, shell, "SELECT count(*), max(k), (SELECT count(*) FROM etl.manifests), (SELECT seq FROM etl.pipelines) FROM public.wire")[0]; committed != runs*each || got[0] != want || got[1] != want || got[2] != want || got[3] != want {
		t.Errorf("after %d commits there are %v", committed, got)
	}
	if os.Getenv("LOCKSTEP_PGBOUNCER_SUITE") != "" { // minutes
		connectorstest.TestDestination(t, func(t *testing.T) connectorstest.Database {
			dsn := cluster.Database(t)
			return pooled{database{dsn}, cluster.Bouncer(t, dsn, 3)}
		})
	}
}

// pooled is a database whose runs go through a pooler, and whose shell does not.
type pooled struct {
	database
	through string
}

func (db pooled) Open(t *testing.T) *connectorstest.Session { return session(t, db.through, db.dsn) }
