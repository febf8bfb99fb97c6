package main

import (
	"bytes"
	"context"
	dbsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/postgres"
	"lockstep/engine"
	"lockstep/engine/duck"
	"lockstep/sql"
)

type diffOptions struct {
	batch  int64
	sink   string
	rows   int
	replay bool
	format string
}

func diffCommand() *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff FILE",
		Short: "Show what a batch changed in the tables",
		Long: `Show what a batch changed in the tables.

How many rows a batch inserted (+), updated (~) and deleted (-) is kept for good. Of the
rows themselves the table has those that no later change touched: they are shown as it
left them.

With --replay the batch is computed again, from the state before it and the files it read,
and every row is shown with what the batch did to it, deleted ones too. That needs both:
older states are thinned out with time.

--format csv and json write the rows only.`,
		Example: `  etl diff daily_sales.sql --batch 413
  etl diff daily_sales.sql --batch 413 --replay --format csv`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch newOutput := outputs[o.format]; {
			case !cmd.Flags().Changed("batch"):
				return &usageError{"diff needs --batch", "etl history " + connectors.ShellWord(args[0]) + " lists the batches"}
			case o.rows < 0 || o.batch < 0:
				return &usageError{"--rows and --batch cannot be negative", "--rows 0 shows all"}
			case newOutput == nil:
				hint := "there are table, csv, json"
				if near := sql.Suggest(o.format, []string{"table", "csv", "json"}); near != "" {
					hint = "did you mean " + near + "?"
				}
				return &usageError{fmt.Sprintf("there is no format %q", o.format), hint}
			}
			open := withName
			if o.replay {
				open = withFile
			}
			return waiting(cmd.Context(), time.Now().Add(readWait), func() error {
				return open(cmd.Context(), args[0], func(s *session) error { return diff(cmd, s, o) })
			})
		},
	}
	cmd.Flags().Int64Var(&o.batch, "batch", 0, "number of the batch")
	cmd.Flags().StringVar(&o.sink, "sink", "", "show this sink only")
	cmd.Flags().IntVar(&o.rows, "rows", 20, "rows of each sink to show; 0 shows all")
	cmd.Flags().BoolVar(&o.replay, "replay", false, "compute the batch again, to show all of its rows")
	cmd.Flags().StringVar(&o.format, "format", "table", "table, csv or json")
	completeFlag(cmd, "format", oneOf("table", "csv", "json"))
	return takesFiles(cmd)
}

// diffed is what a batch did.
type diffed struct {
	Pipeline string       `json:"pipeline"`
	Batch    int64        `json:"batch"`
	Seq      int64        `json:"seq"`
	When     time.Time    `json:"when"`
	Files    int          `json:"files"`
	Read     int64        `json:"read"`
	Replayed bool         `json:"replayed"`
	Sinks    []diffedSink `json:"sinks"`
}

type diffedSink struct {
	Table    string          `json:"table"`
	Inserted int64           `json:"inserted"`
	Updated  int64           `json:"updated"`
	Deleted  int64           `json:"deleted"`
	Known    int64           `json:"known"` // rows of these that can be told
	Rows     json.RawMessage `json:"rows"`
	query    string          // of the rows
	count    string
}

func diff(cmd *cobra.Command, s *session, o diffOptions) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	m, err := s.batchNumbered(ctx, o)
	if err != nil {
		return err
	}
	r := &diffed{Pipeline: s.script.Name, Batch: m.Batch, Seq: m.Seq, When: m.BatchTime, Replayed: o.replay}
	for _, c := range m.Sources {
		r.Files, r.Read = r.Files+c.Splits, r.Read+c.Read
	}
	if r.Sinks, err = s.diffedSinks(ctx, m, o); err != nil {
		return err
	}
	rowsOnly := cmd.Flags().Changed("format") && o.format != "table" && !asJSON(cmd)
	if rowsOnly && len(r.Sinks) > 1 {
		return &usageError{"the rows of several sinks are not one " + o.format, "choose one with --sink: " + tablesOf(r.Sinks)}
	}
	if rowsOnly {
		return s.ask(ctx, o.replay, r.Sinks[0].query, outputs[o.format](out))
	}
	if asJSON(cmd) {
		for i := range r.Sinks {
			var rows bytes.Buffer
			if err := s.ask(ctx, o.replay, r.Sinks[i].query, newJSON(&rows)); err != nil {
				return err
			}
			r.Sinks[i].Rows = rows.Bytes()
		}
		printJSON(out, r)
		return nil
	}
	fmt.Fprintf(out, "batch %d of %s, %s: %s, %s read\n", r.Batch, r.Pipeline, r.When.Format("2006-01-02 15:04:05"), plural(int64(r.Files), "file"), plural(r.Read, "row"))
	for _, sink := range r.Sinks {
		fmt.Fprintf(out, "\n%s: +%s ~%s -%s rows%s\n", sink.Table, thousands(sink.Inserted), thousands(sink.Updated), thousands(sink.Deleted), sink.notKnown(o))
		if sink.Known == 0 {
			continue
		}
		if err := s.ask(ctx, o.replay, sink.query, &tableOutput{to: out}); err != nil {
			return err
		}
	}
	return nil
}

// notKnown says which of the rows are shown, and which cannot be.
func (d diffedSink) notKnown(o diffOptions) string {
	say := ""
	if written := d.Inserted + d.Updated; !o.replay && d.Known < written {
		say += fmt.Sprintf("; %s of the %s written were changed since", thousands(written-d.Known), thousands(written))
	}
	if !o.replay && d.Deleted > 0 {
		say += "; which were deleted is not in the table"
	}
	if say != "" {
		say += " (--replay)"
	}
	if shown := int64(o.rows); shown > 0 && shown < d.Known {
		say += fmt.Sprintf("; the first %s of %s", thousands(shown), thousands(d.Known))
	}
	return say
}

func tablesOf(sinks []diffedSink) string {
	names := make([]string, len(sinks))
	for i, s := range sinks {
		names[i] = s.Table
	}
	return strings.Join(names, ", ")
}

// batchNumbered opens the destination, and with --replay the sources, and finds the manifest.
func (s *session) batchNumbered(ctx context.Context, o diffOptions) (m checkpoints.Manifest, err error) {
	s.allRejects = true
	exists := false
	if o.replay {
		exists, err = s.openToRead(ctx)
	} else {
		exists, err = s.openDestinationOnly(ctx)
	}
	if err != nil {
		return m, err
	}
	last := int64(-1)
	if exists {
		seq, err := s.dest.SeqOf(ctx, s.script.Name, o.batch)
		if err != nil {
			return m, err
		}
		if seq > 0 {
			return s.dest.Manifest(ctx, s.script.Name, seq)
		}
		head, err := s.dest.Head(ctx, s.script.Name)
		if err != nil {
			return m, err
		}
		last = head.LastBatch
	}
	if last < 0 {
		return m, &usageError{"there is no batch " + fmt.Sprint(o.batch) + ": the pipeline never ran", ""}
	}
	return m, &usageError{"there is no batch " + fmt.Sprint(o.batch), fmt.Sprintf("the last is %d; etl history %s lists them", last, s.shell)}
}

// diffedSinks are the sinks to show, each with the query of its rows.
func (s *session) diffedSinks(ctx context.Context, m checkpoints.Manifest, o diffOptions) (sinks []diffedSink, err error) {
	if o.replay {
		sinks, err = s.replayedSinks(ctx, m)
	} else {
		sinks, err = s.keptSinks(ctx, m)
	}
	if err != nil {
		return nil, err
	}
	if o.sink != "" {
		names := tablesOf(sinks)
		sinks = slices.DeleteFunc(sinks, func(d diffedSink) bool {
			_, table, _ := strings.Cut(d.Table, ".")
			return !strings.EqualFold(d.Table, o.sink) && !strings.EqualFold(table, o.sink)
		})
		if len(sinks) == 0 {
			return nil, &usageError{"there is no sink " + o.sink, "the batch wrote " + names}
		}
	}
	for i := range sinks {
		d := &sinks[i]
		c := m.Sinks[d.Table]
		d.Inserted, d.Updated, d.Deleted, d.Rows = c.Inserted, c.Updated, c.Deleted, json.RawMessage("[]")
		if d.query == "" {
			continue
		}
		var n oneNumber
		if err := s.ask(ctx, o.replay, d.count, &n); err != nil {
			return nil, err
		}
		if d.Known = n.value; o.rows > 0 {
			d.query += fmt.Sprintf(" LIMIT %d", o.rows)
		}
	}
	return sinks, nil
}

// keptSinks reads of the tables what the batch wrote last.
func (s *session) keptSinks(ctx context.Context, m checkpoints.Manifest) ([]diffedSink, error) {
	known, err := s.dest.Known(ctx, s.script.Name)
	if err != nil {
		return nil, err
	}
	var sinks []diffedSink
	for _, t := range known.Tables {
		if _, ok := m.Sinks[t.Sink]; !ok {
			continue // of a later plan
		}
		if t.Gone {
			return nil, &connectors.TargetError{Table: t.Sink, Reason: "it is gone, or was replaced by another table"}
		}
		table := duck.Quote(t.Schema) + "." + duck.Quote(t.Table)
		if s.dsn == "" {
			table = duck.Quote(s.alias) + "." + table
		}
		from := fmt.Sprintf("FROM %s WHERE _etl_seq = %d", table, m.Seq)
		sinks = append(sinks, diffedSink{Table: t.Sink, query: "SELECT " + quotedList(t.Columns) + " " + from + orderBy(t.Key), count: "SELECT count(*) AS n " + from})
	}
	return sinks, nil
}

// replayedSinks computes the batch again.
func (s *session) replayedSinks(ctx context.Context, m checkpoints.Manifest) ([]diffedSink, error) {
	changed, err := s.pipeline.Again(ctx, m)
	var forgotten *engine.ForgottenError
	if errors.As(err, &forgotten) {
		return nil, fmt.Errorf("%w: it cannot be computed again\n  without --replay diff shows what the tables still have of it", err)
	}
	if err != nil {
		return nil, err
	}
	var sinks []diffedSink
	for _, c := range changed {
		d := diffedSink{Table: c.Sink}
		if c.Staged != "" {
			d.query = "SELECT CASE _op WHEN 'I' THEN '+' WHEN 'U' THEN '~' ELSE '-' END AS change, * EXCLUDE (_op) FROM temp." + duck.Quote(c.Staged) + orderBy(c.Key)
			d.count = "SELECT count(*) AS n FROM temp." + duck.Quote(c.Staged)
		}
		sinks = append(sinks, d)
	}
	return sinks, nil
}

func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = duck.Quote(n)
	}
	return strings.Join(quoted, ", ")
}

func orderBy(key []string) string {
	if len(key) == 0 {
		return ""
	}
	return " ORDER BY " + quotedList(key)
}

// ask puts a query of ours to the destination, or to the session's DuckDB.
func (s *session) ask(ctx context.Context, here bool, query string, out output) error {
	if dest, ok := s.dest.(*postgres.Destination); ok && !here {
		return queryPostgres(ctx, dest, query, out)
	}
	q := question{duck: s.duck, text: query, body: query}
	return q.run(ctx, out)
}

// oneNumber is an output that keeps the number of its one row.
type oneNumber struct{ value int64 }

func (n *oneNumber) begin([]column) error { return nil }
func (n *oneNumber) end() error           { return nil }
func (n *oneNumber) row(values []dbsql.NullString) error {
	_, err := fmt.Sscan(values[0].String, &n.value)
	return err
}
