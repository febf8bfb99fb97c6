package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine"
	"lockstep/sql"
)

func statusCommand() *cobra.Command {
	return takesFiles(quiet(&cobra.Command{
		Use:   "status [PATH]…",
		Short: "Show what pipelines have read, what waits, and what is wrong",
		Long: `Show what pipelines have read, what waits, and what is wrong.

PATH is a pipeline file, or a folder for the .sql files in it; the default is the
working directory. Of several there is one line each. Nothing is changed. A destination that a run holds
is waited for, up to 5 seconds. --quiet leaves out the pipelines that are well.`,
		Example: `  etl status
  etl status daily_sales.sql --json`,
		Args: takes("[PATH]…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			paths, several, err := pipelineFiles(args)
			if err != nil {
				return err
			}
			return printStatus(cmd, paths, several)
		},
	}))
}

// The states of a pipeline.
const (
	stateOK      = "ok"
	stateNew     = "never ran"
	stateBlocked = "blocked" // a run would stop before it reads
	stateInput   = "input"   // a run would stop at its input
	stateHeld    = "held"
	stateFaulty  = "faulty" // the pipeline file is
	stateUnknown = "unknown"
)

// status is one pipeline's screen.
type status struct {
	Pipeline string         `json:"pipeline"`
	File     string         `json:"file"`
	State    string         `json:"state"`
	Problem  string         `json:"problem,omitempty"`
	Batch    *int64         `json:"batch,omitempty"`
	When     *time.Time     `json:"when,omitempty"`
	Plan     string         `json:"plan,omitempty"`
	Inputs   []inputStatus  `json:"inputs,omitempty"`
	Outputs  []outputStatus `json:"outputs,omitempty"`
	Rejected int64          `json:"rejected"`         // by the last batch
	Losses   []lossStatus   `json:"losses,omitempty"` // that were accepted
	Segments int            `json:"segments"`
	Bytes    int64          `json:"state_bytes"`
}

type inputStatus struct {
	Source  string `json:"source"`
	Files   int    `json:"files_read"`
	Rows    int64  `json:"rows_read"`
	Waiting *int   `json:"files_waiting"` // null when it could not be told
	Column  string `json:"event_time,omitempty"`
	Newest  string `json:"newest,omitempty"` // event time of the rows read
}

type outputStatus struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

func printStatus(cmd *cobra.Command, paths []string, several bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	until := time.Now().Add(readWait)
	screens, code := make([]status, 0, len(paths)), exitOK
	for _, path := range paths {
		st := status{File: path, Pipeline: path}
		err := waiting(ctx, until, func() error {
			return withFile(ctx, path, func(s *session) error { return st.read(ctx, s) })
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			st.failed(err)
			code = worse(code, codeOf(err))
		}
		screens = append(screens, st)
		switch {
		case asJSON(cmd), isQuiet(cmd) && (st.State == stateOK || st.State == stateNew):
		case several:
			st.printLine(out, time.Now())
		default:
			st.print(out, time.Now())
		}
	}
	if asJSON(cmd) {
		printJSON(out, struct {
			Pipelines []status `json:"pipelines"`
		}{screens})
	}
	if code != exitOK {
		return &printed{code}
	}
	return nil
}

// read fills the screen. An error says that the status could not be read, not that it is bad.
func (st *status) read(ctx context.Context, s *session) error {
	st.Pipeline = s.script.Name
	exists, err := s.openToRead(ctx)
	if err != nil {
		return err
	}
	found := engine.Status{Head: connectors.Head{Fresh: true}}
	if exists {
		found, err = s.pipeline.Status(ctx)
		if file, ok := s.dest.(interface{ Refused() error }); ok && err == nil {
			found.Blocked = errors.Join(file.Refused(), found.Blocked)
		}
	} else {
		found.Waiting, found.Input, err = s.pipeline.Ask(ctx, nil)
	}
	if err != nil {
		return err
	}
	st.State = stateNew
	var changed *engine.BlockedError
	if errors.As(found.Blocked, &changed) {
		st.Problem = fmt.Sprintf("the plan changed after batch %d; etl plan %s shows how", changed.Batch, st.File)
	} else if problem := errors.Join(found.Blocked, found.Input); problem != nil {
		s.dated(ctx, problem)
		withCommands(problem, s.shell)
		st.Problem = s.secrets.text(problem.Error())
	}
	st.Segments, st.Bytes = found.Segments, found.Bytes
	if !found.NeverRan() {
		st.State = stateOK
		m := found.Head.Manifest
		st.Batch, st.Plan = &m.Batch, m.PlanID
		if !m.BatchTime.IsZero() { // a damaged manifest may not tell
			st.When = &m.BatchTime
		}
		for _, c := range m.Sources {
			st.Rejected += c.Rejected
		}
	}
	switch {
	case found.Blocked != nil:
		st.State = stateBlocked
	case found.Input != nil:
		st.State = stateInput
	}
	st.count(s, found)
	if exists {
		losses, err := s.dest.OfKind(ctx, s.script.Name, checkpoints.KindLoss)
		if err != nil {
			return err
		}
		st.Losses = lossesOf(losses, found.Lost)
	}
	return nil
}

// count is what was read and written, from the manifest, and what waits, as far as it could be told.
func (st *status) count(s *session, found engine.Status) {
	m := found.Head.Manifest
	for _, source := range s.pipeline.Plan.Sources {
		if source.Reads == 0 {
			continue
		}
		in := inputStatus{Source: source.Name, Files: m.Position[source.Name].Splits, Rows: m.Position[source.Name].Rows}
		if n, ok := found.Waiting[source.Name]; ok {
			in.Waiting = &n
		}
		if t := found.Times[source.Name]; t.Some {
			in.Column, in.Newest = source.EventTime, eventTime(t.Max)
		}
		st.Inputs = append(st.Inputs, in)
	}
	for _, sink := range s.pipeline.Plan.Sinks {
		if c, ok := m.Sinks[sink.Name]; ok {
			st.Outputs = append(st.Outputs, outputStatus{sink.Name, c.Rows})
		}
	}
}

// eventTime shows microseconds since 1970.
func eventTime(us int64) string {
	switch us {
	case math.MaxInt64:
		return "infinity"
	case math.MinInt64:
		return "-infinity"
	}
	return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05.999999")
}

func (st *status) failed(err error) {
	st.State, st.Problem = stateUnknown, err.Error()
	var faults sql.Errors
	var held *connectors.HeldError
	switch {
	case errors.As(err, &faults):
		st.State, st.Problem = stateFaulty, fmt.Sprintf("%s; etl check %s shows them", plural(int64(len(faults)), "fault"), st.File)
	case errors.As(err, &held):
		st.State = stateHeld
	}
}

// head is the first line of a screen, and the lines of the problem that do not fit there.
func (st *status) head(now time.Time) (head, rest string) {
	problem, rest, _ := strings.Cut(st.Problem, "\n")
	head = st.Pipeline + "  " + st.State
	switch {
	case st.State == stateHeld:
		head = st.Pipeline + "  " + problem
	case problem != "":
		head += ": " + problem
	}
	if st.Batch != nil {
		head += fmt.Sprintf(" · batch %s", thousands(*st.Batch))
	}
	if st.When != nil {
		head += ", " + ago(now.Sub(*st.When))
	}
	return head, rest
}

// printLine is the screen as one line.
func (st *status) printLine(w io.Writer, now time.Time) {
	line, _ := st.head(now)
	if len(st.Inputs) > 0 {
		waiting, known := 0, true
		for _, in := range st.Inputs {
			if known = known && in.Waiting != nil; known {
				waiting += *in.Waiting
			}
		}
		if known {
			line += fmt.Sprintf(" · %s waiting", thousands(int64(waiting)))
		}
	}
	if st.Rejected > 0 {
		line += fmt.Sprintf(" · %s rejected", thousands(st.Rejected))
	}
	lost := 0
	for _, l := range st.Losses {
		if l.Open {
			lost += l.Files
		}
	}
	if lost > 0 {
		line += fmt.Sprintf(" · %s lost", plural(int64(lost), "file"))
	}
	if len(st.Outputs) > 0 {
		var rows int64
		for _, o := range st.Outputs {
			rows += o.Rows
		}
		line += " · " + plural(rows, "row")
	}
	fmt.Fprintln(w, line)
}

func (st *status) print(w io.Writer, now time.Time) {
	head, rest := st.head(now)
	if st.Batch != nil {
		head += " · plan " + short(st.Plan)
	}
	fmt.Fprintln(w, head)
	for _, in := range st.Inputs {
		waiting := "what waits is not known"
		if in.Waiting != nil {
			waiting = thousands(int64(*in.Waiting)) + " waiting"
		}
		newest := ""
		if in.Newest != "" {
			newest = ", newest " + in.Column + " " + in.Newest
		}
		fmt.Fprintf(w, "input    %s: %s read, %s · %s%s\n", in.Source, plural(int64(in.Files), "file"), waiting, plural(in.Rows, "row"), newest)
	}
	for _, o := range st.Outputs {
		fmt.Fprintf(w, "output   %s: %s\n", o.Table, plural(o.Rows, "row"))
	}
	for _, l := range st.Losses {
		fmt.Fprintf(w, "lost     %s\n", l.line(now))
	}
	if st.Batch != nil {
		fmt.Fprintf(w, "quality  %s rejected (batch %s)\n", thousands(st.Rejected), thousands(*st.Batch))
		fmt.Fprintf(w, "state    %s in %s\n", size(st.Bytes), plural(int64(st.Segments), "segment"))
	}
	for line := range strings.Lines(rest) {
		fmt.Fprintf(w, "         %s\n", strings.TrimRight(line, "\n"))
	}
}
