package planner

import "strings"

var compareOps = map[string]string{
	"COMPARE_EQUAL":                "=",
	"COMPARE_NOTEQUAL":             "<>",
	"COMPARE_LESSTHAN":             "<",
	"COMPARE_GREATERTHAN":          ">",
	"COMPARE_LESSTHANOREQUALTO":    "<=",
	"COMPARE_GREATERTHANOREQUALTO": ">=",
	"COMPARE_DISTINCT_FROM":        "IS DISTINCT FROM",
	"COMPARE_NOT_DISTINCT_FROM":    "IS NOT DISTINCT FROM",
}

var operatorOps = map[string]Op{
	"OPERATOR_IS_NULL":     opIsNull,
	"OPERATOR_IS_NOT_NULL": opIsNotNull,
	"OPERATOR_NOT":         opNot,
	"COMPARE_IN":           opIn,
	"COMPARE_NOT_IN":       opNotIn,
	"OPERATOR_COALESCE":    opCoalesce,
}

func (b *binder) exprs(v any) ([]*Expr, error) {
	list, _ := v.([]any)
	out := make([]*Expr, 0, len(list))
	for _, x := range list {
		o, _ := x.(object)
		e, err := b.expr(o)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func (b *binder) expr(o object) (*Expr, error) {
	e := &Expr{Pos: -1}
	if pos, ok := integer(o["query_location"]); ok {
		e.Pos = b.file(pos)
	}
	if t, ok := o["return_type"]; ok && t != nil {
		typ, err := typeName(t)
		if err != nil {
			return nil, refuse(e.Pos, "cast it to another type", "%v are not supported", err)
		}
		e.Type = typ
	}
	var err error
	switch class := text(o, "expression_class"); class {
	case "BOUND_REF":
		index, ok := integer(o["index"])
		if !ok {
			return nil, refuse(e.Pos, "", "a column without an index has no rule")
		}
		e.Op, e.Ref, e.Name = opRef, index, text(o, "alias")
	case "BOUND_CONSTANT":
		return b.constant(e, child(o, "value"))
	case "BOUND_CAST":
		return b.cast(e, o)
	case "BOUND_COMPARISON":
		e.Op, e.Type = opCompare, "BOOLEAN"
		if e.Name = compareOps[text(o, "type")]; e.Name == "" {
			return nil, refuse(e.Pos, "", "the comparison %s has no rule", text(o, "type"))
		}
		e.Args, err = b.exprs(compared([]any{o["left"], o["right"]}))
	case "BOUND_CONJUNCTION":
		e.Op, e.Type = opAnd, "BOOLEAN"
		if text(o, "type") == "CONJUNCTION_OR" {
			e.Op = opOr
		}
		e.Args, err = b.exprs(o["children"])
	case "BOUND_OPERATOR":
		if e.Op = operatorOps[text(o, "type")]; e.Op == "" {
			return nil, refuse(e.Pos, "", "the operator %s has no rule", strings.ToLower(strings.TrimPrefix(text(o, "type"), "OPERATOR_")))
		}
		args := children(o, "children")
		if e.Op == opIn || e.Op == opNotIn {
			args = compared(args)
		}
		e.Args, err = b.exprs(args)
	case "BOUND_CASE":
		e.Op = opCase
		e.Args, err = b.caseParts(o)
	case "BOUND_FUNCTION":
		return b.function(e, o)
	default:
		return nil, refuse(e.Pos, "", "%s is not supported", strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(class, "BOUND_"), "_", " ")))
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// compared takes away what DuckDB puts around both sides of a comparison of intervals, or of times with
// a zone, so that equal ones are equal. It puts it there again when the comparison is written.
func compared(sides []any) []any {
	inner := make([]any, len(sides))
	for i, s := range sides {
		o, _ := s.(object)
		name := text(o, "name")
		if text(o, "expression_class") != "BOUND_FUNCTION" || name != "normalized_interval" && name != "timetz_byte_comparable" || len(children(o, "children")) != 1 {
			return sides
		}
		inner[i] = children(o, "children")[0]
	}
	return inner
}

// constant keeps a value as its SQL text. A list, which only getvariable gives, becomes the call that
// makes it.
func (b *binder) constant(e *Expr, value object) (*Expr, error) {
	e.Op = opConst
	if text(child(value, "type"), "id") == "LIST" && !isSet(value, "is_null") {
		typ, err := typeName(value["type"])
		items := children(child(value, "value"), "children")
		if err == nil && len(items) > 0 {
			e.Op, e.Name, e.Type = opFunc, "list_value", typ
			for _, x := range items {
				o, _ := x.(object)
				item, err := b.constant(&Expr{Pos: e.Pos}, o)
				if err != nil {
					return nil, err
				}
				e.Args = append(e.Args, item)
			}
			return e, nil
		}
	}
	var err error
	if e.Name, e.Type, err = literal(value); err != nil {
		return nil, refuse(e.Pos, "write it as text with a cast, such as '2024-01-31'::DATE", "%v cannot be used", err)
	}
	return e, nil
}

// cast drops casts to the type a value already has; DuckDB's binder leaves some.
func (b *binder) cast(e *Expr, o object) (*Expr, error) {
	inner, err := b.expr(child(o, "child"))
	if err != nil {
		return nil, err
	}
	if inner.Type == e.Type {
		if inner.Pos < 0 {
			inner.Pos = e.Pos
		}
		return inner, nil
	}
	e.Op, e.Args = opCast, []*Expr{inner}
	if isSet(o, "try_cast") {
		e.Op = opTryCast
	}
	return e, nil
}

func (b *binder) caseParts(o object) ([]*Expr, error) {
	var parts []any
	for _, c := range children(o, "case_checks") {
		check, _ := c.(object)
		parts = append(parts, check["when_expr"], check["then_expr"])
	}
	return b.exprs(append(parts, o["else_expr"]))
}

func (b *binder) function(e *Expr, o object) (*Expr, error) {
	e.Op, e.Name = opFunc, text(o, "name")
	args := children(o, "children")
	if !allowedFunction(e.Name, len(args)) {
		return nil, refuseFunction(e.Pos, e.Name)
	}
	for i, x := range args {
		child, _ := x.(object)
		arg, err := b.argument(e.Name, i, child)
		if err != nil {
			return nil, err
		}
		e.Args = append(e.Args, arg)
	}
	if e.Name == "struct_pack" {
		// The names of the fields are in the type only.
		e.Op, e.Fields = opStruct, fieldNames(o["return_type"])
		if len(e.Fields) != len(e.Args) {
			return nil, refuse(e.Pos, "", "a struct whose fields have no names has no rule")
		}
		return e, nil
	}
	if erased(o, e) {
		return nil, refuse(e.Pos, "", "%s with these arguments is not supported", e.Name)
	}
	return e, nil
}

// argument binds one argument of a function. DuckDB writes the missing bound of a slice as an empty
// list, which nothing else can be.
func (b *binder) argument(function string, i int, o object) (*Expr, error) {
	value := child(o, "value")
	if function == "array_slice" && i > 0 && text(child(value, "type"), "id") == "LIST" && len(children(child(value, "value"), "children")) == 0 {
		return &Expr{Op: opOpen, Pos: -1}, nil
	}
	return b.expr(o)
}

// erased: the binder moved arguments out of the expression, so it no longer tells what is computed.
// What DuckDB keeps beside the arguments of decimal arithmetic follows from their types.
func erased(o object, e *Expr) bool {
	if len(e.Args) < len(children(o, "arguments")) {
		return true
	}
	data, has := o["function_data"].(object)
	if !has {
		return o["function_data"] != nil
	}
	if _, arithmetic := data["check_overflow"]; arithmetic {
		return false
	}
	if listAggregates[e.Name] && len(e.Args) == 2 && e.Args[1].Op == opConst {
		agg := child(child(data, "bind_data"), "aggr_expr")
		return !aggregatesInLists[text(agg, "name")] || agg["function_data"] != nil
	}
	return true
}

var aggregateAliases = map[string]string{
	"mean":     "avg",
	"stddev":   "stddev_samp",
	"variance": "var_samp",
	"countif":  "count_if",
	"argmax":   "arg_max", "max_by": "arg_max", "argmin": "arg_min", "min_by": "arg_min",
	"first_value": "first", "arbitrary": "first", "last_value": "last",
}

// canonicalAggregate is the one name of an aggregate.
func canonicalAggregate(name string) string {
	if canonical, ok := aggregateAliases[name]; ok {
		return canonical
	}
	return name
}

func (b *binder) agg(o object) (*Agg, error) {
	a := &Agg{Name: canonicalAggregate(text(o, "name")), Pos: -1}
	if text(o, "expression_class") != "BOUND_AGGREGATE" {
		return nil, refuse(-1, "", "%s in a GROUP BY has no rule", text(o, "expression_class"))
	}
	var err error
	if a.Args, err = b.exprs(o["children"]); err != nil {
		return nil, err
	}
	if a.Type, err = typeName(o["return_type"]); err != nil {
		return nil, refuse(-1, "", "%s: %v are not supported", a.Name, err)
	}
	if f := child(o, "filter"); f != nil {
		if a.Filter, err = b.expr(f); err != nil {
			return nil, err
		}
	}
	a.Distinct = text(o, "aggregate_type") == "DISTINCT" && !sameDistinct(a.Name)
	if o["function_data"] == nil {
		if first, err := b.asFirst(a, child(o, "order_bys")["orders"]); first {
			return a, err
		}
	}
	if o["order_bys"] != nil || o["function_data"] != nil {
		return nil, refuse(-1, "", "%s with an order or a constant argument has no rule", a.Name)
	}
	return a, nil
}
