package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

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
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return waiting(cmd.Context(), o.wait, func() error { return runFile(cmd, args[0], o) })
		},
	}
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "wait this long for another run or program that holds the destination")
	cmd.Flags().Int64Var(&o.maxRows, "max-batch-rows", 0, "rows of one batch at most; 0 is no bound")
	cmd.Flags().Int64Var(&o.maxBytes, "max-batch-bytes", 4<<30, "bytes of input files of one batch at most; 0 is no bound")
	return cmd
}

func runFile(cmd *cobra.Command, path string, o runOptions) (err error) {
	if o.maxRows < 0 || o.maxBytes < 0 {
		return &usageError{errors.New("a batch limit cannot be negative")}
	}
	ctx := cmd.Context()
	s, err := openFile(ctx, path, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.pipeline.Limit = connectors.Limit{Rows: o.maxRows, Bytes: o.maxBytes}
	out := cmd.OutOrStdout()
	report := func(r engine.Report) { fmt.Fprintln(out, line(r)) }
	if asJSON(cmd) {
		report = nil
	}
	sum, err := s.pipeline.Run(ctx, report)
	if asJSON(cmd) && err == nil {
		printJSON(out, runResult(s.script.Name, sum))
		return nil
	}
	if err == nil && sum.UpToDate {
		fmt.Fprintf(out, "%s: up to date (batch %d)\n", s.script.Name, sum.Batch)
	}
	return err
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

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// waiting repeats fn while another program holds the destination, until the time is up.
func waiting(ctx context.Context, wait time.Duration, fn func() error) error {
	deadline := time.Now().Add(wait)
	for {
		err := fn()
		if err == nil || !connectors.Held(err) || !time.Now().Before(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(200*time.Millisecond, time.Until(deadline))):
		}
	}
}
