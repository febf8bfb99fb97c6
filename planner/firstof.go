package planner

import (
	"fmt"
	"slices"
	"strings"
)

// arg_max(x, y) and its like are first(x ORDER BY y DESC), without the rows that they leave out. So is
// last, by the reversed order. An order that leaves ties is completed by the row's place (place.go).

// firstForms says what the aggregates are: the order of their second argument, and which of their
// arguments may not be NULL.
var firstForms = map[string]struct {
	byArg, desc, notNull, reversed bool
}{
	"arg_max": {byArg: true, desc: true, notNull: true}, "arg_min": {byArg: true, notNull: true},
	"arg_max_null": {byArg: true, desc: true}, "arg_min_null": {byArg: true},
	"first": {}, "last": {reversed: true}, "any_value": {notNull: true},
}

// asFirst rewrites an aggregate to first(x ORDER BY …); ok is false for one that is not of this kind.
func (b *binder) asFirst(a *Agg, order any) (ok bool, err error) {
	form, ok := firstForms[a.Name]
	if !ok || order == nil && !form.byArg {
		return false, nil // without an order it is refused where it is checked
	}
	keys, err := b.orders(order)
	if err != nil {
		return true, err
	}
	needed := 1
	if form.byArg {
		needed = 2
	}
	if len(a.Args) != needed || form.byArg == (len(keys) > 0) {
		return true, refuse(-1, "", "%s with these arguments has no incremental rule in this version", a.Name)
	}
	a.wrote, a.filtered = a.Name, a.Filter != nil
	var present []*Expr
	if form.notNull {
		present = append(present, a.Args[0])
	}
	if form.byArg {
		keys = []sortKey{{expr: a.Args[1], desc: form.desc}}
		present = append(present, a.Args[1])
		a.Args = a.Args[:1]
	}
	for i := range keys {
		if form.reversed {
			keys[i].desc, keys[i].nullsFirst = !keys[i].desc, !keys[i].nullsFirst
		}
	}
	var conjuncts []*Expr
	if a.Filter != nil {
		conjuncts = flattened(opAnd, []*Expr{a.Filter})
	}
	for _, e := range present {
		conjuncts = append(conjuncts, &Expr{Op: opIsNotNull, Type: "BOOLEAN", Args: []*Expr{e}, Pos: -1})
	}
	switch len(conjuncts) {
	case 0:
	case 1:
		a.Filter = conjuncts[0]
	default:
		a.Filter = &Expr{Op: opAnd, Type: "BOOLEAN", Args: conjuncts, Pos: -1}
	}
	a.Name, a.Order = "first", keys
	return true, nil
}

// firstRule keeps the first value of a group with what it is ordered by. The accumulators of one
// aggregate change together.
func (f *foldRules) firstRule(a *Agg, arg *aggArg) finish {
	fields := []string{}
	for i, k := range a.Order {
		fields = append(fields, fmt.Sprintf("o%d := %s", i, k.expr.sql(cols(""))))
	}
	fields = append(fields, "v := "+arg.sql)
	// DuckDB computes equal aggregates once.
	call := arg.where("first(struct_pack("+strings.Join(fields, ", ")+") ORDER BY "+orderSQL(a.Order, cols(""))+")", "")
	var has, value string
	keys := make([]string, len(a.Order))
	wins := func(old, batch func(string) string) string {
		return fmt.Sprintf("CASE WHEN NOT %s THEN false WHEN NOT coalesce(%s, false) THEN true ELSE %s END", batch(has), old(has), before(a.Order, keys, batch, old))
	}
	take := func(name *string) merger {
		return func(old, batch func(string) string) string {
			return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", wins(old, batch), batch(*name), old(*name))
		}
	}
	has = f.add("has", arg, "BOOLEAN", "(("+call+") IS NOT NULL)", func(old, batch func(string) string) string {
		return fmt.Sprintf("(%s OR coalesce(%s, false))", batch(has), old(has))
	})
	for i, k := range a.Order {
		keys[i] = f.add(fmt.Sprintf("by%d", i), arg, k.expr.Type, fmt.Sprintf("(%s).o%d", call, i), take(&keys[i]))
	}
	value = f.add("first", arg, a.Type, "("+call+").v", take(&value))
	return func(acc func(string) string) string { return acc(value) }
}

// before writes that row a comes before row b.
func before(order []sortKey, names []string, a, b func(string) string) string {
	s := "false"
	for i := len(order) - 1; i >= 0; i-- {
		x, y, op := a(names[i]), b(names[i]), "<"
		if order[i].desc {
			op = ">"
		}
		less := fmt.Sprintf("(%[2]s IS NULL OR (%[1]s IS NOT NULL AND %[1]s %[3]s %[2]s))", x, y, op)
		if order[i].nullsFirst {
			less = fmt.Sprintf("(%[1]s IS NULL OR (%[2]s IS NOT NULL AND %[1]s %[3]s %[2]s))", x, y, op)
		}
		s = fmt.Sprintf("CASE WHEN %s IS DISTINCT FROM %s THEN %s ELSE %s END", x, y, less, s)
	}
	return s
}

// ties tells what decides between the rows of a group that are equal in the order of an aggregate.
func (a *Agg) ties(groups []*Expr, in Node) tie {
	keys := slices.Clone(groups)
	for _, k := range a.Order {
		keys = append(keys, k.expr)
	}
	arg := a.Args[0].sql(cols(""))
	if oneLook(a.Type) && slices.ContainsFunc(keys, func(e *Expr) bool { return e.sql(cols("")) == arg }) {
		return sameTie
	}
	return ties(in, keys)
}

// first refuses an order that does not decide.
func (c *checker) first(a *Agg, of *Aggregate, in []exactness) {
	keys := slices.Clone(of.Groups)
	if !a.decides(of) {
		c.refuse(a.Pos, "order by a column that is no group", "%s by what is the same in all rows of a group gives another value at every run", a.wrote)
		return
	}
	for _, k := range a.Order {
		if c.inexact(k.expr, in) {
			c.refuse(a.Pos, exactHint, "ordering by a floating-point aggregate could decide differently from run to run")
			return
		}
		if isNested(k.expr.Type) || k.expr.Type == "JSON" {
			c.refuse(a.Pos, "order by its parts", "ordering by %s has no rule", article(k.expr.Type))
			return
		}
		keys = append(keys, k.expr)
	}
	if a.ties(of.Groups, of.In) == open {
		hint := orderHint(of.In, keys)
		if strings.HasPrefix(a.wrote, "arg_") {
			hint = strings.Replace(hint, "add", "write first(x ORDER BY y DESC) for it, and add", 1)
		}
		c.refuse(a.Pos, hint, "the order of %s does not decide between all rows, so the result could differ from run to run", a.wrote)
	}
}

// orderedBy leaves out of the order what is the same in all rows of a group.
func (a *Agg) orderedBy(below []string, groups []*Expr) *Agg {
	seen := map[string]bool{}
	for _, g := range groups {
		seen[g.canon(below)] = true
	}
	c := *a
	c.Order = nil
	for _, k := range a.Order {
		if name := k.expr.canon(below); !k.expr.constant() && !seen[name] {
			seen[name] = true
			c.Order = append(c.Order, k)
		}
	}
	if len(c.Order) == 0 {
		return a // which is refused
	}
	return &c
}

// decides: some key of the order can differ within a group.
func (a *Agg) decides(of *Aggregate) bool {
	below := describe(of.In).cols
	groups := canonAll(of.Groups, below)
	return slices.ContainsFunc(a.Order, func(k sortKey) bool { return !k.expr.constant() && !slices.Contains(groups, k.expr.canon(below)) })
}
