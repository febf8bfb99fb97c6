package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/connectors"
	"lockstep/engine"
	"lockstep/sql"
)

func renameCommand() *cobra.Command {
	var d deed
	cmd := &cobra.Command{
		Use:   "rename OLD FILE",
		Short: "Let a pipeline go on under the new name of its file",
		Long: `Let a pipeline go on under the new name of its file.

A pipeline's name is that of its file, unless it says CREATE PIPELINE. After the file was
renamed, everything that the destination knows of the pipeline OLD is moved to the new
name, in one transaction: the tables, the position, the state and the history. OLD is the
old name, or that of the old file.

It must be the same pipeline: it keeps one of the tables of OLD. Where the SQL or a table was
changed as well, that is said, with what helps; it is the next step. When there is a pipeline
of the new name, or the old file is still there, nothing is done.`,
		Example: `  mv daily_sales.sql sales.sql
  etl rename daily_sales sales.sql`,
		Args: takes("OLD", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			from := strings.ToLower(pipelineOf(args[0]))
			return d.run(cmd.Context(), func() error {
				return withFile(cmd.Context(), args[1], func(s *session) error { return rename(cmd, s, from) })
			})
		},
	}
	return takesWait(cmd, &d)
}

// pipelineOf is the name of a pipeline, or of the one of a file.
func pipelineOf(arg string) string {
	name := arg[strings.LastIndexByte(arg, '/')+1:]
	if cut := len(name) - len(".sql"); cut > 0 && strings.EqualFold(name[cut:], ".sql") {
		return name[:cut]
	}
	return arg
}

func rename(cmd *cobra.Command, s *session, from string) error {
	ctx, out, to := cmd.Context(), cmd.OutOrStdout(), s.script.Name
	if from == to {
		return &usageError{s.script.File + " is of pipeline " + to + ", and that is the old name too", "rename takes the name before: etl rename OLD FILE"}
	}
	if err := s.compile(ctx); err != nil {
		return err
	}
	if !s.destinationExists() {
		return connectors.NameUnknown(from)
	}
	if err := s.openDestination(ctx, false); err != nil {
		return err
	}
	if err := s.knows(ctx, from); err != nil {
		return err
	}
	head, ahead, err := s.pipeline.Rename(ctx, s.dest, from, func(file string) bool { return file != "" && file != s.file() && nameOfFile(file) == from })
	if err != nil {
		return err
	}
	next := s.ahead(ahead)
	switch {
	case asJSON(cmd):
		printJSON(out, struct {
			Pipeline string `json:"pipeline"`
			Was      string `json:"was"`
			Batch    int64  `json:"batch"`
			Problem  string `json:"problem,omitempty"` // that the next run stops at
		}{to, from, head.LastBatch, next})
	case next == "":
		fmt.Fprintf(out, "%s: was %s; it goes on after batch %d\n", to, from, head.LastBatch)
	default:
		fmt.Fprintf(out, "%s: was %s, with batch %d as its last; a run stops at this: %s\n", to, from, head.LastBatch, next)
	}
	return nil
}

// ahead says what a run will stop at, and what helps.
func (s *session) ahead(err error) string {
	var blocked *engine.BlockedError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &blocked):
		return fmt.Sprintf("the SQL was changed as well\n  etl plan %s     what changed\n  etl apply %[1]s    makes the tables what it says now", s.shell)
	}
	withCommands(err, s.shell)
	return s.secrets.hide(named(err, s.path, s.shown)).Error()
}

// knows makes sure that the destination has a pipeline of a name.
func (s *session) knows(ctx context.Context, name string) error {
	names, err := s.dest.Pipelines(ctx)
	if err != nil || slices.Contains(names, name) {
		return err
	}
	hint := "there is none yet"
	if near := sql.Suggest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(names) > 0 {
		hint = "there are " + strings.Join(names, ", ")
	}
	return &usageError{"there is no pipeline " + name + " in " + s.shown, hint}
}

// nameOfFile is the name of the pipeline of a file; "" when there is none.
func nameOfFile(file string) string {
	script, _ := readScript(file)
	if script == nil {
		return ""
	}
	return script.Name
}
