package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep/connectors"
	"lockstep/engine"
)

type runOptions struct {
	wait     time.Duration
	maxRows  int64
	maxBytes int64
	follow   bool
	every    time.Duration
}

func runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run PATH…",
		Short: "Fold all new input into the tables and stop",
		Long: `Fold all new input into the tables and stop, or go on with --follow.

Input is read in batches; each is committed by itself, in one transaction with the
position it was read to. Nothing new is not an error. Run it from cron as often as
you like: a second run at the same time exits with 75, or waits when told to.

With --follow the input is looked at again and again until a signal comes. Between
batches the database is free for other programs.

PATH is a pipeline file, or a folder for the .sql files in it; names that begin with . or
_ are left out. Several run one after the other; what goes wrong with one does not stop
the others, and the exit code is the first of 3, 4, 1, 2, 5, 75 that any of them had.`,
		Example: `  etl run daily_sales.sql
  etl run daily_sales.sql --wait 5m
  etl run daily_sales.sql --follow --every 10s
  etl run pipelines/ --quiet
  etl run daily_sales.sql --attach mart=dev.duckdb
  etl run daily_sales.sql --max-batch-rows 1000000`,
		Args: takes("PATH…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.maxRows < 0 || o.maxBytes < 0 {
				return &usageError{"a batch limit cannot be negative", "0 is no limit"}
			}
			if cmd.Flags().Changed("every") && !o.follow {
				return &usageError{"--every is how often --follow looks", "add --follow"}
			}
			paths, several, err := pipelineFiles(args)
			switch {
			case err != nil:
				return err
			case several && o.follow:
				return &usageError{"--follow takes one pipeline file", "start one etl for each"}
			case o.follow:
				return follow(cmd, paths[0], o)
			case several:
				return runSeveral(cmd, paths, o)
			}
			result, err := runFile(cmd, paths[0], o)
			switch {
			case err != nil && result != nil:
				return &partial{err, result}
			case err == nil && asJSON(cmd):
				printJSON(cmd.OutOrStdout(), result)
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "wait this long for another run or program that holds the destination, as in 90s or 5m")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "go on with new input as it comes, until SIGINT or SIGTERM")
	cmd.Flags().DurationVar(&o.every, "every", 10*time.Second, "with --follow, how often to look for new input")
	cmd.Flags().Int64Var(&o.maxRows, "max-batch-rows", 0, "rows of one batch at most; 0 is no bound")
	cmd.Flags().Int64Var(&o.maxBytes, "max-batch-bytes", 4<<30, "bytes of input files of one batch at most; 0 is no bound")
	return takesFiles(quiet(cmd))
}

// ran is what a run did, for --json.
type ran struct {
	File     string          `json:"file,omitempty"` // when there are several
	Pipeline string          `json:"pipeline,omitempty"`
	Batch    *int64          `json:"batch,omitempty"` // the last one; none before the first
	UpToDate bool            `json:"up_to_date"`
	Batches  []engine.Report `json:"batches"`
	Warnings []string        `json:"warnings,omitempty"`
	Failure  *failure        `json:"failure,omitempty"` // when there are several
}

// runFile runs one pipeline, and waits for its destination as long as it may.
func runFile(cmd *cobra.Command, path string, o runOptions) (result *ran, err error) {
	ctx := cmd.Context()
	err = waiting(ctx, time.Now().Add(o.wait), func() error {
		return withFile(ctx, path, func(s *session) (err error) {
			result, err = runPipeline(cmd, s, o)
			return err
		})
	})
	return result, err
}

func runPipeline(cmd *cobra.Command, s *session, o runOptions) (*ran, error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	s.progress = newProgress(cmd, s.script.Name)
	defer s.progress.clear()
	if err := s.compile(ctx); err != nil {
		return nil, err
	}
	if err := s.openOrMake(cmd); err != nil {
		return nil, err
	}
	s.pipeline.Limit = s.batchLimit(cmd.Flags(), o)
	tell := !asJSON(cmd) && !isQuiet(cmd)
	report := func(r engine.Report) {
		s.progress.clear()
		if tell {
			fmt.Fprintln(out, line(r))
		}
	}
	sum, err := s.pipeline.Run(ctx, report)
	r := &ran{Pipeline: s.script.Name, UpToDate: sum.UpToDate, Batches: sum.Reports}
	if r.Batches == nil {
		r.Batches = []engine.Report{}
	}
	if sum.Batch >= 0 {
		r.Batch = &sum.Batch
	}
	for _, w := range sum.Warnings {
		w = s.secrets.text(w)
		r.Warnings = append(r.Warnings, w)
		warn(cmd, "%s: %s", s.script.Name, w)
	}
	if err == nil && sum.UpToDate && tell {
		fmt.Fprintf(out, "%s: up to date (batch %d)\n", s.script.Name, sum.Batch)
	}
	return r, err
}

// openOrMake opens the destination to write, and says so when it made it: the path may be a mistake.
func (s *session) openOrMake(cmd *cobra.Command) error {
	exists := s.destinationExists()
	if err := s.openDestination(cmd.Context(), false); err != nil {
		return err
	}
	if !exists && !asJSON(cmd) && !isQuiet(cmd) {
		s.progress.clear()
		fmt.Fprintf(cmd.OutOrStdout(), "%s: created %s\n", s.script.Name, s.shown)
	}
	return nil
}

// runSeveral runs several pipelines, one after the other: two may have one destination file. Only a
// signal stops it.
func runSeveral(cmd *cobra.Command, paths []string, o runOptions) error {
	results, code, failed := make([]*ran, 0, len(paths)), exitOK, 0
	for _, path := range paths {
		r, err := runFile(cmd, path, o)
		if r == nil {
			r = &ran{Batches: []engine.Report{}}
		}
		r.File = path
		results = append(results, r)
		if err == nil {
			continue
		}
		if cmd.Context().Err() != nil {
			return &partial{err, runs{Pipelines: results}}
		}
		failed++
		code = worse(code, codeOf(err))
		if r.Failure = failureOf(err); !asJSON(cmd) {
			printErrorOf(cmd, path, err)
		}
	}
	switch {
	case asJSON(cmd):
		printJSON(cmd.OutOrStdout(), runs{results, &code})
	case failed > 0 && !logsJSON(cmd):
		fmt.Fprintf(cmd.ErrOrStderr(), "%d of %s failed\n", failed, plural(int64(len(paths)), "pipeline"))
	}
	if code != exitOK {
		return &printed{code}
	}
	return nil
}

type runs struct {
	Pipelines []*ran `json:"pipelines"`
	Exit      *int   `json:"exit,omitempty"` // none when a signal stopped it
}

// batchLimit is what the flags say, else the pipeline file, else the flags' defaults.
func (w *wiring) batchLimit(flags *pflag.FlagSet, o runOptions) connectors.Limit {
	limit := connectors.Limit{Rows: o.maxRows, Bytes: o.maxBytes}
	if w.limited.rows && !flags.Changed("max-batch-rows") {
		limit.Rows = w.limit.Rows
	}
	if w.limited.bytes && !flags.Changed("max-batch-bytes") {
		limit.Bytes = w.limit.Bytes
	}
	return limit
}

// line is the one line a batch prints.
func line(r engine.Report) string {
	read := fmt.Sprintf("%s read", thousands(r.Read))
	if r.Rejected > 0 {
		read += fmt.Sprintf(" = %s used + %s rejected", thousands(r.Used), thousands(r.Rejected))
	}
	return fmt.Sprintf("%s: batch %d · %s · %s · +%s ~%s -%s rows · %s",
		r.Pipeline, r.Batch, plural(int64(r.Splits), "file"), read, thousands(r.Inserted), thousands(r.Updated), thousands(r.Deleted), seconds(r.Took))
}
