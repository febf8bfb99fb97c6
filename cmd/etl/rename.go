package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/connectors"
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

It must be the same pipeline: when its plan or its tables are others, nothing is done. So
it is when there is a pipeline of the new name, or the old file is still there.`,
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
	head, err := s.pipeline.Rename(ctx, s.dest, from, func(file string) bool { return file != "" && file != s.file() && nameOfFile(file) == from })
	if err != nil {
		return err
	}
	if asJSON(cmd) {
		printJSON(out, struct {
			Pipeline string `json:"pipeline"`
			Was      string `json:"was"`
			Batch    int64  `json:"batch"`
		}{to, from, head.LastBatch})
		return nil
	}
	fmt.Fprintf(out, "%s: was %s; it goes on after batch %d\n", to, from, head.LastBatch)
	return nil
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
