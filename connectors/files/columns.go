package files

import (
	"fmt"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// The rows of a source are built in layers, each a SELECT over the one below:
//
//	texts      what is in the file: one text per input column, or Parquet's own values
//	values     input columns decoded, and metadata, under their declared names
//	computed   and computed columns
//	verdict    the declared columns in order, and whether the row is good

// textName is what the text of an input column is called until it is decoded.
func textName(i int) string { return fmt.Sprintf(`"_:%d"`, i) }

const (
	splitName = "_split"
	rowName   = `"_:row"` // ordinal in the file, from 0, where a column or a reject needs it
	goodName  = `"_:good"`
)

// metadataNames are what Metadata may be.
var metadataNames = []string{"filename", "file_row_number"}

// isInput tells the columns that are read from the files.
func isInput(c connectors.SourceColumn) bool { return c.Computed == "" && c.Metadata == "" }

// metadata is the value of a metadata column.
func metadata(c connectors.SourceColumn) string {
	if c.Metadata == "file_row_number" {
		return "CAST(" + rowName + " AS " + c.Type + ")"
	}
	return "CAST(" + splitName + " AS " + c.Type + ")"
}

// wantsRows tells that a column is the row's ordinal.
func (s *Source) wantsRows() bool {
	for _, c := range s.spec.Columns {
		if c.Metadata == "file_row_number" {
			return true
		}
	}
	return false
}

// values decodes the texts of a relation. The texts stay, for the verdict and for reasons, and so do
// its columns named in keep.
func (s *Source) values(texts string, keep ...string) string {
	selects := append([]string{}, keep...)
	for i, c := range s.spec.Columns {
		switch {
		case c.Computed != "":
		case c.Metadata != "":
			selects = append(selects, metadata(c)+" AS "+duck.Quote(c.Name))
		default:
			selects = append(selects, textName(i), s.settings.ruleFor(textName(i), "", c.Type).value+" AS "+duck.Quote(c.Name))
		}
	}
	return "SELECT " + strings.Join(selects, ", ") + " FROM " + texts
}

// computed adds the computed columns to a relation of values.
func (s *Source) computed(values string) string {
	selects := []string{"*"}
	for _, c := range s.spec.Columns {
		if c.Computed != "" {
			selects = append(selects, "CAST(("+c.Computed+") AS "+c.Type+") AS "+duck.Quote(c.Name))
		}
	}
	return "SELECT " + strings.Join(selects, ", ") + " FROM (" + values + ")"
}

// test is a condition that a good row meets, and why a row that does not is bad. Neither is NULL.
type test struct{ good, reason string }

// tests are the conditions on decoded rows; of those on texts only when they were decoded from texts.
func (s *Source) tests(fromText bool) []test {
	var out []test
	for i, c := range s.spec.Columns {
		if !isInput(c) {
			continue
		}
		column := literalPart(fmt.Sprintf("column %q", c.Name))
		if r := s.settings.ruleFor(textName(i), duck.Quote(c.Name), c.Type); fromText && c.Type != "VARCHAR" {
			out = append(out, test{r.fits, "'" + column + ": ' || " + r.reason})
		}
		if c.NotNull {
			out = append(out, test{duck.Quote(c.Name) + " IS NOT NULL", "'" + column + " is NULL, but declared NOT NULL'"})
		}
	}
	for _, c := range s.spec.Checks {
		out = append(out, test{"coalesce((" + c.SQL + "), true)", "'" + literalPart(checkReason(c)) + "'"})
	}
	return out
}

func checkReason(c connectors.Check) string {
	if c.Name == "" {
		return "breaks CHECK (" + checkText(c) + ")"
	}
	return "breaks " + c.Name + ", CHECK (" + checkText(c) + ")"
}

// allGood is the condition that all tests are met.
func allGood(tests []test) string {
	if len(tests) == 0 {
		return "true"
	}
	conditions := make([]string, len(tests))
	for i, t := range tests {
		conditions[i] = t.good
	}
	return strings.Join(conditions, " AND ")
}

// firstReason is why a row is bad; NULL for a good one.
func firstReason(tests []test) string {
	if len(tests) == 0 {
		return "CAST(NULL AS VARCHAR)"
	}
	var b strings.Builder
	b.WriteString("CASE")
	for _, t := range tests {
		fmt.Fprintf(&b, " WHEN NOT (%s) THEN %s", t.good, t.reason)
	}
	return b.String() + " END"
}

// declared lists the columns in order.
func (s *Source) declared() string {
	names := make([]string, len(s.spec.Columns))
	for i, c := range s.spec.Columns {
		names[i] = duck.Quote(c.Name)
	}
	return strings.Join(names, ", ")
}

// nothing is a relation of the declared columns without rows.
func (s *Source) nothing(more ...string) string {
	selects := make([]string, len(s.spec.Columns))
	for i, c := range s.spec.Columns {
		selects[i] = "CAST(NULL AS " + c.Type + ") AS " + duck.Quote(c.Name)
	}
	return "SELECT " + strings.Join(append(selects, more...), ", ") + " WHERE false"
}

func checkText(c connectors.Check) string {
	if c.Text != "" {
		return c.Text
	}
	return c.SQL
}
