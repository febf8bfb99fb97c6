package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine"
	"lockstep/sql"
)

func acceptLossCommand() *cobra.Command {
	var d deed
	var source, split string
	cmd := &cobra.Command{
		Use:   "accept-loss FILE",
		Short: "Go on past input that is gone or was changed after it was read",
		Long: `Go on past input that is gone or was changed after it was read.

A run stops with exit 4 when a file that was read has other bytes now, or is gone before
all of it was read. accept-loss records that this is known: what was read of the file stays
in the tables, rows that were not read are given up, and the file as it is now is not read.
The record is kept for good: status and history show it, and reconcile says that it cannot
compare what was lost.

--split names the files, as in etl files: a path or a pattern. When a changed file should
count as it is now, use etl backfill instead. It does nothing without --yes but show
what would be accepted.`,
		Example: `  etl accept-loss daily_sales.sql --split 'landing/2024-05-0*.csv' --dry-run
  etl accept-loss daily_sales.sql --source orders --split 2024-05-03.csv --yes`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if split == "" {
				return &usageError{"accept-loss needs --split", "it names the files that are lost: a path or a pattern; etl files FILE lists them"}
			}
			if !doublestar.ValidatePattern(split) {
				return &usageError{"--split " + split + " is not a pattern", "wildcards are *, ?, [a-z], {a,b} and **"}
			}
			return d.run(cmd.Context(), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return acceptLoss(cmd, s, &d, source, split) })
			})
		},
	}
	cmd.Flags().StringVar(&split, "split", "", "the files: a path or a pattern")
	cmd.Flags().StringVar(&source, "source", "", "only files of this source")
	return takesDeed(cmd, &d)
}

// accepted is what is given up, or would be.
type accepted struct {
	Pipeline string         `json:"pipeline"`
	Done     bool           `json:"done"`
	Seq      int64          `json:"seq,omitempty"` // of the change; 0 when nothing was written
	Files    []acceptedFile `json:"files"`
	Before   []string       `json:"accepted_before,omitempty"` // files that were named, with nothing left to accept
}

type acceptedFile struct {
	Source string `json:"source"`
	File   string `json:"file"`
	Why    string `json:"why"`
	Read   int64  `json:"read"`
	Unread int64  `json:"unread"`
}

func acceptLoss(cmd *cobra.Command, s *session, d *deed, source, split string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if err := s.compile(ctx); err != nil {
		return err
	}
	if source != "" && !s.reads(source) {
		return &usageError{"the pipeline reads no source " + source, s.sourceHint(source)}
	}
	if !s.destinationExists() {
		return engine.ErrNothingRead
	}
	if err := s.openDestination(ctx, !d.yes || d.dryRun); err != nil {
		return err
	}
	result := &accepted{Pipeline: s.script.Name, Files: []acceptedFile{}}
	var others []string // lost too, but not named
	m, err := s.pipeline.AcceptLoss(ctx, func(all []engine.SourceLosses) ([]engine.SourceLosses, error) {
		result.Files, result.Before, others = []acceptedFile{}, nil, nil
		var chosen []engine.SourceLosses
		for _, of := range all {
			one := engine.SourceLosses{Source: of.Source}
			for _, l := range of.Losses {
				named := (source == "" || strings.EqualFold(of.Source, source)) && namedBy(split, l)
				switch known := l.Accepted && l.Reason == ""; {
				case named && known:
					result.Before = append(result.Before, s.secrets.text(l.Shown))
				case !named && !known:
					others = append(others, l.Shown)
				}
				if !named || l.Reason == "" {
					continue
				}
				one.Losses = append(one.Losses, l)
				result.Files = append(result.Files, acceptedFile{of.Source, s.secrets.text(l.Shown), l.Reason, l.Next.Rows, l.Unread})
			}
			if len(one.Losses) > 0 {
				chosen = append(chosen, one)
			}
		}
		if len(chosen) == 0 {
			return nil, nil
		}
		if (!d.yes || d.dryRun) && !asJSON(cmd) {
			fmt.Fprintf(out, "loss of %s: nothing is written\n", s.script.Name)
			result.print(out)
		}
		agreed, err := d.agreed()
		if err != nil || !agreed {
			return nil, err
		}
		return chosen, nil
	})
	if err == nil {
		result.Done, result.Seq = m.Seq > 0, m.Seq
	}
	switch {
	case err != nil && asJSON(cmd) && len(result.Files) > 0:
		return &partial{err, result}
	case err != nil:
		return err
	case len(result.Files) == 0 && len(result.Before) > 0 && !asJSON(cmd):
		fmt.Fprintf(out, "%s: accepted already, nothing was written: %s\n", s.script.Name, strings.Join(result.Before, ", "))
		sayStillLost(out, s, others)
	case len(result.Files) == 0 && len(result.Before) == 0 && len(others) > 0:
		return &usageError{fmt.Sprintf("no file that is lost is named %s", split), "lost are " + s.secrets.text(strings.Join(others, ", "))}
	case asJSON(cmd):
		printJSON(out, result)
	case len(result.Files) == 0:
		fmt.Fprintf(out, "%s: nothing to accept: no file that was read was changed, or is gone with unread rows\n", s.script.Name)
	case result.Done:
		fmt.Fprintf(out, "%s: accepted after batch %d\n", s.script.Name, m.Batch)
		result.print(out)
		sayStillLost(out, s, others)
	}
	return nil
}

func sayStillLost(w io.Writer, s *session, files []string) {
	for _, f := range files {
		fmt.Fprintf(w, "still lost: %s\n", s.secrets.text(f))
	}
}

func (r *accepted) print(w io.Writer) {
	for _, f := range r.Files {
		given := ""
		if f.Unread > 0 {
			given = fmt.Sprintf(", %s given up", plural(f.Unread, "unread row"))
		}
		fmt.Fprintf(w, "%s: %s read stay in the tables%s\n  it %s\n", f.File, plural(f.Read, "row"), given, f.Why)
	}
}

// namedBy tells whether a pattern is about a split: its id, the path that messages show, or its base name.
func namedBy(pattern string, l connectors.Loss) bool {
	for _, name := range []string{l.Split, l.Shown, filepath.Base(l.Split)} {
		if ok, err := doublestar.Match(pattern, name); name == pattern || ok && err == nil {
			return true
		}
	}
	return false
}

// reads tells whether the pipeline reads a source of that name.
func (s *session) reads(name string) bool {
	for _, source := range s.pipeline.Plan.Sources {
		if source.Reads > 0 && strings.EqualFold(source.Name, name) {
			return true
		}
	}
	return false
}

func (s *session) sourceHint(name string) string {
	var names []string
	for _, source := range s.pipeline.Plan.Sources {
		names = append(names, source.Name)
	}
	if near := sql.Suggest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "it reads " + strings.Join(names, ", ")
}

// lossStatus is a loss that was accepted, as status shows it.
type lossStatus struct {
	Batch  int64     `json:"batch"` // after which
	When   time.Time `json:"when"`
	Source string    `json:"source"`
	Files  int       `json:"files"`
	Read   int64     `json:"read"`
	Unread int64     `json:"unread"`
	Open   bool      `json:"open"` // some of the source is still lost; false: a backfill took it over as it is
}

// lossesOf lists losses; still are those of a source that the position has, nil when that is not known.
func lossesOf(manifests []checkpoints.Manifest, still map[string]int) []lossStatus {
	var out []lossStatus
	for _, m := range manifests {
		for _, source := range slices.Sorted(maps.Keys(m.Losses)) {
			l := m.Losses[source]
			if l.Splits == 0 { // accepted again: counted where it was accepted first
				continue
			}
			out = append(out, lossStatus{m.Batch, m.BatchTime, source, l.Splits, l.Read, l.Unread, still == nil || still[source] > 0})
		}
	}
	return out
}

func (l lossStatus) line(now time.Time) string {
	given := ""
	if l.Unread > 0 {
		given = fmt.Sprintf(", %s given up", plural(l.Unread, "unread row"))
	}
	rows, since := plural(l.Read, "row"), ""
	if l.Open {
		rows += " that nothing can check"
	} else {
		since = " · taken over as it is since"
	}
	return fmt.Sprintf("%s: %s, %s%s · accepted after batch %s, %s%s", l.Source, plural(int64(l.Files), "file"), rows, given, thousands(l.Batch), ago(now.Sub(l.When)), since)
}
