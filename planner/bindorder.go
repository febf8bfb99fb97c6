package planner

import (
	"strconv"
	"strings"
)

// What DuckDB's binder makes of QUALIFY, DISTINCT ON and LIMIT.

func (b *binder) orders(v any) ([]sortKey, error) {
	list, _ := v.([]any)
	var out []sortKey
	for _, x := range list {
		o, _ := x.(object)
		key, _ := compared([]any{o["expression"]})[0].(object)
		e, err := b.expr(key)
		if err != nil {
			return nil, err
		}
		k := sortKey{expr: e, desc: text(o, "type") == "DESCENDING", nullsFirst: text(o, "null_order") == "NULLS FIRST"}
		if !k.desc && text(o, "type") != "ASCENDING" || !k.nullsFirst && text(o, "null_order") != "NULLS LAST" {
			return nil, refuse(e.Pos, "", "an ORDER BY of this form has no rule")
		}
		out = append(out, k)
	}
	return out, nil
}

func (b *binder) window(n, in object) (Node, error) {
	below, err := b.node(in)
	if err != nil {
		return nil, err
	}
	w := &Window{In: below}
	for _, x := range children(n, "expressions") {
		o, _ := x.(object)
		name := strings.ToLower(strings.TrimPrefix(text(o, "type"), "WINDOW_"))
		if name != "row_number" || len(children(o, "children")) > 0 || child(o, "filter_expr") != nil || text(o, "exclude_clause") != "NO_OTHER" ||
			isSet(o, "distinct") || isSet(o, "ignore_nulls") || len(children(o, "arg_orders")) > 0 {
			return nil, refuse(-1, windowHint, "window function %s is not supported by this version", name)
		}
		call := &Over{Pos: -1}
		if call.Parts, err = b.exprs(o["partitions"]); err != nil {
			return nil, err
		}
		if call.Order, err = b.orders(o["orders"]); err != nil {
			return nil, err
		}
		w.Calls = append(w.Calls, call)
	}
	if len(w.Calls) == 0 {
		return nil, refuse(-1, "", "a window without a function has no rule")
	}
	return w, nil
}

const windowHint = "one row per key: QUALIFY row_number() OVER (PARTITION BY key ORDER BY ts DESC) = 1"

const (
	limitHint         = "order by something unique: ORDER BY revenue DESC, store LIMIT 10"
	limitWithoutOrder = "LIMIT without ORDER BY keeps other rows at every run"
)

// distinctOn keeps the first row of every set of targets.
func (b *binder) distinctOn(n, in object) (Node, error) {
	below, parts, err := b.nodeAndExprs(in, n, "distinct_targets")
	if err != nil {
		return nil, err
	}
	top := &Top{In: below, Over: Over{Parts: parts, Pos: -1}, Rows: 1, bound: "distinct on"}
	if top.Order, err = b.orders(child(n, "order_by")["orders"]); err != nil {
		return nil, err
	}
	return withoutNumber(top, nil), nil
}

// limit keeps the first rows of an ORDER BY right below it.
func (b *binder) limit(n, in object) (Node, error) {
	if text(in, "type") != "LOGICAL_ORDER_BY" || len(children(in, "children")) != 1 {
		return nil, refuse(-1, limitHint, limitWithoutOrder)
	}
	rows, given, ok := limitValue(child(n, "limit_val"))
	offset, _, okOffset := limitValue(child(n, "offset_val"))
	if !ok || !okOffset || !given {
		return nil, refuse(-1, "write a number", "LIMIT takes a constant number")
	}
	inner, _ := children(in, "children")[0].(object)
	below, err := b.node(inner)
	if err != nil {
		return nil, err
	}
	top := &Top{In: below, Over: Over{Pos: -1}, Rows: rows + offset, bound: "limit"}
	if top.Order, err = b.orders(in["orders"]); err != nil {
		return nil, err
	}
	if rows < 1 {
		return nil, refuse(-1, "", "LIMIT 0 keeps no row")
	}
	if offset == 0 {
		return withoutNumber(top, nil), nil
	}
	number := ref(len(below.Types()), "BIGINT")
	after := &Expr{Op: opConst, Name: "CAST('" + strconv.FormatInt(offset, 10) + "' AS BIGINT)", Type: "BIGINT", Pos: -1}
	return withoutNumber(top, &Expr{Op: opCompare, Name: ">", Type: "BOOLEAN", Args: []*Expr{number, after}, Pos: -1}), nil
}

func limitValue(v object) (n int64, given, ok bool) {
	switch text(v, "type") {
	case "UNSET", "":
		return 0, false, true
	case "CONSTANT_VALUE":
		i, ok := integer(v["constant_integer"])
		return int64(i), true, ok && i < 1<<31
	}
	return 0, false, false
}

// withoutNumber drops the row's number from a Top's columns, after a condition on it.
func withoutNumber(top *Top, condition *Expr) Node {
	var n Node = top
	if condition != nil {
		n = &Filter{In: n, Conjuncts: []*Expr{condition}}
	}
	return &Project{In: n, Exprs: refs(top.In.Types())}
}
