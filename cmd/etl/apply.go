package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/engine"
	"lockstep/planner"
)

type applyOptions struct {
	sink     string
	dryRun   bool
	yes      bool
	wait     time.Duration
	maxBytes int64
	every    time.Duration
}

func applyCommand() *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make the tables what a changed SELECT says",
		Long: `Make the tables what a changed SELECT says.

A run stops when the plan means something else than what its tables were built with.
apply computes the rows of the changed plan, from the kept state where that serves and
otherwise from the input that was read before, and compares them with the tables: only
rows that differ are written, in one transaction. No new input is read; the next run
goes on from where the last one stopped.

--dry-run shows what would be read and which rows would change, and writes nothing.
More than a fifth of a table's rows are deleted only with --yes.`,
		Example: `  etl apply daily_sales.sql --dry-run
  etl apply daily_sales.sql
  etl apply daily_sales.sql --sink mart.daily_sales`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return waiting(cmd.Context(), time.Now().Add(o.wait), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return apply(cmd, s, o) })
			})
		},
	}
	cmd.Flags().StringVar(&o.sink, "sink", "", "apply only when no other table changes than this one")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would be read and changed, and write nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "also delete many rows")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "wait this long for another run or program that holds the destination, as in 90s or 5m")
	cmd.Flags().Int64Var(&o.maxBytes, "max-batch-bytes", 4<<30, "bytes of input files that are folded at once at most; 0 is no bound")
	cmd.Flags().DurationVar(&o.every, "save-every", 30*time.Second, "how often to save what was folded, to go on from when it is stopped; 0 is never")
	return takesFiles(quiet(cmd))
}

// leasePatience is how long a correction waits for a run that commits a batch on a server.
const leasePatience = time.Minute

func apply(cmd *cobra.Command, s *session, o applyOptions) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	s.progress = newProgress(cmd, s.script.Name)
	defer s.progress.clear()
	if err := s.compile(ctx); err != nil {
		return err
	}
	if !s.destinationExists() {
		return &usageError{"there is nothing to apply: " + s.shown + " does not exist yet", "etl run makes it"}
	}
	if err := s.openDestination(ctx, o.dryRun); err != nil {
		return err
	}
	s.pipeline.Limit = s.batchLimit(cmd.Flags(), runOptions{maxBytes: o.maxBytes})
	options := engine.Options{DryRun: o.dryRun, Yes: o.yes, Patience: max(o.wait, leasePatience), SaveEvery: o.every}
	if o.sink != "" {
		if err := s.onlySink(o.sink, &options); err != nil {
			return err
		}
	}
	done, err := s.pipeline.Apply(ctx, options)
	switch {
	case errors.Is(err, engine.ErrNothingToApply):
	case err != nil:
		return manyDeleted(err, "etl apply "+s.shell)
	}
	s.progress.clear()
	switch {
	case asJSON(cmd):
		printJSON(out, struct {
			Pipeline string `json:"pipeline"`
			DryRun   bool   `json:"dry_run"`
			Done     bool   `json:"done"`
			engine.Apply
		}{s.script.Name, o.dryRun, done.Seq > 0, done})
	case err != nil && !isQuiet(cmd):
		fmt.Fprintf(out, "%s: %v\n", s.script.Name, err)
	case err == nil && !isQuiet(cmd):
		printApplied(out, s.script.Name, done, o.dryRun)
	}
	return nil
}

// onlySink lets only the named table change.
func (s *session) onlySink(name string, o *engine.Options) error {
	var names []string
	for _, sink := range s.pipeline.Plan.Sinks {
		names = append(names, sink.Name)
	}
	if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
		return &usageError{s.script.File + " has no sink " + name, "there are " + strings.Join(names, ", ")}
	}
	o.Sink = strings.ToLower(name)
	return nil
}

// manyDeleted adds the way on to a question.
func manyDeleted(err error, command string) error {
	var many *engine.ManyDeletedError
	if !errors.As(err, &many) {
		return err
	}
	return &usageError{fmt.Sprintf("%s of the %s of table %s would be deleted; nothing was written",
		thousands(many.Deleted), plural(many.Was, "row"), many.Table),
		"to see them: " + command + " --dry-run\n  to delete them: " + command + " --yes"}
}

func printApplied(w io.Writer, name string, a engine.Apply, dry bool) {
	read := "no input read"
	if a.Kind != string(planner.Refinalise) {
		read = fmt.Sprintf("%s read again (%s)", plural(int64(a.Files), "file"), size(a.Bytes))
		if a.Saved > 0 {
			read += fmt.Sprintf(", %s of them before it was stopped", thousands(int64(a.Saved)))
		}
	}
	head := fmt.Sprintf("%s: %s · %s", name, a.Kind, read)
	if dry {
		fmt.Fprintf(w, "%s · dry run, nothing was written\n", head)
	} else {
		fmt.Fprintf(w, "%s · %s\n", head, seconds(a.Took))
	}
	for _, o := range a.Outcomes {
		printOutcome(w, o, dry)
	}
	for _, table := range a.Same {
		fmt.Fprintf(w, "%s: means what it meant\n", table)
	}
	for _, table := range a.Left {
		fmt.Fprintf(w, "%s: no sink any more; the table is left as it is, and is not kept up to date\n", table)
	}
}

func printOutcome(w io.Writer, o engine.Outcome, dry bool) {
	fmt.Fprintf(w, "%s: %s same, %s inserted, %s updated, %s deleted", o.Sink, thousands(o.Same), thousands(o.Insert), thousands(o.Update), thousands(o.Delete))
	if o.Made {
		fmt.Fprint(w, " · the table is made")
	}
	if len(o.Columns) > 0 {
		fmt.Fprintf(w, " · columns %s", strings.Join(o.Columns, " "))
	}
	fmt.Fprintln(w)
	if !dry {
		return
	}
	for _, line := range o.Samples {
		fmt.Fprintf(w, "  %s\n", oneLine(line))
	}
	if more := o.Insert + o.Update + o.Delete - int64(len(o.Samples)); more > 0 && len(o.Samples) > 0 {
		fmt.Fprintf(w, "  … and %s more\n", thousands(more))
	}
}
