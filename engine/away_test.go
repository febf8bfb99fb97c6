package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"lockstep/connectors"
	"lockstep/engine"
)

// restarting is a destination that goes away in the middle of a commit, and for a while.
type restarting struct {
	connectors.Destination
	commits int  // until it goes
	away    int  // looks
	again   bool // it goes once more, after the batches that follow
}

var errAway = &connectors.UnavailableError{What: "m", Err: errors.New("the connection was refused"), Passes: true}

func (r *restarting) Commit(ctx context.Context, lease connectors.Lease, change *connectors.Change) error {
	if r.commits--; r.commits == 0 {
		return errors.Join(errAway, change.Local.Rollback())
	}
	return r.Destination.Commit(ctx, lease, change)
}

func (r *restarting) Wake(ctx context.Context) error {
	if r.commits <= 0 && r.away > 0 {
		r.away--
		return errAway
	}
	return r.Destination.Wake(ctx)
}

func (r *restarting) Rest(ctx context.Context) error {
	err := r.Destination.Rest(ctx)
	if err == nil && r.commits < 0 && r.again {
		r.again = false
		return errAway
	}
	return err
}

// TestFollowWhileAway: a follower whose destination goes away says so once each time, goes on when it is back, and gives up
// after an hour.
func TestFollowWhileAway(t *testing.T) {
	for _, c := range []struct {
		name  string
		looks int
		back  bool
		told  int
	}{{"a restart", 20, true, 1}, {"two restarts", 20, true, 2}, {"for good", 1000, false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			p := &project{t: t, dir: t.TempDir(), text: "ATTACH 'm.duckdb' AS m; CREATE SOURCE t " + columnsOfT + " FROM '*.csv'; " +
				"CREATE SINK m.s PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t GROUP BY k;"}
			writeFiles(t, p.dir, "csv", []int{20, 20, 20, 20, 20, 20})
			o := p.open()
			defer o.close()
			o.Limit = connectors.Limit{Bytes: 1} // a file a batch
			clock := time.Now()
			o.Now = func() time.Time { clock = clock.Add(time.Minute); return clock }
			dest := o.Destination
			o.Destination = &restarting{Destination: dest, commits: 3, away: c.looks, again: c.told > 1}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			told, seen := 0, 0
			err := o.Follow(ctx, time.Millisecond, engine.Watcher{
				Batch: func(r engine.Report) {
					if seen++; seen == 6 && told == c.told {
						cancel()
					}
				},
				Held: func(error) {
					if told++; seen == 6 {
						cancel()
					}
				},
				Warn: func(string) {},
			})
			if told != c.told {
				t.Errorf("it was said %d times", told)
			}
			if !c.back {
				if !connectors.Away(err) {
					t.Errorf("it ended with %v", err)
				}
				return
			}
			if !errors.Is(err, context.Canceled) || seen != 6 {
				t.Fatalf("%d batches, and %v", seen, err)
			}
			if err := dest.Wake(context.Background()); err != nil {
				t.Fatal(err)
			}
			found, err := o.Reconcile(context.Background(), dest.(interface {
				Relation(context.Context, connectors.SinkSpec) (string, error)
			}).Relation, nil)
			if err != nil || found[0].Total() != 0 {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}
