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
	engine.BackfillSpec
	id       string // of one to resume; "" when the command line says what to backfill
	dryRun   bool
	maxBytes int64
	wait     time.Duration
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
runs of the pipeline go on meanwhile, and what they commit is not lost. Stopped before
it commits, it has changed nothing. A long one saves now and then what it has read, says
so with its id, and goes on from there when it is started again, or by etl backfill
resume; list shows those that were stopped.`,
		Example: `  etl backfill daily_sales.sql --files 'landing/orders/2024-05-03.csv' --dry-run
  etl backfill daily_sales.sql --where "day = DATE '2024-05-03'"
  etl backfill daily_sales.sql --from 2024-05-03 --to 2024-05-04 --time-zone Europe/Berlin --yes
  etl backfill resume daily_sales.sql 1f0c62ab`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.Files, "files", nil, "the keys of these files, which are taken over as they are now; may be given more than once")
	flags.StringVar(&o.Where, "where", "", "a condition on the key of the table")
	flags.StringVar(&o.From, "from", "", "the event time from which on")
	flags.StringVar(&o.To, "to", "", "the event time up to, and without, which")
	flags.StringVar(&o.Zone, "time-zone", "", "the zone of --from and --to, as in Europe/Berlin")
	flags.StringVar(&o.Sink, "sink", "", "the table that --where or --from is about; else the first of the file, for --from the first with a time in its key")
	o.takesHow(cmd)
	cmd.AddCommand(backfillListCommand(), backfillResumeCommand(), backfillCancelCommand())
	return cmd
}

// takesHow adds the flags that say how, not what.
func (o *backfillOptions) takesHow(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would be read and changed, and write nothing")
	flags.BoolVar(&o.Yes, "yes", false, "do it without asking")
	flags.DurationVar(&o.wait, "wait", 0, "wait this long for another run or program that holds the destination, as in 90s or 5m")
	flags.Int64Var(&o.maxBytes, "max-batch-bytes", 4<<30, "bytes of input files that are folded at once at most; 0 is no bound")
	flags.DurationVar(&o.SaveEvery, "save-every", 30*time.Second, "how often to save what was folded, to go on from when it is stopped; 0 is never")
	takesFiles(quiet(cmd))
}

func (o backfillOptions) run(cmd *cobra.Command, file string) error {
	if o.dryRun && o.Yes {
		return &usageError{"--dry-run and --yes contradict each other", ""}
	}
	return waiting(cmd.Context(), time.Now().Add(o.wait), func() error {
		return withFile(cmd.Context(), file, func(s *session) error { return backfill(cmd, s, o) })
	})
}

// check refuses what does not go together.
func (o backfillOptions) check() error {
	times := o.From != "" || o.To != "" || o.Zone != ""
	given := 0
	for _, is := range []bool{len(o.Files) > 0, o.Where != "", times} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return &usageError{"nothing says what to backfill", "name it by --files, by --where, or by --from, --to and --time-zone"}
	case len(o.Files) > 0 && o.Sink != "":
		return &usageError{"--sink is the table that --where or --from is about: files are of all tables", ""}
	case o.SaveEvery < 0:
		return &usageError{"--save-every takes a time of 0 or more", ""}
	case given > 1:
		return &usageError{"--files, --where and --from with --to are three ways to say it: take one", ""}
	case times && (o.From == "" || o.To == ""):
		return &usageError{"a range of time needs --from and --to", "it is half-open: a day is --from 2024-05-03 --to 2024-05-04"}
	case times && o.Zone == "":
		return &usageError{"--from and --to need --time-zone", "a day in UTC holds 22 hours of the same day in Berlin; write --time-zone Europe/Berlin or UTC"}
	}
	return nil
}

// backfilled is the outcome for --json.
type backfilled struct {
	Pipeline string `json:"pipeline"`
	DryRun   bool   `json:"dry_run"`
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
	if o.id != "" {
		saved, err := s.savedBackfill(ctx, o.id)
		if err != nil {
			return err
		}
		how := o.BackfillSpec
		o.BackfillSpec = saved.Asked
		o.Yes, o.SaveEvery = how.Yes, how.SaveEvery
	} else if len(o.Files) > 0 {
		o.Dir = s.fromFile()
	}
	s.pipeline.Limit = s.batchLimit(cmd.Flags(), runOptions{maxBytes: o.maxBytes})
	if len(o.Files) > 0 {
		o.Named = s.named(o.Files, o.Dir)
	}
	o.Saved = func() { tellSaved(cmd, s, o.ID()) }
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
		return o.agreed(cmd, s.shell)
	}
	if o.dryRun {
		agree = nil
	}
	b, err := s.pipeline.Backfill(ctx, o.BackfillSpec, max(o.wait, leasePatience), agree)
	s.progress.clear()
	for i, w := range b.Warnings {
		b.Warnings[i] = s.secrets.text(w)
		warn(cmd, "%s: %s", s.script.Name, b.Warnings[i])
	}
	if err == nil && o.id != "" && b.Saved == 0 {
		b.Warnings = append(b.Warnings, "nothing of what was saved is of use any more, so that it began anew: the plan, etl, or a file is another one now")
		warn(cmd, "%s: %s", s.script.Name, b.Warnings[len(b.Warnings)-1])
	}
	if err = o.explained(err, s.shell); err != nil {
		if asJSON(cmd) && len(b.Outcomes) > 0 {
			return &partial{err, backfilled{s.script.Name, o.dryRun, false, b}}
		}
		return err
	}
	switch {
	case asJSON(cmd):
		printJSON(out, backfilled{s.script.Name, o.dryRun, b.Seq > 0, b})
	case show && o.dryRun:
		printBackfill(out, s.script.Name, b, "dry run, nothing was written", true)
	case show && b.Seq == 0:
		printBackfill(out, s.script.Name, b, "nothing to write", false)
	case show:
		printBackfill(out, s.script.Name, b, seconds(time.Since(started)), false)
	}
	return nil
}

// fromFile is the working directory, as the folder of the pipeline file knows it: the two may be moved together.
func (s *session) fromFile() string {
	here, err := os.Getwd()
	if err != nil {
		return "." // patterns are as in messages
	}
	if dir, err := filepath.Rel(s.dir, here); err == nil {
		return dir
	}
	return here
}

// named tells which splits some patterns mean: as paths from a folder, as messages write them, or as splits; one
// that was renamed since a run also by its old name.
func (s *session) named(patterns []string, from string) func(connectors.Standing) bool {
	if !filepath.IsAbs(from) {
		from = filepath.Join(s.dir, from)
	}
	means := func(p, shown, split string) bool {
		if files.Matches(filepath.Clean(p), shown) || files.Matches(p, split) {
			return true
		}
		if !filepath.IsAbs(shown) {
			shown = filepath.Join(s.dir, shown)
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(from, p)
		}
		return files.Matches(filepath.Clean(p), shown)
	}
	return func(st connectors.Standing) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			return means(p, st.Shown, st.Split) || st.Moved != "" && means(p, st.Once, st.Moved)
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

// command is what was typed, for a message; file is written for a shell.
func (o backfillOptions) command(file string) string {
	if o.id != "" {
		return "etl backfill resume " + file + " " + o.id
	}
	return "etl backfill " + file + flagsOf(o.BackfillSpec)
}

// flagsOf writes what to backfill as on a command line.
func flagsOf(o engine.BackfillSpec) (text string) {
	add := func(flag, value string) {
		if value != "" {
			text += " --" + flag + " " + connectors.ShellWord(value)
		}
	}
	for _, f := range o.Files {
		add("files", f)
	}
	add("where", o.Where)
	add("from", o.From)
	add("to", o.To)
	add("time-zone", o.Zone)
	add("sink", o.Sink)
	return text
}

// explained makes mistakes of the command line of what is one.
func (o backfillOptions) explained(err error, file string) error {
	var faults sql.Errors
	var nobody *engine.NothingNamedError
	var sink *engine.NoSinkError
	switch {
	case errors.As(err, &faults):
		return &faultyFlag{faults}
	case errors.As(err, &nobody):
		return &usageError{err.Error() + ": " + strings.Join(o.Files, ", "), "etl files " + file + " lists them"}
	case errors.As(err, &sink):
		return &usageError{err.Error(), ""}
	case errors.Is(err, planner.ErrTimes):
		return &usageError{err.Error(), "write a date or a time, as in 2024-05-03 or '2024-05-03 18:00', and a zone as in Europe/Berlin"}
	}
	return asked(err)
}

// faultyFlag is SQL on the command line with faults.
type faultyFlag struct{ faults sql.Errors }

func (e *faultyFlag) Error() string   { return e.faults.Error() }
func (e *faultyFlag) Unwrap() []error { return []error{e.faults, &usageError{e.faults.Error(), ""}} }

// printBackfill shows what a backfill did, or would do: outcome says which, and samples asks for rows.
func printBackfill(w io.Writer, name string, b engine.Backfill, outcome string, samples bool) {
	saved := ""
	if b.Saved > 0 {
		saved = fmt.Sprintf(", %s of them before it was stopped", thousands(int64(b.Saved)))
	}
	fmt.Fprintf(w, "%s: backfill %s · %s of %s read again (%s)%s · %s\n", name, b.ID, thousands(int64(b.Splits)), plural(int64(b.Of), "file"), size(b.Bytes), saved, outcome)
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
			fmt.Fprintf(w, "added    %s · %s\n", oneLine(t.Split), plural(t.Rows, "row"))
		case "removed":
			fmt.Fprintf(w, "removed  %s · had %s\n", oneLine(t.Split), plural(t.Was, "row"))
		default:
			fmt.Fprintf(w, "%s %s · %s, had %s\n", t.State, oneLine(t.Split), plural(t.Rows, "row"), thousands(t.Was))
		}
	}
	for _, o := range b.Outcomes {
		printOutcome(w, o, samples)
	}
}
