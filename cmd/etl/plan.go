package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"lockstep/connectors"
	"lockstep/engine"
	"lockstep/planner"
)

func planCommand() *cobra.Command {
	return takesFiles(&cobra.Command{
		Use:   "plan FILE",
		Short: "Show how a pipeline is computed, and whether that fits its table",
		Long: `Show how a pipeline is computed: its steps, the state each keeps, and the plan hash.

When the destination exists, the plan is compared with the one its tables were built
with. A plan that means something else is shown with every difference, and exits with
3, as a run would. Nothing is written, and no input is read.`,
		Example: `  etl plan daily_sales.sql`,
		Args:    takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFile(cmd.Context(), args[0], func(s *session) error { return printPlan(cmd, s) })
		},
	})
}

// fit says how a plan stands to the tables that exist.
type fit struct {
	Change     string              `json:"change"` // none, new, blocked, unknown
	Say        string              `json:"message"`
	Comparison *planner.Comparison `json:"comparison,omitempty"`
	Cost       *engine.Cost        `json:"cost,omitempty"` // of applying it
	blocked    error
}

func printPlan(cmd *cobra.Command, s *session) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if err := s.compile(ctx); err != nil {
		return err
	}
	f, err := s.fit(ctx)
	if err != nil {
		return err
	}
	plan := s.pipeline.Plan
	if asJSON(cmd) {
		printJSON(out, struct {
			Pipeline string `json:"pipeline"`
			Plan     string `json:"plan"`
			Explain  string `json:"explain"`
			Fit      fit    `json:"fit"`
		}{plan.Name, plan.Hash.ID, plan.Explain(), *f})
		if f.blocked != nil {
			return &printed{codeOf(f.blocked)}
		}
		return nil
	}
	if _, err := io.WriteString(out, plan.Explain()); err != nil {
		return err
	}
	if f.blocked == nil {
		fmt.Fprintf(out, "\n%s\n", f.Say)
	}
	return f.blocked
}

// fit compares the compiled plan with the destination. A destination that is not there yet or that
// somebody holds does not keep the plan from being shown.
func (s *session) fit(ctx context.Context) (*fit, error) {
	if !s.destinationExists() {
		return &fit{Change: "new", Say: s.shown + " does not exist yet: the first run creates it"}, nil
	}
	err := s.openDestination(ctx, true)
	var held *connectors.HeldError
	if errors.As(err, &held) {
		return &fit{Change: "unknown", Say: named(held, s.path, s.shown).Error() + ", so it was not compared with the plan"}, nil
	}
	if err != nil {
		return nil, err
	}
	head, blocked, err := s.pipeline.Check(ctx)
	var changed *engine.BlockedError
	switch {
	case err != nil:
		return nil, err
	case errors.As(blocked, &changed):
		return &fit{Change: "blocked", Say: changed.Error(), Comparison: &changed.Comparison, Cost: &changed.Cost, blocked: blocked}, nil
	case blocked != nil:
		return &fit{Change: "blocked", Say: blocked.Error(), blocked: blocked}, nil
	case head.Manifest.Seq == 0:
		return &fit{Change: "new", Say: "the pipeline never ran: the first run creates its tables"}, nil
	}
	return &fit{Change: "none", Say: fmt.Sprintf("no change since batch %d", head.LastBatch)}, nil
}
