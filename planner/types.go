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
func isSet(o object, key string) bool     { b, _ := o[key].(bool); return b }

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

// plainTypes are the types that need nothing but their name. Others (VARIANT, GEOMETRY, BIGNUM, the
// types of literals) are refused: whether they survive a state table is not known.
var plainTypes = map[string]bool{
	"NULL": true, "BOOLEAN": true, "VARCHAR": true, "BLOB": true, "BIT": true, "UUID": true, "INTERVAL": true,
	"TINYINT": true, "SMALLINT": true, "INTEGER": true, "BIGINT": true, "HUGEINT": true,
	"UTINYINT": true, "USMALLINT": true, "UINTEGER": true, "UBIGINT": true, "UHUGEINT": true,
	"FLOAT": true, "DOUBLE": true, "DATE": true, "TIME": true, "TIME WITH TIME ZONE": true,
	"TIMESTAMP": true, "TIMESTAMP WITH TIME ZONE": true, "TIMESTAMP_S": true, "TIMESTAMP_MS": true, "TIMESTAMP_NS": true,
}

// typeName writes a serialised type as DuckDB spells it in SQL.
func typeName(v any) (string, error) {
	t, ok := v.(object)
	if !ok {
		return "", fmt.Errorf("values without a type")
	}
	id := text(t, "id")
	info := child(t, "type_info")
	if info == nil && plainTypes[id] {
		return id, nil
	}
	switch {
	case id == "VARCHAR" && text(info, "alias") == "JSON":
		return "JSON", nil
	case text(info, "alias") != "":
		return "", fmt.Errorf("values of type %s", text(info, "alias"))
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
	case "MAP":
		pair := children(child(child(info, "child_type"), "type_info"), "child_types")
		if len(pair) != 2 {
			break
		}
		var parts []string
		for _, p := range pair {
			field, _ := p.(object)
			c, err := typeName(field["second"])
			if err != nil {
				return "", err
			}
			parts = append(parts, c)
		}
		return "MAP(" + strings.Join(parts, ", ") + ")", nil
	case "STRUCT":
		var fields []string
		for _, f := range children(info, "child_types") {
			field, _ := f.(object)
			c, err := typeName(field["second"])
			if err != nil {
				return "", err
			}
			if text(field, "first") == "" {
				return "", fmt.Errorf("rows without field names")
			}
			fields = append(fields, duck.Quote(text(field, "first"))+" "+c)
		}
		return "STRUCT(" + strings.Join(fields, ", ") + ")", nil
	case "ENUM":
		if values := enumValues(info); len(values) > 0 {
			for i, v := range values {
				values[i] = duck.Literal(v)
			}
			return "ENUM(" + strings.Join(values, ", ") + ")", nil
		}
	}
	if c := text(info, "collation"); c != "" {
		return "", fmt.Errorf("values with collation %s", c)
	}
	return "", fmt.Errorf("values of type %s", id)
}

func enumValues(info object) []string {
	var values []string
	for _, v := range children(info, "values") {
		s, _ := v.(string)
		values = append(values, s)
	}
	return values
}

// fieldNames are those of a serialised STRUCT type.
func fieldNames(v any) []string {
	t, _ := v.(object)
	var names []string
	for _, f := range children(child(t, "type_info"), "child_types") {
		field, _ := f.(object)
		names = append(names, text(field, "first"))
	}
	return names
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
func isNumber(t string) bool  { return isInteger(t) || isFloat(t) || isDecimal(t) }
func isDecimal(t string) bool { return strings.HasPrefix(t, "DECIMAL(") }

// isNested: a value of the type has parts, whose NULLs, order or −0.0 have no proven rule.
func isNested(t string) bool {
	return strings.HasSuffix(t, "]") || strings.HasPrefix(t, "STRUCT(") || strings.HasPrefix(t, "MAP(")
}

// scaleOf returns the digits after the point of a DECIMAL(w,s).
func scaleOf(t string) string {
	_, s, _ := strings.Cut(strings.TrimSuffix(t, ")"), ",")
	return s
}
