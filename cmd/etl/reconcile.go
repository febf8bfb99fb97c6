package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/engine"
)

func reconcileCommand() *cobra.Command {
	return takesFiles(quiet(&cobra.Command{
		Use:   "reconcile FILE",
		Short: "Compare the tables with the SELECT over all input read so far",
		Long: `Compare the tables with the SELECT over all input read so far.

The SELECT runs once, as written, over the files that were read, and the result is
compared with each table key by key. Rows that differ are shown and exit with 1: they
were edited by hand, or something is wrong. Nothing is written. The files must still
be there, unchanged.`,
		Example: `  etl reconcile daily_sales.sql`,
		Args:    takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return waiting(cmd.Context(), time.Now().Add(readWait), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return reconcile(cmd, s) })
			})
		},
	}))
}

func reconcile(cmd *cobra.Command, s *session) error {
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
	found, err := s.pipeline.Reconcile(ctx, s.dest.Relation)
	if err != nil {
		return err
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
