package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// A table that somebody made before the pipeline's first run is taken over, when it is empty and has all
// columns of the sink. Other columns, CHECK and NOT NULL stay what they are. It may have a PRIMARY KEY or
// UNIQUE on exactly the sink's key. On other columns DuckDB could refuse a change that is right, because
// it looks after every statement and not at COMMIT; and an index (CREATE INDEX) can lose rows when the
// file is recovered after a crash.

// withAny is where a statement of ours can be run.
const withAny = ", with any DuckDB"

// tableSQL is how a statement of the analyst's names a sink's table.
func tableSQL(sink connectors.SinkSpec) string {
	return duck.Quote(schemaOf(sink)) + "." + duck.Quote(sink.Table)
}

// checkAdoptable tells everything that keeps an existing table from being the sink's.
func (d *Destination) checkAdoptable(ctx context.Context, sink connectors.SinkSpec) error {
	there, err := d.describe(ctx, d.table(schemaOf(sink), sink.Table))
	if err != nil {
		return err
	}
	rows, err := d.count(ctx, sink)
	if err != nil {
		return err
	}
	if rows > 0 {
		_, seq := there[seqColumn]
		return targets.NotEmpty(sink, tableSQL(sink), rows, seq)
	}
	misfits, err := d.misfits(ctx, sink, there)
	if err != nil {
		return err
	}
	return targets.Unfit(sink, tableSQL(sink), withAny, misfits)
}

func (d *Destination) misfits(ctx context.Context, sink connectors.SinkSpec, there map[string]column) ([]targets.Misfit, error) {
	types, err := d.specColumns(ctx, sink)
	if err != nil {
		return nil, err
	}
	var out []targets.Misfit
	for _, want := range sink.Columns {
		name := strings.ToLower(want.Name)
		typ, quoted := types[name], duck.Quote(want.Name)
		c, ok := there[name]
		switch {
		case !ok:
			out = append(out, targets.Misfit{Say: "it has no column " + want.Name, Fix: "ALTER TABLE %s ADD COLUMN " + quoted + " " + typ + ";"})
		case d.generated(ctx, sink, c):
			out = append(out, targets.Misfit{Say: "its column " + want.Name + " is generated", Fix: "ALTER TABLE %s DROP COLUMN " + quoted + "; ALTER TABLE %s ADD COLUMN " + quoted + " " + typ + ";"})
		case c.typ != typ:
			out = append(out, targets.Misfit{Say: fmt.Sprintf("its column %s is %s, the pipeline writes %s", want.Name, c.typ, typ), Fix: "ALTER TABLE %s ALTER " + quoted + " TYPE " + typ + ";"})
		}
	}
	if c, ok := there[seqColumn]; ok && c.typ != "BIGINT" {
		out = append(out, targets.Misfit{Say: fmt.Sprintf("its column %s is %s, the pipeline writes BIGINT", seqColumn, c.typ), Fix: "ALTER TABLE %s ALTER " + seqColumn + " TYPE BIGINT;"})
	}
	types[seqColumn] = "BIGINT"
	if m := unfilled(there, types); m != nil {
		out = append(out, *m)
	}
	constraints, err := d.constraints(ctx, sink)
	if err != nil {
		return nil, err
	}
	indexes, err := d.indexes(ctx, sink)
	return append(append(out, constraints...), indexes...), err
}

// generated asks DuckDB's binder: the catalogue does not tell a generated column from a default.
func (d *Destination) generated(ctx context.Context, sink connectors.SinkSpec, c column) bool {
	err := d.eng.Exec(ctx, "EXPLAIN UPDATE "+d.table(schemaOf(sink), sink.Table)+" SET "+duck.Quote(c.name)+" = NULL WHERE false")
	return err != nil && strings.Contains(err.Error(), "generated column")
}

// unfilled finds a column of somebody else's that new rows cannot leave out.
func unfilled(there map[string]column, own map[string]string) *targets.Misfit {
	for _, name := range sortedKeys(there) {
		if c := there[name]; own[name] == "" && c.notNull && !c.filled {
			return &targets.Misfit{Say: "its column " + c.name + " is NOT NULL without a default, and the pipeline does not write it",
				Fix: "ALTER TABLE %s ALTER " + duck.Quote(c.name) + " DROP NOT NULL;"}
		}
	}
	return nil
}

// constraints finds those that a right change of the sink could break.
func (d *Destination) constraints(ctx context.Context, sink connectors.SinkSpec) ([]targets.Misfit, error) {
	var out []targets.Misfit
	key := strings.ToLower(strings.Join(slices.Sorted(slices.Values(sink.Key)), "\x00"))
	err := d.eng.Each(ctx, d.sql("constraints"), []any{d.alias, schemaOf(sink), sink.Table}, func(rows *sql.Rows) error {
		var table, kind, text string
		var columns []any
		if err := rows.Scan(&table, &kind, &text, &columns); err != nil {
			return err
		}
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = fmt.Sprint(c)
		}
		slices.Sort(names)
		switch {
		case !strings.EqualFold(table, sink.Table):
			out = append(out, targets.Misfit{Say: "table " + table + " refers to it by a FOREIGN KEY"})
		case kind == "FOREIGN KEY":
			out = append(out, targets.Misfit{Say: "it has a " + text})
		case strings.ToLower(strings.Join(names, "\x00")) != key:
			out = append(out, targets.Misfit{Say: "its " + text + " is on other columns than the sink's key"})
		}
		return nil
	})
	return out, d.failed("read the constraints of table "+sink.Name, err)
}

func (d *Destination) indexes(ctx context.Context, sink connectors.SinkSpec) ([]targets.Misfit, error) {
	var out []targets.Misfit
	err := d.eng.Each(ctx, d.sql("indexes"), []any{d.alias, schemaOf(sink), sink.Table}, func(rows *sql.Rows) error {
		var schema, name string
		err := rows.Scan(&schema, &name)
		out = append(out, targets.Misfit{Say: "it has an index, " + name + ": DuckDB's can lose rows when a file is recovered after a crash", Fix: "DROP INDEX " + duck.Quote(schema) + "." + duck.Quote(name) + ";"})
		return err
	})
	return out, d.failed("read the indexes of table "+sink.Name, err)
}

// adoptTx gives a table the pipeline's column, and its comment the pipeline's mark.
func (d *Destination) adoptTx(ctx context.Context, sink connectors.SinkSpec, mark string) (comment string, err error) {
	table := d.table(schemaOf(sink), sink.Table)
	there, err := d.describe(ctx, table)
	if err != nil {
		return "", err
	}
	if _, ok := there[seqColumn]; !ok {
		if err := d.eng.Exec(ctx, "ALTER TABLE "+table+" ADD COLUMN "+duck.Quote(seqColumn)+" BIGINT"); err != nil {
			return "", err
		}
	}
	if comment, _, err = d.comment(ctx, sink); comment != "" {
		mark = comment + "; " + mark
	}
	return mark, err
}

// findOut looks how rows of a table are to be changed: in place when it has columns that are not the
// pipeline's, whose values must stay, or a constraint that looks at keys.
func (d *Destination) findOut(ctx context.Context, sink connectors.SinkSpec) error {
	there, err := d.describe(ctx, d.table(schemaOf(sink), sink.Table))
	if err != nil {
		return err
	}
	d.inPlace[sink.Name] = len(there) > len(sink.Columns)+1
	for _, c := range there {
		if c.unique {
			d.inPlace[sink.Name] = true
		}
	}
	return nil
}
