package planner

import (
	"fmt"
	"maps"
	"strings"

	"lockstep/engine/duck"
)

// sink compiles what turns the last delta into the staged rows of a table. Every form ends in a table
// of pairs: per key the new row n0..nm (when _new) and the old row o0..om (when _old).
func (c *compiler) sink(s *Sink, root Node, index int) {
	pairs := fmt.Sprintf("p%d", index)
	s.Staged = fmt.Sprintf("staged%d", index)
	width := len(s.Columns)
	if f, exprs, conjuncts, ok := c.aboveStep(root, s.key); ok {
		s.Run, s.Of = []string{f.pairs(pairs, exprs, conjuncts)}, f.of
	} else {
		d := c.delta(root)
		s.Run, s.Unique = d.collapse(pairs, s.key, index)
		s.Of = d.of
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

// aboveStep recognises a sink that only filters and computes from one step with the same key. Its pairs
// come straight from the step's changed rows: nothing has to be collapsed.
func (c *compiler) aboveStep(root Node, key []int) (f *changes, exprs, conjuncts []*Expr, ok bool) {
	exprs = refs(root.Types())
	n := root
	if p, isProject := n.(*Project); isProject {
		exprs, n = p.Exprs, p.In
	}
	if flt, isFilter := n.(*Filter); isFilter {
		conjuncts, n = flt.Conjuncts, flt.In
	}
	rowKey, isStep := stepRowKey(n)
	if !isStep {
		return nil, nil, nil, false
	}
	wanted, found := map[string]bool{}, map[string]bool{}
	for _, e := range rowKey {
		wanted[e.sql(cols(""))] = true
	}
	for _, k := range key {
		if e := exprs[k]; !e.constant() {
			found[e.sql(cols(""))] = true
		}
	}
	if !maps.Equal(wanted, found) {
		return nil, nil, nil, false
	}
	return c.step(n), exprs, conjuncts, true
}

// collapse sums a delta to one weight per row, and pairs the rows that come with those that go.
// The second result counts keys that would have two rows; it must be zero.
func (d delta) collapse(pairs string, key []int, index int) (run []string, unique string) {
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
