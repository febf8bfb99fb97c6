package files

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// Our splitting of CSV text must agree with DuckDB's wherever DuckDB accepts the text, or else in
// another number of rows, so that it is noticed: a header read from another line, or split elsewhere,
// would give columns the wrong values.
func TestRecordsAgreeWithDuckDB(t *testing.T) {
	dir := t.TempDir()
	eng := newEngine(t, dir)
	path := dir + "/x.csv"
	rapid.Check(t, func(t *rapid.T) {
		delim := rapid.SampledFrom([]string{",", ";", "\t", "||"}).Draw(t, "delim")
		escape := rapid.SampledFrom([]string{`"`, `\`}).Draw(t, "escape")
		comment := rapid.SampledFrom([]string{"", "#"}).Draw(t, "comment")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		skip := rapid.IntRange(0, 2).Draw(t, "skip")
		header := rapid.SampledFrom([]string{"true", "false"}).Draw(t, "header")
		width := rapid.IntRange(1, 3).Draw(t, "width")
		nullstr := rapid.SampledFrom([]string{"NULL", "", "a"}).Draw(t, "nullstr")
		quotedNulls := rapid.SampledFrom([]string{"true", "false"}).Draw(t, "quoted nulls")
		field := rapid.SampledFrom([]string{"a", "bb", "ä", " c", `"q"`, `"d` + delim + `e"`, `"two` + end + `lines"`, `"`, `""`, "x#y", "#", " #", " ", "", `"a" `,
			`"` + escape + `""`, `"` + escape + escape + `"`, `f"g`, ` "h"`, `\`, `"\x"`, "\r"})
		var text strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "lines") {
			counts := []int{width, width, width, 1}
			if width > 1 { // DuckDB is of two minds about empty lines where there is one column
				counts = append(counts, 0)
			}
			for i := range rapid.SampledFrom(counts).Draw(t, "fields") {
				if i > 0 {
					text.WriteString(delim)
				}
				text.WriteString(field.Draw(t, "field"))
			}
			text.WriteString(end)
		}
		csv := text.String()
		if rapid.Bool().Draw(t, "open end") {
			csv = strings.TrimSuffix(csv, end)
		}
		spec := connectors.SourceSpec{From: "x.csv", Columns: declare("a VARCHAR"), Options: map[string]connectors.Option{
			"delim": {Text: delim}, "escape": {Text: escape}, "comment": {Text: comment}, "header": {Text: header},
			"skip": {Text: string(rune('0' + skip))}, "nullstr": {Text: nullstr}, "allow_quoted_nulls": {Text: quotedNulls},
		}}
		settings, faults := newSettings(spec)
		if faults != nil {
			t.Fatal(faults)
		}
		if err := os.WriteFile(path, []byte(csv), 0o644); err != nil {
			t.Fatal(err)
		}
		columns := []string{"'c0': 'VARCHAR'", "'c1': 'VARCHAR'", "'c2': 'VARCHAR'"}[:width]
		theirs, err := rowsOf(t.Context(), eng, "FROM read_csv("+duck.Literal(path)+", columns = {"+strings.Join(columns, ", ")+"}, "+settings.args()+")")
		if err != nil {
			t.Skip("refused by DuckDB")
		}
		sifted, problem := siftedRows(t, dir, &settings, width)
		var ours []string
		r, err := newRecords(strings.NewReader(csv), &settings)
		if header == "true" {
			var first []string
			if first, err = readHeader(strings.NewReader(csv), &settings); err != nil || len(first) != width {
				t.Skip("refused by us")
			}
			_, _, err = r.next()
		}
		for err == nil {
			var fields []string
			if fields, _, err = r.next(); err != nil {
				break
			}
			if len(fields) == 0 {
				continue
			}
			if len(fields) == width+1 && fields[width] == "" {
				fields = fields[:width] // DuckDB lets a record end in a delimiter
			}
			ours = append(ours, strings.Join(fields, "|"))
		}
		if err != io.EOF {
			t.Skipf("refused by us: %v", err)
		}
		in := bufio.NewReader(strings.NewReader(csv))
		if rapid.Bool().Draw(t, "in pieces") {
			in = bufio.NewReader(bufio.NewReaderSize(strings.NewReader(csv), 16))
		}
		counted, err := settings.rowCounter(t.Context())(in, plain)
		if err != nil || counted != int64(len(ours)) {
			t.Fatalf("of %q: counted %d %v, there are %q", csv, counted, err, ours)
		}
		if lost := len(theirs) < len(ours) || len(theirs) > len(ours) && width > 1; lost {
			return // Finish refuses the file
		}
		if width > 1 && (problem != "" || strings.Join(sifted, "\n") != strings.Join(theirs, "\n")) {
			t.Fatalf("of %q\nsifted %q %s\ntheirs %q", csv, sifted, problem, theirs)
		}
		if nullstr == "NULL" && strings.Join(ours, "\n") != strings.Join(theirs, "\n") {
			t.Fatalf("of %q\nours   %q\ntheirs %q", csv, ours, theirs)
		}
	})
}

// siftedRows are the rows of x.csv as the second reading of a file with bad rows finds them.
func siftedRows(t *rapid.T, dir string, settings *settings, width int) (rows []string, problem string) {
	spec := connectors.SourceSpec{From: "x.csv", Base: dir, Columns: declare([]string{"a VARCHAR", "b VARCHAR", "c VARCHAR"}[:width]...)}
	s := &Source{spec: spec, settings: *settings, pattern: newPattern(spec)}
	r, err := s.openCSV(file{id: "x.csv", path: dir + "/x.csv"}, layout{names: []string{"a", "b", "c"}[:width], at: []int{0, 1, 2}[:width]})
	if err != nil {
		return nil, ""
	}
	defer r.close()
	line := int64(0)
	for n := int64(0); ; n++ {
		rec, fields, err := r.next()
		if err == io.EOF {
			return rows, problem
		}
		if err != nil || rec.row != n || rec.line <= line {
			t.Fatalf("record %+v after %d of line %d: %v", rec, n, line, err)
		}
		line = rec.line
		if rec.problem != "" {
			problem = rec.problem
			continue
		}
		texts := make([]string, len(fields))
		for i, f := range fields {
			if texts[i] = f.text; s.settings.isNull(f) {
				texts[i] = "NULL"
			}
		}
		rows = append(rows, strings.Join(texts, "|"))
	}
}
