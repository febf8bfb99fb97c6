package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/engine"
)

type reconcileOptions struct {
	repair, dryRun, yes bool
	where               string
	wait                time.Duration
}

func reconcileCommand() *cobra.Command {
	var o reconcileOptions
	cmd := &cobra.Command{
		Use:   "reconcile FILE",
		Short: "Compare the tables with the SELECT over all input read so far, and repair them",
		Long: `Compare the tables with the SELECT over all input read so far, and repair them.

The SELECT runs once, as written, over the files that were read, and the result is
compared with each table key by key. Rows that differ are shown and exit with 1: they
were edited by hand, or something is wrong. Nothing is written. The files must still
be there, unchanged.

With --repair the tables are made what the input gives, in one transaction: rows that were
edited, inserted or deleted by hand, a table that is gone or came back alone from a backup.
Rows that are right are not touched. The kept state is checked on the way, and replaced if
it is wrong. --dry-run shows what would be done. More than a fifth of a table's rows are
deleted only with --yes.`,
		Example: `  etl reconcile daily_sales.sql
  etl reconcile daily_sales.sql --where "day >= DATE '2024-05-01'"
  etl reconcile daily_sales.sql --repair --dry-run
  etl reconcile daily_sales.sql --repair`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.where == "" && cmd.Flags().Changed("where") {
				return &usageError{"--where is empty", "leave it out to look at all rows"}
			}
			if !o.repair && (o.dryRun || o.yes || o.wait > 0) {
				return &usageError{"--dry-run, --yes and --wait are about a repair", "add --repair; without it nothing is written anyway"}
			}
			if o.repair {
				return waiting(cmd.Context(), time.Now().Add(o.wait), func() error {
					return withFile(cmd.Context(), args[0], func(s *session) error { return repair(cmd, s, o) })
				})
			}
			return waiting(cmd.Context(), time.Now().Add(readWait), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return reconcile(cmd, s, o) })
			})
		},
	}
	cmd.Flags().StringVar(&o.where, "where", "", "a condition on the key of the table: look only at these rows")
	cmd.Flags().BoolVar(&o.repair, "repair", false, "make the tables what the input gives")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "with --repair: show what would be done, and write nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "with --repair: also delete many rows")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "with --repair: wait this long for another run or program that holds the destination")
	return takesFiles(quiet(cmd))
}

func reconcile(cmd *cobra.Command, s *session, o reconcileOptions) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	s.allRejects = true
	s.progress = newProgress(cmd, s.script.Name)
	defer s.progress.clear()
	exists, err := s.openToRead(ctx)
	if err != nil {
		return err
	}
	if !exists {
		return engine.ErrNeverRan
	}
	where, err := s.within(ctx, o.where)
	if err != nil {
		return err
	}
	found, err := s.pipeline.Reconcile(ctx, s.dest.Relation, where)
	if err != nil {
		return asked(err)
	}
	s.progress.clear()
	var differ int64
	for _, d := range found {
		differ += d.Total()
	}
	if asJSON(cmd) {
		printJSON(out, struct {
			Pipeline string              `json:"pipeline"`
			Differ   int64               `json:"differ"`
			Sinks    []engine.Difference `json:"sinks"`
		}{s.script.Name, differ, found})
	} else {
		for _, d := range found {
			printDifference(out, d)
		}
	}
	if differ > 0 {
		return &printed{exitWrong}
	}
	return nil
}

func printDifference(w io.Writer, d engine.Difference) {
	fmt.Fprintf(w, "%s: %s · %s", d.Sink, plural(d.Rows, "row"), differing(d))
	for _, s := range d.Samples {
		for line := range strings.Lines(s) {
			fmt.Fprintf(w, "\n  %s", oneLine(strings.TrimRight(line, "\n")))
		}
	}
	if more := d.Total() - int64(len(d.Samples)); more > 0 {
		fmt.Fprintf(w, "\n  … and %s more", thousands(more))
	}
	fmt.Fprintln(w)
}

func differing(d engine.Difference) string {
	if d.Total() == 0 {
		return "0 differ"
	}
	return fmt.Sprintf("%s differ: %s missing, %s extra, %s different", thousands(d.Total()), thousands(d.Missing), thousands(d.Extra), thousands(d.Different))
}
