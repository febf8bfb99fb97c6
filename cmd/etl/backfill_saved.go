package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockstep/connectors"
	"lockstep/engine"
)

// What was saved of backfills that were stopped.

func backfillListCommand() *cobra.Command {
	return takesFiles(&cobra.Command{
		Use:   "list FILE",
		Short: "List the backfills that were stopped and can be resumed",
		Long: `List the backfills that were stopped and can be resumed: what they are of, how much of
their input was folded, and when that was saved.`,
		Example: `  etl backfill list daily_sales.sql`,
		Args:    takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return waiting(cmd.Context(), time.Now().Add(readWait), func() error {
				return withName(cmd.Context(), args[0], func(s *session) error { return listBackfills(cmd, s) })
			})
		},
	})
}

func listBackfills(cmd *cobra.Command, s *session) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	exists, err := s.openDestinationOnly(ctx)
	if err != nil {
		return err
	}
	saved := []engine.SavedBackfill{}
	if exists {
		found, err := engine.SavedBackfills(ctx, s.dest, s.script.Name, version())
		if err != nil {
			return err
		}
		saved = append(saved, found...)
	}
	switch {
	case asJSON(cmd):
		printJSON(out, struct {
			Pipeline  string                 `json:"pipeline"`
			Backfills []engine.SavedBackfill `json:"backfills"`
		}{s.script.Name, saved})
	case len(saved) == 0:
		fmt.Fprintf(out, "%s: no backfill was stopped that could be resumed\n", s.script.Name)
	}
	for _, b := range saved {
		if !asJSON(cmd) {
			printSaved(out, s, b)
		}
	}
	return nil
}

func printSaved(w io.Writer, s *session, b engine.SavedBackfill) {
	command := func(verb, does string) {
		fmt.Fprintf(w, "  etl backfill %s %s %s    %s\n", verb, s.shell, b.ID, does)
	}
	if b.Damaged {
		fmt.Fprintf(w, "%s: backfill %s · what was saved of it is damaged\n", s.script.Name, b.ID)
		command("cancel", "forgets it; nothing of it is in the tables")
		return
	}
	from := ""
	if len(b.Asked.Files) > 0 && b.Asked.Dir != "." {
		from = " (from " + connectors.ShellWord(b.Asked.Dir) + ")"
	}
	fmt.Fprintf(w, "%s: backfill %s ·%s%s · %s of %s folded (%s of %s) · saved %s\n", s.script.Name, b.ID, oneLine(flagsOf(b.Asked)), from,
		thousands(int64(b.Files)), plural(int64(b.FilesOf), "file"), size(b.Bytes), size(b.BytesOf), ago(time.Since(b.At)))
	if b.Fits {
		command("resume", "goes on from there")
	} else {
		command("resume", "begins it anew: the plan, or etl, is another one now")
	}
	command("cancel", "forgets it; nothing of it is in the tables")
}

func backfillResumeCommand() *cobra.Command {
	var o backfillOptions
	cmd := &cobra.Command{
		Use:   "resume FILE ID",
		Short: "Go on with a backfill that was stopped",
		Long: `Go on with a backfill that was stopped, from what was saved of it. The ID is what the
backfill said when it saved first; etl backfill list FILE shows it.

It does what the command does that was stopped. What was saved is used as far as the plan,
the range and the files are what they were; otherwise the backfill begins anew.`,
		Example: `  etl backfill resume daily_sales.sql 1f0c62ab
  etl backfill resume daily_sales.sql 1f0c62ab --yes`,
		Args: takes("FILE", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[1]
			return o.run(cmd, args[0])
		},
	}
	o.takesHow(cmd)
	return cmd
}

func backfillCancelCommand() *cobra.Command {
	var d deed
	cmd := &cobra.Command{
		Use:   "cancel FILE ID",
		Short: "Forget what was saved of a backfill that was stopped",
		Long: `Forget what was saved of a backfill that was stopped. Nothing else of it was written: the
tables are what they were before it.`,
		Example: `  etl backfill cancel daily_sales.sql 1f0c62ab`,
		Args:    takes("FILE", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.run(cmd.Context(), func() error {
				return withName(cmd.Context(), args[0], func(s *session) error { return cancelBackfill(cmd, s, args[1]) })
			})
		},
	}
	return takesWait(cmd, &d)
}

func cancelBackfill(cmd *cobra.Command, s *session, id string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	exists, err := s.openAlone(ctx, false)
	if err != nil {
		return err
	}
	if !exists {
		return s.noBackfill(id)
	}
	if _, err := s.foundBackfill(ctx, id); err != nil {
		return err
	}
	if err := engine.CancelBackfill(ctx, s.dest, s.script.Name, id); err != nil {
		return err
	}
	if asJSON(cmd) {
		printJSON(out, struct {
			Pipeline string `json:"pipeline"`
			ID       string `json:"id"`
			Done     bool   `json:"done"`
		}{s.script.Name, id, true})
		return nil
	}
	fmt.Fprintf(out, "%s: backfill %s is forgotten; nothing of it was written\n", s.script.Name, id)
	return nil
}

func (s *session) noBackfill(id string) error {
	return &usageError{"there is no backfill " + id + " of " + s.script.Name + " to go on with", "to see those that were stopped: etl backfill list " + s.shell}
}

// foundBackfill looks for what was saved of a backfill.
func (s *session) foundBackfill(ctx context.Context, id string) (engine.SavedBackfill, error) {
	all, err := engine.SavedBackfills(ctx, s.dest, s.script.Name, version())
	if err != nil {
		return engine.SavedBackfill{}, err
	}
	at := slices.IndexFunc(all, func(b engine.SavedBackfill) bool { return b.ID == id })
	if at < 0 {
		return engine.SavedBackfill{}, s.noBackfill(id)
	}
	return all[at], nil
}

// savedBackfill is foundBackfill of one that can be gone on with.
func (s *session) savedBackfill(ctx context.Context, id string) (engine.SavedBackfill, error) {
	b, err := s.foundBackfill(ctx, id)
	if err == nil && b.Damaged {
		err = &usageError{"what was saved of backfill " + id + " is damaged, so that nobody knows what it was of; nothing of it was written",
			"start it again as it was started; to forget what was saved: etl backfill cancel " + s.shell + " " + id}
	}
	return b, err
}

// tellSaved says how a backfill is gone on with, once it can be.
func tellSaved(cmd *cobra.Command, s *session, id string) {
	if isQuiet(cmd) {
		return
	}
	resume := "etl backfill resume " + s.shell + " " + id
	s.progress.aside(func() {
		if logsJSON(cmd) {
			jsonLog(cmd.ErrOrStderr()).Info(s.script.Name+": backfill "+id+" has saved what it folded", "id", id, "resume", resume)
			return
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: backfill %s has saved what it folded; when it is stopped, this goes on with it:\n  %s\n", s.script.Name, id, resume)
	})
}
