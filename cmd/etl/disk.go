package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"lockstep/connectors"
)

var noSpace = regexp.MustCompile(`"([^"\n]+)": No space left on device`)

// diskFull says of an error of DuckDB for want of space which disk is meant.
func (s *session) diskFull(err error) error {
	if err == nil {
		return nil
	}
	full := func(what, dir, hint string) error {
		return &connectors.UnavailableError{What: what, Err: errors.New("the disk of " + dir + " is full"), Hint: hint}
	}
	const spill = "rows that do not fit into memory are put there: make room, or let TMPDIR name a folder on a larger disk"
	text := err.Error()
	if strings.Contains(text, "failed to offload data block") {
		return full("temporary files", os.TempDir(), spill+", or allow more with memory_limit")
	}
	m := noSpace.FindStringSubmatch(text)
	switch {
	case m == nil:
		return err
	case s.temp != nil && strings.HasPrefix(m[1], s.temp.path):
		return full("temporary files", os.TempDir(), spill)
	case s.hidePath:
		return full(s.shown, "the database file", "make room and run again; what was committed stays")
	}
	return full(s.shown, filepath.Dir(m[1]), "make room and run again; what was committed stays")
}
