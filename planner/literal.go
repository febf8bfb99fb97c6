package planner

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lockstep/engine/duck"
)

// literal writes a serialised constant as SQL that binds back to the same type and value.
func literal(value object) (sql, typ string, err error) {
	typ, err = typeName(value["type"])
	if err != nil {
		return "", "", err
	}
	if flag(value, "is_null") {
		if typ == "NULL" {
			return "NULL", typ, nil
		}
		return "CAST(NULL AS " + typ + ")", typ, nil
	}
	v := value["value"]
	switch {
	case typ == "VARCHAR":
		s, ok := v.(string)
		if !ok {
			return "", "", fmt.Errorf("a text constant that is not valid UTF-8")
		}
		return duck.Literal(s), typ, nil
	case typ == "BOOLEAN" || typ == "INTEGER":
		return fmt.Sprint(v), typ, nil
	case isInteger(typ) || isFloat(typ):
		n, ok := v.(json.Number)
		if !ok {
			break // HUGEINT beyond 64 bits, NaN and infinity are not numbers in JSON
		}
		return "CAST(" + n.String() + " AS " + typ + ")", typ, nil
	case isDecimal(typ):
		n, ok := v.(json.Number)
		if !ok {
			break
		}
		return decimalLiteral(n.String(), typ), typ, nil
	case typ == "DATE" || strings.HasPrefix(typ, "TIMESTAMP"):
		if s, ok := timeLiteral(v, typ); ok {
			return "CAST(" + duck.Literal(s) + " AS " + typ + ")", typ, nil
		}
	}
	return "", "", fmt.Errorf("a constant of type %s", typ)
}

// decimalLiteral writes the unscaled value with its point; DuckDB gives 12.50 the type DECIMAL(4,2),
// and the cast widens it.
func decimalLiteral(unscaled, typ string) string {
	sign := ""
	if strings.HasPrefix(unscaled, "-") {
		sign, unscaled = "-", unscaled[1:]
	}
	var scale int
	fmt.Sscan(scaleOf(typ), &scale)
	for len(unscaled) <= scale {
		unscaled = "0" + unscaled
	}
	whole, frac := unscaled[:len(unscaled)-scale], unscaled[len(unscaled)-scale:]
	if scale == 0 {
		return "CAST(" + sign + whole + " AS " + typ + ")"
	}
	return "CAST(" + sign + whole + "." + frac + " AS " + typ + ")"
}

func timeLiteral(v any, typ string) (string, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return "", false
	}
	i, err := n.Int64()
	if err != nil {
		return "", false
	}
	switch typ {
	case "DATE":
		if i < -365*2000 || i > 365*8000 { // infinity, or a year Go would print in another form
			return "", false
		}
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(i)).Format("2006-01-02"), true
	case "TIMESTAMP":
		if t := time.UnixMicro(i).UTC(); t.Year() > 0 && t.Year() < 10000 {
			return t.Format("2006-01-02 15:04:05.000000"), true
		}
	case "TIMESTAMP WITH TIME ZONE":
		if t := time.UnixMicro(i).UTC(); t.Year() > 0 && t.Year() < 10000 {
			return t.Format("2006-01-02 15:04:05.000000+00"), true
		}
	}
	return "", false
}
