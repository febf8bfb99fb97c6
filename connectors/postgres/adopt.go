package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// A table that somebody made before the pipeline's first run is taken over, when it is empty and has all
// columns of the sink. Other columns, CHECK, NOT NULL, FOREIGN KEY, triggers and plain indexes stay what
// they are. UNIQUE on other columns than the key is refused: Postgres looks at it row by row, and rows
// that change places would break it on the way to a state that is right.

// checkAdoptable tells everything that keeps an existing table from being the sink's.
func checkAdoptable(ctx context.Context, tx *tx, sink connectors.SinkSpec, r *relation) error {
	there, err := columnsOf(ctx, tx, r.oid)
	if err != nil {
		return err
	}
	rows, err := countOf(ctx, tx, sink)
	if err != nil {
		return err
	}
	if rows > 0 {
		_, seq := there[seqColumn]
		return targets.NotEmpty(sink, tableOf(sink), rows, seq)
	}
	misfits, err := misfitsOf(ctx, tx, sink, r, there)
	if err != nil {
		return err
	}
	return targets.Unfit(sink, tableOf(sink), "", misfits)
}

func misfitsOf(ctx context.Context, tx *tx, sink connectors.SinkSpec, r *relation, there map[string]column) ([]targets.Misfit, error) {
	var out []targets.Misfit
	for _, want := range sink.Columns {
		typ, name := typeOf(want.Type).name, duck.Quote(want.Name)
		c, ok := there[want.Name]
		switch {
		case !ok:
			out = append(out, targets.Misfit{Say: "it has no column " + want.Name + differentCase(there, want.Name), Fix: "ALTER TABLE %s ADD COLUMN " + name + " " + typ + ";"})
		case c.generated:
			out = append(out, targets.Misfit{Say: "its column " + want.Name + " is generated", Fix: "ALTER TABLE %s DROP COLUMN " + name + "; ALTER TABLE %s ADD COLUMN " + name + " " + typ + ";"})
		case !holds(c.typ, typ):
			out = append(out, targets.Misfit{Say: fmt.Sprintf("its column %s is %s, the pipeline writes %s", want.Name, c.typ, typ),
				Fix: "ALTER TABLE %s ALTER COLUMN " + name + " TYPE " + typ + " USING " + name + "::text::" + typ + ";"})
		}
	}
	if c, ok := there[seqColumn]; ok && c.typ != seqType {
		out = append(out, targets.Misfit{Say: fmt.Sprintf("its column %s is %s, the pipeline writes %s", seqColumn, c.typ, seqType), Fix: "ALTER TABLE %s ALTER COLUMN " + seqColumn + " TYPE " + seqType + ";"})
	}
	if m := unfilled(there, sink); m != nil {
		out = append(out, *m)
	}
	constraints, err := constraintsOf(ctx, tx, sink, r)
	return append(out, constraints...), err
}

// differentCase helps somebody who made the table without quotes, which Postgres writes in lower case.
func differentCase(there map[string]column, name string) string {
	for other := range there {
		if strings.EqualFold(other, name) {
			return " (but " + other + "; the pipeline writes names as its SELECT has them)"
		}
	}
	return ""
}

// unfilled finds a column of somebody else's that new rows cannot leave out.
func unfilled(there map[string]column, sink connectors.SinkSpec) *targets.Misfit {
	own := ownColumns(sink)
	for _, name := range sortedKeys(there) {
		if c := there[name]; own[name] == "" && c.notNull && !c.filled && !c.generated {
			return &targets.Misfit{Say: "its column " + c.name + " is NOT NULL without a default, and the pipeline does not write it",
				Fix: "ALTER TABLE %s ALTER COLUMN " + duck.Quote(c.name) + " DROP NOT NULL;"}
		}
	}
	return nil
}

// constraintsOf finds those that a right change of the sink could break.
func constraintsOf(ctx context.Context, tx *tx, sink connectors.SinkSpec, r *relation) ([]targets.Misfit, error) {
	var out []targets.Misfit
	key := sink.Key
	if key == nil {
		key = []string{}
	}
	err := tx.each(ctx, sql("constraints"), []any{r.oid, key}, func(rows pgx.Rows) error {
		var text string
		err := rows.Scan(&text)
		out = append(out, targets.Misfit{Say: "its " + text + " is on other columns than the sink's key"})
		return err
	})
	if err != nil {
		return nil, err
	}
	var others int
	if err := tx.row(ctx, sql("unique-indexes"), []any{r.oid, key}, &others); err != nil {
		return nil, err
	}
	if others > 0 {
		out = append(out, targets.Misfit{Say: "it has a unique index that is no constraint on the sink's key"})
	}
	return out, nil
}

// adoptTx gives a table, which is empty, the pipeline's column and a constraint on the key.
func adoptTx(ctx context.Context, tx *tx, sink connectors.SinkSpec, r *relation) error {
	there, err := columnsOf(ctx, tx, r.oid)
	if err != nil {
		return err
	}
	if _, ok := there[seqColumn]; !ok {
		if err := tx.script(ctx, "ALTER TABLE "+tableOf(sink)+" ADD COLUMN "+duck.Quote(seqColumn)+" "+seqType+" NOT NULL"); err != nil {
			return err
		}
	}
	keyed, err := hasKeyIndex(ctx, tx, r.oid, sink)
	if err != nil || keyed {
		return err
	}
	return tx.script(ctx, keyStatement(sink))
}
