package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockstep/connectors"
	"lockstep/connectors/files"
	"lockstep/engine"
	"lockstep/engine/duck"
	"lockstep/planner"
	"lockstep/sql"
)

// session is a pipeline file and what was opened for it. Its methods open more; close, which withFile
// calls, gives everything back.
type session struct {
	*wiring
	pipeline *engine.Pipeline // after compile
	duck     *duck.Engine     // after compile or openDuck
	dest     database         // after openDestination
	temp     *tempDir
	shell    string                      // the file and what goes with it, as on a command line
	pinned   map[string][]planner.Column // by source in lower case: columns an earlier plan took from the input
	// allRejects: rows that were rejected when they were read are so again, whatever max_rejects says now.
	allRejects bool
	adopt      bool      // a destination that is a copy goes on by itself
	progress   *progress // nil: nobody watches
}

// withFile parses a pipeline file and lets fn work with it. Whatever fn leaves open is closed, and no
// error shows a value of the environment.
func withFile(ctx context.Context, path string, fn func(*session) error) error {
	script, err := readScript(path)
	if err != nil {
		return err
	}
	return withScript(ctx, script, fn)
}

// withName is withFile for commands that need of a pipeline file only its name and its destination: the rest
// of it may be faulty.
func withName(ctx context.Context, path string, fn func(*session) error) error {
	script, err := readScript(path)
	var faults sql.Errors
	if errors.As(err, &faults) && script != nil && len(script.Attaches) > 0 && (script.Pipeline != nil || !namesPipeline.MatchString(script.Text)) {
		err = nil
	}
	if err != nil {
		return err
	}
	return withScript(ctx, script, func(s *session) error {
		if !s.attached() {
			return append(s.faults, faults...)
		}
		return fn(s)
	})
}

var namesPipeline = regexp.MustCompile(`(?i)\bcreate\s+pipeline\b`)

func withScript(ctx context.Context, script *sql.Script, fn func(*session) error) (err error) {
	w, err := findWiring(script, givenIn(ctx))
	if err != nil {
		return err
	}
	s := &session{wiring: w, shell: connectors.ShellWord(script.File) + givenIn(ctx).flags}
	defer func() {
		s.dated(ctx, err)
		err = s.diskFull(err)
		withCommands(err, s.shell)
		if closeErr := s.close(); err == nil {
			err = closeErr // after another error it would only be a consequence
		}
		err = s.secrets.hide(named(err, s.path, s.shown))
	}()
	return fn(s)
}

// dated enters the batch into errors about input that was read before, while the destination is open.
func (s *session) dated(ctx context.Context, err error) {
	if err == nil || s.dest == nil {
		return
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			s.dated(ctx, one)
		}
		return
	}
	var input *connectors.InputError
	if !errors.As(err, &input) || input.Seq == 0 {
		return
	}
	batch, err := s.dest.BatchOf(ctx, s.script.Name, input.Seq)
	if err != nil {
		return
	}
	if seq, err := s.dest.SeqOf(ctx, s.script.Name, batch); err == nil && seq == input.Seq { // it was no correction after that batch
		input.Batch = &batch
	}
}

// maxScript bounds a pipeline file: a larger one is something else that was named by mistake.
const maxScript = 16 << 20

func readScript(path string) (*sql.Script, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, noSuchFile(path, "no such file")
	case err == nil && info.IsDir():
		return nil, &usageError{path + " is a folder", "name one pipeline file"}
	}
	text, err := readUpTo(path, maxScript)
	if err != nil {
		return nil, &usageError{path + ": " + reasonOf(err), "check its permissions"}
	}
	if len(text) > maxScript {
		return nil, &usageError{path + " is larger than 16 MB", "a pipeline file is SQL text; name one"}
	}
	return sql.Parse(path, string(text))
}

// noSuchFile says of a link that it is there, but not what it leads to.
func noSuchFile(path, problem string) error {
	if to, err := os.Readlink(path); err == nil {
		return &usageError{path + " is a link to " + to + ", which does not exist", "remove the link or restore its file"}
	}
	return &usageError{path + ": " + problem, ""}
}

// readUpTo reads a file, and one byte more than the most when it is larger.
func readUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// compile plans the pipeline and opens its sources. Neither the destination nor any row of input is
// touched. All faults of the file come together.
func (s *session) compile(ctx context.Context) error {
	if err := s.openDuck(ctx, s.sourceDirs()); err != nil {
		return err
	}
	s.pin(ctx)
	plan, err := planner.Compile(ctx, s.script, s.infer)
	faults := s.faults
	var planFaults sql.Errors
	if err != nil && !errors.As(err, &planFaults) {
		return err
	}
	faults = append(faults, planFaults...)
	faults = append(faults, s.sourceFaults(plan)...)
	if plan != nil && s.dsn != "" {
		faults = append(faults, s.postgresFaults(plan)...)
	}
	if len(faults) > 0 {
		faults.Sort()
		return faults
	}
	s.pipeline = &engine.Pipeline{Plan: plan, Duck: s.duck, Sources: map[string]connectors.Source{}, Now: time.Now, Version: version(), Recompile: s.recompile,
		File: s.file(), Named: s.script.Pipeline != nil, Still: s.still}
	if s.progress != nil {
		s.pipeline.Parts = s.progress.part
	}
	for _, source := range plan.Sources {
		spec := s.specs[source.Decl.Name.Text]
		spec.Columns, spec.Checks, spec.EventTime = sourceColumns(source.Columns), sourceChecks(source.Checks), source.EventTime
		if s.allRejects && spec.Options["strict_mode"].Text != "false" {
			spec.Options = maps.Clone(spec.Options)
			spec.Options["max_rejects"] = connectors.Option{Raw: "'100%'", Text: "100%"}
			for i := range spec.Checks {
				spec.Checks[i].Fail = false
			}
		}
		opened, err := files.Open(ctx, s.duck, spec)
		if err != nil {
			return err
		}
		if s.progress != nil {
			opened.Watch = s.progress.read
		}
		s.pipeline.Sources[source.Name] = opened
	}
	return nil
}

// file is the pipeline file's own place.
func (s *session) file() string { return filepath.Join(s.dir, filepath.Base(s.script.File)) }

// still tells whether a file is another one than this and has a pipeline of this name.
func (s *session) still(file string) bool {
	here, err := os.Stat(s.file())
	there, thereErr := os.Stat(file)
	if err != nil || thereErr != nil || os.SameFile(here, there) {
		return false
	}
	script, err := readScript(file)
	return err == nil && strings.EqualFold(script.Name, s.script.Name)
}

// pin looks up which columns the pipeline's last plan took from the input for sources that declare
// none: the first file by name may be another one now, or gone. What is wrong with the destination is
// said when it is opened to be used.
func (s *session) pin(ctx context.Context) {
	declared := func(d *sql.Source) bool { return len(d.Columns) > 0 }
	if !s.attached() || !slices.ContainsFunc(s.script.Sources, func(d *sql.Source) bool { return !declared(d) }) {
		return
	}
	dest, err := s.open(ctx, true)
	if err != nil {
		return
	}
	if head, err := dest.Head(ctx, s.script.Name); err == nil {
		s.pinned = planner.Pinned(head.Plan.Canonical)
	}
	_ = dest.Close()
}

// openDestination opens the destination. A pipeline that was compiled is then ready to run.
func (s *session) openDestination(ctx context.Context, readOnly bool) error {
	dest, err := s.open(ctx, readOnly)
	if err != nil {
		return err
	}
	s.dest = dest
	if s.pipeline != nil {
		s.pipeline.Destination = dest
	}
	return nil
}

// openToRead compiles the pipeline and opens its destination only to read. It returns false when there
// is no destination yet.
func (s *session) openToRead(ctx context.Context) (exists bool, err error) {
	if err := s.compile(ctx); err != nil {
		return false, err
	}
	if !s.destinationExists() {
		return false, nil
	}
	return true, s.openDestination(ctx, true)
}

// openDestinationOnly is for commands that need nothing else of the pipeline: they work when its
// SELECT or its sources do not.
func (s *session) openDestinationOnly(ctx context.Context) (exists bool, err error) {
	return s.openAlone(ctx, true)
}

func (s *session) openAlone(ctx context.Context, readOnly bool) (exists bool, err error) {
	if !s.attached() {
		return false, s.faults
	}
	if !s.destinationExists() {
		return false, nil
	}
	if err := s.openDuck(ctx, nil); err != nil {
		return false, err
	}
	return true, s.openDestination(ctx, readOnly)
}

// openDuck starts the sandboxed DuckDB. It may use the destination's folder, the given ones and a
// temporary one.
func (s *session) openDuck(ctx context.Context, dirs []string) error {
	var err error
	if s.temp, err = newTempDir(); err != nil {
		return err
	}
	dirs = append(dirs, s.temp.path)
	if s.path != "" {
		dirs = append(dirs, filepath.Dir(s.path))
	}
	options := duck.Options{Dirs: dirs, TempDir: s.temp.path, Threads: s.threads}
	if memoryLimit.MatchString(s.memory) { // another one is a fault that compile reports
		options.MemoryLimit = s.memory
	}
	s.duck, err = duck.Open(ctx, options)
	return err
}

// close gives everything back. The destination is closed before DuckDB.
func (s *session) close() error {
	var errs []error
	if s.pipeline != nil {
		for _, source := range s.pipeline.Sources {
			errs = append(errs, source.Close())
		}
	}
	if s.dest != nil {
		errs = append(errs, s.dest.Close())
	}
	if s.duck != nil {
		errs = append(errs, s.duck.Close())
	}
	if s.temp != nil {
		errs = append(errs, s.temp.remove())
	}
	return errors.Join(errs...)
}

// waiting repeats fn while another program holds the destination, until the time is up.
func waiting(ctx context.Context, until time.Time, fn func() error) error {
	for {
		err := fn()
		if err == nil || !connectors.Held(err) || !time.Now().Before(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(100*time.Millisecond, time.Until(until))):
		}
	}
}

// readWait is how long the commands that only look wait for a run to give the destination back.
const readWait = 5 * time.Second
