package files

import (
	"regexp"
	"strconv"
	"strings"
)

// lossless tells whether every value of one DuckDB type is, unchanged, a value of another.
func lossless(from, to string) bool {
	if from == to {
		return true
	}
	if p, ok := decimalOf(to); ok {
		if q, ok := decimalOf(from); ok {
			return p.scale >= q.scale && p.width-p.scale >= q.width-q.scale
		}
		n, ok := integers[from]
		return ok && p.width-p.scale >= n.digits
	}
	a, isInt := integers[from]
	b, toInt := integers[to]
	switch {
	case isInt && toInt:
		return b.bits > a.bits && (b.signed || !a.signed)
	case isInt && to == "DOUBLE":
		return a.bits <= 32 // 53 bits of mantissa
	case isInt && to == "FLOAT":
		return a.bits <= 16
	}
	switch from + " " + to {
	case "FLOAT DOUBLE", "DATE TIMESTAMP", "TIMESTAMP_S TIMESTAMP", "TIMESTAMP_MS TIMESTAMP", "UUID VARCHAR", "JSON VARCHAR":
		return true
	}
	return strings.HasPrefix(from, "ENUM(") && to == "VARCHAR"
}

type integer struct {
	bits   int
	signed bool
	digits int // decimal digits of the largest value
}

var integers = map[string]integer{
	"TINYINT": {8, true, 3}, "SMALLINT": {16, true, 5}, "INTEGER": {32, true, 10}, "BIGINT": {64, true, 19}, "HUGEINT": {128, true, 39},
	"UTINYINT": {8, false, 3}, "USMALLINT": {16, false, 5}, "UINTEGER": {32, false, 10}, "UBIGINT": {64, false, 20}, "UHUGEINT": {128, false, 39},
}

type decimal struct{ width, scale int }

var decimalType = regexp.MustCompile(`^DECIMAL\((\d+),(\d+)\)$`)

func decimalOf(name string) (decimal, bool) {
	m := decimalType.FindStringSubmatch(name)
	if m == nil {
		return decimal{}, false
	}
	width, _ := strconv.Atoi(m[1])
	scale, _ := strconv.Atoi(m[2])
	return decimal{width, scale}, true
}

// zoned tells the types that are points in time, whose text needs an offset.
func zoned(typ string) bool {
	return typ == "TIMESTAMP WITH TIME ZONE" || typ == "TIME WITH TIME ZONE"
}
