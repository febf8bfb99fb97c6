package planner

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
)

// sink compiles what turns the last delta into the staged rows of a table. Every form ends in a table
// of pairs: per key the new row n0..nm (when _new) and the old row o0..om (when _old).
func (c *compiler) sink(s *Sink, root Node, index int) {
	pairs := fmt.Sprintf("p%d", index)
	s.Staged = fmt.Sprintf("staged%d", index)
	width := len(s.Columns)
	if f, exprs, conjuncts, ok := c.aboveFold(root, s.key); ok {
		s.Run = []string{f.pairs(pairs, exprs, conjuncts)}
	} else {
		s.Run, s.Unique = c.collapse(root, pairs, s.key, index)
	}
	staged := make([]string, width)
	news := make([]string, width)
	olds := make([]string, width)
	for i, col := range s.Columns {
		name := duck.Quote(col.Name)
		// Qualified: the author's names, n0 or _new among them, are aliases in the same SELECT.
		staged[i] = fmt.Sprintf("CASE WHEN _p._new THEN _p.n%d ELSE _p.o%d END AS %s", i, i, name)
		news[i], olds[i] = fmt.Sprintf("_p.n%d AS %s", i, name), fmt.Sprintf("_p.o%d AS %s", i, name)
	}
	from := pairs + " AS _p"
	s.Run = append(s.Run, fmt.Sprintf("CREATE OR REPLACE TEMP VIEW %s AS SELECT %s, CASE WHEN NOT _p._old THEN 'I' WHEN _p._new THEN 'U' ELSE 'D' END AS _op FROM %s",
		s.Staged, strings.Join(staged, ", "), from))
	s.Counts = fmt.Sprintf("SELECT count(*) FILTER (WHERE NOT _old), count(*) FILTER (WHERE _new AND _old), count(*) FILTER (WHERE NOT _new) FROM %s", pairs)
	s.NewRows = fmt.Sprintf("SELECT %s FROM %s WHERE _p._new", strings.Join(news, ", "), from)
	s.OldRows = fmt.Sprintf("SELECT %s FROM %s WHERE _p._old", strings.Join(olds, ", "), from)
}

// aboveFold recognises a sink that only filters and computes from one fold with the same key. Its
// pairs come straight from the fold's changed groups: nothing has to be collapsed.
func (c *compiler) aboveFold(root Node, key []int) (f *folded, exprs, conjuncts []*Expr, ok bool) {
	types := root.Types()
	exprs = make([]*Expr, len(types))
	for i, t := range types {
		exprs[i] = ref(i, t)
	}
	n := root
	if p, isProject := n.(*Project); isProject {
		exprs, n = p.Exprs, p.In
	}
	if flt, isFilter := n.(*Filter); isFilter {
		conjuncts, n = flt.Conjuncts, flt.In
	}
	a, isAggregate := unshared(n).(*Aggregate)
	if !isAggregate {
		return nil, nil, nil, false
	}
	var groups []int
	for _, k := range key {
		switch e := exprs[k]; {
		case e.constant():
		case e.Op == opRef && e.Ref < len(a.Groups):
			groups = append(groups, e.Ref)
		default:
			return nil, nil, nil, false
		}
	}
	slices.Sort(groups)
	if !slices.Equal(slices.Compact(groups), all(len(a.Groups))) {
		return nil, nil, nil, false
	}
	return c.fold(a), exprs, conjuncts, true
}

// pairs computes the sink's rows from the changed groups. Expressions run only for rows that exist,
// as they would in the SELECT.
func (f *folded) pairs(table string, exprs, conjuncts []*Expr) string {
	finished := make([]string, 0, 2*len(f.types))
	for i := range f.types {
		finished = append(finished, fmt.Sprintf("%s AS f%d", f.newCols(i), i), fmt.Sprintf("%s AS g%d", f.oldCols(i), i))
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

// collapse sums a delta to one weight per row, and pairs the rows that come with those that go.
// The second result counts keys that would have two rows; it must be zero.
func (c *compiler) collapse(root Node, pairs string, key []int, index int) (run []string, unique string) {
	d := c.delta(root)
	width := len(d.types)
	rows := fmt.Sprintf("w%d", index)
	on := make([]string, len(key))
	keys := make([]string, len(key))
	for i, k := range key {
		on[i] = fmt.Sprintf("n.c%d IS NOT DISTINCT FROM o.c%d", k, k)
		keys[i] = fmt.Sprintf("c%d", k)
	}
	if len(key) == 0 {
		on = []string{"true"}
	}
	run = []string{
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s, sum(_w)::BIGINT AS _w FROM (%s) GROUP BY %s HAVING sum(_w) <> 0",
			rows, each(width, "c%[1]d"), d.withWeight(), ordinals(width)),
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s, %s, n._w IS NOT NULL AS _new, o._w IS NOT NULL AS _old FROM (FROM %s WHERE _w > 0) n FULL JOIN (FROM %s WHERE _w < 0) o ON %s",
			pairs, each(width, "n.c%[1]d AS n%[1]d"), each(width, "o.c%[1]d AS o%[1]d"), rows, rows, strings.Join(on, " AND ")),
	}
	group := list(strings.Join(keys, ", "), "_w > 0")
	unique = fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s GROUP BY %s HAVING count(*) > 1 OR max(abs(_w)) > 1)", rows, group)
	return run, unique
}
