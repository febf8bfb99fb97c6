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

// follow is `run --follow`. A signal is how it ends, so that is no failure: the batch at work was rolled
// back or is committed.
func follow(cmd *cobra.Command, path string, o runOptions) error {
	if o.every <= 0 {
		return &usageError{"--every takes a time above 0", "as in --every 10s"}
	}
	if cmd.Flags().Changed("wait") {
		return &usageError{"--wait is for a run that stops; --follow waits as long as it takes", "leave --wait out"}
	}
	ctx := cmd.Context()
	held := func(err error) { warn(cmd, "%s; looking again every %s", message(err), o.every) }
	err := untilFree(ctx, o.every, held, func() error {
		return withFile(ctx, path, func(s *session) error { return followPipeline(cmd, s, o, held) })
	})
	var signal *stopped
	if err != nil && errors.As(context.Cause(ctx), &signal) && interrupted(err) {
		return nil
	}
	return err
}

// untilFree repeats fn while another program holds the destination, and says so once.
func untilFree(ctx context.Context, every time.Duration, told func(error), fn func() error) error {
	for held := false; ; held = true {
		err := fn()
		if err == nil || !connectors.Held(err) {
			return err
		}
		if !held {
			told(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

func followPipeline(cmd *cobra.Command, s *session, o runOptions, held func(error)) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	s.progress = newProgress(cmd, s.script.Name)
	defer s.progress.clear()
	if err := s.compile(ctx); err != nil {
		return err
	}
	if err := s.openOrMake(cmd); err != nil {
		return err
	}
	s.pipeline.Limit = s.batchLimit(cmd.Flags(), o)
	return s.pipeline.Follow(ctx, o.every, engine.Watcher{
		Batch: func(r engine.Report) {
			s.progress.clear()
			switch {
			case asJSON(cmd):
				printJSONLine(out, r)
			case !isQuiet(cmd):
				fmt.Fprintln(out, line(r))
			}
		},
		Held: func(err error) { held(s.secrets.hide(named(err, s.path, s.shown))) },
		Warn: func(text string) { warn(cmd, "%s: %s", s.script.Name, s.secrets.text(text)) },
	})
}

func following(cmd *cobra.Command) bool {
	on, err := cmd.Flags().GetBool("follow")
	return err == nil && on
}
