package files

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// csv finds the columns of CSV files and a type for each that all sampled values fit.
func (in *inference) csv(ctx context.Context) error {
	dateFormat, timeFormat, err := in.dialect(ctx)
	if err != nil {
		return err
	}
	settings, faults := newSettings(withoutColumns(in.spec))
	for _, f := range faults {
		return in.src.dataError(in.files[0].path, "needs an "+f.Error(), "")
	}
	in.src.settings = settings
	names, err := in.names(ctx)
	if err != nil {
		return err
	}
	// One name may be declared once.
	var at []int
	for i, n := range names {
		switch _, count := find(names, n); {
		case n == "":
			in.notes = append(in.notes, fmt.Sprintf("column %d has no name and is left out", i+1))
		case count > 1 || slices.ContainsFunc(names[:i], func(other string) bool { return strings.EqualFold(other, n) }):
			in.notes = append(in.notes, fmt.Sprintf("the name %q is there more than once; it is left out", n))
		default:
			at = append(at, i)
			in.columns = append(in.columns, connectors.SourceColumn{Name: n, Type: "VARCHAR"})
		}
	}
	if len(in.columns) == 0 {
		return in.src.dataError(in.files[0].path, "has no column with a name of its own", "give its columns names, or use header = false")
	}
	in.src.spec.Columns = in.columns
	return in.types(ctx, sheet{layout{names, at}, in.files}, dateFormat, timeFormat)
}

// names returns the columns of the first file, and leaves out files that have others.
func (in *inference) names(ctx context.Context) ([]string, error) {
	s := in.src
	if s.settings.text["header"] == "false" {
		var n int
		if err := in.eng.QueryRow(ctx, "SELECT len(Columns) FROM sniff_csv("+literal(in.files[0])+", compression = '"+compression(in.files[0].path)+"', header = false, delim = "+duck.Literal(s.settings.text["delim"])+")", nil, &n); err != nil {
			return nil, err
		}
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("column%d", i+1)
		}
		return names, nil
	}
	var names []string
	var same []file
	for i, f := range in.files {
		got, err := headerOf(f.path, &s.settings)
		switch {
		case err != nil:
			return nil, s.dataError(f.path, err.Error(), "")
		case i == 0:
			names = got
		case !slices.Equal(got, names):
			in.notes = append(in.notes, fmt.Sprintf("%s has other columns: %s", s.shown(f.path), cut(strings.Join(got, ", "))))
			continue
		}
		same = append(same, f)
	}
	in.files = same
	return names, nil
}

// guess is a type with the condition that a text v fits it.
type guess struct {
	typ, fits string
	option    string // makes the reader take such texts; "" = nothing
	value     string // of the option
	otherwise string // a condition under which the texts could as well mean something else
}

// allFit is a condition on all texts.
func allFit(condition string) string {
	return "coalesce(bool_and(" + condition + ") FILTER (v IS NOT NULL), false)"
}

const (
	timeOfDay = `\d{1,2}:\d{2}(:\d{2}([.]\d{1,6})?)?`
	isoDay    = `\d{4}-\d{2}-\d{2}`
	wholePart = `-?(0|[1-9]\d{0,11})` // leading zeros make a code, not a number
)

// guesses lists types from narrow to wide.
func guesses(dateFormat, timeFormat string) []guess {
	matches := func(pattern string) string { return "regexp_full_match(v, " + duck.Literal(pattern) + ")" }
	parses := func(typ string) string { return "TRY_CAST(v AS " + typ + ") IS NOT NULL" }
	strptime := func(format string) string { return "try_strptime(v, " + duck.Literal(format) + ") IS NOT NULL" }
	out := []guess{
		{typ: "BOOLEAN", fits: "lower(v) IN ('true', 'false')"},
		{typ: "BIGINT", fits: matches(`-?(0|[1-9]\d*)`) + " AND " + parses("BIGINT")},
		{typ: "HUGEINT", fits: matches(`-?(0|[1-9]\d*)`) + " AND " + parses("HUGEINT")},
		{typ: "DECIMAL", fits: matches(wholePart + `([.]\d{1,6})?`)},
		{typ: "DOUBLE", fits: matches(`-?(0|[1-9]\d*)?([.]\d+)?([eE][-+]?\d+)?`) + " AND " + parses("DOUBLE")},
		{typ: "DATE", fits: matches(isoDay) + " AND " + parses("DATE")},
		{typ: "TIMESTAMP", fits: matches(isoDay+"[ T]"+timeOfDay) + " AND " + parses("TIMESTAMP")},
		{typ: "TIMESTAMPTZ", fits: zonedFits("v", "TRY_CAST(v AS TIMESTAMPTZ)", dayText+"[ T]"+fmt.Sprintf(clockText, 6)+offsetText)},
		{typ: "TIME", fits: matches(timeOfDay) + " AND " + parses("TIME")},
		{typ: "DECIMAL", fits: matches(wholePart + `(,\d{1,6})?`), option: "decimal_separator", value: ",", otherwise: "true"},
	}
	dayAndMonth := strings.NewReplacer("%d", "%m", "%m", "%d")
	for _, f := range []struct{ typ, option, format string }{{"DATE", "dateformat", dateFormat}, {"TIMESTAMP", "timestampformat", timeFormat}} {
		if f.format == "" || strings.Contains(f.format, "%z") {
			continue
		}
		g := guess{f.typ, strptime(f.format), f.option, f.format, "false"}
		if other := dayAndMonth.Replace(f.format); !strings.HasPrefix(f.format, "%Y") {
			g.otherwise = strptime(other)
		}
		out = append(out, g)
	}
	return out
}

func (in *inference) types(ctx context.Context, sh sheet, dateFormat, timeFormat string) error {
	var samples []string
	for _, f := range sh.files {
		samples = append(samples, fmt.Sprintf("(FROM %s LIMIT %d)", in.src.readCSV(sh, []file{f}), inferRows))
	}
	sample := strings.Join(samples, " UNION ALL ")
	all := guesses(dateFormat, timeFormat)
	for i := range in.columns {
		selects := []string{"count(v)", "coalesce(max(length(v) - instr(v, '.')) FILTER (contains(v, '.')), 0)"}
		for _, g := range all {
			selects = append(selects, allFit(g.fits), allFit(cmp.Or(g.otherwise, "false")))
		}
		var filled, scale int64
		answers := make([]bool, 2*len(all))
		into := []any{&filled, &scale}
		for j := range answers {
			into = append(into, &answers[j])
		}
		query := "SELECT " + strings.Join(selects, ", ") + " FROM (SELECT " + sh.name(sh.at[i]) + " AS v FROM (" + sample + "))"
		if err := in.eng.QueryRow(ctx, query, nil, into...); err != nil {
			return in.src.complain(ctx, sh, err)
		}
		c := &in.columns[i]
		if filled == 0 {
			in.notes = append(in.notes, c.Name+" is empty in all sampled rows")
			continue
		}
		for j, g := range all {
			if answers[2*j] {
				in.choose(c, g, scale, answers[2*j+1])
				break
			}
		}
	}
	return nil
}

// complain says what is wrong with files that cannot be read as text.
func (s *Source) complain(ctx context.Context, sh sheet, failed error) error {
	sc := &scan{s: s, files: sh.files, sheets: []sheet{sh}, verdicts: map[string]verdict{}, rejects: rejects{s: s}}
	err := sc.Copy(ctx, inferTable)
	return cmp.Or(err, s.eng.Exec(ctx, "DROP TABLE IF EXISTS temp."+inferTable), sc.rejects.drop(ctx), failed)
}

// choose gives a column its type, unless an option would have to be set that only the author can
// decide on.
func (in *inference) choose(c *connectors.SourceColumn, g guess, scale int64, unclear bool) {
	if unclear {
		in.notes = append(in.notes, fmt.Sprintf("%s may be a %s, read with %s = %s; that could also be wrong, so it is left as text", c.Name, g.typ, g.option, duck.Literal(g.value)))
		return
	}
	c.Type = g.typ
	if g.typ == "DECIMAL" {
		c.Type = fmt.Sprintf("DECIMAL(18,%d)", scale)
	}
	if _, done := in.spec.Options[g.option]; g.option != "" && !done {
		in.set(g.option, g.value, false)
	}
}
