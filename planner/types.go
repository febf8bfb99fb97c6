package planner

import (
	"encoding/json"
	"fmt"
	"strings"

	"lockstep/engine/duck"
)

// The JSON of DuckDB's plan serialisation, as far as it is used. Numbers are json.Number: a missing
// position is 2^64−1, which no float holds.
type object = map[string]any

func child(o object, key string) object   { c, _ := o[key].(object); return c }
func children(o object, key string) []any { c, _ := o[key].([]any); return c }
func text(o object, key string) string    { s, _ := o[key].(string); return s }
func flag(o object, key string) bool      { b, _ := o[key].(bool); return b }

// integer reads a number that may be missing; ok is false for DuckDB's "invalid index" too.
func integer(v any) (n int, ok bool) {
	num, isNum := v.(json.Number)
	if !isNum {
		return 0, false
	}
	i, err := num.Int64()
	if err != nil || i < 0 {
		return 0, false
	}
	return int(i), true
}

// typeName writes a serialised type as DuckDB spells it in SQL.
func typeName(v any) (string, error) {
	t, ok := v.(object)
	if !ok {
		return "", fmt.Errorf("a type is missing")
	}
	id := text(t, "id")
	info := child(t, "type_info")
	if info == nil {
		return id, nil
	}
	switch id {
	case "DECIMAL":
		return fmt.Sprintf("DECIMAL(%v,%v)", info["width"], info["scale"]), nil
	case "LIST":
		c, err := typeName(info["child_type"])
		return c + "[]", err
	case "ARRAY":
		c, err := typeName(info["child_type"])
		return fmt.Sprintf("%s[%v]", c, info["size"]), err
	case "STRUCT":
		var fields []string
		for _, f := range children(info, "child_types") {
			field, _ := f.(object)
			c, err := typeName(field["second"])
			if err != nil {
				return "", err
			}
			fields = append(fields, duck.Quote(text(field, "first"))+" "+c)
		}
		return "STRUCT(" + strings.Join(fields, ", ") + ")", nil
	case "ENUM":
		var values []string
		for _, v := range children(info, "values") {
			s, _ := v.(string)
			values = append(values, duck.Literal(s))
		}
		if len(values) > 0 {
			return "ENUM(" + strings.Join(values, ", ") + ")", nil
		}
	}
	return "", fmt.Errorf("values of type %s%s", id, aliasOf(info))
}

func aliasOf(info object) string {
	if a := text(info, "alias"); a != "" {
		return " (" + a + ")"
	}
	if c := text(info, "collation"); c != "" {
		return " with collation " + c
	}
	return ""
}

// Families of types, by their DuckDB names.

func isInteger(t string) bool {
	switch t {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT":
		return true
	}
	return false
}

// isSmallInteger: at most 32 bits, so that a sum of squares stays exact in a HUGEINT.
func isSmallInteger(t string) bool {
	switch t {
	case "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER":
		return true
	}
	return false
}

func isFloat(t string) bool   { return t == "DOUBLE" || t == "FLOAT" }
func isDecimal(t string) bool { return strings.HasPrefix(t, "DECIMAL(") }

func isNested(t string) bool {
	return strings.HasSuffix(t, "]") || strings.HasPrefix(t, "STRUCT(") || strings.HasPrefix(t, "MAP(")
}

// scaleOf returns the digits after the point of a DECIMAL(w,s).
func scaleOf(t string) string {
	_, s, _ := strings.Cut(strings.TrimSuffix(t, ")"), ",")
	return s
}
