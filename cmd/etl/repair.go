package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"lockstep/engine"
	"lockstep/sql"
)

// repair makes the tables what the input gives, or shows what it would do.
func repair(cmd *cobra.Command, s *session, o reconcileOptions) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	s.allRejects = true
	s.progress = newProgress(cmd, s.script.Name)
	defer s.progress.clear()
	if err := s.compile(ctx); err != nil {
		return err
	}
	if !s.destinationExists() {
		return engine.ErrNeverRan
	}
	if err := s.openDestination(ctx, o.dryRun); err != nil {
		return err
	}
	where, err := s.within(ctx, o.where)
	if err != nil {
		return err
	}
	s.pipeline.Limit = s.batchLimit(cmd.Flags(), runOptions{maxBytes: 4 << 30})
	r, err := s.pipeline.Repair(ctx, engine.Options{DryRun: o.dryRun, Yes: o.yes, Where: where, Patience: max(o.wait, leasePatience)})
	if err != nil {
		return manyDeleted(asked(err), "etl reconcile "+s.shell+" --repair")
	}
	s.progress.clear()
	if asJSON(cmd) {
		printJSON(out, struct {
			Pipeline string `json:"pipeline"`
			DryRun   bool   `json:"dry_run"`
			Done     bool   `json:"done"`
			engine.Repair
		}{s.script.Name, o.dryRun, r.Seq > 0, r})
		return nil
	}
	if r.Quiet() && isQuiet(cmd) {
		return nil
	}
	switch {
	case r.Quiet():
		fmt.Fprintf(out, "%s: nothing to repair\n", s.script.Name)
	case o.dryRun:
		fmt.Fprintf(out, "%s: dry run, nothing was written\n", s.script.Name)
	default:
		fmt.Fprintf(out, "%s: repaired\n", s.script.Name)
	}
	for _, sink := range r.Outcomes {
		printOutcome(out, sink, true)
	}
	if r.State {
		fmt.Fprintln(out, "state: not what the input gives; replaced as a whole")
	}
	return nil
}

// within binds a condition on keys for every sink that has such a key; nil without one.
func (s *session) within(ctx context.Context, where string) (map[string]string, error) {
	if where == "" {
		return nil, nil
	}
	out := map[string]string{}
	var errs []error
	for _, sink := range s.pipeline.Plan.Sinks {
		condition, err := s.pipeline.Plan.KeyCondition(ctx, sink, "--where", where)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out[sink.Name] = condition
	}
	if len(out) == 0 {
		var faults sql.Errors
		if errors.As(errs[0], &faults) {
			return nil, &faultyFlag{faults}
		}
		return nil, errs[0]
	}
	return out, nil
}
