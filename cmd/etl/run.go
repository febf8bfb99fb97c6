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
}

func runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Fold all new input into the tables and stop",
		Long: `Fold all new input into the tables and stop.

Input is read in batches; each is committed by itself, in one transaction with the
position it was read to. Nothing new is not an error. Run it from cron as often as
you like: a second run at the same time exits with 75, or waits when told to.`,
		Example: `  etl run daily_sales.sql
  etl run daily_sales.sql --wait 5m
  etl run daily_sales.sql --max-batch-rows 1000000`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.maxRows < 0 || o.maxBytes < 0 {
				return &usageError{"a batch limit cannot be negative", "0 is no limit"}
			}
			return waiting(cmd.Context(), time.Now().Add(o.wait), func() error {
				return withFile(args[0], func(s *session) error { return runPipeline(cmd, s, o) })
			})
		},
	}
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "wait this long for another run or program that holds the destination, as in 90s or 5m")
	cmd.Flags().Int64Var(&o.maxRows, "max-batch-rows", 0, "rows of one batch at most; 0 is no bound")
	cmd.Flags().Int64Var(&o.maxBytes, "max-batch-bytes", 4<<30, "bytes of input files of one batch at most; 0 is no bound")
	return cmd
}

func runPipeline(cmd *cobra.Command, s *session, o runOptions) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if err := s.compile(ctx); err != nil {
		return err
	}
	if err := s.openDestination(ctx, false); err != nil {
		return err
	}
	s.pipeline.Limit = s.batchLimit(cmd.Flags(), o)
	if asJSON(cmd) {
		sum, err := s.pipeline.Run(ctx, nil)
		result := runResult(s.script.Name, sum)
		if err != nil {
			return &partial{err, result}
		}
		printJSON(out, result)
		return nil
	}
	sum, err := s.pipeline.Run(ctx, func(r engine.Report) { fmt.Fprintln(out, line(r)) })
	if err == nil && sum.UpToDate {
		fmt.Fprintf(out, "%s: up to date (batch %d)\n", s.script.Name, sum.Batch)
	}
	return err
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

func runResult(name string, sum engine.Summary) any {
	batches := sum.Reports
	if batches == nil {
		batches = []engine.Report{}
	}
	return struct {
		Pipeline string          `json:"pipeline"`
		Batch    int64           `json:"batch"`
		UpToDate bool            `json:"up_to_date"`
		Batches  []engine.Report `json:"batches"`
	}{name, sum.Batch, sum.UpToDate, batches}
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
