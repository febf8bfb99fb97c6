// Package protocol is what becoming the writer of a pipeline, and committing a change, have in common
// whatever the statements are: in which order things are done, and what is decided between them.
//
// The steps are done by a database server (connectors/postgres), and by a model of one, of which a test
// visits every state that crashes, cuts, takeovers and stalls can bring about (model_test.go there).
package protocol

import (
	"context"
	"errors"

	"lockstep/connectors"
)

// Taking are the steps of becoming the only writer of a pipeline.
type Taking interface {
	// Head reads the head, in a transaction of its own that begins after everything before it has ended.
	Head(ctx context.Context) (connectors.Head, error)
	// Once runs fn in one transaction; it may run it again when nobody said how that ended.
	Once(ctx context.Context, fn func() error) error
	// Holder is who has the lease, "" for nobody. gone: that run is known to have ended, or is of this process.
	Holder(ctx context.Context) (holder string, gone bool, err error)
	// Enter makes the run of the lease its holder when nobody is, when the lease has ended, when the
	// holder is this run already, or is the one called over. All of that is looked at by the statement
	// that writes.
	Enter(ctx context.Context, lease connectors.Lease, over string) (bool, error)
	// Held is the error that says who holds the lease.
	Held(ctx context.Context) error
	// Bump raises the fence and gives the new one. A session of the holder that was replaced is ended when
	// it keeps this one waiting.
	Bump(ctx context.Context, replaced string) (int64, error)
	// Keep renews the lease from now on.
	Keep(lease connectors.Lease)
}

// Take enters a run as the holder and bumps the fence, in one transaction: of several that try, the row
// of the lease lets one through, and only that one bumps. The head is read after it, because what the run
// knew before may be what another one has changed since. The lease comes without its fence.
func Take(ctx context.Context, t Taking, lease connectors.Lease) (connectors.Lease, connectors.Head, error) {
	// A record that was lost must not be replaced by a new one.
	var damage *connectors.DamagedError
	if head, err := t.Head(ctx); err != nil && (!errors.As(err, &damage) || head.Manifest.Seq == 0) {
		return lease, head, err
	}
	err := t.Once(ctx, func() error { return EnterTx(ctx, t, &lease) })
	if err != nil {
		return lease, connectors.Head{}, err
	}
	t.Keep(lease)
	head, err := t.Head(ctx)
	if err == nil && head.Fence != lease.Fence {
		err = &connectors.FencedError{Pipeline: lease.Pipeline}
	}
	return lease, head, err
}

// EnterTx makes a run the holder and gives its lease the new fence, in the transaction of Once.
func EnterTx(ctx context.Context, t Taking, lease *connectors.Lease) error {
	holder, gone, err := t.Holder(ctx)
	if err != nil {
		return err
	}
	over := ""
	if gone {
		over = holder
	}
	entered, err := t.Enter(ctx, *lease, over)
	if err != nil {
		return err
	}
	if !entered {
		return t.Held(ctx)
	}
	lease.Fence, err = t.Bump(ctx, holder)
	return err
}
