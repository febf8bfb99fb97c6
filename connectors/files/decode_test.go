package files

import (
	"strings"
	"testing"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// Every text is a value only when it says exactly that value. The value is DuckDB's text of it; a
// reason begins with "!".
func TestTextsAndTheirValues(t *testing.T) {
	eng := newEngine(t)
	const whole = " is not written as a whole number, as BIGINT needs"
	for _, c := range []struct {
		typ     string
		options string // name=value;…
		cases   []string
	}{
		{"BIGINT", "", []string{"1", "1", "+1", "1", "-0", "0", "007", "7", " 1 ", "1", "9223372036854775807", "9223372036854775807",
			"1.5", "!" + whole, "1.0", "!" + whole, "1.", "!" + whole, ".5", "!" + whole, "1e3", "!" + whole, "1e-1", "!" + whole,
			"1_000", "!" + whole, "0x10", "! is not a BIGINT", "", "! is not a BIGINT", "1 000", "! is not a BIGINT", "- 1", "! is not a BIGINT",
			"9223372036854775808", "! does not fit BIGINT", "\xc2\xa01", "! is not a BIGINT"}},
		{"UTINYINT", "", []string{"255", "255", "256", "! does not fit UTINYINT", "-1", "! does not fit UTINYINT", "255.4", "! is not written as a whole number, as UTINYINT needs"}},
		{"HUGEINT", "", []string{"12345678901234567890123", "12345678901234567890123", "1.5", "! is not written as a whole number, as HUGEINT needs"}},
		{"BIGINT", "thousands=.;decimal_separator=,", []string{"1.234.567", "1234567", "1234567", "1234567", "1.5", "! is not written as a whole number, as BIGINT needs",
			"1.5000", "! is not written as a whole number, as BIGINT needs", "1,0", "! is not written as a whole number, as BIGINT needs"}},
		{"DECIMAL(12,2)", "", []string{"1.5", "1.50", "1.50", "1.50", "1.5000", "1.50", "1", "1.00", ".5", "0.50", "5.", "5.00", "-1.5", "-1.50", "+1.5 ", "1.50", "007.1", "7.10",
			"1.239", "! has more than 2 digits after the point", "1.2300001", "! has more than 2 digits after the point", "0.001", "! has more than 2 digits after the point",
			"1e3", "! is not a DECIMAL(12,2)", "1e-5", "! is not a DECIMAL(12,2)", "1.e5", "! is not a DECIMAL(12,2)", "1_0.5", "! is not a DECIMAL(12,2)", ".", "! is not a DECIMAL(12,2)",
			"12345678901.1", "! does not fit DECIMAL(12,2)", "9999999999.99", "9999999999.99", "9999999999.995", "! has more than 2 digits after the point", "", "! is not a DECIMAL(12,2)"}},
		{"DECIMAL(5,0)", "", []string{"1", "1", "1.0", "1", "1.", "1", "1.5", "! has digits after the point"}},
		{"DECIMAL(38,10)", "", []string{"1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789"}},
		{"DECIMAL(12,2)", "decimal_separator=,", []string{"1,5", "1.50", "1.5", "! is not a DECIMAL(12,2)", "1,239", "! has more than 2 digits after the point"}},
		{"DECIMAL(12,2)", "thousands=.;decimal_separator=,", []string{"1.234,5", "1234.50", "1.5", "! is not a DECIMAL(12,2)", "1.234", "1234.00", "12.34,5", "! is not a DECIMAL(12,2)", "1234,5", "1234.50"}},
		{"DOUBLE", "", []string{"1.5", "1.5", "1e3", "1000.0", " 1 ", "1.0", "inf", "inf", "-Infinity", "-inf", "NaN", "nan", "1e400", "! does not fit DOUBLE", "1e-400", "0.0", "x", "! is not a DOUBLE"}},
		{"FLOAT", "", []string{"0.1", "0.1", "1e39", "! does not fit FLOAT"}},
		{"DOUBLE", "decimal_separator=,", []string{"1,5", "1.5", "1,5e3", "1500.0", "1.5", "! is not a DOUBLE", "inf", "inf"}},
		{"BOOLEAN", "", []string{"true", "true", "F", "false", "1", "true", "no", "false", "2", "! is not a BOOLEAN", "on", "! is not a BOOLEAN", "1.0", "! is not a BOOLEAN"}},
		{"DATE", "", []string{"2026-01-31", "2026-01-31", "2026-1-5", "2026-01-05", "2026/01/31", "2026-01-31", " 2026-01-31 ", "2026-01-31", "12026-01-01", "12026-01-01", "infinity", "infinity",
			"2026-01-31 10:00", "! has a time of day, which DATE does not keep (declare TIMESTAMP)", "2026-01-31T00:00:00Z", "! has a time of day, which DATE does not keep (declare TIMESTAMP)",
			"2026-01-31x", "! is not a DATE", "2026-02-30", "! is not a DATE", "26-01-31", "! is not a DATE", "2026-01-3x", "! is not a DATE", "2026-01-31 BC", "! is not a DATE", "31.01.2026", "! is not a DATE"}},
		{"DATE", "dateformat=%d.%m.%Y", []string{"31.01.2026", "2026-01-31", "31.1.2026", "2026-01-31", "2026-01-31", "! is not a DATE written as dateformat says, '%d.%m.%Y'",
			"31.01.2026 10:00", "! is not a DATE written as dateformat says, '%d.%m.%Y'"}},
		{"DATE", "dateformat=%d.%m.%Y %H:%M", []string{"31.01.2026 00:00", "2026-01-31", "31.01.2026 10:00", "! says more than a DATE keeps"}},
		{"TIMESTAMP", "", []string{"2026-01-31 10:00:00", "2026-01-31 10:00:00", "2026-01-31T10:00:00.5", "2026-01-31 10:00:00.5", "2026-01-31", "2026-01-31 00:00:00", "2026-01-31 10:00", "2026-01-31 10:00:00",
			"2026-01-31 10:00:00.123456000", "2026-01-31 10:00:00.123456", "2026/01/31 1:2:3", "2026-01-31 01:02:03", "infinity", "infinity", "2026-01-31 24:00:00", "2026-02-01 00:00:00",
			"2026-01-31 10:00:00.1234567", "! has more than 6 digits after the second", "2026-01-31 10:00:00+02", "! has an offset, which TIMESTAMP does not keep (declare TIMESTAMPTZ)",
			"2026-01-31 10:00+02", "! has an offset, which TIMESTAMP does not keep (declare TIMESTAMPTZ)", "2026-01-31T10:00:00Z", "! has an offset, which TIMESTAMP does not keep (declare TIMESTAMPTZ)",
			"2026-01-31 10:00:00 UTC", "! has an offset, which TIMESTAMP does not keep (declare TIMESTAMPTZ)", "2026-01-31 10:00:60", "! is not a TIMESTAMP", "2026-01-31 10", "! is not a TIMESTAMP", "epoch", "! is not a TIMESTAMP"}},
		{"TIMESTAMP", "timestampformat=%d.%m.%Y %H:%M", []string{"31.01.2026 10:00", "2026-01-31 10:00:00", "2026-01-31 10:00:00", "! is not a TIMESTAMP written as timestampformat says, '%d.%m.%Y %H:%M'"}},
		{"TIMESTAMP", "timestampformat=%Y-%m-%d %H:%M:%S.%n", []string{"2026-01-31 10:00:00.123456000", "2026-01-31 10:00:00.123456", "2026-01-31 10:00:00.123456789", "! says more than a TIMESTAMP keeps"}},
		{"TIMESTAMP_S", "", []string{"2026-01-31 10:00:00.000", "2026-01-31 10:00:00", "2026-01-31 10:00:00.5", "! has fractions of a second"}},
		{"TIMESTAMP_MS", "", []string{"2026-01-31 10:00:00.125", "2026-01-31 10:00:00.125", "2026-01-31 10:00:00.1255", "! has more than 3 digits after the second"}},
		{"TIMESTAMP_NS", "", []string{"2026-01-31 10:00:00.123456789", "2026-01-31 10:00:00.123456789", "2026-01-31 10:00:00.1234567891", "! has more than 9 digits after the second"}},
		{"TIMESTAMP WITH TIME ZONE", "", []string{"2026-01-31 10:00:00+02", "2026-01-31 08:00:00+00", "2026-01-31T10:00:00.5Z", "2026-01-31 10:00:00.5+00", "2026-01-31 10:00:00-05:30", "2026-01-31 15:30:00+00",
			"2026-01-31 10:00:00.1234567+02", "! has more than 6 digits after the second", "2026-01-31 10:00:00", "! is not a time with an offset"}},
		{"TIME", "", []string{"10:00:00", "10:00:00", "10:00", "10:00:00", "1:2:3.5", "01:02:03.5", "10:00:00.1234567", "! has more than 6 digits after the second",
			"10:00:00+02", "! has an offset, which TIME does not keep", "2026-01-31 10:00:00", "! has a day, which TIME does not keep", "25:00:00", "! is not a TIME"}},
		{"TIME WITH TIME ZONE", "", []string{"10:00:00+02", "10:00:00+02", "10:00:00", "! is not a time with an offset"}},
		{"INTERVAL", "", []string{"1 day", "1 day", "2 months 3 days", "2 months 3 days", "10:00:00.5", "10:00:00.5", "1.5 months", "! is not an INTERVAL", "0.1 microseconds", "! is not an INTERVAL", "10:00:00.1234567", "! is not an INTERVAL"}},
		{"UUID", "", []string{"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99", "! is not a UUID"}},
		{"BLOB", "", []string{`a\xAA`, `a\xAA`, "ä", "! is not a BLOB"}},
		{"BIT", "", []string{"101", "101", "2", "! is not a BIT"}},
		{"ENUM('a', 'b''c')", "", []string{"a", "a", "b'c", "b'c", "c", "! is not an ENUM('a', 'b''c')"}},
		{"JSON", "", []string{`{"a": 1.10}`, `{"a": 1.10}`, "{a", "! is not a JSON"}},
		{"BIGINT[]", "", []string{"[1,2]", "[1, 2]", "[NULL]", "[NULL]", "[1.5, 2]", "! is not a BIGINT[] as DuckDB writes it", "[1", "! is not a BIGINT[] as DuckDB writes it"}},
		{"DOUBLE[2]", "", []string{"[1,2.5]", "[1.0, 2.5]", "[1]", "! is not a DOUBLE[2] as DuckDB writes it"}},
		{"STRUCT(a INTEGER, \"b, \"\"c\" MAP(VARCHAR, DATE[]))", "", []string{`{'a': 1, 'b, "c': {x=[2024-01-01]}}`, `{'a': 1, 'b, "c': {x=[2024-01-01]}}`,
			`{'a': 1, 'b, "c': {x=[2024-01-01 10:00]}}`, "! is not a STRUCT(", `{'a': 1.5}`, "! is not a STRUCT("}},
		{"STRUCT(\"a\" INTEGER)", "", []string{"{'a': 1}", "{'a': 1}"}},
		{"VARCHAR", "", []string{"", "", " x ", " x "}},
	} {
		spec := connectors.SourceSpec{From: "x.csv", Columns: declare("v " + c.typ), Options: map[string]connectors.Option{"delim": {Text: "|"}}}
		for _, o := range strings.Split(c.options, ";") {
			if name, value, ok := strings.Cut(o, "="); ok {
				spec.Options[name] = connectors.Option{Text: value}
			}
		}
		settings, faults := newSettings(spec)
		if faults != nil {
			t.Fatal(faults)
		}
		r := settings.ruleFor("v", "x", c.typ)
		for i := 0; i < len(c.cases); i += 2 {
			in, want := c.cases[i], c.cases[i+1]
			var fits bool
			var got, reason *string
			err := eng.QueryRow(t.Context(), "SELECT "+r.fits+", CAST(x AS VARCHAR), "+r.reason+" FROM (SELECT *, "+r.value+" AS x FROM (SELECT "+duck.Literal(in)+" AS v))", nil, &fits, &got, &reason)
			if err != nil {
				t.Fatalf("%s %q: %v", c.typ, in, err)
			}
			expected, bad := strings.CutPrefix(want, "!")
			switch {
			case bad && (fits || !strings.HasPrefix(*reason, `"`+in+`"`+expected)):
				t.Errorf("%s %s %q: fits %v as %v, %v", c.typ, c.options, in, fits, deref(got), deref(reason))
			case !bad && (!fits || deref(got) != want):
				t.Errorf("%s %s %q: fits %v as %v, %v", c.typ, c.options, in, fits, deref(got), deref(reason))
			}
		}
		var fits bool
		if err := eng.QueryRow(t.Context(), "SELECT "+r.fits+" FROM (SELECT *, "+r.value+" AS x FROM (SELECT CAST(NULL AS VARCHAR) AS v))", nil, &fits); err != nil || !fits {
			t.Errorf("%s: NULL does not fit: %v", c.typ, err)
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return "NULL"
	}
	return *s
}
