package files

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// sheet is a group of CSV files with the same header: one scan of DuckDB's reader.
type sheet struct {
	layout
	files []file
}

// sheetsOf reads the header of every file and groups the files, in the order of each group's first.
func (s *Source) sheetsOf(files []file) ([]sheet, error) {
	if s.settings.text["header"] == "false" {
		l := layout{names: make([]string, len(s.spec.Columns)), at: make([]int, len(s.spec.Columns))}
		for i, c := range s.spec.Columns {
			l.names[i], l.at[i] = c.Name, i
		}
		return []sheet{{l, files}}, nil
	}
	var sheets []sheet
	byHeader := map[string]int{}
	for _, f := range files {
		names, err := headerOf(f.path, &s.settings)
		if err != nil {
			if problem := s.openable(f); problem != nil {
				return nil, problem
			}
			return nil, s.dataError(f.path, err.Error(), "")
		}
		key := strings.Join(names, "\x00")
		if at, ok := byHeader[key]; ok {
			sheets[at].files = append(sheets[at].files, f)
			continue
		}
		l, bad := arrange(names, s.spec.Columns)
		if bad != nil {
			return nil, s.dataError(f.path, bad.reason, bad.hint)
		}
		byHeader[key] = len(sheets)
		sheets = append(sheets, sheet{l, []file{f}})
	}
	return sheets, nil
}

// name is what a column of a file is called in our SQL: the names in the file may be anything.
func (l layout) name(at int) string { return fmt.Sprintf("c%d", at) }

// sheetSQL selects the declared columns and _split.
func (s *Source) sheetSQL(sh sheet) string {
	selects := make([]string, 0, len(s.spec.Columns)+1)
	for i, c := range s.spec.Columns {
		selects = append(selects, s.value(sh.name(sh.at[i]), c)+" AS "+duck.Quote(c.Name))
	}
	selects = append(selects, s.splitExpr()+" AS _split")
	return "SELECT " + strings.Join(selects, ", ") + " FROM " + s.readCSV(sh, sh.files, "")
}

func (s *Source) splitExpr() string {
	below := utf8.RuneCountInString(s.pattern.abs("x")) // characters up to the first of the id
	return fmt.Sprintf("substr(filename, %d)", below)
}

// readCSV is a scan of files under the columns of a layout. Columns that are not declared are text
// that nobody selects. more are further arguments.
func (s *Source) readCSV(sh sheet, files []file, more string) string {
	types := make([]string, len(sh.names))
	for i := range types {
		types[i] = "VARCHAR"
	}
	for i, c := range s.spec.Columns {
		if !zoned(c.Type) {
			types[sh.at[i]] = c.Type
		}
	}
	columns := make([]string, len(types))
	for i, t := range types {
		columns[i] = duck.Literal(sh.name(i)) + ": " + duck.Literal(t)
	}
	return "read_csv(" + list(files) + ", columns = {" + strings.Join(columns, ", ") + "}, " + s.settings.args() + more + ")"
}

// offsetAtEnd is a time of day followed by Z, UTC or an offset: without one DuckDB takes the text
// for UTC, which is a guess.
const offsetAtEnd = `\d{1,2}:\d{1,2}(:\d{1,2}([.]\d+)?)?\s*(Z|z|UTC|[+-]\d{1,2}(:?\d{2}){0,2})\s*$`

// value decodes a column. Only types that need an offset are not left to the reader.
func (s *Source) value(name string, c connectors.SourceColumn) string {
	if !zoned(c.Type) {
		return name
	}
	if format, ok := s.settings.text["timestampformat"]; ok { // has %z, see conflicts
		return "CAST(strptime(" + name + ", " + duck.Literal(format) + ") AS " + c.Type + ")"
	}
	return "CASE WHEN regexp_matches(" + name + ", " + duck.Literal(offsetAtEnd) + ") THEN CAST(" + name + " AS " + c.Type + ")" +
		" WHEN " + name + " IS NOT NULL THEN error('no offset') END"
}

// undecoded is true for a text that value cannot decode.
func (s *Source) undecoded(name string, c connectors.SourceColumn) string {
	if format, ok := s.settings.text["timestampformat"]; ok {
		return "(" + name + " IS NOT NULL AND try_strptime(" + name + ", " + duck.Literal(format) + ") IS NULL)"
	}
	return "(" + name + " IS NOT NULL AND (TRY_CAST(" + name + " AS " + c.Type + ") IS NULL OR NOT regexp_matches(" + name + ", " + duck.Literal(offsetAtEnd) + ")))"
}
