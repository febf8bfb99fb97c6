package duck

import (
	"context"
	"errors"

	"github.com/duckdb/duckdb-go/v2"
)

// ByRow tells the errors of a statement that a value of a row may have caused from those of the machine, and
// from a statement that was called off.
func ByRow(err error) bool {
	var d *duckdb.Error
	return !errors.Is(err, context.Canceled) && errors.As(err, &d) && d.Type != duckdb.ErrorTypeOutOfMemory && d.Type != duckdb.ErrorTypeInterrupt
}
