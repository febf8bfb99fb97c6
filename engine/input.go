package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// input is one source's part of a batch.
type input struct {
	plan   planner.Source
	scan   connectors.Scan // nil when the source has nothing new
	ranges []connectors.Range
	moved  checkpoints.Splits // entries of the position that the batch changes
	gone   []string
	as     map[string]string // as in sourceWork
	copied string            // temp table that holds the rows; "" when the steps scan the input itself
}

// inputs are the parts of all sources.
type inputs struct {
	list []*input
}

// read opens every source's ranges and makes them relations that the plan's statements scan. A file
// scan that one step reads is left to that step's query; everything else is copied once.
func (l *life) read(ctx context.Context, w *work) (*inputs, error) {
	all := &inputs{}
	for _, s := range w.sources {
		in := &input{plan: s.plan, ranges: s.found.Ranges, moved: s.found.Moved.Clone(), gone: s.found.Gone, as: s.as}
		all.list = append(all.list, in)
		if len(in.ranges) > 0 {
			scan, err := l.Sources[s.plan.Name].Read(ctx, in.ranges)
			if err != nil {
				return all, err
			}
			in.scan = scan
		}
		if err := l.relate(ctx, in); err != nil {
			return all, all.explain(ctx, err)
		}
	}
	return all, nil
}

// relate creates the relation that the plan knows the source by.
func (l *life) relate(ctx context.Context, in *input) error {
	relation, err := l.relation(ctx, in)
	if err == nil && in.plan.Replaced {
		err = l.withdraw(ctx, in)
	}
	if err != nil {
		return err
	}
	if needed := l.needed[in.plan.Name]; needed != "" {
		relation = "(SELECT " + typedColumns(in.plan.Columns) + " FROM " + relation + ") WHERE " + needed
	}
	return l.view(ctx, planner.InputRelation(in.plan.Name), in.plan.Columns, relation)
}

// withdraw names the splits whose rows of before are taken back: those that are read from their beginning
// again, and those that are gone.
func (l *life) withdraw(ctx context.Context, in *input) error {
	files := append([]string{}, in.gone...)
	for _, r := range in.ranges {
		if _, read := l.position[in.plan.Name][r.Split]; read && r.From == 0 {
			files = append(files, r.Split)
		}
	}
	return l.Duck.Exec(ctx, "CREATE OR REPLACE TEMP TABLE "+duck.Quote(planner.WithdrawnRelation(in.plan.Name))+" AS SELECT unnest(?::VARCHAR[]) AS file", files)
}

// view gives columns of a relation a name.
func (l *life) view(ctx context.Context, name string, columns []planner.Column, relation string) error {
	return l.Duck.Exec(ctx, fmt.Sprintf("CREATE OR REPLACE TEMP VIEW %s AS SELECT %s FROM %s", duck.Quote(name), typedColumns(columns), relation))
}

func (l *life) relation(ctx context.Context, in *input) (string, error) {
	copied := "_rows_" + in.plan.Name
	if in.scan == nil {
		return emptyRelation(in.plan.Columns), nil
	}
	if rows := in.scan.Records(); rows != nil {
		defer rows.Release()
		in.copied = copied
		return duck.Quote(copied), l.Duck.Load(ctx, copied, rows)
	}
	relation, fused := in.scan.Relation()
	if fused && in.plan.Reads == 1 {
		return relation, nil
	}
	in.copied = copied
	return duck.Quote(copied), in.scan.Copy(ctx, copied)
}

// typedColumns casts to the planned types; where they are those already, DuckDB drops the cast.
func typedColumns(columns []planner.Column) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = fmt.Sprintf("CAST(%s AS %s) AS %s", duck.Quote(c.Name), c.Type, duck.Quote(c.Name))
	}
	return strings.Join(out, ", ")
}

func emptyRelation(columns []planner.Column) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = fmt.Sprintf("CAST(NULL AS %s) AS %s", c.Type, duck.Quote(c.Name))
	}
	return "(SELECT " + strings.Join(out, ", ") + " WHERE false)"
}

// finish asks the sources what was really read, and notes it as the change seq.
func (all *inputs) finish(ctx context.Context, seq int64) error {
	for _, in := range all.list {
		if in.scan == nil {
			continue
		}
		ranges, err := in.scan.Finish(ctx, in.copied)
		if err != nil {
			return err
		}
		in.ranges = ranges
		for _, r := range ranges {
			next := r.Next
			next.Seq = seq
			in.moved[in.id(r)] = next
		}
	}
	return nil
}

// recorded are the ranges as the manifest keeps them.
func (in *input) recorded() []checkpoints.Range {
	out := make([]checkpoints.Range, len(in.ranges))
	for i, r := range in.ranges {
		out[i] = checkpoints.Range{Source: in.plan.Name, Split: in.id(r), From: r.From, To: r.To, Rows: r.Rows, Content: r.Next.Content}
	}
	return out
}

// id is the name that the split of a range is recorded by.
func (in *input) id(r connectors.Range) string { return cmp.Or(in.as[r.Split], r.Split) }

// explain lets the sources say whether their input caused an error.
func (all *inputs) explain(ctx context.Context, err error) error {
	var data *connectors.DataError
	if ctx.Err() != nil || errors.As(err, &data) && data.Source != "" {
		return err
	}
	for _, in := range all.list {
		if in.scan == nil {
			continue
		}
		if explained := in.scan.Explain(ctx, err); explained != nil && explained.Error() != err.Error() {
			return explained
		}
	}
	return err
}

// close gives back what the scans hold.
func (all *inputs) close() {
	for _, in := range all.list {
		if in.scan != nil {
			_ = in.scan.Close() // only files opened to be read
		}
	}
}
