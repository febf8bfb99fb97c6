package files

import (
	"fmt"
	"strings"
	"unicode/utf8"

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
		return s.positional(files), nil
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
		key := strings.Join(append(names, compression(f.path)), "\x00")
		if at, ok := byHeader[key]; ok {
			sheets[at].files = append(sheets[at].files, f)
			continue
		}
		l, bad := arrange(names, s.spec.Columns, s.settings.text["delim"])
		if bad != nil {
			return nil, s.dataError(f.path, bad.reason, bad.hint)
		}
		byHeader[key] = len(sheets)
		sheets = append(sheets, sheet{l, []file{f}})
	}
	return sheets, nil
}

// positional gives the input columns the places they are declared in.
func (s *Source) positional(files []file) (sheets []sheet) {
	l := layout{at: make([]int, len(s.spec.Columns))}
	for i, c := range s.spec.Columns {
		if isInput(c) {
			l.at[i] = len(l.names)
			l.names = append(l.names, c.Name)
		}
	}
	byKind := map[string]int{}
	for _, f := range files {
		at, ok := byKind[compression(f.path)]
		if !ok {
			at = len(sheets)
			byKind[compression(f.path)] = at
			sheets = append(sheets, sheet{layout: l})
		}
		sheets[at].files = append(sheets[at].files, f)
	}
	return sheets
}

// name is what a column of a file is called in our SQL: the names in the file may be anything.
func (l layout) name(at int) string { return fmt.Sprintf("c%d", at) }

// csvTexts selects the text of each input column and _split.
func (s *Source) csvTexts(sh sheet, files []file) string {
	var selects []string
	for i, c := range s.spec.Columns {
		if isInput(c) {
			selects = append(selects, sh.name(sh.at[i])+" AS "+textName(i))
		}
	}
	selects = append(selects, s.splitOf("filename")+" AS "+splitName)
	if !s.wantsRows() {
		return "(SELECT " + strings.Join(selects, ", ") + " FROM " + s.readCSV(sh, files) + ")"
	}
	// Rows can be numbered only as they come, so each file is a scan of its own.
	selects = append(selects, "row_number() OVER () - 1 AS "+rowName)
	terms := make([]string, len(files))
	for i, f := range files {
		terms[i] = "SELECT " + strings.Join(selects, ", ") + " FROM " + s.readCSV(sh, []file{f})
	}
	return "(" + strings.Join(terms, " UNION ALL ") + ")"
}

// splitOf is the id of a file, given DuckDB's name of it.
func (s *Source) splitOf(path string) string {
	below := utf8.RuneCountInString(s.pattern.abs("x")) // characters up to the first of the id
	return fmt.Sprintf("substr(%s, %d)", path, below)
}

// readCSV is a scan of files under the columns of a layout, all of them text: DuckDB's own conversions
// take too much for a value. All files are compressed in the same way.
func (s *Source) readCSV(sh sheet, files []file) string {
	columns := make([]string, len(sh.names))
	for i := range columns {
		columns[i] = duck.Literal(sh.name(i)) + ": 'VARCHAR'"
	}
	return "read_csv(" + list(files) + ", columns = {" + strings.Join(columns, ", ") + "}, " + s.settings.args() + ", compression = '" + compression(files[0].path) + "')"
}
