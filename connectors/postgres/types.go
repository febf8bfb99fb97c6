package postgres

import (
	"fmt"
	"regexp"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// form is how a value travels in Postgres's binary formats.
type form int

const (
	refused form = iota
	asBool
	asInt2
	asInt4
	asInt8
	asFloat4
	asFloat8
	asNumeric
	asText
	asBytes
	asDate
	asTime
	asTimeTZ
	asTimestamp
	asInterval
	asUUID
	asBits
)

// mapped is what becomes of a DuckDB type.
type mapped struct {
	name string // of the Postgres type, as the catalogue writes it
	form form
	out  string // how DuckDB gives the value: an expression around %s; "" as it is
	in   string // how Postgres gives it back, to be cast to the DuckDB type; "" as it is
	back string // how DuckDB makes the value of that; "" a cast
	mend string // what to write instead of a type that is refused
}

var mappings = map[string]mapped{
	"BOOLEAN":   {name: "boolean", form: asBool},
	"TINYINT":   {name: "smallint", form: asInt2},
	"SMALLINT":  {name: "smallint", form: asInt2},
	"UTINYINT":  {name: "smallint", form: asInt2},
	"INTEGER":   {name: "integer", form: asInt4},
	"USMALLINT": {name: "integer", form: asInt4},
	"BIGINT":    {name: "bigint", form: asInt8},
	"UINTEGER":  {name: "bigint", form: asInt8},
	"UBIGINT":   {name: "numeric(20,0)", form: asNumeric, out: "CAST(%s AS VARCHAR)", in: "%s::text"},
	"HUGEINT":   {name: "numeric(39,0)", form: asNumeric, out: "CAST(%s AS VARCHAR)", in: "%s::text"},
	"UHUGEINT":  {name: "numeric(39,0)", form: asNumeric, out: "CAST(%s AS VARCHAR)", in: "%s::text"},
	"FLOAT":     {name: "real", form: asFloat4},
	"DOUBLE":    {name: "double precision", form: asFloat8},
	"VARCHAR":   {name: "text", form: asText},
	"BLOB":      {name: "bytea", form: asBytes},
	"BIT":       {name: "bit varying", form: asBits, out: "CAST(%s AS VARCHAR)", in: "%s::text"},
	"UUID":      {name: "uuid", form: asUUID, out: "CAST(%s AS VARCHAR)", in: "%s::text"},
	"DATE":      {name: "date", form: asDate},
	"TIME":      {name: "time without time zone", form: asTime},
	"INTERVAL":  {name: "interval", form: asInterval, out: intervalOut, in: intervalIn, back: intervalBack},

	"TIME WITH TIME ZONE":      {name: "time with time zone", form: asTimeTZ, out: "CAST(%s AS VARCHAR)", in: "%s::text"},
	"TIMESTAMP":                {name: "timestamp without time zone", form: asTimestamp},
	"TIMESTAMP_S":              {name: "timestamp without time zone", form: asTimestamp},
	"TIMESTAMP_MS":             {name: "timestamp without time zone", form: asTimestamp},
	"TIMESTAMP_NS":             {name: "timestamp without time zone", form: asTimestamp},
	"TIMESTAMP WITH TIME ZONE": {name: "timestamp with time zone", form: asTimestamp},

	"TIME_NS": {mend: "CAST(%s AS TIME)"},
	"JSON":    {mend: "CAST(%s AS VARCHAR)"},
}

// An interval travels as its three parts, months|days|microseconds. Arrow has nanoseconds, into which not
// all microseconds fit; the driver does not notice.
const (
	intervalOut = "((datepart('year', %[1]s) * 12 + datepart('month', %[1]s)) || '|' || datepart('day', %[1]s) || '|' || " +
		"(datepart('hour', %[1]s)::HUGEINT * 3600000000 + datepart('minute', %[1]s) * 60000000 + datepart('microsecond', %[1]s)))"
	intervalIn = "(extract(year FROM %[1]s) * 12 + extract(month FROM %[1]s))::bigint || '|' || extract(day FROM %[1]s)::bigint || '|' || " +
		"(extract(hour FROM %[1]s) * 3600000000 + extract(minute FROM %[1]s) * 60000000 + extract(microseconds FROM %[1]s))::numeric(30,0)"
	intervalBack = "to_months(split_part(%[1]s, '|', 1)::INTEGER) + to_days(split_part(%[1]s, '|', 2)::INTEGER) + to_microseconds(split_part(%[1]s, '|', 3)::BIGINT)"
)

var otherNames = map[string]string{"TIMETZ": "TIME WITH TIME ZONE", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE", "DATETIME": "TIMESTAMP"}

// typeOf maps a DuckDB type. One without a name of Postgres is refused.
func typeOf(typ string) mapped {
	typ = strings.TrimSpace(typ)
	if name, ok := otherNames[typ]; ok {
		typ = name
	}
	if m, ok := mappings[typ]; ok {
		return m
	}
	nested := strings.HasSuffix(typ, "]")
	switch {
	case !nested && strings.HasPrefix(typ, "DECIMAL("):
		return mapped{name: "numeric" + strings.ReplaceAll(typ[len("DECIMAL"):], " ", ""), form: asNumeric, in: "%s::text"}
	case !nested && strings.HasPrefix(typ, "ENUM"):
		return mapped{name: "text", form: asText, out: "CAST(%s AS VARCHAR)"}
	case nested || strings.HasPrefix(typ, "STRUCT") || strings.HasPrefix(typ, "MAP"):
		return mapped{mend: "CAST(to_json(%s) AS VARCHAR)"}
	}
	return mapped{mend: "CAST(%s AS VARCHAR)"}
}

// TypeName is what Postgres calls the type of a column; "" when no table of a pipeline can have it.
func TypeName(duck string) string { return typeOf(duck).name }

// checkTypes refuses columns that a Postgres table of the pipeline cannot have.
func checkTypes(sink connectors.SinkSpec) error {
	for _, c := range sink.Columns {
		if reason, hint := Refusal(c); reason != "" {
			return &connectors.TargetError{Table: sink.Name, Reason: reason, Hint: hint}
		}
	}
	return nil
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// Refusal says why a column cannot be one of a Postgres table; "" when it can.
func Refusal(c connectors.SinkColumn) (reason, hint string) {
	m := typeOf(c.Type)
	if m.form != refused {
		return "", ""
	}
	name := c.Name
	if !plainName.MatchString(name) {
		name = duck.Quote(name)
	}
	return fmt.Sprintf("column %s is %s, which a Postgres table of a pipeline cannot hold", c.Name, c.Type),
		"write in the SELECT: " + fmt.Sprintf(m.mend, name) + " AS " + name
}

// holds tells whether a column of a table, which somebody else may have made, keeps every value of a type
// as it is: one that would round, cut or pad does not.
func holds(there, want string) bool {
	switch {
	case there == want:
		return true
	case want == "text":
		return there == "character varying"
	case strings.HasPrefix(want, "numeric"):
		return there == "numeric"
	}
	return false
}
