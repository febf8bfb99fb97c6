package duck

import (
	"context"
	"errors"
	"fmt"
)

// Tx is the engine's open transaction. It covers temp tables and one attached database.
type Tx struct {
	engine *Engine
	err    error // of the first statement that failed in it
}

// Begin opens the transaction.
func (e *Engine) Begin(ctx context.Context) (*Tx, error) {
	if e.tx != nil {
		return nil, errors.New("duck: a transaction is already open")
	}
	if err := e.Exec(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	e.tx = &Tx{engine: e}
	return e.tx, nil
}

// Commit makes the transaction durable. It refuses, and rolls back, when a statement failed in it.
// It takes no context: what was sent to be committed is not called back.
func (t *Tx) Commit() error {
	if t.engine.tx != t {
		return errors.New("duck: the transaction has ended")
	}
	if t.err != nil {
		return errors.Join(fmt.Errorf("not committed, a statement had failed: %w", t.err), t.Rollback())
	}
	t.engine.tx = nil
	if err := t.engine.Exec(context.Background(), "COMMIT"); err != nil {
		// DuckDB ends the transaction when COMMIT fails; a second ROLLBACK would only say so.
		_ = t.engine.Exec(context.Background(), "ROLLBACK")
		return err
	}
	return nil
}

// Rollback undoes the transaction. After its end it does nothing.
func (t *Tx) Rollback() error {
	if t.engine.tx != t {
		return nil
	}
	t.engine.tx = nil
	return t.engine.Exec(context.Background(), "ROLLBACK")
}
