package planner

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"lockstep/engine/duck"
)

// literal writes a serialised constant as SQL that binds back to the same type and value. Most are
// written as a cast of their text, as an author would write DATE '2024-01-31'; the canonical form of
// the two is the same.
func literal(value object) (sql, typ string, err error) {
	typ, err = typeName(value["type"])
	if err != nil {
		return "", "", err
	}
	if isSet(value, "is_null") {
		if typ == "NULL" {
			return "NULL", typ, nil
		}
		return "CAST(NULL AS " + typ + ")", typ, nil
	}
	v := value["value"]
	if typ == "VARCHAR" {
		s, ok := v.(string)
		if !ok {
			return "", "", fmt.Errorf("a text constant that is not valid UTF-8")
		}
		return duck.Literal(s), typ, nil
	}
	if typ == "INTEGER" {
		return fmt.Sprint(v), typ, nil
	}
	s, ok := literalText(v, typ, child(value, "type"))
	if !ok {
		return "", "", fmt.Errorf("a constant of type %s", typ)
	}
	return "CAST(" + duck.Literal(s) + " AS " + typ + ")", typ, nil
}

// literalText is the text that DuckDB casts to the value.
func literalText(v any, typ string, full object) (string, bool) {
	switch {
	case typ == "BOOLEAN":
		b, ok := v.(bool)
		return map[bool]string{true: "t", false: "f"}[b], ok // what true and false are bound as
	case isInteger(typ) || typ == "UHUGEINT":
		n, ok := bigInteger(v)
		return n.String(), ok
	case isFloat(typ):
		if n, ok := v.(json.Number); ok {
			return n.String(), true
		}
		s, ok := v.(string) // NaN, Infinity, -Infinity
		return strings.ToLower(s), ok
	case isDecimal(typ):
		n, ok := bigInteger(v)
		return decimalText(n.String(), scaleOf(typ)), ok
	case typ == "BLOB", typ == "JSON":
		s, ok := v.(string)
		return s, ok
	case typ == "UUID":
		n, ok := bigInteger(v)
		return uuidText(n), ok
	case typ == "INTERVAL":
		part := func(name string) string {
			n, _ := child(object{"v": v}, "v")[name].(json.Number)
			return n.String()
		}
		return fmt.Sprintf("%s months %s days %s microseconds", part("months"), part("days"), part("micros")), part("months") != ""
	case strings.HasPrefix(typ, "ENUM("):
		values := enumValues(child(full, "type_info"))
		if i, ok := integer(v); ok && i < len(values) {
			return values[i], true
		}
		return "", false
	}
	n, ok := v.(json.Number)
	if !ok {
		return "", false
	}
	i, err := n.Int64()
	if err != nil {
		return "", false
	}
	return timeText(i, typ)
}

// bigInteger reads a number, or the two halves of one of 128 bits.
func bigInteger(v any) (*big.Int, bool) {
	n, ok := new(big.Int), false
	switch v := v.(type) {
	case json.Number:
		n, ok = n.SetString(v.String(), 10)
	case object:
		upper, okUpper := bigInteger(v["upper"])
		lower, okLower := bigInteger(v["lower"])
		n, ok = n.Add(n.Lsh(upper, 64), lower), okUpper && okLower
	}
	if !ok {
		return new(big.Int), false
	}
	return n, true
}

// decimalText writes an unscaled value with its point.
func decimalText(unscaled, scaleDigits string) string {
	sign := ""
	if strings.HasPrefix(unscaled, "-") {
		sign, unscaled = "-", unscaled[1:]
	}
	scale := 0
	if _, err := fmt.Sscan(scaleDigits, &scale); err != nil || scale == 0 {
		return sign + unscaled
	}
	if short := scale + 1 - len(unscaled); short > 0 {
		unscaled = strings.Repeat("0", short) + unscaled
	}
	return sign + unscaled[:len(unscaled)-scale] + "." + unscaled[len(unscaled)-scale:]
}

// uuidText: DuckDB keeps a UUID as a HUGEINT with its first bit flipped, so that order is kept.
func uuidText(n *big.Int) string {
	n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 127))
	s := fmt.Sprintf("%032x", n)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

const (
	infinite  = 1<<63 - 1 // DuckDB's 'infinity' as a timestamp; the negative of it is '-infinity'
	infinite4 = 1<<31 - 1 // the same as a date
)

func timeText(i int64, typ string) (string, bool) {
	switch {
	case typ == "DATE" && i == infinite4, strings.HasPrefix(typ, "TIMESTAMP") && i == infinite:
		return "infinity", true
	case typ == "DATE" && i == -infinite4, strings.HasPrefix(typ, "TIMESTAMP") && i == -infinite:
		return "-infinity", true
	}
	var t time.Time
	switch typ {
	case "DATE":
		t = time.Unix(0, 0).UTC().AddDate(0, 0, int(i))
		return dateText(t), true
	case "TIME":
		t = time.UnixMicro(i).UTC()
		return t.Format("15:04:05.000000"), i >= 0 && i < 24*3600*1e6
	case "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
		t = time.UnixMicro(i).UTC()
	case "TIMESTAMP_S":
		t = time.Unix(i, 0).UTC()
	case "TIMESTAMP_MS":
		t = time.UnixMilli(i).UTC()
	case "TIMESTAMP_NS":
		t = time.Unix(0, i).UTC()
	default:
		return "", false
	}
	clock := t.Format(" 15:04:05.000000")
	if typ == "TIMESTAMP_NS" {
		clock = t.Format(" 15:04:05.000000000")
	}
	day := dateText(t)
	if bare, bc := strings.CutSuffix(day, " (BC)"); bc { // DuckDB reads the era before the clock only
		day = bare + " (BC)"
	}
	if typ == "TIMESTAMP WITH TIME ZONE" {
		clock += "+00"
	}
	return day + clock, true
}

// dateText writes years beyond 9999 and before Christ as DuckDB reads them.
func dateText(t time.Time) string {
	year, era := t.Year(), ""
	if year <= 0 {
		year, era = 1-year, " (BC)"
	}
	return fmt.Sprintf("%04d-%02d-%02d%s", year, int(t.Month()), t.Day(), era)
}
