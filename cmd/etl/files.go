package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/files"
)

func filesCommand() *cobra.Command {
	var waitingOnly bool
	cmd := &cobra.Command{
		Use:   "files FILE",
		Short: "List the files of every source: read, waiting, changed, gone",
		Long: `List the files of every source: read, waiting, changed, gone.

Of a file that was read the batch, its rows, the rejected among them and its size are
shown. A run stops at a file that was changed after it was read, is empty, or may be one
that was read under another name. Files that were read and are gone are no matter.`,
		Example: `  etl files daily_sales.sql
  etl files daily_sales.sql --waiting`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return waiting(cmd.Context(), time.Now().Add(readWait), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return printFiles(cmd, s, waitingOnly) })
			})
		},
	}
	cmd.Flags().BoolVar(&waitingOnly, "waiting", false, "list only what is not read yet, and what a run would stop at")
	return takesFiles(cmd)
}

// listed is one file of the list.
type listed struct {
	Source   string `json:"source"`
	File     string `json:"file"`
	State    string `json:"state"`
	Batch    *int64 `json:"batch,omitempty"` // that read it last
	Seq      int64  `json:"seq,omitempty"`
	Rows     *int64 `json:"rows,omitempty"` // read so far
	Rejected *int64 `json:"rejected,omitempty"`
	Bytes    int64  `json:"bytes"`
	Was      string `json:"read_as,omitempty"` // its name then
	Problem  string `json:"problem,omitempty"`
}

func (l listed) waits() bool {
	return l.State != files.StateRead && l.State != files.StateGone && l.State != files.StateGivenUp
}

func printFiles(cmd *cobra.Command, s *session, waitingOnly bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	list, blocked, err := s.files(ctx)
	if err != nil {
		return err
	}
	if waitingOnly {
		list = slices.DeleteFunc(list, func(l listed) bool { return !l.waits() })
	}
	if blocked != "" && !asJSON(cmd) {
		warn(cmd, "%s", blocked)
	}
	if asJSON(cmd) {
		printJSON(out, struct {
			Pipeline string   `json:"pipeline"`
			Problem  string   `json:"problem,omitempty"`
			Files    []listed `json:"files"`
		}{s.script.Name, blocked, list})
		return nil
	}
	if len(list) == 0 {
		what := "no files"
		if waitingOnly {
			what = "no file waits"
		}
		fmt.Fprintf(out, "%s: %s\n", s.script.Name, what)
		return nil
	}
	t := newTable("source", "file", "state", "batch", "rows", "rejected", "size")
	t.right(4, 5, 6, 7)
	number := func(n *int64) string {
		if n == nil {
			return ""
		}
		return thousands(*n)
	}
	for _, l := range list {
		state := l.State
		switch {
		case l.Was != "":
			state += " as " + l.Was
		case l.Problem != "":
			state += ": " + l.Problem
		}
		t.add(l.Source, l.File, state, number(l.Batch), number(l.Rows), number(l.Rejected), size(l.Bytes))
	}
	return t.print(out)
}

// files holds the files of every source that is read against the position.
func (s *session) files(ctx context.Context) (list []listed, problem string, err error) {
	exists, err := s.openToRead(ctx)
	if err != nil {
		return nil, "", err
	}
	position, ranges := checkpoints.Position{}, []connectors.FileRange(nil)
	if exists {
		var blocked error
		if position, blocked, err = s.pipeline.Reached(ctx); err == nil {
			ranges, err = s.dest.Ranges(ctx, s.script.Name)
		}
		if err != nil {
			return nil, "", err
		}
		if blocked != nil {
			problem = s.secrets.text("a run would stop: " + message(blocked))
		}
	}
	list = []listed{}
	for _, source := range s.pipeline.Plan.Sources {
		from, ok := s.pipeline.Sources[source.Name].(*files.Source)
		if !ok || source.Reads == 0 {
			continue
		}
		found, err := from.Look(ctx, position[source.Name])
		if err != nil {
			return nil, "", err
		}
		read := readBy(source.Name, ranges)
		for _, f := range found {
			l := listed{Source: source.Name, File: s.shownSplit(source.Name, f.Split), State: f.State, Bytes: f.Size, Problem: s.secrets.text(strings.TrimPrefix(f.Problem, "was changed after it was read: "))}
			if f.Was != "" {
				l.Was = s.shownSplit(source.Name, f.Was)
			}
			if f.Entry != (checkpoints.Split{}) {
				read.enter(&l, f)
			}
			list = append(list, l)
		}
	}
	return list, problem, nil
}

// rangesOf is what was read of a source, by split and by content.
type rangesOf map[string][]connectors.FileRange

func readBy(source string, ranges []connectors.FileRange) rangesOf {
	out := rangesOf{}
	for _, r := range ranges {
		if r.Source == source {
			out[r.Split] = append(out[r.Split], r)
			out["\x00"+r.Content] = append(out["\x00"+r.Content], r)
		}
	}
	return out
}

// enter adds what the position and the history say of a file. After a rename the history has it under
// the name it was read by.
func (read rangesOf) enter(l *listed, f files.Look) {
	l.Seq = f.Entry.Seq
	rows := f.Entry.Rows
	l.Rows = &rows
	own := read[f.Split]
	if len(own) == 0 {
		for _, r := range read["\x00"+f.Entry.Content] {
			if r.Seq == f.Entry.Seq {
				own = read[r.Split]
			}
		}
	}
	var rejected int64
	for _, r := range own {
		rejected += r.Rejected
		if r.Seq == f.Entry.Seq {
			batch := r.Batch
			l.Batch = &batch
		}
	}
	l.Rejected = &rejected
}
