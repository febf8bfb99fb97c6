package files

import (
	"fmt"
	"regexp"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// DuckDB's casts from text take much that does not mean a value of the type: '1.5' is a BIGINT of 2,
// '1.239' a DECIMAL(12,2) of 1.24, '2024-05-01x' a DATE, and the +02 of a TIMESTAMP is dropped. Here a
// text is a value only when it says exactly that value:
//
//	integers    digits with a sign; neither 1.0 nor 1e3 nor 0x10 nor 1_000
//	DECIMAL     at most scale digits after the point, apart from zeros at the end; no exponent
//	FLOAT       what DuckDB takes, rounded to the nearest; no infinity unless the text says so
//	DATE        year-month-day with four or more digits of year, no time of day
//	TIMESTAMP   a DATE, or one with a time of at most 6 digits after the second; no offset
//	TIMESTAMPTZ the same, but the time and its offset must be there
//	TIME        hours:minutes, and maybe seconds, of at most 6 digits after the point
//	INTERVAL    whole numbers of units, and maybe hours:minutes:seconds
//	nested      what DuckDB writes for the value, but for blanks and quotes
//
// Blanks around a value do not matter. With dateformat or timestampformat the text is what DuckDB's
// strptime takes under it.

// rule is how a text becomes a value of a type, in SQL over the text.
type rule struct {
	value  string // the value; NULL for a text that is none, never an error
	fits   string // true when the value is just what the text says, or the text is NULL; else false
	reason string // what is wrong with a text that does not fit
}

// ruleFor is the rule for a text v. x is what the value is called where it was decoded before: DuckDB
// would convert again for every mention of the conversion in a CASE.
func (s *settings) ruleFor(v, x, typ string) rule {
	shown := shownText(v)
	r := rule{value: "TRY_CAST(" + v + " AS " + typ + ")", reason: shown + " || ' is not " + literalPart(article(typ)) + "'"}
	switch {
	case typ == "VARCHAR":
		return rule{value: v, fits: "true", reason: "NULL"}
	case isInteger(typ):
		return s.integer(v, x, typ, r)
	case strings.HasPrefix(typ, "DECIMAL("):
		return s.decimal(v, x, typ, r)
	case typ == "FLOAT" || typ == "DOUBLE":
		return s.float(v, x, r)
	case typ == "DATE":
		return s.date(v, x, r)
	case strings.HasPrefix(typ, "TIMESTAMP"):
		return s.timestamp(v, x, typ, r)
	case strings.HasPrefix(typ, "TIME"):
		return clock(v, x, typ, r)
	case typ == "INTERVAL":
		r.fits = exact(x, v, intervalText)
		return r
	}
	if shape, ok := nestedShape(typ); ok {
		r.fits = "(" + v + " IS NULL OR coalesce(CAST(" + x + " AS VARCHAR) = CAST(TRY_CAST(" + v + " AS " + shape + ") AS VARCHAR), false))"
		r.reason = shownText(v) + " || ' is not " + literalPart(article(typ)) + " as DuckDB writes it'"
		return r
	}
	r.fits = "(" + v + " IS NULL OR " + x + " IS NOT NULL)" // no text of these types is changed
	return r
}

// decodable tells the types that a text can be decoded to.
func decodable(typ string) bool {
	switch typ {
	case "VARCHAR", "JSON", "FLOAT", "DOUBLE", "BOOLEAN", "DATE", "TIME", "TIME WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE",
		"TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "INTERVAL", "UUID", "BLOB", "BIT":
		return true
	}
	_, isDecimal := decimalOf(typ)
	return isInteger(typ) || isDecimal || strings.HasPrefix(typ, "ENUM(") && !strings.HasSuffix(typ, "]")
}

func isInteger(typ string) bool { _, ok := integers[typ]; return ok }

// exact is true for a text that DuckDB would write for the value, and else for one of a pattern that
// has a value. The first is cheap and nearly always true.
func exact(value, text, pattern string) string {
	return "CASE WHEN CAST(" + value + " AS VARCHAR) = " + text + " THEN true WHEN " + text + " IS NULL THEN true ELSE " +
		patterned(value, text, pattern) + " END"
}

func patterned(value, text, pattern string) string {
	return "(" + value + " IS NOT NULL AND " + matches(text, pattern) + ")"
}

func matches(text, pattern string) string {
	return "regexp_full_match(" + text + ", " + duck.Literal(" *"+pattern+" *") + ")"
}

func (s *settings) integer(v, x, typ string, r rule) rule {
	pattern := `[+-]?` + s.whole()
	r.value = "TRY_CAST(" + s.plainNumber(v) + " AS " + typ + ")"
	r.fits = exact(x, v, pattern)
	r.reason = "CASE WHEN " + matches(v, pattern) + " THEN " + shownText(v) + " || ' does not fit " + typ + "'" +
		" WHEN TRY_CAST(" + s.plainNumber(v) + " AS DOUBLE) IS NOT NULL THEN " + shownText(v) + " || ' is not written as a whole number, as " + typ + " needs'" +
		" ELSE " + r.reason + " END"
	return r
}

func (s *settings) decimal(v, x, typ string, r rule) rule {
	d, _ := decimalOf(typ)
	point := regexp.QuoteMeta(s.point())
	number := `[+-]?(` + s.whole() + `)?(` + point + `\d*)?`
	exactly := fmt.Sprintf(`[+-]?(%s)?(%s\d{0,%d}0*)?`, s.whole(), point, d.scale)
	r.value = "TRY_CAST(" + s.plainNumber(v) + " AS " + typ + ")"
	r.fits = exact(x, v, exactly)
	if s.localNumbers() {
		r.fits = "(" + v + " IS NULL OR coalesce(" + patterned(x, v, exactly) + ", false))"
	}
	digits := fmt.Sprintf("more than %d digits after the point", d.scale)
	if d.scale == 0 {
		digits = "digits after the point"
	}
	r.reason = "CASE WHEN " + matches(v, number) + " AND " + matches(v, `.*\d.*`) +
		" THEN CASE WHEN " + matches(v, exactly) + " THEN " + shownText(v) + " || ' does not fit " + typ + "'" +
		" ELSE " + shownText(v) + " || ' has " + digits + "' END ELSE " + r.reason + " END"
	return r
}

func (s *settings) float(v, x string, r rule) rule {
	text := s.plainNumber(v)
	typ := r.value[strings.LastIndex(r.value, " ")+1 : len(r.value)-1]
	r.value = "TRY_CAST(" + text + " AS " + typ + ")"
	named := patterned(x, "lower("+v+")", `[+-]?(inf|infinity|nan)`)
	if s.localNumbers() {
		written := matches(v, `[+-]?(`+s.whole()+`)?(`+regexp.QuoteMeta(s.point())+`\d*)?([eE][+-]?\d+)?`)
		r.fits = "(" + v + " IS NULL OR coalesce(isfinite(" + x + ") AND " + written + " OR " + named + ", false))"
	} else {
		r.fits = "CASE WHEN isfinite(" + x + ") THEN true WHEN " + v + " IS NULL THEN true ELSE " + named + " END"
	}
	r.reason = "CASE WHEN isinf(" + x + ") THEN " + shownText(v) + " || ' does not fit " + typ + "' ELSE " + r.reason + " END"
	return r
}

// localNumbers tells that numbers are not written as SQL does.
func (s *settings) localNumbers() bool { return s.text["thousands"] != "" || s.point() != "." }

func (s *settings) point() string {
	if p := s.text["decimal_separator"]; p != "" {
		return p
	}
	return "."
}

// whole is the pattern of digits, in groups of three where thousands is set.
func (s *settings) whole() string {
	if t := s.text["thousands"]; t != "" {
		return `(?:\d+|\d{1,3}(?:` + regexp.QuoteMeta(t) + `\d{3})+)`
	}
	return `\d+`
}

// plainNumber rewrites a number as SQL does.
func (s *settings) plainNumber(v string) string {
	if t := s.text["thousands"]; t != "" {
		v = "replace(" + v + ", " + duck.Literal(t) + ", '')"
	}
	if p := s.point(); p != "." {
		v = "replace(" + v + ", " + duck.Literal(p) + ", '.')"
	}
	return v
}

const (
	dayText      = `\d{4,}[-/]\d{1,2}[-/]\d{1,2}`
	clockText    = `\d{1,2}:\d{1,2}(?::\d{1,2}(?:[.]\d{0,%d}0*)?)?`
	anyClockText = `\d{1,2}:\d{1,2}(?::\d{1,2}(?:[.]\d*)?)?`
	offsetText   = ` *(?:Z|z|UTC|[+-]\d{1,2}(?::?\d{2}){0,2})`
	intervalText = `(?:[+-]?\d+ +[A-Za-z]+,? *)*(?:[+-]?\d+:\d{1,2}(?::\d{1,2}(?:[.]\d{0,6}0*)?)?)?`
)

// fractions is how many digits after the second each type keeps.
var fractions = map[string]int{"TIMESTAMP_S": 0, "TIMESTAMP_MS": 3, "TIMESTAMP_NS": 9}

func fraction(typ string) int {
	if n, ok := fractions[typ]; ok {
		return n
	}
	return 6
}

func (s *settings) date(v, x string, r rule) rule {
	if format, ok := s.text["dateformat"]; ok {
		return formatted(v, x, "DATE", format, "dateformat", r)
	}
	r.fits = exact(x, v, dayText)
	r.reason = "CASE WHEN " + matches(v, dayText+"[ T]+"+anyClockText+".*") + " THEN " + shownText(v) + " || ' has a time of day, which DATE does not keep (declare TIMESTAMP)'" +
		" ELSE " + r.reason + " END"
	return r
}

// finer are the parts of a format that say more than a type keeps.
var finer = map[string]*regexp.Regexp{
	"DATE":         regexp.MustCompile(`%-?[HIMSfgnpcXTz]`),
	"TIMESTAMP_S":  regexp.MustCompile(`%-?[fgn]`),
	"TIMESTAMP_MS": regexp.MustCompile(`%-?[fn]`),
	"TIMESTAMP":    regexp.MustCompile(`%-?n`),
	"TIMESTAMP_NS": regexp.MustCompile(`^$`),

	"TIMESTAMP WITH TIME ZONE": regexp.MustCompile(`%-?n`),
}

// formatted is for a text in a format of the author's. What the type does not keep of it does not fit.
func formatted(v, x, typ, format, option string, r rule) rule {
	parsed := "try_strptime(" + v + ", " + duck.Literal(format) + ")"
	r.value = "TRY_CAST(" + parsed + " AS " + typ + ")"
	r.fits = "(" + v + " IS NULL OR " + x + " IS NOT NULL)"
	if finer[typ].MatchString(format) {
		r.fits = "(" + v + " IS NULL OR coalesce(" + parsed + " = " + x + ", false))"
	}
	r.reason = "CASE WHEN " + x + " IS NOT NULL THEN " + shownText(v) + " || ' says more than a " + typ + " keeps'" +
		" ELSE " + shownText(v) + " || ' is not a " + typ + " written as " + option + " says, ' || " + duck.Literal("'"+format+"'") + " END"
	return r
}

func (s *settings) timestamp(v, x, typ string, r rule) rule {
	format, ok := s.text["timestampformat"]
	switch {
	case ok:
		r = formatted(v, x, typ, format, "timestampformat", r)
		if zoned(typ) {
			r.reason = noOffset(v, typ)
		}
		return r
	case zoned(typ):
		r.fits = zonedFits(v, x, dayText+`[ T]+`+fmt.Sprintf(clockText, 6)+offsetText)
		r.reason = "CASE WHEN " + matches(v, dayText+`[ T]+`+anyClockText+offsetText) + " AND " + x + " IS NOT NULL THEN " + tooFine(v, 6) + " ELSE " + noOffset(v, typ) + " END"
		return r
	}
	keeps := fraction(typ)
	r.fits = exact(x, v, dayText+`(?:[ T]+`+fmt.Sprintf(clockText, keeps)+`)?`)
	r.reason = "CASE WHEN " + matches(v, dayText+`[ T]+`+anyClockText+offsetText) +
		" THEN " + shownText(v) + " || ' has an offset, which " + typ + " does not keep (declare TIMESTAMPTZ)'" +
		" WHEN " + matches(v, dayText+`[ T]+`+anyClockText) + " AND " + x + " IS NOT NULL THEN " + tooFine(v, keeps) +
		" ELSE " + r.reason + " END"
	return r
}

// zonedFits leaves out exact's cheap look: DuckDB writes such a value in UTC, which files seldom do.
func zonedFits(v, value, pattern string) string {
	return "(" + v + " IS NULL OR coalesce(" + patterned(value, v, pattern) + ", false))"
}

func clock(v, x, typ string, r rule) rule {
	if zoned(typ) {
		r.fits = zonedFits(v, x, fmt.Sprintf(clockText, 6)+offsetText)
		r.reason = noOffset(v, typ)
		return r
	}
	r.fits = exact(x, v, fmt.Sprintf(clockText, 6))
	r.reason = "CASE WHEN " + matches(v, anyClockText+offsetText) + " THEN " + shownText(v) + " || ' has an offset, which TIME does not keep'" +
		" WHEN " + matches(v, dayText+"[ T].*") + " THEN " + shownText(v) + " || ' has a day, which TIME does not keep'" +
		" WHEN " + matches(v, anyClockText) + " AND " + x + " IS NOT NULL THEN " + tooFine(v, 6) + " ELSE " + r.reason + " END"
	return r
}

func tooFine(v string, digits int) string {
	if digits == 0 {
		return shownText(v) + " || ' has fractions of a second'"
	}
	return shownText(v) + fmt.Sprintf(" || ' has more than %d digits after the second'", digits)
}

func noOffset(v, typ string) string {
	example := "2024-05-31 10:00:00+02"
	if strings.HasPrefix(typ, "TIME ") {
		example = "10:00:00+02"
	}
	return shownText(v) + " || ' is not a time with an offset, like \"" + example + "\", as " + typ +
		" needs (for times without one declare " + strings.TrimSuffix(typ, " WITH TIME ZONE") + " and write AT TIME ZONE ''…'' in the SELECT)'"
}

// shownText is a text of the input in double quotes, on one line and not too long.
func shownText(v string) string {
	return fmt.Sprintf(`('"' || CASE WHEN length(%[1]s) > %[2]d THEN left(%[1]s, %[2]d) || '…' ELSE replace(replace(%[1]s, chr(13), '\r'), chr(10), '\n') END || '"')`, v, cutAt)
}

// article writes a type's name with its article.
func article(typ string) string {
	if strings.HasPrefix(typ, "INT") || strings.HasPrefix(typ, "ENUM") {
		return "an " + typ
	}
	return "a " + typ
}

// literalPart is a text inside a SQL string.
func literalPart(text string) string { return strings.ReplaceAll(text, "'", "''") }

// undecodable is the fault of a column whose type no text can be decoded to. Types may still be spelled
// as the author did; strict is for those that DuckDB spelled.
func undecodable(c connectors.SourceColumn, format string, strict bool) *Fault {
	if !isInput(c) {
		return nil
	}
	typ := strings.ToUpper(c.Type)
	nested := strings.HasPrefix(typ, "STRUCT") || strings.HasPrefix(typ, "MAP") || strings.HasSuffix(typ, "]")
	bad := nested && format == formatJSON || strings.HasPrefix(typ, "UNION") || typ == "VARIANT" || typ == "GEOMETRY"
	if strict {
		_, known := nestedShape(c.Type)
		bad = !decodable(c.Type) && !(known && format == formatCSV)
	}
	if !bad {
		return nil
	}
	as := "VARCHAR"
	if format == formatJSON {
		as = "JSON"
	}
	return &Fault{Reason: fmt.Sprintf("column %s: %s files cannot be read as %s", c.Name, format, c.Type), Hint: "declare it as " + as + " and convert it in the SELECT"}
}
