// Package plannertest draws random pipelines for the tests of whatever runs them: SELECTs over one source t,
// rows for it with everything that is awkward, and other ways to write the same SELECT.
package plannertest

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// gen writes random SELECTs over the grammar that version one has rules for, and a little beyond: what
// the planner refuses is counted, not skipped over by construction.
type gen struct {
	t     *rapid.T
	names int
	ctes  *[]rel  // common table expressions so far, to be read again; nil where the query has none
	head  string  // WITH …
	last  grouped // of the outermost GROUP BY
}

// grouped is what a SELECT groups, to be grouped again.
type grouped struct {
	rel   rel
	from  string // with its WHERE
	items []string
	cols  []genCol
}

// rel is a relation of the query so far.
type rel struct {
	sql  string // of a FROM
	cols []genCol
	// What orders its rows without a tie: columns, or nothing where their place does.
	unique []string
	tied   bool // nothing does
}

type genCol struct {
	name, kind string
	loose      bool // a floating aggregate: equal within a tolerance only
}

// The kinds of the generator's columns and the DuckDB types behind them.
const (
	kInt  = "int"
	kDec  = "dec"
	kDbl  = "dbl"
	kText = "text"
	kBool = "bool"
	kTime = "time"
	kDate = "date"
)

var genColumns = []genCol{{"id", kInt, false}, {"k", kInt, false}, {"a", kInt, false}, {"tiny", kInt, false}, {"b", kDec, false}, {"wide", kDec, false},
	{"c", kText, false}, {"d", kDbl, false}, {"r", kDbl, false}, {"ts", kTime, false}, {"day", kDate, false}, {"f", kBool, false}}

// Columns declares the columns of t. id numbers the rows from 1.
const Columns = `id BIGINT NOT NULL, k INTEGER, a INTEGER, tiny TINYINT, b DECIMAL(12,2), wide DECIMAL(38,4), c VARCHAR, d DOUBLE, r FLOAT, ts TIMESTAMP, day DATE, f BOOLEAN`

// genValues are NULLs, duplicates, extremes, signed zeros, NaN and infinities.
var genValues = map[string][]string{
	"k":    {"NULL", "0", "0", "1", "1", "1", "2", "3"},
	"a":    {"NULL", "-2147483648", "2147483647", "0", "5", "5", "-7", "42"},
	"tiny": {"NULL", "-128", "127", "0", "1"},
	"b":    {"NULL", "0", "0.01", "-0.01", "9999999999.99", "-9999999999.99", "12.5"},
	"wide": {"NULL", "0.0001", "1234567890123456789012345678.1234", "-1234567890123456789012345678.1234"},
	"c":    {"NULL", "''", "'a'", "'A'", "'b '", "'é'", "'10'", "'9'"},
	"d":    {"NULL", "'-0.0'", "'0.0'", "'nan'", "'inf'", "'-inf'", "1.5", "0.1", "-1000.25", "3e5"},
	"r":    {"NULL", "'-0.0'", "'0.0'", "'nan'", "0.5", "0.1", "16777216"},
	"ts":   {"NULL", "'2024-03-31 00:59:59.999999'", "'2024-03-31 01:00:00'", "'1969-12-31 23:00:00'", "'2024-10-27 12:00:00'"},
	"day":  {"NULL", "'2024-02-29'", "'1969-12-31'", "'2024-02-28'", "'infinity'"},
	"f":    {"NULL", "true", "false"},
}

// Rows draws n rows of t, as a VALUES list.
func Rows(t *rapid.T, n int) string {
	g := &gen{t: t}
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s(%d", map[bool]string{true: ", "}[i > 0], i+1)
		for _, c := range genColumns[1:] {
			b.WriteString(", " + g.pick("value", genValues[c.name]...))
		}
		b.WriteString(")")
	}
	return b.String()
}

func (g *gen) pick(what string, of ...string) string { return rapid.SampledFrom(of).Draw(g.t, what) }
func (g *gen) chance(percent int) bool {
	return rapid.IntRange(0, 99).Draw(g.t, "chance") < percent
}
func (g *gen) between(a, b int) int { return rapid.IntRange(a, b).Draw(g.t, "n") }

func (g *gen) name(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

// agg draws an aggregate call and the kind of its result.
func (g *gen) agg(r rel) (call, kind string, loose bool) {
	arg := func(k string) string { return g.expr(r, k, 1) }
	if g.chance(40) {
		arg = func(k string) string { return g.leaf(r, k) }
	}
	switch g.between(0, 11) {
	case 10:
		call, kind = g.chosen(r, arg)
	case 0, 1:
		call, kind = "count(*)", kInt
	case 11:
		call, kind = g.pick("bits", "bit_and", "bit_or", "bit_xor", "bit_xor")+"("+arg(kInt)+")", kInt
	case 2:
		call, kind = "count("+arg(g.pick("of", kInt, kText, kDbl, kBool))+")", kInt
	case 3, 4:
		kind = g.pick("sum", kInt, kInt, kDec, kDbl)
		call, loose = "sum("+arg(kind)+")", kind == kDbl
	case 5:
		call, kind, loose = "avg("+arg(g.pick("avg", kInt, kDec, kDbl))+")", kDbl, true
	case 6, 7:
		kind = g.pick("minmax", kInt, kText, kDec, kDbl, kTime, kDate, kBool)
		call = g.pick("fn", "min", "max") + "(" + arg(kind) + ")"
	case 8:
		call = g.pick("fn", "bool_and", "bool_or", "count_if") + "(" + arg(kBool) + ")"
		kind = kBool
		if strings.HasPrefix(call, "count_if") {
			kind = kInt
		}
	default:
		// Not of random doubles: DuckDB refuses NaN and infinity there.
		call, kind, loose = g.pick("fn", "stddev", "var_pop", "var_samp", "stddev_pop")+"("+g.pick("small", "tiny", "k", "a", "id")+")", kDbl, true
		if !slices.ContainsFunc(r.cols, func(c genCol) bool { return c.name == "tiny" }) {
			call, kind, loose = "count(*)", kInt, false
		}
	}
	if call != "count(*)" && !strings.Contains(call, "ORDER BY") && !strings.HasPrefix(call, "arg_") && g.chance(25) {
		call = strings.Replace(call, "(", "(DISTINCT ", 1)
	}
	if g.chance(20) {
		call += " FILTER (" + g.pick("where", "", "WHERE ") + g.expr(r, kBool, 1) + ")"
	}
	return call, kind, loose
}

// from draws a relation to group: the source, or something made of it.
func (g *gen) from(depth int) rel {
	base := rel{sql: "t", cols: genColumns}
	if depth <= 0 {
		return base
	}
	switch g.between(0, 10) {
	case 9, 10:
		sql, cols, key := g.first(g.from(depth - 1))
		return rel{sql: "(" + sql + ")", cols: cols, unique: key}
	case 0:
		return g.projected(g.from(depth - 1))
	case 1, 2:
		a, b := g.from(depth-1), g.from(depth-1)
		return g.union(a, b)
	case 3, 4:
		if g.chance(15) {
			sql, cols := g.rolledUp(g.from(depth-1), false)
			return rel{sql: "(" + sql + ")", cols: cols, tied: true}
		}
		sql, cols := g.grouped(g.from(depth-1), false)
		return rel{sql: "(" + sql + ")", cols: cols, unique: keyOf(cols), tied: len(keyOf(cols)) == 0}
	case 5:
		r := g.projected(g.from(depth - 1))
		out := rel{sql: "(SELECT DISTINCT " + strings.TrimPrefix(r.sql, "(SELECT "), cols: r.cols}
		for _, c := range r.cols {
			out.unique = append(out.unique, c.name)
		}
		return out
	case 6:
		return g.cte(depth)
	}
	return base
}

// cte reads a common table expression: a new one, or one that is read already.
func (g *gen) cte(depth int) rel {
	if g.ctes == nil {
		return g.from(depth - 1)
	}
	if n := len(*g.ctes); n > 0 && g.chance(60) {
		return (*g.ctes)[g.between(0, n-1)]
	}
	r := g.from(depth - 1)
	name := g.name("cte")
	if g.head != "" {
		g.head += ", "
	}
	g.head += name + " AS (SELECT * FROM " + r.sql + ")"
	*g.ctes = append(*g.ctes, rel{sql: name, cols: r.cols, unique: r.unique, tied: r.tied})
	return (*g.ctes)[len(*g.ctes)-1]
}

func (g *gen) projected(r rel) rel {
	var items []string
	out := rel{tied: r.tied}
	for _, c := range r.cols {
		of := slices.Contains(r.unique, c.name)
		if of || g.chance(60) {
			name := g.name("p")
			if of {
				out.unique = append(out.unique, name)
			}
			items = append(items, c.name+" AS "+name)
			out.cols = append(out.cols, genCol{name, c.kind, c.loose})
		}
	}
	kind := g.pick("kind", kInt, kText, kBool, kDec)
	name := g.name("p")
	items = append(items, g.expr(r, kind, 2)+" AS "+name)
	out.cols = append(out.cols, genCol{name, kind, false})
	out.sql = "(SELECT " + strings.Join(items, ", ") + " FROM " + r.sql + g.where(r) + ")"
	return out
}

func (g *gen) union(a, b rel) rel {
	var left, right []string
	out := rel{tied: true}
	for _, kind := range []string{kInt, kText, kDec, kBool, kDbl} {
		if g.chance(60) {
			name := g.name("u")
			left, right = append(left, g.leaf(a, kind)+" AS "+name), append(right, g.expr(b, kind, 1)+" AS "+name)
			out.cols = append(out.cols, genCol{name, kind, false})
		}
	}
	if len(left) == 0 {
		left, right = []string{"1 AS one"}, []string{"2 AS one"}
		out.cols = []genCol{{"one", kInt, false}}
	}
	op := g.pick("set", "UNION ALL", "UNION ALL", "UNION", "UNION BY NAME", "INTERSECT", "EXCEPT")
	out.sql = fmt.Sprintf("(SELECT %s FROM %s%s %s SELECT %s FROM %s%s)",
		strings.Join(left, ", "), a.sql, g.where(a), op, strings.Join(right, ", "), b.sql, g.where(b))
	return out
}

func (g *gen) where(r rel) string {
	if g.chance(60) {
		return ""
	}
	return " WHERE " + g.expr(r, kBool, 2)
}

// grouped draws SELECT … GROUP BY …; the groups come first in the columns. With key the output is for
// a sink: every column has an expression over the aggregates.
func (g *gen) grouped(r rel, key bool) (string, []genCol) {
	var items, groups []string
	var cols []genCol
	for range g.between(0, 3) {
		kind := g.pick("group", kInt, kInt, kText, kDbl, kTime, kDate, kBool, kDec)
		name := g.name("g")
		expr := g.leaf(r, kind)
		if g.chance(30) {
			expr = g.expr(r, kind, 2)
		}
		items, groups = append(items, expr+" AS "+name), append(groups, name)
		cols = append(cols, genCol{name, kind, false})
	}
	where := g.where(r)
	g.last = grouped{r, r.sql + where, slices.Clone(items), slices.Clone(cols)}
	var having []string
	for range g.between(1, 4) {
		call, kind, loose := g.agg(r)
		name := g.name("m")
		if loose && g.chance(25) {
			call, loose = "round("+call+", 2)", false
		}
		if kind == kInt && g.chance(20) {
			call = "(" + call + ")::HUGEINT % 5 + 1"
		}
		items = append(items, call+" AS "+name)
		cols = append(cols, genCol{name, kind, loose})
		if !loose && kind == kInt && g.chance(20) {
			having = append(having, call+g.pick("cmp", " > ", " <> ", " < ")+g.pick("than", "0", "1", "2"))
		}
	}
	sql := "SELECT " + strings.Join(items, ", ") + " FROM " + r.sql + where
	switch {
	case len(groups) == 0:
	case g.chance(30):
		sql += " GROUP BY ALL"
	default:
		sql += " GROUP BY " + strings.Join(groups, ", ")
	}
	if len(having) > 0 {
		sql += " HAVING " + strings.Join(having, " AND ")
	}
	return sql, cols
}

// rolledUp draws a SELECT of grouping sets. With level they are told apart by GROUPING(); without it that
// depends on what can be NULL.
func (g *gen) rolledUp(r rel, level bool) (string, []genCol) {
	var columns, items []string
	var cols []genCol
	for range g.between(1, 3) {
		c := r.cols[g.between(0, len(r.cols)-1)]
		if slices.Contains(columns, c.name) || c.loose {
			continue
		}
		name := g.name("g")
		columns, items = append(columns, c.name), append(items, c.name+" AS "+name)
		cols = append(cols, genCol{name, c.kind, false})
	}
	if len(columns) == 0 {
		return g.grouped(r, level)
	}
	list := strings.Join(columns, ", ")
	if level || g.chance(30) {
		name := g.name("g")
		items, cols = append(items, "grouping("+list+") AS "+name), append(cols, genCol{name, kInt, false})
	}
	for range g.between(0, 3) {
		call, kind, loose := g.agg(r)
		name := g.name("m")
		items, cols = append(items, call+" AS "+name), append(cols, genCol{name, kind, loose})
	}
	forms := []string{"ROLLUP (" + list + ")", "CUBE (" + list + ")"}
	if len(columns) > 1 {
		rest := strings.Join(columns[1:], ", ")
		forms = append(forms, columns[0]+", ROLLUP ("+rest+")", "GROUPING SETS (("+list+"), ("+columns[0]+"), ())", "GROUPING SETS (("+list+"), ROLLUP ("+rest+"))")
	}
	if !level {
		forms = append(forms, "GROUPING SETS (("+list+"), ("+columns[0]+"), ("+columns[0]+"))")
	}
	by := g.pick("sets", forms...)
	sql := "SELECT " + strings.Join(items, ", ") + " FROM " + r.sql + g.where(r) + " GROUP BY " + by
	return sql + g.pick("having", "", "", " HAVING grouping("+columns[0]+") = 0", " HAVING count(*) > 1 OR grouping("+list+") > 0"), cols
}

// Sink is a SELECT over t and the columns that are its key.
type Sink struct {
	SQL string
	Key []string
}

// Pipeline is the text of a pipeline with some sinks over t, whose files and options are given.
func Pipeline(sinks []Sink, files, options string) string {
	text := "ATTACH 'm.duckdb' AS m; CREATE SOURCE t (" + Columns + ") FROM '" + files + "' " + options + ";"
	for i, sink := range sinks {
		text += fmt.Sprintf("\nCREATE SINK m.out%d PRIMARY KEY (%s) AS %s;", i, strings.Join(sink.Key, ", "), sink.SQL)
	}
	return text
}

// Sinks draws a sink's SELECT, and sometimes a second one that groups the same rows.
func Sinks(t *rapid.T) []Sink {
	g := &gen{t: t}
	sql, key := g.query()
	sinks := []Sink{{sql, key}}
	if g.last.from != "" && g.chance(25) {
		sql, key := g.twin()
		sinks = append(sinks, Sink{sql, key})
	}
	return sinks
}

// query draws a sink's SELECT and its key.
func (g *gen) query() (sql string, key []string) {
	g.ctes = &[]rel{}
	sql, key = g.body()
	if g.head != "" {
		sql = "WITH " + g.head + " " + sql
	}
	return sql, key
}

// twin draws a SELECT that groups what the last one groups, with other aggregates.
func (g *gen) twin() (sql string, key []string) {
	items := slices.Clone(g.last.items)
	for _, c := range g.last.cols {
		key = append(key, c.name)
	}
	for range g.between(1, 3) {
		call, _, _ := g.agg(g.last.rel)
		items = append(items, call+" AS "+g.name("m"))
	}
	sql = "SELECT " + strings.Join(items, ", ") + " FROM " + g.last.from
	if len(key) > 0 {
		sql += " GROUP BY " + strings.Join(key, ", ")
	}
	if g.head != "" {
		sql = "WITH " + g.head + " " + sql
	}
	return sql, key
}

func (g *gen) body() (sql string, key []string) {
	if g.chance(15) {
		sql, _, key = g.first(g.from(2))
		return sql, key
	}
	if g.chance(15) { // rows are their own key
		r := g.from(3)
		if g.chance(50) {
			r = g.union(r, g.from(2))
		}
		for _, c := range r.cols {
			key = append(key, c.name)
		}
		return "SELECT DISTINCT " + strings.Join(key, ", ") + " FROM " + r.sql, key
	}
	draw := g.grouped
	if g.chance(12) {
		draw = g.rolledUp
	}
	sql, cols := draw(g.from(3), g.chance(80))
	key = keyOf(cols)
	if g.chance(12) { // each group once per branch
		other, more := g.grouped(g.from(1), true)
		if len(more) >= len(cols) {
			tag := g.name("tag")
			var left, right []string
			for i, c := range cols {
				if more[i].kind != c.kind || strings.HasPrefix(more[i].name, "g") != strings.HasPrefix(c.name, "g") {
					return sql, key
				}
				left, right = append(left, c.name), append(right, more[i].name)
			}
			key = append(key, tag)
			sql = fmt.Sprintf("SELECT 'x' AS %s, %s FROM (%s) UNION ALL SELECT 'y', %s FROM (%s)", tag, strings.Join(left, ", "), sql, strings.Join(right, ", "), other)
		}
	}
	return sql, key
}
