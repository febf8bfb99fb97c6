package plannertest

import (
	"fmt"
	"slices"
	"strings"
)

// keyOf are the group columns of a grouped relation.
func keyOf(cols []genCol) []string {
	var key []string
	for _, c := range cols {
		if strings.HasPrefix(c.name, "g") {
			key = append(key, c.name)
		}
	}
	return key
}

// order draws the elements of an ORDER BY, which mostly leave no tie.
func (g *gen) order(r rel, least int) []string {
	var out []string
	for range g.between(least, 2) {
		c := r.cols[g.between(0, len(r.cols)-1)]
		expr := c.name
		if c.loose {
			expr = "round(" + expr + ", 1)"
		}
		if g.chance(20) {
			expr = "(" + g.expr(r, c.kind, 1) + ")"
		}
		out = append(out, expr)
	}
	if len(r.unique) > 0 && g.chance(95) {
		out = append(out, r.unique...)
	}
	for i := range out {
		out[i] += g.pick("direction", "", " ASC", " DESC", " DESC") + g.pick("nulls", "", "", " NULLS FIRST", " NULLS LAST")
	}
	return out
}

func constantPart(parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool {
		return !strings.ContainsAny(p, "abcdefghijklmnopqrstuvwxyz") || strings.ContainsAny(p, "'")
	})
}

// first draws the first rows of partitions, in one of the ways to write that.
func (g *gen) first(r rel) (sql string, cols []genCol, key []string) {
	var parts, items []string
	for range g.between(0, 2) {
		kind := g.pick("partition", kInt, kInt, kText, kDbl, kDate, kBool)
		expr, name := g.leaf(r, kind), g.name("f")
		if g.chance(20) {
			expr = g.expr(r, kind, 1)
		}
		items, parts, key = append(items, expr+" AS "+name), append(parts, expr), append(key, name)
		cols = append(cols, genCol{name, kind, false})
	}
	for _, c := range r.cols {
		if g.chance(40) {
			name := g.name("f")
			items = append(items, c.name+" AS "+name)
			cols = append(cols, genCol{name, c.kind, c.loose})
		}
	}
	kind := g.pick("kind", kInt, kText)
	name := g.name("f")
	items, cols = append(items, g.expr(r, kind, 1)+" AS "+name), append(cols, genCol{name, kind, false})
	least := 1
	if len(r.unique) > 0 {
		least = 0
	}
	if r.tied && g.chance(80) {
		sql, cols := g.grouped(r, true)
		return sql, cols, keyOf(cols)
	}
	order := strings.Join(g.order(r, least), ", ")
	from, rows := r.sql+g.where(r), g.between(1, 3)
	if g.chance(50) {
		rows = 1
	}
	by := ""
	if len(parts) > 0 {
		by = "PARTITION BY " + strings.Join(parts, ", ") + " "
	}
	switch n := g.between(0, 3); {
	case n == 0 && rows == 1 && len(parts) > 0:
		on := "(" + strings.Join(parts, "), (") + ")"
		if constantPart(parts) { // which DISTINCT ON takes for the place of a column
			sql, cols := g.grouped(r, true)
			return sql, cols, keyOf(cols)
		}
		return fmt.Sprintf("SELECT DISTINCT ON (%s) %s FROM %s ORDER BY %s, %s", on, strings.Join(items, ", "), from, on, order), cols, key
	case n == 0 && rows == 1:
		return fmt.Sprintf("SELECT %s FROM %s ORDER BY %s LIMIT 1", strings.Join(items, ", "), from, order), cols, key
	case n < 2:
		name := g.name("f")
		if rows > 1 {
			key = append(key, name)
		}
		return fmt.Sprintf("SELECT * FROM (SELECT %s, row_number() OVER (%sORDER BY %s) AS %s FROM %s) WHERE %s <= %d", strings.Join(items, ", "), by, order, name, from, name, rows),
			append(cols, genCol{name, kInt, false}), key
	}
	if rows > 1 {
		name := g.name("f")
		items, cols, key = append(items, fmt.Sprintf("row_number() OVER (%sORDER BY %s) AS %s", by, order, name)), append(cols, genCol{name, kInt, false}), append(key, name)
	}
	return fmt.Sprintf("SELECT %s FROM %s QUALIFY row_number() OVER (%sORDER BY %s) <= %d", strings.Join(items, ", "), from, by, order, rows), cols, key
}

// chosen draws an aggregate that takes the value of one row.
func (g *gen) chosen(r rel, arg func(string) string) (call, kind string) {
	kind = g.pick("chosen", kInt, kText, kDec, kDbl, kTime, kDate, kBool)
	if r.tied && g.chance(80) {
		return "max(" + arg(kind) + ")", kind
	}
	if len(r.unique) != 1 && !(len(r.unique) == 0 && g.chance(50)) {
		return g.pick("fn", "first", "last", "any_value") + "(" + arg(kind) + " ORDER BY " + strings.Join(g.order(r, 1), ", ") + ")", kind
	}
	by := g.leaf(r, g.pick("by", kInt, kText, kDbl, kTime))
	if len(r.unique) == 1 {
		by = r.unique[0]
	}
	return g.pick("fn", "arg_max", "arg_min", "max_by", "arg_max_null", "arg_min_null") + "(" + arg(kind) + ", " + by + ")", kind
}
