package connectorstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"lockstep/connectors"
)

// testCancelAnywhere cancels a commit at the first look at its context, then at the second, and so on
// until it goes through. Every time either nothing is there afterwards or all of it.
func testCancelAnywhere(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA, rowB)
	for looks := 1; ; looks++ {
		rows := []row{rowA.with("U"), rowB.with("D"), rowC}
		rows[0].revenue = fmt.Sprintf("%d.00", looks)
		before := r.everything()
		change := r.change(rows...)
		ctx := &countdown{Context: background, left: looks, done: make(chan struct{})}
		if err := r.Destination.Commit(ctx, r.lease, change); err == nil {
			r.follow(change, rows)
			r.again(db)
			if looks < 10 {
				t.Errorf("the commit looked at its context only %d times", looks)
			}
			return
		}
		r.unchanged(before)
		if looks%10 == 1 {
			r.again(db)
		}
		if looks > 10000 {
			t.Fatal("the commit never goes through")
		}
	}
}

// countdown is a context that is cancelled when it is looked at for the nth time.
type countdown struct {
	context.Context
	mu   sync.Mutex
	left int
	done chan struct{}
}

func (c *countdown) look() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.done)
	}
	return c.left <= 0
}

func (c *countdown) Done() <-chan struct{} { c.look(); return c.done }

func (c *countdown) Err() error {
	if c.look() {
		return context.Canceled
	}
	return nil
}

// testRandomChanges drives a table with random changes, some of them refused, against a map.
func testRandomChanges(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		var rows []row
		for key := range 8 {
			next := row{"'2024-05-03'", fmt.Sprintf("'%d'", key), fmt.Sprintf("%d.00", random.IntN(1000)), "I"}
			if key == 0 {
				next.day, next.store = "NULL", "NULL"
			}
			_, there := r.table[next.key()]
			switch pick := random.IntN(3); {
			case pick == 0:
				continue
			case there && pick == 1:
				next = next.with(connectors.OpUpdate)
			case there:
				next = next.with(connectors.OpDelete)
			}
			rows = append(rows, next)
		}
		switch random.IntN(4) {
		case 0:
			r.refused(append(rows, row{"'2024-05-03'", "'absent'", "0", connectors.OpDelete})...)
		case 1:
			r.again(db)
		}
		r.commit(rows...)
	}
	r.again(db)
}
