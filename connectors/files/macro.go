package files

import (
	"fmt"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// MacroTexts are parts of a macro that must not be written as values: they come from the environment.
type MacroTexts struct {
	Glob    string            // SQL for the pattern; "" to write the source's own
	Options map[string]string // option → SQL
}

// Macro writes statements that make the source a view of its name in any DuckDB, over all files that
// match when it is read. Columns are decoded by the rules of this package, and bad rows are left out.
// The files are split into rows by DuckDB's readers.
func (s *Source) Macro(m MacroTexts) (string, error) {
	name := s.spec.Name
	for _, o := range optionsOf[s.settings.format] {
		if _, hidden := m.Options[o.name]; hidden && o.ours {
			return "", fmt.Errorf("source %s: option %s comes from the environment, and there is no way to write it without its value\n  write the value into the pipeline file", name, o.name)
		}
	}
	glob, below := duck.Literal(s.duckGlob()), s.splitOf(pathName)
	globVar, listVar := duck.Literal(name+"_glob"), duck.Literal(name+"_files")
	below = strings.Replace(below, pathName, "file", 1)
	if m.Glob != "" {
		glob = m.Glob
		below = "substr(file, length(regexp_extract(getvariable(" + globVar + `), '^[^*?\[]*/')) + 1)`
	}
	values := s.macroValues("getvariable("+listVar+")", strings.Replace(below, "substr(file,", "substr("+pathName+",", 1), m.Options)
	if s.computes() {
		values = "  " + s.computed("\n"+values)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "SET VARIABLE %s = %s;\n", duck.Quote(name+"_glob"), glob)
	fmt.Fprintf(&b, "SET VARIABLE %s = (SELECT list(file ORDER BY file) FROM glob(getvariable(%s))\n  WHERE NOT regexp_matches(%s, '(^|/)[._]|\\.tmp$'));\n",
		duck.Quote(name+"_files"), globVar, below)
	tests := s.tests(s.settings.format != formatParquet)
	where := ""
	if len(tests) > 0 {
		conditions := make([]string, len(tests))
		for i, t := range tests {
			conditions[i] = t.good
		}
		where = "\nWHERE " + strings.Join(conditions, "\n  AND ")
	}
	fmt.Fprintf(&b, "CREATE OR REPLACE TEMP VIEW %s AS\nSELECT %s\nFROM (%s)%s;\n", duck.Quote(name), s.declared(),
		"\n"+values+"\n", where)
	return b.String(), nil
}

// macroValues selects input columns decoded, and metadata, from DuckDB's reader.
func (s *Source) macroValues(files, place string, hidden map[string]string) string {
	place += " AS " + splitName
	args := []string{files, "filename = " + duck.Literal(unquoted(pathName)), "hive_partitioning = false"}
	for _, o := range optionsOf[s.settings.format] {
		text, ok := s.settings.text[o.name]
		switch {
		case !ok || o.ours:
			continue
		case hidden[o.name] != "":
			text = hidden[o.name]
		case !o.bare:
			text = duck.Literal(text)
		}
		args = append(args, o.name+" = "+text)
	}
	if s.settings.format == formatParquet {
		args = append(args, "union_by_name = true")
		if s.wantsRows() {
			args = append(args, "file_row_number = true")
		}
		selects := []string{}
		for _, c := range s.spec.Columns {
			switch {
			case c.Computed != "":
			case c.Metadata == "file_row_number":
				selects = append(selects, "CAST(file_row_number AS "+c.Type+") AS "+duck.Quote(c.Name))
			case c.Metadata != "":
				selects = append(selects, "CAST("+strings.TrimSuffix(place, " AS "+splitName)+" AS "+c.Type+") AS "+duck.Quote(c.Name))
			default:
				selects = append(selects, "CAST("+duck.Quote(c.Name)+" AS "+c.Type+") AS "+duck.Quote(c.Name))
			}
		}
		return "SELECT " + strings.Join(selects, ", ") + " FROM read_parquet(" + strings.Join(args, ", ") + ")"
	}
	var texts, columns []string
	for i, c := range s.spec.Columns {
		if isInput(c) {
			texts = append(texts, duck.Quote(c.Name)+" AS "+textName(i))
			columns = append(columns, duck.Literal(c.Name)+": 'VARCHAR'")
		}
	}
	texts = append(texts, place)
	if s.wantsRows() {
		texts = append(texts, "row_number() OVER (PARTITION BY "+pathName+") - 1 AS "+rowName)
	}
	reader := "read_csv"
	switch {
	case s.settings.format == formatJSON:
		reader = "read_json"
		args = append(args, "format = 'newline_delimited'", "columns = {"+strings.Join(columns, ", ")+"}")
	case s.settings.text["header"] == "false":
		args = append(args, "auto_detect = false", "columns = {"+strings.Join(columns, ", ")+"}")
	default:
		args = append(args, "all_varchar = true", "union_by_name = true")
	}
	var values []string
	for i, c := range s.spec.Columns {
		switch {
		case c.Computed != "":
		case c.Metadata != "":
			values = append(values, metadata(c)+" AS "+duck.Quote(c.Name))
		default:
			values = append(values, textName(i)+", "+s.settings.ruleFor(textName(i), "", c.Type).value+" AS "+duck.Quote(c.Name))
		}
	}
	return "  SELECT\n    " + strings.Join(values, ",\n    ") + "\n  FROM (SELECT " + strings.Join(texts, ", ") + "\n    FROM " + reader + "(" + strings.Join(args, ", ") + "))"
}

// duckGlob is the pattern as DuckDB writes it.
func (s *Source) duckGlob() string {
	full := noPattern.Replace(s.pattern.prefix)
	for _, part := range s.pattern.rest {
		full = strings.TrimSuffix(full, "/") + "/" + backslashed.Replace(part)
	}
	return full
}

var backslashed = strings.NewReplacer(`\*`, "[*]", `\?`, "[?]", `\[`, "[[]", `\\`, `\`)

// MacroLaxness says where DuckDB's readers take what this package refuses.
func MacroLaxness(spec connectors.SourceSpec) []string {
	format, _ := formatOf(spec)
	switch format {
	case formatCSV:
		return []string{"a column that a file lacks is NULL here, and stops a run",
			"DuckDB looks at the first rows of a file for its line ends, and may split a faulty file otherwise",
			"a row with too few or too many fields is an error here, and a reject of etl"}
	case formatJSON:
		return []string{"a key that is twice in an object, text that is not UTF-8 and numbers written as text may be read otherwise",
			"a line that is no object is an error here, and a reject of etl"}
	}
	return []string{"a column that a file lacks is NULL here, and stops a run",
		"a column of another type is converted here, with loss if need be, and stops a run"}
}
