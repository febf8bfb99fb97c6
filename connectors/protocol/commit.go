package protocol

import (
	"context"
	"errors"
	"time"

	"lockstep/connectors"
)

// Committing are the steps of writing one change.
type Committing interface {
	// Alive fails when the lease is known to have ended, or to be another run's.
	Alive() error
	Begin(ctx context.Context) error
	// Rows writes tables and rows, each row only where an older change, or none, has written it.
	Rows(ctx context.Context) error
	// Record writes the manifest and what belongs to it, all but the head.
	Record(ctx context.Context) error
	// Advance moves the head where the fence is the lease's and the head the parent of the change, and
	// gives the number of heads that it moved. It writes the row that holds both: a transaction that only
	// read them could commit after another run bumped the fence.
	Advance(ctx context.Context) (int64, error)
	// Commit sends COMMIT. An error means that nobody knows how it ended.
	Commit(ctx context.Context) error
	Rollback(ctx context.Context)
	// Leave gives up the session, of which nothing is known any more.
	Leave()
	// There looks for the change of this attempt. With ended it first waits for the end of the
	// transaction that wrote it, by locking what Advance wrote.
	There(ctx context.Context, ended bool) (bool, error)
	// Fence is the newest fence, read in a transaction of its own.
	Fence(ctx context.Context) (int64, error)
	// Passes tells whether trying again may help against an error of before COMMIT.
	Passes(err error) bool
}

// Attempt writes a change in one transaction, once. There is no change before COMMIT; a failure that
// passes may be tried again with the same change under the same lease.
func Attempt(ctx context.Context, c Committing, lease connectors.Lease) error {
	if err := c.Alive(); err != nil {
		return err
	}
	err := c.Begin(ctx)
	if err == nil {
		err = write(ctx, c, lease)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		// A lease that ended while the rows were written is another run's by now, or soon.
		err = c.Alive()
	}
	if err != nil {
		c.Rollback(ctx)
		return overtaken(ctx, c, lease, err)
	}
	connectors.Failpoint("before-commit")
	return finish(context.WithoutCancel(ctx), c)
}

// write does everything of a commit but COMMIT: rows, then what makes the rows this pipeline's progress,
// and last the head, which fails if another run has taken over. All writers lock in this order.
func write(ctx context.Context, c Committing, lease connectors.Lease) error {
	if err := c.Rows(ctx); err != nil {
		return err
	}
	if err := c.Record(ctx); err != nil {
		return err
	}
	connectors.Failpoint("after-manifest")
	n, err := c.Advance(ctx)
	if err == nil && n != 1 {
		err = &connectors.FencedError{Pipeline: lease.Pipeline}
	}
	return err
}

// overtaken looks whether rows or records are not what this run left because another one has taken over:
// nobody edited them then.
func overtaken(ctx context.Context, c Committing, lease connectors.Lease, err error) error {
	var fenced *connectors.FencedError
	if c.Passes(err) || errors.As(err, &fenced) || ctx.Err() != nil {
		return err
	}
	if fence, fenceErr := c.Fence(ctx); fenceErr == nil && fence != lease.Fence {
		return &connectors.FencedError{Pipeline: lease.Pipeline}
	}
	return err
}

// ErrMissing: the server said that the change is committed, but it is not there.
var ErrMissing = errors.New("the server said that it is committed, but it is not there")

// Unknown: nobody can say whether the change was committed. The next run will see.
type Unknown struct{ Err error }

func (e *Unknown) Error() string { return "nobody can say whether it was committed: " + e.Err.Error() }
func (e *Unknown) Unwrap() error { return e.Err }

// NotCommitted is a COMMIT that failed, and is known to have.
type NotCommitted struct{ Err error }

func (e *NotCommitted) Error() string { return e.Err.Error() }
func (e *NotCommitted) Unwrap() error { return e.Err }

// finish sends COMMIT and finds out how it ended. From here on nothing is called off.
//
// When the connection is lost while COMMIT is under way nobody has said how it ended. Advance has locked
// the head, so whoever locks it next, in a new session, comes after the end; and what is then there under
// (seq, attempt) is the answer. Absent, it was not committed and never will be.
func finish(ctx context.Context, c Committing) error {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	sent := c.Commit(limited)
	cancel()
	connectors.Failpoint("after-commit")
	if sent != nil {
		c.Leave()
	}
	there, err := c.There(ctx, sent != nil)
	switch {
	case err != nil:
		return &Unknown{err}
	case there:
		connectors.Failpoint("after-confirm")
		return nil
	case sent == nil:
		return ErrMissing
	}
	return &NotCommitted{sent}
}
