package planner

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Window adds the result of row_number() OVER (…) to its input's columns, one per call. It has a rule
// only where a filter above it keeps the first rows: then the two are a Top.
type Window struct {
	In    Node
	Calls []*Over
}

// Over is one window: its partition and its order.
type Over struct {
	Parts []*Expr
	Order []sortKey
	Pos   int
	text  string // what the author wrote
}

// Top keeps the first Rows rows of every partition in an order. Its columns are those of its input and
// then the number of the row in its partition, from 1.
type Top struct {
	In Node
	Over
	Rows  int64
	bound string // what DuckDB made it from: "distinct on" or "limit"
}

// sortKey is one element of an ORDER BY.
type sortKey struct {
	expr             *Expr
	desc, nullsFirst bool
}

func (n *Window) inputs() []Node { return []Node{n.In} }
func (n *Top) inputs() []Node    { return []Node{n.In} }
func (n *Window) Types() []string {
	return append(slices.Clone(n.In.Types()), bigints(len(n.Calls))...)
}
func (n *Top) Types() []string { return append(slices.Clone(n.In.Types()), "BIGINT") }

func bigints(n int) []string { return slices.Repeat([]string{"BIGINT"}, n) }

// exprs are the expressions of the window.
func (o *Over) exprs() []*Expr {
	out := slices.Clone(o.Parts)
	for _, k := range o.Order {
		out = append(out, k.expr)
	}
	return out
}

func (o *Over) mapExprs(f func(*Expr) *Expr) Over {
	return Over{Parts: mapExprs(o.Parts, f), Order: mapKeys(o.Order, f), Pos: o.Pos, text: o.text}
}

func mapKeys(keys []sortKey, f func(*Expr) *Expr) []sortKey {
	out := slices.Clone(keys)
	for i := range out {
		out[i].expr = f(out[i].expr)
	}
	return out
}

// sql writes the key with all that DuckDB would assume.
func (k sortKey) sql(col columns) string {
	dir, nulls := " ASC", " NULLS LAST"
	if k.desc {
		dir = " DESC"
	}
	if k.nullsFirst {
		nulls = " NULLS FIRST"
	}
	return k.expr.sql(col) + dir + nulls
}

func (k sortKey) canon(below []string) string {
	return k.sqlOf(k.expr.canon(below))
}

func (k sortKey) sqlOf(expr string) string {
	return sortKey{expr: &Expr{Op: opConst, Name: expr}, desc: k.desc, nullsFirst: k.nullsFirst}.sql(nil)
}

func orderSQL(keys []sortKey, col columns) string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.sql(col)
	}
	return strings.Join(out, ", ")
}

func canonKeys(keys []sortKey, below []string) string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.canon(below)
	}
	return strings.Join(out, ", ")
}

// sql writes what stands in the brackets after OVER.
func (o *Over) sql(col columns) string {
	return over(sqlAll(o.Parts, col), orderSQL(o.Order, col))
}

func over(parts []string, order string) string {
	s := ""
	if len(parts) > 0 {
		s = "PARTITION BY " + strings.Join(parts, ", ")
	}
	if order != "" {
		s = strings.TrimSpace(s + " ORDER BY " + order)
	}
	return s
}

func (o *Over) canon(below []string) string {
	return "by(" + strings.Join(canonAll(o.Parts, below), "; ") + ") order(" + canonKeys(o.Order, below) + ")"
}

// numbered is the query of a Top.
func (n *Top) query() string {
	width := len(n.In.Types())
	inner := append(sqlAll(refs(n.In.Types()), cols("")), "row_number() OVER ("+n.sql(cols(""))+")")
	return fmt.Sprintf("SELECT * FROM (SELECT %s FROM (%s)) WHERE c%d <= %d", aliased(inner), query(n.In), width, n.Rows)
}

// refs are all columns of an input.
func refs(types []string) []*Expr {
	out := make([]*Expr, len(types))
	for i, t := range types {
		out[i] = ref(i, t)
	}
	return out
}

// lift moves a projection below a Window or Top above it.
func lift(in *Project, over Node, more int) Node {
	below := len(in.In.Types())
	exprs := slices.Clone(in.Exprs)
	for i := range more {
		exprs = append(exprs, ref(below+i, "BIGINT"))
	}
	return &Project{In: over, Exprs: exprs}
}

// topped makes a Top of a filter that keeps the first rows of a window; nil when it does not.
func topped(w *Window, conjuncts []*Expr) Node {
	below := describe(w.In).cols
	for _, c := range w.Calls[1:] {
		if c.canon(below) != w.Calls[0].canon(below) {
			return nil
		}
	}
	width := len(w.In.Types())
	one := all(width)
	for range w.Calls {
		one = append(one, width)
	}
	conjuncts = mapExprs(conjuncts, func(e *Expr) *Expr { return e.remap(one) })
	rows := int64(-1)
	for _, e := range conjuncts {
		if most, ok := upperBound(e, width); ok && (rows < 0 || most < rows) {
			rows = most
		}
	}
	if rows < 1 {
		return nil
	}
	var rest []*Expr
	for _, e := range conjuncts {
		if most, ok := upperBound(e, width); !ok || most < rows || e.Name == "=" && rows > 1 {
			rest = append(rest, e)
		}
	}
	var out Node = &Top{In: w.In, Over: *w.Calls[0], Rows: rows}
	if len(rest) > 0 {
		out = &Filter{In: out, Conjuncts: rest}
	}
	types := w.Types()
	exprs := make([]*Expr, len(types))
	for i := range exprs {
		exprs[i] = ref(one[i], types[i])
	}
	return restored(&Project{In: out, Exprs: exprs})
}

// upperBound reads rn <= 3, rn < 4, rn = 1 and the same the other way round.
func upperBound(e *Expr, column int) (int64, bool) {
	if e.Op != opCompare {
		return 0, false
	}
	op, left, right := e.Name, e.Args[0], e.Args[1]
	if right.Op == opRef {
		left, right = right, left
		op = map[string]string{"=": "=", ">": "<", ">=": "<="}[op]
	}
	n, ok := wholeConstant(right)
	if left.Op != opRef || left.Ref != column || !ok {
		return 0, false
	}
	switch op {
	case "=", "<=":
		return n, true
	case "<":
		return n - 1, true
	}
	return 0, false
}

var quotedInteger = regexp.MustCompile(`^(?:CAST\('(-?\d+)' AS \w+\)|(-?\d+))$`)

// wholeConstant is the value of an integer constant, through casts.
func wholeConstant(e *Expr) (int64, bool) {
	for e.Op == opCast && isInteger(e.Type) && isInteger(e.Args[0].Type) {
		e = e.Args[0]
	}
	if e.Op != opConst || !isInteger(e.Type) {
		return 0, false
	}
	m := quotedInteger.FindStringSubmatch(e.Name)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1]+m[2], 10, 32)
	return n, err == nil
}

// ordered brings partition and order to one form: a partition has no order among its expressions, and
// what is the same in all its rows orders nothing.
func (n *Top) ordered() *Top {
	o, below := n.Over, describe(n.In).cols
	var splitting []*Expr
	for _, p := range o.Parts {
		if !p.constant() {
			splitting = append(splitting, p)
		}
	}
	out := &Top{In: n.In, Over: Over{Pos: o.Pos, text: o.text}, Rows: n.Rows, bound: n.bound}
	out.Parts, _ = sortedUnique(splitting, func(e *Expr) string { return e.canon(below) })
	seen := map[string]bool{}
	for _, p := range out.Parts {
		seen[p.canon(below)] = true
	}
	for _, k := range o.Order {
		if name := k.expr.canon(below); !k.expr.constant() && !seen[name] {
			seen[name] = true
			out.Order = append(out.Order, k)
		}
	}
	return out
}
