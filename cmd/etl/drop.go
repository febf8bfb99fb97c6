package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/connectors"
)

func dropCommand() *cobra.Command {
	var d deed
	var keep bool
	cmd := &cobra.Command{
		Use:   "drop FILE",
		Short: "Remove a pipeline and its tables from the destination",
		Long: `Remove a pipeline and its tables from the destination.

Everything that the destination knows of the pipeline goes, in one transaction: its tables,
its position, its state, its history and its rejected rows. A table that was there before
the pipeline stays, with its rows; with --keep-table all do. They lose the column _etl_seq
and are tables like any other then. The pipeline file and the input are not touched: the
next run begins at batch 0.

Of the file only the name and ATTACH are needed; the rest may be faulty. It does nothing
without --yes but show what would go.`,
		Example: `  etl drop daily_sales.sql --dry-run
  etl drop daily_sales.sql --yes
  etl drop daily_sales.sql --keep-table --yes`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.run(cmd.Context(), func() error {
				return withName(cmd.Context(), args[0], func(s *session) error { return drop(cmd, s, &d, keep) })
			})
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-table", false, "leave the tables, with their rows")
	return takesDeed(cmd, &d)
}

// dropped is what goes, or would.
type dropped struct {
	Pipeline string         `json:"pipeline"`
	Done     bool           `json:"done"`
	Batches  int64          `json:"batches"`
	Changes  int64          `json:"changes"`
	Files    int64          `json:"files_read"`
	Rejected int64          `json:"rejected"`
	Bytes    int64          `json:"state_bytes"`
	Tables   []droppedTable `json:"tables"`
}

type droppedTable struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Stays bool   `json:"stays"`
	Why   string `json:"why,omitempty"` // it stays
}

func drop(cmd *cobra.Command, s *session, d *deed, keep bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	name := s.script.Name
	exists, err := s.openAlone(ctx, !d.yes || d.dryRun)
	if err != nil {
		return err
	}
	known := connectors.Known{}
	if exists {
		if known, err = s.dest.Known(ctx, name); err != nil {
			return err
		}
	}
	result := droppedOf(name, known, keep)
	if known.Traces == 0 {
		if asJSON(cmd) {
			printJSON(out, result)
		} else {
			fmt.Fprintf(out, "%s: nothing to drop: %s knows no such pipeline\n", name, s.shown)
		}
		return nil
	}
	if !d.yes && !asJSON(cmd) || d.dryRun && !asJSON(cmd) {
		fmt.Fprintf(out, "drop of %s: nothing is written\n", name)
		result.print(out)
	}
	agreed, err := d.agreed()
	if err == nil && agreed {
		err = s.dest.Drop(ctx, name, keep)
	}
	if err != nil {
		if asJSON(cmd) {
			return &partial{err, result}
		}
		return err
	}
	result.Done = agreed
	switch {
	case asJSON(cmd):
		printJSON(out, result)
	case agreed:
		fmt.Fprintf(out, "%s: dropped\n", name)
		result.print(out)
	}
	return nil
}

func droppedOf(name string, k connectors.Known, keep bool) *dropped {
	r := &dropped{Pipeline: name, Batches: k.Batch + 1, Changes: k.Changes, Files: k.Splits, Rejected: k.Rejected, Bytes: k.Bytes, Tables: []droppedTable{}}
	for _, t := range k.Tables {
		d := droppedTable{Table: t.Sink, Rows: t.Rows}
		switch {
		case t.Gone:
			d.Stays, d.Why = true, "there is no table with the mark of the pipeline"
		case t.TakenOver:
			d.Stays, d.Why = true, "it was there before the pipeline"
		case keep:
			d.Stays, d.Why = true, "--keep-table"
		}
		r.Tables = append(r.Tables, d)
	}
	return r
}

func (r *dropped) print(w io.Writer) {
	stays := false
	for _, t := range r.Tables {
		switch {
		case t.Stays && strings.HasPrefix(t.Why, "there is no"):
			fmt.Fprintf(w, "table    %s: nothing: %s\n", t.Table, t.Why)
		case t.Stays:
			stays = true
			fmt.Fprintf(w, "table    %s: stays, with %s (%s), without the column _etl_seq\n", t.Table, plural(t.Rows, "row"), t.Why)
		default:
			fmt.Fprintf(w, "table    %s: goes, with %s\n", t.Table, plural(t.Rows, "row"))
		}
	}
	fmt.Fprintf(w, "record   goes: %s, the position of %s, %s, %s of state\n", batches(r.Batches), plural(r.Files, "file"), rejectedRows(r.Rejected), size(r.Bytes))
	if stays {
		fmt.Fprintf(w, "note     the next run begins at batch 0 and fills a table only when it is empty\n")
	}
}

func batches(n int64) string {
	if n == 1 {
		return "1 batch"
	}
	return thousands(n) + " batches"
}

func rejectedRows(n int64) string {
	if n == 1 {
		return "1 rejected row"
	}
	return thousands(n) + " rejected rows"
}
