package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"lockstep/connectors"
	"lockstep/connectors/files"
	"lockstep/engine"
	"lockstep/planner"
	"lockstep/sql"
)

type backfillOptions struct {
	sink, where    string
	from, to, zone string
	files          []string
	dryRun, yes    bool
	wait           time.Duration
}

func backfillCommand() *cobra.Command {
	var o backfillOptions
	cmd := &cobra.Command{
		Use:   "backfill FILE",
		Short: "Make a part of the tables what it would be had the input always been what it is now",
		Long: `Make a part of the tables what it would be had the input always been what it is now.

For after input was corrected: files that were read and then changed, replaced or
removed, old files that turned up. The part is named by one of

  --files PATTERN     what these files hold now, and held when they were read. They are
                      taken over as they are. New files are left to the next run unless
                      they are named.
  --where PREDICATE   keys of a table, as in "day = DATE '2024-05-03'"
  --from A --to B --time-zone Z
                      keys of rows with an event time from A up to, and without, B

All input of these keys is read again and computed anew, and compared with the tables:
rows that differ are written, keys that are no more are deleted, all others stay as they
are. Where a source has WATERMARK FOR, files that can have no such rows are not read.
Where a part cannot be computed by itself, everything is; --dry-run says so, and why.

It shows what it would do and asks; without a terminal it needs --yes. On Postgres,
runs of the pipeline go on meanwhile, and what they commit is not lost. Interrupted
before it commits, it has changed nothing: start it again.`,
		Example: `  etl backfill daily_sales.sql --files 'landing/orders/2024-05-03.csv' --dry-run
  etl backfill daily_sales.sql --where "day = DATE '2024-05-03'"
  etl backfill daily_sales.sql --from 2024-05-03 --to 2024-05-04 --time-zone Europe/Berlin --yes`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return waiting(cmd.Context(), time.Now().Add(o.wait), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return backfill(cmd, s, o) })
			})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.files, "files", nil, "the keys of these files, which are taken over as they are now; may be given more than once")
	flags.StringVar(&o.where, "where", "", "a condition on the key of the table")
	flags.StringVar(&o.from, "from", "", "the event time from which on")
	flags.StringVar(&o.to, "to", "", "the event time up to, and without, which")
	flags.StringVar(&o.zone, "time-zone", "", "the zone of --from and --to, as in Europe/Berlin")
	flags.StringVar(&o.sink, "sink", "", "the table that --where or --from is about; else the first of the file")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would be read and changed, and write nothing")
	flags.BoolVar(&o.yes, "yes", false, "do it without asking")
	flags.DurationVar(&o.wait, "wait", 0, "wait this long for another run or program that holds the destination, as in 90s or 5m")
	return takesFiles(quiet(cmd))
}

// check refuses what does not go together.
func (o backfillOptions) check() error {
	times := o.from != "" || o.to != "" || o.zone != ""
	given := 0
	for _, is := range []bool{len(o.files) > 0, o.where != "", times} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return &usageError{"nothing says what to backfill", "name it by --files, by --where, or by --from, --to and --time-zone"}
	case given > 1:
		return &usageError{"--files, --where and --from with --to are three ways to say it: take one", ""}
	case times && (o.from == "" || o.to == ""):
		return &usageError{"a range of time needs --from and --to", "it is half-open: a day is --from 2024-05-03 --to 2024-05-04"}
	case times && o.zone == "":
		return &usageError{"--from and --to need --time-zone", "a day in UTC holds 22 hours of the same day in Berlin; write --time-zone Europe/Berlin or UTC"}
	case o.dryRun && o.yes:
		return &usageError{"--dry-run and --yes contradict each other", ""}
	}
	return nil
}

// backfilled is the outcome for --json.
type backfilled struct {
	Pipeline string `json:"pipeline"`
	Done     bool   `json:"done"`
	engine.Backfill
}

func backfill(cmd *cobra.Command, s *session, o backfillOptions) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
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
	s.pipeline.Limit = s.batchLimit(cmd.Flags(), runOptions{maxBytes: 4 << 30})
	spec := engine.BackfillSpec{Sink: o.sink, Where: o.where, From: o.from, To: o.to, Zone: o.zone, Yes: o.yes}
	if len(o.files) > 0 {
		spec.Named = s.named(o.files)
	}
	started := time.Now()
	show := !asJSON(cmd) && !isQuiet(cmd)
	agree := func(b engine.Backfill) error {
		s.progress.clear()
		if b.Quiet() {
			return nil
		}
		if show {
			printBackfill(out, s.script.Name, b, "nothing is written yet", true)
		}
		return o.agreed(cmd, s.script.File)
	}
	if o.dryRun {
		agree = nil
	}
	b, err := s.pipeline.Backfill(ctx, spec, max(o.wait, leasePatience), agree)
	s.progress.clear()
	for i, w := range b.Warnings {
		b.Warnings[i] = s.secrets.text(w)
		warn(cmd, "%s: %s", s.script.Name, b.Warnings[i])
	}
	if err = o.explained(err); err != nil {
		if asJSON(cmd) && len(b.Outcomes) > 0 {
			return &partial{err, backfilled{s.script.Name, false, b}}
		}
		return err
	}
	switch {
	case asJSON(cmd):
		printJSON(out, backfilled{s.script.Name, b.Seq > 0, b})
	case show && o.dryRun:
		printBackfill(out, s.script.Name, b, "dry run, nothing was written", true)
	case show && b.Seq == 0:
		printBackfill(out, s.script.Name, b, "nothing to write", false)
	case show:
		printBackfill(out, s.script.Name, b, seconds(time.Since(started)), false)
	}
	return nil
}

// named tells which splits some patterns mean: as paths from here, as messages write them, or as splits.
func (s *session) named(patterns []string) func(connectors.Standing) bool {
	here, _ := os.Getwd() // without one, patterns are as in messages
	return func(st connectors.Standing) bool {
		path := st.Shown
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.dir, path)
		}
		return slices.ContainsFunc(patterns, func(p string) bool {
			if files.Matches(filepath.Clean(p), st.Shown) || files.Matches(p, st.Split) {
				return true
			}
			if !filepath.IsAbs(p) {
				p = filepath.Join(here, p)
			}
			return files.Matches(filepath.Clean(p), path)
		})
	}
}

// agreed asks.
func (o backfillOptions) agreed(cmd *cobra.Command, file string) error {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || asJSON(cmd) || isQuiet(cmd) {
		return &usageError{"nothing was written: there is nobody to ask", "to write it: " + o.command(file) + " --yes\n  to see it: " + o.command(file) + " --dry-run"}
	}
	fmt.Fprint(cmd.ErrOrStderr(), "Write this? [y/N] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return &usageError{"nothing was written", ""}
	}
	return nil
}

// command is what was typed, for a message.
func (o backfillOptions) command(file string) string {
	text := "etl backfill " + shellWord(file)
	add := func(flag, value string) {
		if value != "" {
			text += " --" + flag + " " + shellWord(value)
		}
	}
	for _, f := range o.files {
		add("files", f)
	}
	add("where", o.where)
	add("from", o.from)
	add("to", o.to)
	add("time-zone", o.zone)
	add("sink", o.sink)
	return text
}

// explained makes mistakes of the command line of what is one.
func (o backfillOptions) explained(err error) error {
	var faults sql.Errors
	var nobody *engine.NothingNamedError
	var sink *engine.NoSinkError
	switch {
	case errors.As(err, &faults):
		return &faultyFlag{faults}
	case errors.As(err, &nobody):
		return &usageError{err.Error() + ": " + strings.Join(o.files, ", "), "etl files FILE lists them"}
	case errors.As(err, &sink):
		return &usageError{err.Error(), ""}
	case errors.Is(err, planner.ErrTimes):
		return &usageError{err.Error(), "write a date or a time, as in 2024-05-03 or '2024-05-03 18:00', and a zone as in Europe/Berlin"}
	}
	return err
}

// faultyFlag is SQL on the command line with faults.
type faultyFlag struct{ faults sql.Errors }

func (e *faultyFlag) Error() string   { return e.faults.Error() }
func (e *faultyFlag) Unwrap() []error { return []error{e.faults, &usageError{e.faults.Error(), ""}} }

// printBackfill shows what a backfill did, or would do: outcome says which, and samples asks for rows.
func printBackfill(w io.Writer, name string, b engine.Backfill, outcome string, samples bool) {
	fmt.Fprintf(w, "%s: backfill · %s of %s read again (%s) · %s\n", name, thousands(int64(b.Splits)), plural(int64(b.Of), "file"), size(b.Bytes), outcome)
	if b.Whole != "" {
		fmt.Fprintf(w, "everything is computed again: %s\n", b.Whole)
	}
	if b.Keys != "" {
		more := ""
		if b.Widened {
			more = ", with their rows outside of these times"
		}
		fmt.Fprintf(w, "keys     %s%s\n", b.Keys, more)
	}
	for _, t := range b.Taken {
		switch t.State {
		case "added":
			fmt.Fprintf(w, "added    %s · %s\n", t.Split, plural(t.Rows, "row"))
		case "removed":
			fmt.Fprintf(w, "removed  %s · had %s\n", t.Split, plural(t.Was, "row"))
		default:
			fmt.Fprintf(w, "%s %s · %s, had %s\n", t.State, t.Split, plural(t.Rows, "row"), thousands(t.Was))
		}
	}
	for _, o := range b.Outcomes {
		printOutcome(w, o, samples)
	}
}
