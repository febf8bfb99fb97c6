package planner

import (
	"fmt"
	"strings"

	"lockstep/engine/duck"
)

// columns tells how column i of an expression's input is written.
type columns func(i int) string

// cols writes the columns c0, c1, … of a prefix such as "d.".
func cols(prefix string) columns {
	return func(i int) string { return fmt.Sprintf("%sc%d", prefix, i) }
}

// sql writes the expression.
func (e *Expr) sql(col columns) string {
	arg := func(i int) string { return e.Args[i].sql(col) }
	switch e.Op {
	case opRef:
		return col(e.Ref)
	case opConst:
		return e.Name
	case opCast:
		return "CAST(" + arg(0) + " AS " + e.Type + ")"
	case opTryCast:
		return "TRY_CAST(" + arg(0) + " AS " + e.Type + ")"
	case opCompare:
		return "(" + arg(0) + " " + e.Name + " " + arg(1) + ")"
	case opAnd:
		return "(" + e.join(col, 0, " AND ") + ")"
	case opOr:
		return "(" + e.join(col, 0, " OR ") + ")"
	case opNot:
		return "(NOT " + arg(0) + ")"
	case opIsNull:
		return "(" + arg(0) + " IS NULL)"
	case opIsNotNull:
		return "(" + arg(0) + " IS NOT NULL)"
	case opIn:
		return "(" + arg(0) + " IN (" + e.join(col, 1, ", ") + "))"
	case opNotIn:
		return "(" + arg(0) + " NOT IN (" + e.join(col, 1, ", ") + "))"
	case opCoalesce:
		return "coalesce(" + e.join(col, 0, ", ") + ")"
	case opCase:
		var b strings.Builder
		b.WriteString("CASE")
		for i := 0; i+1 < len(e.Args); i += 2 {
			b.WriteString(" WHEN " + arg(i) + " THEN " + arg(i+1))
		}
		b.WriteString(" ELSE " + arg(len(e.Args)-1) + " END")
		return b.String()
	case opFunc:
		if e.Name == "array_slice" {
			return e.slice(col)
		}
		if e.Form != asBound {
			return duck.Quote(e.Name) + "(" + strings.Join(e.uncast(col), ", ") + ")"
		}
		return duck.Quote(e.Name) + "(" + e.join(col, 0, ", ") + ")"
	case opStruct:
		fields := make([]string, len(e.Args))
		for i, name := range e.Fields {
			fields[i] = duck.Quote(name) + " := " + arg(i)
		}
		return "struct_pack(" + strings.Join(fields, ", ") + ")"
	}
	panic("planner: no rendering for " + string(e.Op)) // a missing case here is a bug, not an input
}

// slice writes x[from:to] and x[from:to:step], where from and to may be open.
func (e *Expr) slice(col columns) string {
	bounds := []string{"", "", ""}
	for i, b := range e.Args[1:] {
		if b.Op != opOpen {
			bounds[i] = b.sql(col)
		}
	}
	s := "(" + e.Args[0].sql(col) + ")[" + bounds[0] + ":" + bounds[1]
	if bounds[2] != "" {
		if bounds[1] == "" {
			s += "-" // DuckDB's mark of an open end before a step
		}
		s += ":" + bounds[2]
	}
	return s + "]"
}

func (e *Expr) join(col columns, from int, sep string) string {
	return strings.Join(sqlAll(e.Args[from:], col), sep)
}

func sqlAll(exprs []*Expr, col columns) []string {
	out := make([]string, len(exprs))
	for i, e := range exprs {
		out[i] = e.sql(col)
	}
	return out
}

// conjunction writes the AND of a filter's conjuncts.
func conjunction(conjuncts []*Expr, col columns) string {
	return strings.Join(sqlAll(conjuncts, col), " AND ")
}

// list joins the non-empty parts with commas.
func list(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}

// each writes format for 0..n-1, comma separated; %[1]d is the index.
func each(n int, format string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(out, ", ")
}

// How keys are compared. Both mean the same of keys without NULL; then DuckDB does better with the plain
// one, for which it skips the rows of a table that cannot match.
const (
	nullSafe = "IS NOT DISTINCT FROM"
	plainly  = "="
)

// matched compares columns of the same names in two relations.
func matched(left, same, right string, names []string) string {
	if len(names) == 0 {
		return "true"
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = left + n + " " + same + " " + right + n
	}
	return strings.Join(out, " AND ")
}

// anyNullIn is true of rows with a NULL in one of the columns.
func anyNullIn(names []string) string {
	if len(names) == 0 {
		return "false"
	}
	return strings.Join(names, " IS NULL OR ") + " IS NULL"
}

// query writes a whole IR tree as one SELECT over the source tables: c0..cn. It is used to prove
// that the IR means what DuckDB bound: the text is bound again and must give the same normal form.
func query(n Node) string {
	switch n := n.(type) {
	case *Scan:
		from := n.Source
		if n.hasPlace() {
			from = PlacedRelation(n.Source)
		}
		return "SELECT " + selection(qualified(n.Cols)) + " FROM " + duck.Quote(from) + " AS _t"
	case *Filter:
		return "SELECT * FROM (" + query(n.In) + ") WHERE " + conjunction(n.Conjuncts, cols(""))
	case *Project:
		return "SELECT " + selection(sqlAll(n.Exprs, cols(""))) + " FROM (" + query(n.In) + ")"
	case *Aggregate:
		parts := sqlAll(n.Groups, cols(""))
		for _, a := range n.Aggs {
			parts = append(parts, a.sql(cols("")))
		}
		if len(parts) == 0 {
			parts = []string{"count(*)"} // only that there is a row is asked for
		}
		s := "SELECT " + aliased(parts) + " FROM (" + query(n.In) + ")"
		if len(n.Groups) > 0 {
			s += " GROUP BY " + ordinals(len(n.Groups))
		}
		return s
	case *Union:
		out := make([]string, len(n.Ins))
		for i, in := range n.Ins {
			out[i] = "(" + query(in) + ")"
		}
		return strings.Join(out, " UNION ALL ")
	case *Top:
		return n.query()
	}
	panic(fmt.Sprintf("planner: no rendering for %T", n))
}

// sql writes the aggregate call as DuckDB would take it.
func (a *Agg) sql(col columns) string {
	s := duck.Quote(a.Name) + "(" + a.distinctly("DISTINCT ") + strings.Join(sqlAll(a.Args, col), ", ") + ")"
	if len(a.Order) > 0 {
		s = strings.TrimSuffix(s, ")") + " ORDER BY " + orderSQL(a.Order, col) + ")"
	}
	if a.inOrder {
		s = strings.TrimSuffix(s, ")") + " ORDER BY " + a.Args[0].sql(col) + ")"
	}
	if a.Name == "count_star" {
		s = "count(*)"
	}
	if a.Filter != nil {
		s += " FILTER (WHERE " + a.Filter.sql(col) + ")"
	}
	return s
}

// distinctly is the word for an aggregate of distinct values.
func (a *Agg) distinctly(word string) string {
	if a.Distinct {
		return word
	}
	return ""
}

// qualified writes columns of a relation named _t: no name of the author's can be taken for an alias
// of ours.
func qualified(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "_t." + duck.Quote(n)
	}
	return out
}

// selection is aliased for what may have no columns: then only the number of rows is asked for.
func selection(exprs []string) string {
	if len(exprs) == 0 {
		return "true AS _row"
	}
	return aliased(exprs)
}

func aliased(exprs []string) string {
	out := make([]string, len(exprs))
	for i, e := range exprs {
		out[i] = fmt.Sprintf("%s AS c%d", e, i)
	}
	return strings.Join(out, ", ")
}

func ordinals(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(out, ", ")
}
