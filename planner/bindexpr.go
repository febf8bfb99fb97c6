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

func bindExprs(v any) ([]*Expr, error) {
	list, _ := v.([]any)
	out := make([]*Expr, 0, len(list))
	for _, x := range list {
		o, _ := x.(object)
		e, err := bindExpr(o)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func bindExpr(o object) (*Expr, error) {
	e := &Expr{Pos: -1}
	if pos, ok := integer(o["query_location"]); ok {
		e.Pos = pos
	}
	if t, ok := o["return_type"]; ok && t != nil {
		typ, err := typeName(t)
		if err != nil {
			return nil, refuse(e.Pos, "cast it to another type", "%v cannot be kept", err)
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
		e.Op, e.Ref = opRef, index
	case "BOUND_CONSTANT":
		e.Op = opConst
		if e.Name, e.Type, err = literal(child(o, "value")); err != nil {
			return nil, refuse(e.Pos, "write it as text with a cast, such as '2024-01-31'::DATE", "%v cannot be used", err)
		}
	case "BOUND_CAST":
		return bindCast(e, o)
	case "BOUND_COMPARISON":
		e.Op, e.Type = opCompare, "BOOLEAN"
		if e.Name = compareOps[text(o, "type")]; e.Name == "" {
			return nil, refuse(e.Pos, "", "the comparison %s has no rule", text(o, "type"))
		}
		e.Args, err = bindExprs([]any{o["left"], o["right"]})
	case "BOUND_CONJUNCTION":
		e.Op, e.Type = opAnd, "BOOLEAN"
		if text(o, "type") == "CONJUNCTION_OR" {
			e.Op = opOr
		}
		e.Args, err = bindExprs(o["children"])
	case "BOUND_OPERATOR":
		if e.Op = operatorOps[text(o, "type")]; e.Op == "" {
			return nil, refuse(e.Pos, "", "the operator %s has no rule", strings.ToLower(strings.TrimPrefix(text(o, "type"), "OPERATOR_")))
		}
		e.Args, err = bindExprs(o["children"])
	case "BOUND_CASE":
		e.Op = opCase
		e.Args, err = bindCase(o)
	case "BOUND_FUNCTION":
		e.Op, e.Name = opFunc, text(o, "name")
		if !allowedFunction(e.Name) {
			return nil, refuseFunction(e.Pos, e.Name)
		}
		e.Args, err = bindExprs(o["children"])
	default:
		return nil, refuse(e.Pos, "", "%s is not supported", strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(class, "BOUND_"), "_", " ")))
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// bindCast drops casts to the type a value already has; DuckDB's binder leaves some.
func bindCast(e *Expr, o object) (*Expr, error) {
	inner, err := bindExpr(child(o, "child"))
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
	if flag(o, "try_cast") {
		e.Op = opTryCast
	}
	return e, nil
}

func bindCase(o object) ([]*Expr, error) {
	var parts []any
	for _, c := range children(o, "case_checks") {
		check, _ := c.(object)
		parts = append(parts, check["when_expr"], check["then_expr"])
	}
	return bindExprs(append(parts, o["else_expr"]))
}

var aggregateAliases = map[string]string{
	"mean":      "avg",
	"stddev":    "stddev_samp",
	"variance":  "var_samp",
	"countif":   "count_if",
	"kahan_sum": "fsum",
	"sumkahan":  "fsum",
	"arbitrary": "any_value",
	"first":     "any_value",
}

func bindAgg(o object) (*Agg, error) {
	a := &Agg{Name: text(o, "name"), Pos: -1}
	if alias, ok := aggregateAliases[a.Name]; ok {
		a.Name = alias
	}
	if text(o, "expression_class") != "BOUND_AGGREGATE" {
		return nil, refuse(-1, "", "%s in a GROUP BY has no rule", text(o, "expression_class"))
	}
	var err error
	if a.Type, err = typeName(o["return_type"]); err != nil {
		return nil, refuse(-1, "", "%s: %v cannot be kept", a.Name, err)
	}
	if a.Args, err = bindExprs(o["children"]); err != nil {
		return nil, err
	}
	if f := child(o, "filter"); f != nil {
		if a.Filter, err = bindExpr(f); err != nil {
			return nil, err
		}
	}
	// min and max of a set are those of its distinct values.
	if text(o, "aggregate_type") == "DISTINCT" && a.Name != "min" && a.Name != "max" {
		return nil, refuse(-1, "group by the value first, in a subquery or CTE, and aggregate its groups: SELECT k, count(*) FROM (SELECT k, v FROM t GROUP BY k, v) GROUP BY k",
			"%s(DISTINCT …) is not supported by this version", a.Name)
	}
	if o["order_bys"] != nil || o["function_data"] != nil {
		return nil, refuse(-1, "", "%s with an order or a constant argument is not supported by this version", a.Name)
	}
	return a, nil
}
