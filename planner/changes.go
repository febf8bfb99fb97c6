package planner

import (
	"fmt"
	"slices"
	"strings"
)

// changes is what a step gives to the next: its changed rows in a temp table, old and new side by side.
type changes struct {
	table      string
	types      []string
	news, olds columns
	onNew      string // true for rows that exist after the batch
	onOld      string // true for rows that existed before it
	distinct   bool   // a row that exists before and after is the same
	stays      bool   // none that exists ever goes
	of         Origin // the step, and what it is made from
}

// delta emits +1 for the new of every changed row and −1 for the old, as far as the conjuncts of a
// HAVING let them through. Conditions run only for rows that exist, as they would in the SELECT: of a
// group that is gone, ln(count(*)) would be an error. Of distinct rows only those are emitted that come or
// go.
func (f *changes) delta(conjuncts []*Expr) delta {
	side := func(col columns, weight int, on string) string {
		exprs := make([]string, len(f.types))
		for i := range exprs {
			exprs[i] = col(i)
		}
		rows := fmt.Sprintf("SELECT %s, %s AS _on FROM %s", selection(exprs), on, f.table)
		where := "_on"
		if len(conjuncts) > 0 {
			where = fmt.Sprintf("CASE WHEN _on THEN coalesce(%s, false) ELSE false END", conjunction(conjuncts, cols("")))
		}
		columns := "SELECT * EXCLUDE (_on)"
		if weight != 0 {
			columns += fmt.Sprintf(", %d::BIGINT AS _w", weight)
		}
		return columns + " FROM (" + rows + ") WHERE " + where
	}
	onNew, onOld := f.onNew, f.onOld
	if f.distinct {
		onNew, onOld = "("+f.onNew+" AND NOT "+f.onOld+")", "("+f.onOld+" AND NOT "+f.onNew+")"
		if f.stays {
			return delta{sql: side(f.news, 0, onNew), types: f.types, of: f.of}
		}
	}
	return delta{
		sql:      side(f.news, 1, onNew) + " UNION ALL " + side(f.olds, -1, onOld),
		types:    f.types,
		weighted: true,
		of:       f.of,
	}
}

// pairs computes the sink's rows from the changed rows. Expressions run only for rows that exist,
// as they would in the SELECT.
func (f *changes) pairs(table string, exprs, conjuncts []*Expr) string {
	finished := make([]string, 0, 2*len(f.types))
	for i := range f.types {
		finished = append(finished, fmt.Sprintf("%s AS f%d", f.news(i), i), fmt.Sprintf("%s AS g%d", f.olds(i), i))
	}
	newCol := func(i int) string { return fmt.Sprintf("f%d", i) }
	oldCol := func(i int) string { return fmt.Sprintf("g%d", i) }
	on := func(exists, flag string, col columns) string {
		if len(conjuncts) > 0 {
			exists = fmt.Sprintf("(CASE WHEN %s THEN coalesce(%s, false) ELSE false END)", exists, conjunction(conjuncts, col))
		}
		return exists + " AS " + flag
	}
	rows := make([]string, 0, 2*len(exprs))
	var same []string
	for i, e := range exprs {
		news, olds := e.sql(newCol), e.sql(oldCol)
		if e.Op != opRef { // a column cannot fail, and nobody looks at it where its row does not exist
			news, olds = "CASE WHEN _new THEN "+news+" END", "CASE WHEN _old THEN "+olds+" END"
		}
		rows = append(rows, fmt.Sprintf("%s AS n%d", news, i), fmt.Sprintf("%s AS o%d", olds, i))
		same = append(same, fmt.Sprintf("n%d IS NOT DISTINCT FROM o%d", i, i))
	}
	finished = append(finished, f.onNew+" AS _live", f.onOld+" AS _was")
	groups := fmt.Sprintf("SELECT %s FROM %s", strings.Join(finished, ", "), f.table)
	flags := fmt.Sprintf("SELECT *, %s, %s FROM (%s)", on("_live", "_new", newCol), on("_was", "_old", oldCol), groups)
	values := fmt.Sprintf("SELECT %s, _new, _old FROM (%s) WHERE _new OR _old", strings.Join(rows, ", "), flags)
	return fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT * FROM (%s) WHERE NOT (_new AND _old AND %s)",
		table, values, strings.Join(same, " AND "))
}

// stepRowKey is what identifies a row of a step's result, as expressions over its columns.
func stepRowKey(n Node) ([]*Expr, bool) {
	switch n := n.(type) {
	case *Aggregate:
		return refs(exprTypes(n.Groups)), true
	case *Top:
		key := slices.Clone(n.Parts)
		if n.Rows > 1 {
			key = append(key, ref(len(n.In.Types()), "BIGINT"))
		}
		return key, true
	}
	return nil, false
}

// stepKey identifies what a step keeps: the rows it is made from, and, but for a fold, with them what it
// makes of them. A fold is found again whichever aggregates are asked for.
// Both are "" for a node that is no step.
func stepKey(n Node) (rows, key string) {
	switch n := n.(type) {
	case *Aggregate:
		d := describe(n)
		if !n.needsRows() {
			return d.rows, foldRows(n)
		}
		return d.rows, strings.Join(d.cols, "; ") + " | " + d.rows
	case *Top:
		d, in := describe(n), describe(n.In)
		return "partitions(" + strings.Join(canonAll(n.Parts, in.cols), "; ") + " | " + in.rows + ")", strings.Join(d.cols, "; ") + " | " + d.rows
	}
	return "", ""
}

// stepID names a step by what it keeps, so that it is found again after a restart. Nothing in it depends
// on the order of the SELECT's parts, or on the other sinks.
func stepID(n Node) string {
	_, key := stepKey(n)
	return stepKind(n) + "/" + shortHash(key)
}

// stepKind is how a node is kept up to date.
func stepKind(n Node) string {
	switch n := n.(type) {
	case *Top:
		return "local"
	case *Aggregate:
		if n.needsRows() {
			return "local"
		}
	}
	return "fold"
}
