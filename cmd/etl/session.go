package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lockstep/connectors"
	"lockstep/connectors/duckdb"
	"lockstep/connectors/files"
	"lockstep/engine"
	"lockstep/engine/duck"
	"lockstep/planner"
	"lockstep/sql"
)

// session is an opened pipeline file: compiled, with DuckDB, the sources and the destination.
type session struct {
	script   *sql.Script
	pipeline *engine.Pipeline
	duck     *duck.Engine
	dest     *duckdb.Destination // nil until opened
	alias    string              // the author's name for the destination
	path     string              // of the destination file, absolute
	tempDir  string
}

// readScript parses a pipeline file.
func readScript(path string) (*sql.Script, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", path)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; name a pipeline file", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return sql.Parse(path, string(text))
}

// compileFile parses, plans and resolves a pipeline file. The destination is not opened.
func compileFile(ctx context.Context, path string) (*session, error) {
	script, err := readScript(path)
	if err != nil {
		return nil, err
	}
	s := &session{script: script}
	if err := s.compile(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// openFile compiles a pipeline file and opens its destination.
func openFile(ctx context.Context, path string, readOnly bool) (*session, error) {
	s, err := compileFile(ctx, path)
	if err != nil {
		return nil, err
	}
	if s.dest, err = duckdb.Open(ctx, s.duck, s.path, s.alias, readOnly); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.pipeline.Destination = s.dest
	return s, nil
}

func (s *session) compile(ctx context.Context) error {
	if err := s.resolveDestination(); err != nil {
		return err
	}
	specs := map[string]connectors.SourceSpec{}
	dirs := []string{filepath.Dir(s.path)}
	var faults sql.Errors
	for _, decl := range s.script.Sources {
		spec, err := s.sourceSpec(decl)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		specs[decl.Name.Text] = spec
		dirs = append(dirs, files.Prefix(spec))
	}
	if err := s.openDuck(ctx, dirs); err != nil {
		return err
	}
	plan, err := planner.Compile(ctx, s.script, func(ctx context.Context, decl *sql.Source) ([]planner.Column, error) {
		return s.inferColumns(ctx, decl, specs[decl.Name.Text])
	})
	var planFaults sql.Errors
	if err != nil && !errors.As(err, &planFaults) {
		return err
	}
	faults = append(faults, planFaults...)
	faults = append(faults, s.optionFaults(specs, plan)...)
	if len(faults) > 0 {
		faults.Sort()
		return faults
	}
	s.pipeline = &engine.Pipeline{Plan: plan, Duck: s.duck, Sources: map[string]connectors.Source{}, Now: time.Now, Version: version(), Recompile: s.recompile(specs)}
	for _, source := range plan.Sources {
		spec := specs[source.Name]
		spec.Columns = sourceColumns(source.Columns)
		opened, err := files.Open(ctx, s.duck, spec)
		if err != nil {
			return err
		}
		s.pipeline.Sources[source.Name] = opened
	}
	return nil
}

// resolveDestination finds the file that the sinks' database is.
func (s *session) resolveDestination() error {
	for _, a := range s.script.Attaches {
		if len(s.script.Sinks) == 0 || !strings.EqualFold(a.Name.Text, s.script.Sinks[0].Name.Parts[0].Text) {
			continue
		}
		target, err := a.Target.Resolve(os.LookupEnv)
		if err != nil {
			return sql.Errors{s.script.Errorf(a.Target.Span, "set it, or write getenv('NAME', 'default')", "%v", err)}
		}
		if target == "" || strings.HasPrefix(target, ":") {
			return sql.Errors{s.script.Errorf(a.Target.Span, "name a file, such as 'mart.duckdb'", "the destination must be a file: progress is kept in it")}
		}
		s.alias = a.Name.Text
		s.path = s.absolute(target)
		return nil
	}
	return errors.New("the pipeline has no destination") // the parser has said so with a position
}

// absolute makes a path relative to the pipeline file.
func (s *session) absolute(path string) string {
	if filepath.IsAbs(path) || strings.Contains(path, "://") {
		return path
	}
	abs, err := filepath.Abs(filepath.Join(filepath.Dir(s.script.File), path))
	if err != nil {
		return path
	}
	return abs
}

func (s *session) sourceSpec(decl *sql.Source) (connectors.SourceSpec, *sql.Error) {
	spec := connectors.SourceSpec{Name: decl.Name.Text, Base: s.absolute("."), Options: map[string]connectors.Option{}}
	from, err := decl.From.Resolve(os.LookupEnv)
	if err != nil {
		return spec, s.script.Errorf(decl.From.Span, "set it, or write getenv('NAME', 'default')", "%v", err)
	}
	spec.From = s.absolute(from)
	for _, o := range decl.With {
		option := connectors.Option{Raw: o.Value.Raw, Text: o.Value.Raw}
		if o.Value.Kind == sql.StringValue {
			text, err := o.Value.Text.Resolve(os.LookupEnv)
			if err != nil {
				return spec, s.script.Errorf(o.Value.Span, "set it, or write getenv('NAME', 'default')", "%v", err)
			}
			option = connectors.Option{Raw: duck.Literal(text), Text: text}
		}
		name := strings.ToLower(o.Name.Text)
		if name == "format" {
			spec.Format = option.Text
		}
		spec.Options[name] = option
	}
	return spec, nil
}

// optionFaults asks the connector about paths and options, which need no input to be wrong.
func (s *session) optionFaults(specs map[string]connectors.SourceSpec, plan *planner.Plan) sql.Errors {
	var out sql.Errors
	for _, decl := range s.script.Sources {
		spec, ok := specs[decl.Name.Text]
		if !ok {
			continue
		}
		for _, c := range decl.Columns {
			spec.Columns = append(spec.Columns, connectors.SourceColumn{Name: c.Name.Text, Type: c.Type.Text, NotNull: c.NotNull})
		}
		if plan != nil {
			for _, p := range plan.Sources {
				if p.Name == spec.Name {
					spec.Columns = sourceColumns(p.Columns)
				}
			}
		}
		for _, f := range files.Validate(spec) {
			span := decl.Head
			for _, o := range decl.With {
				if strings.EqualFold(o.Name.Text, f.Option) {
					span = o.Span
				}
			}
			out = append(out, s.script.Errorf(span, f.Hint, "%s", f.Reason))
		}
	}
	return out
}

func (s *session) inferColumns(ctx context.Context, decl *sql.Source, spec connectors.SourceSpec) ([]planner.Column, error) {
	if len(files.Validate(spec)) > 0 {
		return nil, nil // optionFaults reports them
	}
	columns, err := files.Columns(ctx, s.duck, spec)
	if err != nil {
		return nil, err
	}
	out := make([]planner.Column, len(columns))
	for i, c := range columns {
		out[i] = planner.Column{Name: c.Name, Type: c.Type, NotNull: c.NotNull}
	}
	return out, nil
}

// recompile plans the text of an earlier version of the same file.
func (s *session) recompile(specs map[string]connectors.SourceSpec) func(context.Context, string) (*planner.Plan, error) {
	return func(ctx context.Context, text string) (*planner.Plan, error) {
		script, err := sql.Parse(s.script.File, text)
		if err != nil {
			return nil, err
		}
		return planner.Compile(ctx, script, func(ctx context.Context, decl *sql.Source) ([]planner.Column, error) {
			spec, ok := specs[decl.Name.Text]
			if !ok {
				return nil, fmt.Errorf("source %s is gone", decl.Name.Text)
			}
			return s.inferColumns(ctx, decl, spec)
		})
	}
}

func sourceColumns(columns []planner.Column) []connectors.SourceColumn {
	out := make([]connectors.SourceColumn, len(columns))
	for i, c := range columns {
		out[i] = connectors.SourceColumn{Name: c.Name, Type: c.Type, NotNull: c.NotNull}
	}
	return out
}

// openDuck starts the sandboxed DuckDB; it may use the given folders and a temporary one.
func (s *session) openDuck(ctx context.Context, dirs []string) error {
	temp, err := os.MkdirTemp("", "etl-")
	if err != nil {
		return fmt.Errorf("make a folder to spill to: %w", err)
	}
	s.tempDir = temp
	options := duck.Options{Dirs: append(dirs, temp), TempDir: temp}
	if p := s.script.Pipeline; p != nil {
		for _, o := range p.With {
			switch strings.ToLower(o.Name.Text) {
			case "memory_limit":
				options.MemoryLimit, _ = o.Value.Text.Resolve(os.LookupEnv)
			case "threads":
				if options.Threads, err = strconv.Atoi(o.Value.Raw); err != nil || options.Threads < 1 {
					return sql.Errors{s.script.Errorf(o.Span, "", "threads takes a whole number from 1")}
				}
			default:
				return sql.Errors{s.script.Errorf(o.Span, "there are memory_limit and threads", "no pipeline option %s", o.Name.Text)}
			}
		}
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
	if s.tempDir != "" {
		errs = append(errs, os.RemoveAll(s.tempDir))
	}
	return errors.Join(errs...)
}
