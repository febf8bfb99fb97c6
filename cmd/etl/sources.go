package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/connectors"
	"lockstep/connectors/files"
	"lockstep/planner"
	"lockstep/sql"
)

// Between the planner, which knows sources by their declaration, and the connector, which knows them
// by their spec.

// sourceDirs are the folders that DuckDB must be allowed to read.
func (s *session) sourceDirs() []string {
	var dirs []string
	for _, spec := range s.specs {
		dirs = append(dirs, files.Prefix(spec))
	}
	return dirs
}

// sourceFaults asks the connector about paths and options, which need no input to be wrong.
func (s *session) sourceFaults(plan *planner.Plan) sql.Errors {
	var out sql.Errors
	for _, decl := range s.script.Sources {
		spec, ok := s.specs[decl.Name.Text]
		if !ok {
			continue
		}
		for _, c := range decl.Columns {
			spec.Columns = append(spec.Columns, connectors.SourceColumn{Name: c.Name.Text, Type: c.Type.Text, NotNull: c.NotNull, Metadata: c.Metadata, Computed: c.Expr.Text})
		}
		if plan != nil { // then the types are spelled as DuckDB does
			at := slices.IndexFunc(plan.Sources, func(p planner.Source) bool { return p.Decl.Name.Text == spec.Name })
			spec.Columns, spec.Checks = sourceColumns(plan.Sources[at].Columns), sourceChecks(plan.Sources[at].Checks)
		}
		for _, f := range files.Validate(spec) {
			span, about := decl.From.Span, "source "+spec.Name
			for _, o := range decl.With {
				if strings.EqualFold(o.Name.Text, f.Option) {
					span, about = o.Span, "option "+f.Option
				}
			}
			out = append(out, s.script.Errorf(span, f.Hint, "%s: %s", about, f.Reason))
		}
	}
	return out
}

// infer takes the columns of a source that declares none from its first file.
func (s *session) infer(ctx context.Context, decl *sql.Source) ([]planner.Column, error) {
	spec, ok := s.specs[decl.Name.Text]
	if !ok || len(files.Validate(spec)) > 0 {
		return nil, nil // told already, or by sourceFaults
	}
	if columns, ok := s.pinned[strings.ToLower(decl.Name.Text)]; ok {
		return columns, nil
	}
	columns, err := files.Columns(ctx, s.duck, spec)
	var data *connectors.DataError
	if errors.As(err, &data) {
		return nil, s.script.Errorf(decl.From.Span, data.Hint, "%s: %v", data.Where, data.Err)
	}
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
func (s *session) recompile(ctx context.Context, text string) (*planner.Plan, error) {
	script, err := sql.Parse(s.script.File, text)
	if err != nil {
		return nil, err
	}
	return planner.Compile(ctx, script, func(ctx context.Context, decl *sql.Source) ([]planner.Column, error) {
		if _, ok := s.specs[decl.Name.Text]; !ok {
			return nil, fmt.Errorf("source %s is gone", decl.Name.Text)
		}
		return s.infer(ctx, decl)
	})
}

func sourceColumns(columns []planner.Column) []connectors.SourceColumn {
	out := make([]connectors.SourceColumn, len(columns))
	for i, c := range columns {
		out[i] = connectors.SourceColumn{Name: c.Name, Type: c.Type, NotNull: c.NotNull, Metadata: c.Metadata, Computed: c.Computed}
	}
	return out
}

func sourceChecks(checks []planner.Check) []connectors.Check {
	out := make([]connectors.Check, len(checks))
	for i, c := range checks {
		out[i] = connectors.Check{Name: c.Name, SQL: c.SQL, Text: c.Text, Fail: c.Fail}
	}
	return out
}
