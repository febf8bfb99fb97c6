package files

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"lockstep/connectors"
)

// layout is what the header of a CSV file says: which columns it has, and where the declared ones
// are among them. DuckDB assigns declared columns by position and does not look at the names.
type layout struct {
	names []string // all columns of the file, in its order
	at    []int    // index in names, per declared column; of no meaning for those that are not input
}

// headerOf reads the names in a file's header line.
func headerOf(path string, s *settings) ([]string, error) {
	f, err := openText(path)
	if err != nil {
		return nil, errors.New(reasonOf(err))
	}
	defer f.Close()
	return readHeader(f, s)
}

// readHeader takes the line after the skipped ones as the header, as DuckDB does, even an empty one.
func readHeader(in io.Reader, s *settings) ([]string, error) {
	r, err := newRecords(in, s)
	if err != nil {
		return nil, err
	}
	fields, line, err := r.next()
	var broken *damaged
	switch {
	case errors.As(err, &broken):
		return nil, broken
	case err == io.EOF:
		return nil, errors.New("has no header line")
	case err != nil:
		return nil, fmt.Errorf("line %d, its header, %w", line, err)
	case len(fields) == 0:
		return nil, fmt.Errorf("line %d is empty, but must be the header; skip = %d would pass over it", line, line)
	}
	return fields, nil
}

// arrange finds the declared columns among the names of a header: exactly written, or else the
// same but for letter case, as SQL compares identifiers.
//
// delim is what the names were split by.
func arrange(names []string, columns []connectors.SourceColumn, delim string) (layout, *badColumn) {
	l := layout{names: names, at: make([]int, len(columns))}
	for i, c := range columns {
		if !isInput(c) {
			continue
		}
		at, found := find(names, c.Name)
		if found != 1 {
			bad := badName(c.Name, names, found, "its header")
			if other := otherDelim(names, delim); other != "" {
				bad.hint = fmt.Sprintf("the header looks like one column: write WITH (delim = '%s') if that is what stands between them", other)
			}
			return l, bad
		}
		l.at[i] = at
	}
	return l, nil
}

// otherDelim is the character that separates the names when the delimiter does not; "" for none.
func otherDelim(names []string, delim string) string {
	if len(names) != 1 {
		return ""
	}
	for _, d := range []string{";", "\t", "|", ","} {
		if d != delim && strings.Contains(names[0], d) {
			return strings.ReplaceAll(d, "\t", `\t`)
		}
	}
	return ""
}

// badColumn is what is wrong with a declared column in one file.
type badColumn struct{ reason, hint string }

// badName is for a declared name that is not once, but found times, among the names of a file.
func badName(name string, names []string, found int, where string) *badColumn {
	if found > 1 {
		return &badColumn{fmt.Sprintf("column %q is %d times in %s", name, found, where), "give the columns different names"}
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = cut(n)
	}
	return &badColumn{fmt.Sprintf("no column %q in %s (it has %s)", name, where, strings.Join(quoted, ", ")), didYouMean(name, names)}
}

// find returns where a name is and how often.
func find(names []string, name string) (at, count int) {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for i, n := range slices.Backward(names) {
			if same(n, name) {
				at = i
				count++
			}
		}
		if count > 0 {
			return at, count
		}
	}
	return 0, 0
}

const cutAt = 200

// cut shortens a text from the input for a message and keeps it on one line.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.NewReplacer("\r\n", `\n`, "\n", `\n`, "\r", `\r`).Replace(text)
	if runes := []rune(text); len(runes) > cutAt {
		return string(runes[:cutAt]) + "…"
	}
	return text
}
