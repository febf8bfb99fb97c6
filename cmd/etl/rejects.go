package main

import (
	"context"
	dbsql "database/sql"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/connectors"
	"lockstep/connectors/files"
	"lockstep/engine/duck"
	"lockstep/sql"
)

type rejectsOptions struct {
	batch  int64
	source string
	export string
	force  bool
	number int
}

func rejectsCommand() *cobra.Command {
	var o rejectsOptions
	cmd := &cobra.Command{
		Use:   "rejects FILE",
		Short: "List the rows that were left out, with their place and reason",
		Long: `List the rows that were left out, with their place and reason.

A row that cannot be decoded, or breaks NOT NULL or a CHECK, is kept beside the table
when max_rejects allows it. Totals by reason come first. --export writes all columns to
a file, csv, json (one object a line) or parquet by its suffix; the file appears whole
or not at all.`,
		Example: `  etl rejects daily_sales.sql
  etl rejects daily_sales.sql --batch 12 --source orders
  etl rejects daily_sales.sql --export bad.csv`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("batch") && o.batch < 0:
				return &usageError{"--batch cannot be negative", ""}
			case o.number < 0:
				return &usageError{"-n cannot be negative", "0 lists all"}
			case !cmd.Flags().Changed("batch"):
				o.batch = -1
			}
			var to *exportFile
			if o.export != "" {
				var err error
				if to, err = newExport(o.export, o.force); err != nil {
					return err
				}
			}
			return waiting(cmd.Context(), time.Now().Add(readWait), func() error {
				return withFile(cmd.Context(), args[0], func(s *session) error { return printRejects(cmd, s, o, to) })
			})
		},
	}
	cmd.Flags().Int64Var(&o.batch, "batch", 0, "only those of this batch")
	cmd.Flags().StringVar(&o.source, "source", "", "only those of this source")
	cmd.Flags().StringVar(&o.export, "export", "", "write them to this .csv, .json or .parquet file")
	cmd.Flags().BoolVar(&o.force, "force", false, "let --export replace a file")
	cmd.Flags().IntVarP(&o.number, "number", "n", 100, "how many to list; 0 lists all")
	completeFlag(cmd, "source", namesIn(sourceNames))
	completeFlag(cmd, "export", withSuffix("csv", "json", "parquet"))
	return takesFiles(cmd)
}

// reject is a row that was left out.
type reject struct {
	Batch  *int64 `json:"batch,omitempty"`
	Source string `json:"source"`
	File   string `json:"file"`
	Line   *int64 `json:"line,omitempty"`
	Row    int64  `json:"row"` // from 1
	Reason string `json:"reason"`
	Raw    string `json:"raw"`
}

// place is where the row is.
func (r reject) place() string {
	if r.Line != nil {
		return fmt.Sprintf("%s:%d", r.File, *r.Line)
	}
	return fmt.Sprintf("%s row %d", r.File, r.Row)
}

func (r reject) line() string {
	text := oneLine(r.place() + ": " + r.Reason)
	if r.Raw != "" {
		text += oneLine(": " + r.Raw)
	}
	return text
}

// scanReject reads source, split, line, ordinal, reason and raw text.
func (s *session) scanReject(rows *dbsql.Rows, more ...any) (reject, error) {
	var r reject
	var split string
	var line dbsql.NullInt64
	err := rows.Scan(append([]any{&r.Source, &split, &line, &r.Row, &r.Reason, &r.Raw}, more...)...)
	r.Row++
	r.File = s.shownSplit(r.Source, split)
	if line.Valid {
		r.Line = &line.Int64
	}
	return r, err
}

// spec is the connector's description of a source.
func (s *session) spec(source string) connectors.SourceSpec {
	for name, spec := range s.specs {
		if strings.EqualFold(name, source) {
			return spec
		}
	}
	return connectors.SourceSpec{}
}

// shownSplit is the file of a split, as the pipeline file would write it; of a source that is not in the
// pipeline file any more, as it was recorded.
func (s *session) shownSplit(source, split string) string {
	spec := s.spec(source)
	if spec.Name == "" {
		return split
	}
	return s.secrets.text(files.Shown(spec, split))
}

func printRejects(cmd *cobra.Command, s *session, o rejectsOptions, to *exportFile) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	query, err := s.rejectsQuery(ctx, o)
	if err != nil {
		return err
	}
	if to != nil {
		n, err := to.write(ctx, s, query)
		if err != nil {
			return err
		}
		if asJSON(cmd) {
			printJSON(out, struct {
				Pipeline string `json:"pipeline"`
				Rejected int64  `json:"rejected"`
				Export   string `json:"export"`
			}{s.script.Name, n, o.export})
			return nil
		}
		fmt.Fprintf(out, "%s: %s written to %s\n", s.script.Name, plural(n, "rejected row"), o.export)
		return nil
	}
	reasons, err := s.reasons(ctx, query)
	if err != nil {
		return err
	}
	var total int64
	for _, r := range reasons {
		total += r.Rows
	}
	list := []reject{}
	limited := query + " ORDER BY seq, source, split_id, off"
	if o.number > 0 && !asJSON(cmd) {
		limited += fmt.Sprintf(" LIMIT %d", o.number)
	}
	err = s.duck.Each(ctx, "SELECT source, split_id, line, off, reason, coalesce(raw, ''), batch FROM ("+limited+")", nil, func(rows *dbsql.Rows) error {
		var batch int64
		r, err := s.scanReject(rows, &batch)
		r.Batch = &batch
		list = append(list, r)
		return err
	})
	if err != nil {
		return err
	}
	if asJSON(cmd) {
		printJSON(out, struct {
			Pipeline string   `json:"pipeline"`
			Rejected int64    `json:"rejected"`
			Reasons  []reason `json:"reasons"`
			Rejects  []reject `json:"rejects"`
		}{s.script.Name, total, reasons, list})
		return nil
	}
	return listRejects(out, s.script.Name, total, reasons, list)
}

func listRejects(w io.Writer, pipeline string, total int64, reasons []reason, list []reject) error {
	if total == 0 {
		fmt.Fprintf(w, "%s: no row was rejected\n", pipeline)
		return nil
	}
	fmt.Fprintf(w, "%s: %s\n\n", pipeline, plural(total, "rejected row"))
	if err := printReasons(w, reasons); err != nil {
		return err
	}
	for _, r := range list {
		fmt.Fprintf(w, "batch %d  %s\n", *r.Batch, r.line())
	}
	if more := total - int64(len(list)); more > 0 {
		fmt.Fprintf(w, "… and %s more: -n 0 lists all, --export writes them to a file\n", thousands(more))
	}
	return nil
}

func printReasons(w io.Writer, reasons []reason) error {
	t := newTable("rows", "source", "reason")
	t.right(1)
	for _, r := range reasons {
		t.add(thousands(r.Rows), r.Source, r.Reason)
	}
	if err := t.print(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// reason is why rows were left out, without the values that differ from row to row.
type reason struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
	Rows   int64  `json:"rows"`
}

// reasons counts by reason. A value in one stands between `: "` and `" `; which it was is no reason.
func (s *session) reasons(ctx context.Context, query string) ([]reason, error) {
	out := []reason{}
	kind := `regexp_replace(reason, '^(column "(?:[^"]|"")*"): ".*" (is not|does not|has|says)', '\1: a value \2', 's')`
	err := s.duck.Each(ctx, "SELECT source, "+kind+" AS kind, count(*) AS n FROM ("+query+") GROUP BY ALL ORDER BY n DESC, source, kind", nil, func(rows *dbsql.Rows) error {
		var r reason
		err := rows.Scan(&r.Source, &r.Reason, &r.Rows)
		out = append(out, r)
		return err
	})
	return out, err
}

// rejectsQuery selects the rejects that were asked for. A batch or source that never was is a mistake.
func (s *session) rejectsQuery(ctx context.Context, o rejectsOptions) (string, error) {
	exists, err := s.openDestinationOnly(ctx)
	if err != nil {
		return "", err
	}
	var last int64 = -1
	query := "SELECT ''::VARCHAR AS source, ''::VARCHAR AS split_id, 0::BIGINT AS off, 0::BIGINT AS line, ''::VARCHAR AS reason, ''::VARCHAR AS raw, 0::BIGINT AS batch, 0::BIGINT AS seq WHERE false"
	if !exists {
		if err := s.openDuck(ctx, nil); err != nil {
			return "", err
		}
	} else {
		head, err := s.dest.Head(ctx, s.script.Name)
		if err != nil {
			return "", err
		}
		if query, err = s.dest.Rejects(ctx, s.script.Name); err != nil {
			return "", err
		}
		last = head.LastBatch
	}
	var where []string
	if o.batch >= 0 {
		if o.batch > last {
			hint := "the pipeline never ran"
			if last >= 0 {
				hint = fmt.Sprintf("the last one is batch %d; etl history %s lists them", last, s.shell)
			}
			return "", &usageError{fmt.Sprintf("there is no batch %d", o.batch), hint}
		}
		where = append(where, fmt.Sprintf("batch = %d", o.batch))
	}
	if o.source != "" {
		var names []string
		known := false
		for _, decl := range s.script.Sources {
			names = append(names, decl.Name.Text)
			known = known || strings.EqualFold(decl.Name.Text, o.source)
		}
		var recorded int64
		if err := s.duck.QueryRow(ctx, "SELECT count(*) FROM ("+query+") WHERE lower(source) = lower(?)", []any{o.source}, &recorded); err != nil {
			return "", err
		}
		if !known && recorded == 0 {
			hint := "there are " + strings.Join(names, ", ")
			if near := sql.Suggest(o.source, names); near != "" {
				hint = "did you mean " + near + "?"
			}
			return "", &usageError{"there is no source " + o.source, hint}
		}
		where = append(where, "lower(source) = lower("+duck.Literal(o.source)+")")
	}
	if len(where) > 0 {
		query = "SELECT * FROM (" + query + ") WHERE " + strings.Join(where, " AND ")
	}
	return query, nil
}
