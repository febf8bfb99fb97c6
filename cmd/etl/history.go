package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lockstep/checkpoints"
)

func historyCommand() *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use:   "history FILE",
		Short: "List the batches of a pipeline, newest first",
		Long: `List the batches of a pipeline, newest first: when each was committed (UTC), what it
read, and how many rows of the tables it inserted (+), updated (~) and deleted (-).`,
		Example: `  etl history daily_sales.sql
  etl history daily_sales.sql -n 100`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 0 {
				return &usageError{"-n cannot be negative", "0 lists all"}
			}
			return waiting(cmd.Context(), time.Now().Add(readWait), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return printHistory(cmd, s, n) })
			})
		},
	}
	cmd.Flags().IntVarP(&n, "number", "n", 20, "how many to list; 0 lists all")
	return takesFiles(cmd)
}

// change is a line of the history.
type change struct {
	Seq      int64     `json:"seq"`
	Batch    int64     `json:"batch"`
	Kind     string    `json:"kind"`
	When     time.Time `json:"when"`
	Files    int       `json:"files"`
	Read     int64     `json:"read"`
	Rejected int64     `json:"rejected"`
	Inserted int64     `json:"inserted"`
	Updated  int64     `json:"updated"`
	Deleted  int64     `json:"deleted"`
	Lost     int       `json:"files_lost,omitempty"` // of a loss that was accepted
	Plan     string    `json:"plan"`
}

func changeOf(m checkpoints.Manifest) change {
	c := change{Seq: m.Seq, Batch: m.Batch, Kind: m.Kind, When: m.BatchTime, Plan: m.PlanID}
	for _, s := range m.Sources {
		c.Files += s.Splits
		c.Read += s.Read
		c.Rejected += s.Rejected
	}
	for _, l := range m.Losses {
		c.Lost += l.Splits
	}
	for _, s := range m.Sinks {
		c.Inserted += s.Inserted
		c.Updated += s.Updated
		c.Deleted += s.Deleted
	}
	return c
}

func printHistory(cmd *cobra.Command, s *session, n int) error {
	changes, err := s.history(cmd.Context(), n)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	switch {
	case asJSON(cmd):
		printJSON(out, struct {
			Pipeline string   `json:"pipeline"`
			Changes  []change `json:"changes"`
		}{s.script.Name, changes})
	case len(changes) == 0:
		fmt.Fprintf(out, "%s: never ran\n", s.script.Name)
	default:
		t := newTable("batch", "when", "files", "read", "rejected", "+", "~", "-", "kind", "plan")
		t.right(1, 3, 4, 5, 6, 7, 8)
		for _, c := range changes {
			kind := c.Kind
			switch {
			case c.Lost > 0:
				kind += " of " + plural(int64(c.Lost), "file")
			case kind == checkpoints.KindLoss:
				kind += " as before" // of files that were changed once more
			}
			t.add(fmt.Sprint(c.Batch), c.When.Format("2006-01-02 15:04:05"), thousands(int64(c.Files)), thousands(c.Read), thousands(c.Rejected),
				thousands(c.Inserted), thousands(c.Updated), thousands(c.Deleted), kind, short(c.Plan))
		}
		return t.print(out)
	}
	return nil
}

func (s *session) history(ctx context.Context, n int) ([]change, error) {
	changes := []change{}
	exists, err := s.openDestinationOnly(ctx)
	if err != nil || !exists {
		return changes, err
	}
	// The newest one's chain is checked as well: a history with an end cut off must not look whole.
	if _, err := s.dest.Head(ctx, s.script.Name); err != nil {
		return nil, err
	}
	manifests, err := s.dest.History(ctx, s.script.Name, n)
	for _, m := range manifests {
		changes = append(changes, changeOf(m))
	}
	return changes, err
}
