package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"lockstep/connectors"
	"lockstep/sql"
)

// secrets answers getenv calls and remembers what they gave, so that no message shows it. Messages
// of DuckDB and of the connectors name paths and addresses; whichever of them came out of the
// environment is written as the author wrote it.
type secrets struct {
	dir   string            // of the pipeline file; messages show paths relative to it
	calls map[string]string // value → the call that gave it
	from  func(name string) (string, bool)
}

func newSecrets(dir string, from func(string) (string, bool)) *secrets {
	return &secrets{dir: dir, calls: map[string]string{}, from: from}
}

// minSecret is the length below which a value is no secret: hiding a comma would spoil every message.
const minSecret = 4

func (s *secrets) lookup(name string) (string, bool) {
	value, ok := s.from(name)
	forms := []string{value, filepath.Clean(value)} // paths are cleaned before they are used
	if rel, err := filepath.Rel(s.dir, value); err == nil {
		forms = append(forms, rel)
	}
	for _, form := range forms {
		if ok && len(form) >= minSecret {
			s.calls[form] = "getenv(" + quoteText(name) + ")"
		}
	}
	return value, ok
}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// text writes the calls in place of their values, the longest first.
func (s *secrets) text(msg string) string {
	values := make([]string, 0, len(s.calls))
	for v := range s.calls {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(values))
	for _, v := range values {
		pairs = append(pairs, v, s.calls[v])
	}
	return strings.NewReplacer(pairs...).Replace(msg)
}

// hide makes an error safe to print. It stays the same kind of error.
func (s *secrets) hide(err error) error {
	if err == nil || len(s.calls) == 0 {
		return err
	}
	var faults sql.Errors
	if !errors.As(err, &faults) {
		return &hidden{err: err, text: s.text(err.Error())}
	}
	out := make(sql.Errors, len(faults))
	for i, f := range faults {
		safe := *f
		safe.Message, safe.Hint = s.text(f.Message), s.text(f.Hint)
		out[i] = &safe
	}
	var flag *faultyFlag
	if errors.As(err, &flag) {
		return &faultyFlag{out}
	}
	return out
}

type hidden struct {
	err  error
	text string
}

func (h *hidden) Error() string { return h.text }
func (h *hidden) Unwrap() error { return h.err }

// named lets errors that are about a file as a whole say its name as the author wrote it.
func named(err error, path, name string) error {
	var held *connectors.HeldError
	var unavailable *connectors.UnavailableError
	switch {
	case errors.As(err, &held) && held.What == path:
		held.What = name
	case errors.As(err, &unavailable) && unavailable.What == path:
		unavailable.What = name
	}
	return err
}
