package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func adoptCommand() *cobra.Command {
	var d deed
	cmd := &cobra.Command{
		Use:   "adopt FILE",
		Short: "Let a copy of a database, or a table that lost its mark, be the pipeline's",
		Long: `Let a copy of a database, or a table that lost its mark, be the pipeline's.

A copy of a database file beside the original is refused: two histories of one pipeline
would begin. adopt says that this is meant. The copy goes on from where it was copied, by
itself: input that comes from now on is folded into each of the two.

A table that was replaced by one of the same name and columns, as from a dump, lacks the
mark by which the pipeline knows it. adopt puts it back when the table has the columns, the
key and the number of rows that the pipeline left. etl reconcile compares its values.`,
		Example: `  etl adopt daily_sales.sql`,
		Args:    takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.run(cmd.Context(), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return adopt(cmd, s) })
			})
		},
	}
	return takesWait(cmd, &d)
}

func adopt(cmd *cobra.Command, s *session) error {
	ctx, out, name := cmd.Context(), cmd.OutOrStdout(), s.script.Name
	if err := s.compile(ctx); err != nil {
		return err
	}
	if !s.destinationExists() {
		return &usageError{s.shown + " does not exist", "`etl run` creates it"}
	}
	s.adopt = true
	if err := s.openDestination(ctx, false); err != nil {
		return err
	}
	original := ""
	if file, ok := s.dest.(interface{ CopyOf() string }); ok {
		original = file.CopyOf()
	}
	if original != "" && !asJSON(cmd) {
		fmt.Fprintf(out, "%s is a database of its own from now on; it was a copy of %s\n", s.shown, original)
	}
	head, tables, err := s.pipeline.Adopt(ctx, s.dest)
	if err != nil {
		return err
	}
	switch {
	case asJSON(cmd):
		if tables == nil {
			tables = []string{}
		}
		printJSON(out, struct {
			Pipeline string   `json:"pipeline"`
			CopyOf   string   `json:"copy_of,omitempty"`
			Tables   []string `json:"tables"`
		}{name, original, tables})
		return nil
	case original == "" && len(tables) == 0:
		fmt.Fprintf(out, "%s: nothing to adopt: %s is where it was, and its tables are the pipeline's\n", name, s.shown)
	}
	for _, t := range tables {
		fmt.Fprintf(out, "%s is the pipeline's again; etl reconcile %s compares its values\n", t, s.shell)
	}
	if original != "" && !head.Fresh {
		fmt.Fprintf(out, "%s: goes on after batch %d, here and there: each run folds new input into its own\n", name, head.LastBatch)
	}
	return nil
}
