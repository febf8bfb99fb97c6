package main

import (
	"bytes"
	"context"
	dbsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/files"
	"lockstep/engine"
	"lockstep/engine/duck"
	"lockstep/sql"
)

type previewOptions struct {
	rows int
	sink string
	all  bool
}

// A preview reads no more than this unless it is told to: of text files whole ones, and at least one.
const (
	previewBytes = 256 << 20
	previewRows  = 2_000_000
)

// previewWait is how long a preview waits for the destination. It can do without.
const previewWait = 2 * time.Second

func previewCommand() *cobra.Command {
	var o previewOptions
	cmd := &cobra.Command{
		Use:   "preview FILE",
		Short: "Run the SELECTs over the input that waits, and write nothing",
		Long: `Run the SELECTs over the input that waits, and write nothing.

Shows the first rows of each sink, and every row that would be rejected with its file,
line and reason. The rows are what the SELECT gives over the waiting files alone: what
the table holds is not part of them. Of much input the first files are taken, up to
256 MB; --all takes all. The destination is only read, to know which files wait. When
it does not exist yet, or another program holds it, all files count as waiting; the
output says so.`,
		Example: `  etl preview daily_sales.sql
  etl preview daily_sales.sql --rows 50 --sink daily_sales
  etl preview daily_sales.sql --all --json`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.rows < 0 {
				return &usageError{"--rows cannot be negative", ""}
			}
			return withFile(cmd.Context(), args[0], func(s *session) error { return preview(cmd, s, o) })
		},
	}
	cmd.Flags().IntVar(&o.rows, "rows", 10, "rows of each sink to show")
	cmd.Flags().StringVar(&o.sink, "sink", "", "show this sink only")
	cmd.Flags().BoolVar(&o.all, "all", false, "cover all waiting input, however much")
	completeFlag(cmd, "sink", namesIn(sinkNames))
	return takesFiles(cmd)
}

// previewed is a preview for --json.
type previewed struct {
	Pipeline string            `json:"pipeline"`
	Notes    []string          `json:"notes,omitempty"` // what keeps a run from doing the same
	Sources  []previewedSource `json:"sources"`
	Sinks    []previewedSink   `json:"sinks"`
	Reasons  []reason          `json:"reasons"`
	Rejects  []reject          `json:"rejects"`
}

type previewedSource struct {
	Source   string `json:"source"`
	Waiting  int    `json:"files_waiting"`
	Covered  int    `json:"files_covered"`
	Partly   bool   `json:"partly,omitempty"` // the last one of them not to its end
	Read     int64  `json:"read"`
	Used     int64  `json:"used"`
	Rejected int64  `json:"rejected"`
}

type previewedSink struct {
	Sink string          `json:"sink"`
	Rows int64           `json:"rows"`
	Show json.RawMessage `json:"sample"`

	table string
	order string
}

func preview(cmd *cobra.Command, s *session, o previewOptions) error {
	ctx := cmd.Context()
	s.allRejects = true
	s.progress = newProgress(cmd, s.script.Name)
	defer s.progress.clear()
	if err := s.compile(ctx); err != nil {
		return err
	}
	sinks, err := s.sinksNamed(o.sink)
	if err != nil {
		return err
	}
	out := previewed{Pipeline: s.script.Name, Sources: []previewedSource{}, Sinks: sinks, Reasons: []reason{}, Rejects: []reject{}}
	position, err := s.reached(ctx, &out)
	if err != nil {
		return err
	}
	s.pipeline.Limit = connectors.Limit{Bytes: previewBytes, Rows: previewRows}
	if o.all {
		s.pipeline.Limit = connectors.Limit{}
	}
	return s.pipeline.Preview(ctx, position, func(p engine.Preview) error {
		s.progress.clear()
		for i := range out.Sinks {
			at := &out.Sinks[i]
			if err := s.duck.QueryRow(ctx, "SELECT count(*) FROM "+duck.Quote(p.Tables[s.sinkAt(at.Sink)]), nil, &at.Rows); err != nil {
				return err
			}
			at.table = p.Tables[s.sinkAt(at.Sink)]
		}
		if err := s.countPreview(ctx, p, &out); err != nil {
			return err
		}
		if asJSON(cmd) {
			for i := range out.Sinks {
				var text bytes.Buffer
				if err := s.printSample(ctx, out.Sinks[i], o.rows, newJSON(&text)); err != nil {
					return err
				}
				out.Sinks[i].Show = text.Bytes()
			}
			printJSON(cmd.OutOrStdout(), out)
			return nil
		}
		return s.printPreview(ctx, cmd.OutOrStdout(), &out, o.rows)
	})
}

// sinksNamed are the sinks to show: all, or the one of that name, with or without its database.
func (s *session) sinksNamed(name string) ([]previewedSink, error) {
	var out []previewedSink
	var names, tables []string
	for _, sink := range s.pipeline.Plan.Sinks {
		names, tables = append(names, sink.Name), append(tables, sink.Table)
		_, table, _ := strings.Cut(sink.Name, ".")
		if name != "" && !strings.EqualFold(name, sink.Name) && !strings.EqualFold(name, table) && !strings.EqualFold(name, sink.Table) {
			continue
		}
		order := make([]string, len(sink.Key))
		for i, k := range sink.Key {
			order[i] = duck.Quote(k)
		}
		out = append(out, previewedSink{Sink: sink.Name, order: strings.Join(order, ", ")})
	}
	if len(out) == 0 {
		hint := "there are " + strings.Join(names, ", ")
		if near := sql.Suggest(name, slices.Concat(names, tables)); near != "" {
			hint = "did you mean " + near + "?"
		}
		return nil, &usageError{fmt.Sprintf("there is no sink %s", name), hint}
	}
	return out, nil
}

func (s *session) sinkAt(name string) int {
	for i, sink := range s.pipeline.Plan.Sinks {
		if sink.Name == name {
			return i
		}
	}
	return -1
}

// reached is what the destination says was read. That it cannot be asked is no reason to show nothing.
func (s *session) reached(ctx context.Context, out *previewed) (checkpoints.Position, error) {
	note := func(format string, args ...any) {
		text := s.secrets.text(fmt.Sprintf(format, args...))
		out.Notes = append(out.Notes, strings.ReplaceAll(text, "\n  ", "; "))
	}
	if !s.destinationExists() {
		note("%s does not exist yet: all files wait", s.shown)
		return checkpoints.Position{}, nil
	}
	err := waiting(ctx, time.Now().Add(previewWait), func() error { return s.openDestination(ctx, true) })
	var held *connectors.HeldError
	var unavailable *connectors.UnavailableError
	switch {
	case errors.As(err, &held):
		note("%s, so what was read before is not known: all files count as waiting", named(held, s.path, s.shown))
		return checkpoints.Position{}, nil
	case errors.As(err, &unavailable):
		note("a run would stop: %s; all files count as waiting", named(unavailable, s.path, s.shown))
		return checkpoints.Position{}, nil
	case err != nil:
		return nil, err
	}
	position, blocked, err := s.pipeline.Reached(ctx)
	var changed *engine.BlockedError
	if errors.As(blocked, &changed) {
		note("a run would stop: the plan changed after batch %d; etl plan %s shows how", changed.Batch, s.shell)
	} else if blocked != nil {
		note("a run would stop: %s", blocked)
	}
	return position, err
}

// countPreview adds what was read of every source, and the rejects.
func (s *session) countPreview(ctx context.Context, p engine.Preview, out *previewed) error {
	for _, source := range p.Sources {
		c := previewedSource{Source: source.Name, Waiting: source.Waiting, Covered: len(source.Ranges)}
		spec := s.spec(source.Name)
		for _, r := range source.Ranges {
			c.Read += r.Rows
			c.Rejected += r.Rejected
			c.Partly = c.Partly || files.Partly(r)
			if why := files.TooMany(spec, r.Rejected, r.Rows); why != "" {
				out.Notes = append(out.Notes, s.secrets.text("a run would stop: "+files.Shown(spec, r.Split)+": "+why))
			}
		}
		c.Used = c.Read - c.Rejected
		if source.Rejects != "" {
			reasons, err := s.reasons(ctx, "SELECT source, reason FROM temp."+duck.Quote(source.Rejects))
			if err != nil {
				return err
			}
			out.Reasons = append(out.Reasons, reasons...)
		}
		out.Sources = append(out.Sources, c)
		if source.Rejects == "" {
			continue
		}
		query := "SELECT source, split_id, line, off, reason, coalesce(raw, '') FROM temp." + duck.Quote(source.Rejects) + " ORDER BY split_id, off"
		err := s.duck.Each(ctx, query, nil, func(rows *dbsql.Rows) error {
			r, err := s.scanReject(rows)
			out.Rejects = append(out.Rejects, r)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) printSample(ctx context.Context, sink previewedSink, rows int, to output) error {
	text := "SELECT * FROM temp." + duck.Quote(sink.table)
	if sink.order != "" {
		text += " ORDER BY " + sink.order
	}
	text += fmt.Sprintf(" LIMIT %d", rows)
	return (&question{duck: s.duck, text: text, body: text}).run(ctx, to)
}

// manyRejects are more than can be taken in at a glance: totals come before them.
const manyRejects = 10

func (s *session) printPreview(ctx context.Context, w io.Writer, p *previewed, rows int) error {
	fmt.Fprintf(w, "preview of %s: nothing is written\n", p.Pipeline)
	for _, c := range p.Sources {
		read := thousands(c.Read) + " read"
		if c.Rejected > 0 {
			read += fmt.Sprintf(" = %s used + %s rejected", thousands(c.Used), thousands(c.Rejected))
		}
		covered := "no file waits"
		switch {
		case c.Partly && c.Covered == 1:
			covered = fmt.Sprintf("the first rows of the first of %s that wait, --all takes all", plural(int64(c.Waiting), "file"))
			if c.Waiting == 1 {
				covered = "the first rows of the 1 file that waits, --all takes all"
			}
		case c.Covered < c.Waiting:
			covered = fmt.Sprintf("the first %s of %s that wait, --all takes all", thousands(int64(c.Covered)), plural(int64(c.Waiting), "file"))
		case c.Waiting > 0:
			covered = fmt.Sprintf("%s that waits", plural(int64(c.Waiting), "file"))
			if c.Waiting > 1 {
				covered = fmt.Sprintf("all %s that wait", plural(int64(c.Waiting), "file"))
			}
		}
		fmt.Fprintf(w, "input    %s: %s · %s\n", c.Source, covered, read)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(w, "note     %s\n", n)
	}
	for _, sink := range p.Sinks {
		fmt.Fprintf(w, "\n%s: %s from this input alone", sink.Sink, plural(sink.Rows, "row"))
		if rows > 0 && sink.Rows > int64(rows) {
			fmt.Fprintf(w, ", the first %s", thousands(int64(rows)))
		}
		fmt.Fprintln(w)
		if sink.Rows == 0 || rows == 0 {
			continue
		}
		if err := s.printSample(ctx, sink, rows, &tableOutput{to: w}); err != nil {
			return err
		}
	}
	if len(p.Rejects) > 0 {
		fmt.Fprintf(w, "\nrejected: %s\n", plural(int64(len(p.Rejects)), "row"))
		if len(p.Rejects) > manyRejects {
			if err := printReasons(w, p.Reasons); err != nil {
				return err
			}
		}
		for _, r := range p.Rejects {
			fmt.Fprintln(w, r.line())
		}
	}
	return nil
}
