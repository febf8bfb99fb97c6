package duck_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"lockstep/engine/duck"
)

// A value that cannot be computed is told from a statement that was called off.
func TestByRow(t *testing.T) {
	eng, err := duck.Open(t.Context(), duck.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	if err := eng.Exec(t.Context(), "CREATE TEMP TABLE x AS SELECT CAST('a' || i AS INTEGER) FROM range(3) r(i)"); !duck.ByRow(err) {
		t.Errorf("not blamed on a row: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := eng.Exec(ctx, "CREATE TEMP TABLE y AS SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"); err == nil || duck.ByRow(err) {
		t.Errorf("blamed on a row: %v", err)
	}
	if duck.ByRow(nil) || duck.ByRow(errors.New("else")) {
		t.Error("nothing is blamed on a row")
	}
}
