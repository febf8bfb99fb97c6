package planner

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
)

// Files of a source may be replaced: then what was read of them before is taken back. For that, a step of
// its own keeps the rows of the source by their place, as far as any SELECT reads them, and gives what
// comes and what goes to the others.

// WithdrawnRelation is the relation the engine provides for such a source during a batch: in its column
// file, the files whose rows of before are to be taken back.
func WithdrawnRelation(source string) string { return "_withdrawn_" + source }

// sourceRows is that step, of one source for all sinks.
type sourceRows struct {
	cols  []string // besides the place, by name
	types []string
	table string // n<k>, once it is compiled
}

// gatherRows adds the columns of a scan to what the step keeps.
func (c *compiler) gatherRows(n *Scan) {
	r := c.rows[n.Source]
	if r == nil {
		r = &sourceRows{}
		c.rows[n.Source] = r
	}
	for i, name := range n.Cols {
		at, found := slices.BinarySearch(r.cols, lower(name))
		if !found && !isPlace(name) {
			r.cols, r.types = slices.Insert(r.cols, at, lower(name)), slices.Insert(r.types, at, n.Type[i])
		}
	}
}

func isPlace(name string) bool { return lower(name) == placeFile || lower(name) == placeRow }

// replaced gives the rows of a scan that come or go.
func (c *compiler) replaced(n *Scan) delta {
	r := c.rows[n.Source]
	if r.table == "" {
		c.keepRows(n.Source, r)
	}
	side := func(prefix string, weight int, on string) string {
		exprs := make([]string, len(n.Cols))
		for i, name := range n.Cols {
			at, _ := slices.BinarySearch(r.cols, lower(name))
			exprs[i] = fmt.Sprintf("%s%d", prefix, at)
			switch lower(name) {
			case placeFile:
				exprs[i] = "k0"
			case placeRow:
				exprs[i] = "k1"
			}
		}
		return fmt.Sprintf("SELECT %s, %d::BIGINT AS _w FROM %s WHERE %s AND NOT _same", selection(exprs), weight, r.table, on)
	}
	return delta{sql: side("c", 1, "_new") + " UNION ALL " + side("o", -1, "_old"), types: n.Type, weighted: true,
		of: Origin{Sources: []string{n.Source}, Steps: []string{rowsStep(n.Source)}}}
}

func rowsStep(source string) string { return "table/" + shortHash(source) }

// keepRows compiles the step. A row that a replaced file has again, in the same place, stays.
func (c *compiler) keepRows(source string, r *sourceRows) {
	c.reads[source]++
	k := len(c.plan.Steps)
	r.table = fmt.Sprintf("n%d", k)
	state := Table{Name: fmt.Sprintf("s%d", k), Key: 2, Cols: []Col{{Name: "k0", Type: "VARCHAR"}, {Name: "k1", Type: "BIGINT"}}}
	names, both := []string{placeFile + " AS k0", placeRow + " AS k1"}, []string{}
	same := []string{"_new", "_old"}
	var last, none []string
	for i, typ := range r.types {
		state.Cols = append(state.Cols, Col{Name: fmt.Sprintf("c%d", i), Type: typ})
		names = append(names, fmt.Sprintf("%s AS c%d", duck.Quote(r.cols[i]), i))
		both = append(both, fmt.Sprintf("n.c%[1]d AS c%[1]d, o.c%[1]d AS o%[1]d", i))
		same = append(same, fmt.Sprintf("c%[1]d IS NOT DISTINCT FROM o%[1]d", i))
		if !oneLook(typ) {
			same = append(same, fmt.Sprintf("CAST(c%[1]d AS VARCHAR) IS NOT DISTINCT FROM CAST(o%[1]d AS VARCHAR)", i))
		}
		none = append(none, fmt.Sprintf("CAST(NULL AS %s) AS o%d", typ, i))
		last = append(last, fmt.Sprintf("CASE WHEN _new THEN c%[1]d ELSE o%[1]d END AS c%[1]d", i))
	}
	paired := list("CASE WHEN n.k1 IS NULL THEN o.k0 ELSE n.k0 END AS k0, CASE WHEN n.k1 IS NULL THEN o.k1 ELSE n.k1 END AS k1",
		strings.Join(both, ", "), "n.k1 IS NOT NULL AS _new, o.k1 IS NOT NULL AS _old")
	step := Step{
		ID: rowsStep(source), Of: Origin{Sources: []string{source}}, Kind: "table", Pos: c.sourcePosition(source), State: state,
		Run: []string{fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT *, %s AS _same FROM (SELECT %s FROM (SELECT %s FROM %s) n FULL JOIN (SELECT * FROM %s WHERE k0 IN (SELECT file FROM %s)) o ON n.k0 = o.k0 AND n.k1 = o.k1)",
			r.table, strings.Join(same, " AND "), paired, strings.Join(names, ", "), duck.Quote(InputRelation(source)), state.Name, duck.Quote(WithdrawnRelation(source)))},
		Keep: []string{
			fmt.Sprintf("DELETE FROM %s s USING %s n WHERE n._old AND NOT n._same AND s.k0 = n.k0 AND s.k1 = n.k1", state.Name, r.table),
			fmt.Sprintf("INSERT INTO %[1]s SELECT %[2]s FROM %[3]s WHERE _new AND NOT _same", state.Name, state.columnList(), r.table),
		},
		Changed: fmt.Sprintf("SELECT %s, (CASE WHEN _new THEN 1 ELSE 0 END)::TINYINT AS _op FROM %s WHERE NOT _same", list("k0, k1", strings.Join(last, ", ")), r.table),
		All: []string{fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s FROM %s",
			r.table, list(state.columnList(), strings.Join(none, ", "), "true AS _new, false AS _old, false AS _same"), state.Name)},
		Counts:  source,
		Counted: "SELECT count(*) FILTER (_new) FROM " + r.table,
		source:  source,
	}
	c.plan.Steps = append(c.plan.Steps, step)
	c.plan.state = append(c.plan.state, canonicalState{Step: step.ID, Rows: "rows of " + source, Keeps: []string{strings.Join(r.cols, ", ")}}) // in this order, by their number
}

func (c *compiler) sourcePosition(name string) int {
	for _, s := range c.plan.Sources {
		if s.Name == name {
			return s.Decl.Head.Start
		}
	}
	return -1
}
