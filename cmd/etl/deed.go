package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// deed is how the commands are told that change what is recorded of a pipeline, outside of a run.
type deed struct {
	dryRun bool
	yes    bool
	wait   time.Duration
}

// takesDeed adds the flags of a command that shows what it would do, and does it only when told so.
func takesDeed(cmd *cobra.Command, d *deed) *cobra.Command {
	cmd.Flags().BoolVar(&d.dryRun, "dry-run", false, "show what would be done, and do nothing")
	cmd.Flags().BoolVar(&d.yes, "yes", false, "do it")
	return takesWait(cmd, d)
}

func takesWait(cmd *cobra.Command, d *deed) *cobra.Command {
	cmd.Flags().DurationVar(&d.wait, "wait", 0, "wait this long for another run or program that holds the destination, as in 90s or 5m")
	return takesFiles(cmd)
}

// agreed tells whether to go on after what would be done was shown.
func (d *deed) agreed() (bool, error) {
	switch {
	case d.dryRun:
		return false, nil
	case d.yes:
		return true, nil
	}
	return false, &usageError{"nothing was done: this cannot be undone", "to do it, add --yes"}
}

// run repeats fn while another program holds the destination.
func (d *deed) run(ctx context.Context, fn func() error) error {
	return waiting(ctx, time.Now().Add(d.wait), fn)
}
