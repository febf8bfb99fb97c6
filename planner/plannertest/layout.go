package plannertest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// block is a SELECT in parts, to be written in several ways.
type block struct {
	from          string
	groups, aggs  [][2]string // expression, name
	where, having []string
}

func (g *gen) block() block {
	r := g.from(1)
	b := block{from: r.sql}
	for i := range g.between(0, 3) {
		b.groups = append(b.groups, [2]string{g.expr(r, g.pick("group", kInt, kText, kBool, kDate, kDec), 1), fmt.Sprintf("g%d", 900+i)})
	}
	if len(b.groups) > 0 {
		b.groups[0][0] = r.cols[0].name // with constants alone, GROUP BY ALL means another thing
	}
	for i := range g.between(1, 4) {
		call, _, _ := g.agg(r)
		b.aggs = append(b.aggs, [2]string{call, fmt.Sprintf("m%d", 900+i)})
	}
	for range g.between(0, 3) {
		b.where = append(b.where, g.boolean(r, 1))
	}
	for range g.between(0, 2) {
		b.having = append(b.having, fmt.Sprintf("count(*) > %d", g.between(0, 3)))
	}
	return b
}

func shuffled[T any](t *rapid.T, list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return rapid.Permutation(list).Draw(t, "order")
}

// write draws a way to write the block: order of items and conditions, form of the GROUP BY, a subquery,
// CTE or view around its input, conditions inside or outside of that, columns nobody reads, comments,
// letter case. None of it means anything.
func (g *gen) write(b block) string {
	var view, head string
	from := b.from
	where := shuffled(g.t, b.where)
	inner := ""
	if n := g.between(0, len(where)); n > 0 && g.chance(50) {
		inner, where = " WHERE "+strings.Join(where[:n], " AND "), where[n:]
	}
	switch wrap := g.between(0, 3); {
	case wrap == 1 || wrap == 0 && inner != "":
		from = "(SELECT * FROM " + from + inner + ")"
	case wrap == 2:
		head, from = "WITH Wrapped AS (SELECT *, 1 + 1 AS unread FROM "+from+inner+") ", "wrapped"
	case wrap == 3:
		view, from = "CREATE VIEW v AS SELECT * FROM "+from+inner+";\n", "V"
	}
	var items []string
	numbers := map[string]int{}
	type item struct {
		expr, name string
		group      bool
	}
	var all []item
	for _, x := range b.groups {
		all = append(all, item{x[0], x[1], true})
	}
	for _, x := range b.aggs {
		all = append(all, item{x[0], x[1], false})
	}
	for i, x := range shuffled(g.t, all) {
		sep := g.pick("as", " AS ", " as ", " /* the\nname */ AS ")
		items = append(items, x.expr+sep+x.name)
		if x.group {
			numbers[x.name] = i + 1
		}
	}
	s := head + g.pick("select", "SELECT ", "select ") + strings.Join(items, ", ") + " FROM " + from
	if len(where) > 0 {
		s += " WHERE " + strings.Join(where, g.pick("and", " AND ", " and ", " -- and\n AND "))
	}
	names := make([]string, len(b.groups))
	for i, x := range shuffled(g.t, b.groups) {
		names[i] = g.pick("by", x[1], strings.ToUpper(x[1]), fmt.Sprint(numbers[x[1]]))
	}
	if len(names) > 0 {
		s += " GROUP BY " + g.pick("all", "ALL", strings.Join(names, ", "), strings.Join(names, ", ")+", "+names[0])
	}
	if len(b.having) > 0 {
		s += " HAVING " + strings.Join(shuffled(g.t, b.having), " AND ")
	}
	var key []string
	for _, x := range shuffled(g.t, b.groups) {
		key = append(key, x[1])
	}
	columns := g.pick("columns", Columns, strings.Join(shuffled(g.t, strings.Split(Columns, ", ")), ", "))
	if strings.Contains(Columns, "DECIMAL(12,2)") && !strings.Contains(columns, "DECIMAL(12,2)") {
		columns = Columns
	}
	return fmt.Sprintf("ATTACH 'm.duckdb' AS m; CREATE SOURCE t (%s) FROM 't.parquet';\n%sCREATE SINK m.out PRIMARY KEY (%s) AS %s;", columns, view, strings.Join(key, ", "), s)
}

// TwoWays draws a pipeline and writes it twice. None of the differences means anything.
func TwoWays(t *rapid.T) (first, second string) {
	g := &gen{t: t}
	b := g.block()
	return g.write(b), g.write(b)
}
