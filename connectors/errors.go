package connectors

import (
	"errors"
	"fmt"
)

// The errors of this file say who has to act; cmd/etl maps each kind to an exit code in one place.

// DataError: the input or the pipeline is wrong (exit 1). Nothing was committed.
type DataError struct {
	Source string // the source's name
	Where  string // file, file:line or split
	Err    error
	Hint   string
}

func (e *DataError) Error() string {
	return withHint(joinNonEmpty(": ", e.Where, e.Err.Error()), e.Hint)
}
func (e *DataError) Unwrap() error { return e.Err }

// InputError: input that is still needed is gone or was changed (exit 4).
type InputError struct {
	Source string
	Split  string
	Reason string
	Hint   string
	Seq    int64  // the change that read the split last; 0 when that does not matter
	Batch  *int64 // of Seq, where somebody has looked it up: people know batches
}

func (e *InputError) Error() string {
	read := ""
	if e.Batch != nil {
		read = fmt.Sprintf(" (read by batch %d)", *e.Batch)
	}
	return withHint(fmt.Sprintf("source %s: %s: %s%s", e.Source, e.Split, e.Reason, read), e.Hint)
}

// TargetError: a table of the destination is not what the pipeline left or needs (exit 3).
type TargetError struct {
	Table  string
	Reason string
	Hint   string
}

func (e *TargetError) Error() string {
	return withHint(fmt.Sprintf("table %s: %s", e.Table, e.Reason), e.Hint)
}

// DamagedError: what the destination stores of the pipeline fails its own checks (exit 3).
type DamagedError struct {
	What   string
	Reason string
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.What, e.Reason) }

// UnavailableError: the destination cannot be reached or opened (exit 5).
type UnavailableError struct {
	What   string
	Err    error
	Hint   string
	Passes bool // it was reached before, and may come back by itself
}

func (e *UnavailableError) Error() string {
	return withHint(fmt.Sprintf("%s: %v", e.What, e.Err), e.Hint)
}
func (e *UnavailableError) Unwrap() error { return e.Err }

// HeldError: another run or program holds the destination (exit 75). Waiting may help.
type HeldError struct {
	What string
	By   string // "pid 4711 (duckdb)", "" when unknown
}

func (e *HeldError) Error() string {
	if e.By == "" {
		return e.What + " is held by another program"
	}
	return e.What + " is held by " + e.By
}

// FencedError: this run lost its lease to a newer one; it must forget everything and open again.
type FencedError struct{ Pipeline string }

func (e *FencedError) Error() string {
	return fmt.Sprintf("pipeline %s was taken over by another run; nothing was written by this one", e.Pipeline)
}

// Held tells whether waiting for another program may help.
func Held(err error) bool {
	var h *HeldError
	return errors.As(err, &h)
}

// Away tells whether the destination may come back by itself.
func Away(err error) bool {
	var u *UnavailableError
	return errors.As(err, &u) && u.Passes
}

func joinNonEmpty(sep, a, b string) string {
	if a == "" {
		return b
	}
	return a + sep + b
}

func withHint(msg, hint string) string {
	if hint == "" {
		return msg
	}
	return msg + "\n  " + hint
}
