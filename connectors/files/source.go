// Package files reads folders of Parquet, CSV and JSON lines as a source: each file is a split, new
// files are new rows, and a file that was read never changes, unless the source says files = 'replace'.
//
// A file is identified by its path below the folder part of the glob, its size and the hash of its
// bytes; its time of change only saves hashing it again. What Plan finds for each path:
//
//	not in the position                     new: its rows are planned
//	  same bytes as a file that vanished    renamed: its entry moves to the new path
//	size and time as recorded               unchanged: not opened, or planned from where it was left
//	time differs, bytes are the same        touched: its entry gets the new time
//	bytes differ                            InputError: what was read can no longer be read again;
//	                                        with files = 'replace' planned from its beginning
//	gone                                    normal when read to its end, else an InputError
//
// Parquet files are scanned by DuckDB inside the query that consumes them; a large one is read in
// ranges of rows. Text is read whole and copied first, so that every declared column is decoded
// whatever the query uses: CSV by DuckDB's reader, as text, and JSON by one of our own; either is then
// decoded by rules under which no value is ever changed (decode.go). A row that cannot be decoded, or
// breaks NOT NULL or a check, is rejected, if max_rejects allows (copy.go, nulls.go). Each file is
// hashed and counted while it is read, and must look the same before and after; nothing of a file that
// changed meanwhile is committed.
package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// Source is a glob of files. It implements connectors.Source.
type Source struct {
	eng      *duck.Engine
	spec     connectors.SourceSpec
	settings settings
	pattern  pattern
	footers  map[file]int64  // rows of Parquet files, so that a backlog's footers are read once
	sums     map[file]string // hashes of files that were looked at for a renamed one
	blocks   *sync.Pool      // buffers of JSON text

	// Watch, when set, is told while files are read how many bytes are, and how many there are of this
	// reading. It is called by one goroutine at a time.
	Watch func(done, total int64)
}

// Open checks the source's description. It reads no input. The engine must allow reading Prefix(spec).
func Open(ctx context.Context, eng *duck.Engine, spec connectors.SourceSpec) (*Source, error) {
	s, err := open(eng, spec)
	if err != nil {
		return nil, err
	}
	if len(spec.Columns) == 0 {
		return nil, fmt.Errorf("source %s: its columns are not known; take them from Columns", spec.Name)
	}
	return s, s.spell(ctx)
}

// spell writes the declared types as DuckDB does when it describes a file.
func (s *Source) spell(ctx context.Context) error {
	columns := slices.Clone(s.spec.Columns)
	types := make([]string, len(columns))
	into := make([]any, len(columns))
	for i := range columns {
		types[i], into[i] = "typeof(CAST(NULL AS "+columns[i].Type+"))", &columns[i].Type
	}
	if err := s.eng.QueryRow(ctx, "SELECT "+strings.Join(types, ", "), nil, into...); err != nil {
		return fmt.Errorf("source %s: %w", s.spec.Name, err)
	}
	s.spec.Columns = columns
	if s.settings.format == formatParquet {
		return nil
	}
	var errs []error
	for _, c := range columns {
		if f := undecodable(c, s.settings.format, true); f != nil {
			errs = append(errs, f)
		}
	}
	if len(errs) > 0 {
		return &connectors.DataError{Source: s.spec.Name, Where: "source " + s.spec.Name, Err: errors.Join(errs...)}
	}
	return nil
}

func open(eng *duck.Engine, spec connectors.SourceSpec) (*Source, error) {
	settings, faults := newSettings(spec)
	if len(faults) > 0 {
		var errs []error
		for _, f := range faults {
			errs = append(errs, f)
		}
		return nil, &connectors.DataError{Source: spec.Name, Where: "source " + spec.Name, Err: errors.Join(errs...)}
	}
	return &Source{eng: eng, spec: spec, settings: settings, pattern: newPattern(spec), footers: map[file]int64{}, blocks: &sync.Pool{}}, nil
}

// Close may be called twice. Open scans stay usable.
func (s *Source) Close() error { return nil }

// Columns returns the columns of a Parquet source that declares none: those of its first file by name.
func Columns(ctx context.Context, eng *duck.Engine, spec connectors.SourceSpec) ([]connectors.SourceColumn, error) {
	s, err := open(eng, spec)
	if err != nil {
		return nil, err
	}
	found, err := s.list(nil)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &connectors.DataError{Source: spec.Name, Where: "source " + spec.Name,
			Err: fmt.Errorf("no file matches %s, so its columns are not known", spec.From), Hint: "declare them, or add a first file"}
	}
	if _, err := s.rowsOf(ctx, found[:1]); err != nil { // names a damaged file
		return nil, err
	}
	return s.describe(ctx, found[0])
}

// list finds the files that are there. A folder where a file was read is another fault than one where none was.
func (s *Source) list(seen checkpoints.Splits) ([]file, error) {
	found, err := s.pattern.list()
	var bad *badPath
	if errors.As(err, &bad) && bad.folder != "" {
		if was, ok := seen[bad.folder]; ok {
			err := s.inputError(bad.folder, "is a folder now, and was a file when it was read",
				"move the folder away; the file may stay away as well, when all of it was read")
			err.Seq = was.Seq
			return nil, err
		}
	}
	return found, s.located(err)
}

// located makes a fault of a path one of this source.
func (s *Source) located(err error) error {
	var bad *badPath
	if errors.As(err, &bad) {
		return s.dataError(bad.path, bad.reason, bad.hint)
	}
	return err
}

// dataError is a fault of one file.
func (s *Source) dataError(path, reason, hint string) *connectors.DataError {
	return &connectors.DataError{Source: s.spec.Name, Where: s.shown(path), Err: errors.New(reason), Hint: hint}
}

// inputError is a file that was read, or in part, and is not what it was.
func (s *Source) inputError(id, reason, hint string) *connectors.InputError {
	return &connectors.InputError{Source: s.spec.Name, Split: s.shown(s.pattern.abs(id)), Reason: reason, Hint: hint}
}

// shown is how messages write a path: relative to the pipeline file when it lies below it.
func (s *Source) shown(path string) string {
	rel, err := filepath.Rel(s.spec.Base, path)
	if s.spec.Base == "" || err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return path
	}
	return rel
}
