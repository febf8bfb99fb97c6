package main

import (
	"bufio"
	dbsql "database/sql"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// tableOutput keeps its rows until the end: the widths of columns depend on all of them.
type tableOutput struct {
	to    io.Writer
	table *textTable
	rows  int
}

// maxTableRows bounds what is kept. Nobody reads a longer table on a screen.
const maxTableRows = 10_000

func (t *tableOutput) begin(columns []column) error {
	names := make([]string, len(columns))
	var numbers []int
	for i, c := range columns {
		names[i] = c.name
		if isNumber(c.typ) {
			numbers = append(numbers, i+1)
		}
	}
	t.table = newTable(names...)
	t.table.right(numbers...)
	return nil
}

func (t *tableOutput) row(values []dbsql.NullString) error {
	if t.rows++; t.rows > maxTableRows {
		return nil
	}
	cells := make([]string, len(values))
	for i, v := range values {
		if cells[i] = "NULL"; v.Valid {
			cells[i] = v.String
		}
	}
	t.table.add(cells...)
	return nil
}

func (t *tableOutput) end() error {
	if err := t.table.print(t.to); err != nil {
		return err
	}
	if t.rows > maxTableRows {
		_, err := fmt.Fprintf(t.to, "… and %s more rows: --format csv writes them all\n", thousands(int64(t.rows-maxTableRows)))
		return err
	}
	return nil
}

// csvOutput writes NULL as nothing and an empty text as "", so that they can be told apart.
type csvOutput struct{ w *bufio.Writer }

func newCSV(w io.Writer) *csvOutput { return &csvOutput{bufio.NewWriter(w)} }

func (c *csvOutput) begin(columns []column) error {
	names := make([]dbsql.NullString, len(columns))
	for i, col := range columns {
		names[i] = dbsql.NullString{String: col.name, Valid: true}
	}
	return c.row(names)
}

func (c *csvOutput) row(values []dbsql.NullString) error {
	for i, v := range values {
		if i > 0 {
			c.w.WriteByte(',')
		}
		switch {
		case !v.Valid:
		case v.String == "" || strings.ContainsAny(v.String, ",\"\r\n") || v.String[0] == ' ' || v.String[len(v.String)-1] == ' ':
			c.w.WriteString(`"` + strings.ReplaceAll(v.String, `"`, `""`) + `"`)
		default:
			c.w.WriteString(v.String)
		}
	}
	return c.w.WriteByte('\n') // bufio keeps the first error
}

func (c *csvOutput) end() error { return c.w.Flush() }

// jsonOutput writes an array with one object per line.
type jsonOutput struct {
	w       *bufio.Writer
	columns []column
	names   []string // as JSON
	rows    int
}

func newJSON(w io.Writer) *jsonOutput { return &jsonOutput{w: bufio.NewWriter(w)} }

func (j *jsonOutput) begin(columns []column) error {
	j.columns, j.names = columns, make([]string, len(columns))
	for i, c := range columns {
		j.names[i] = jsonText(c.name)
	}
	return j.w.WriteByte('[')
}

func (j *jsonOutput) row(values []dbsql.NullString) error {
	before := "\n{"
	if j.rows > 0 {
		before = ",\n{"
	}
	j.rows++
	for i, v := range values {
		j.w.WriteString(before + j.names[i] + ": " + jsonValue(v, j.columns[i].typ))
		before = ", "
	}
	return j.w.WriteByte('}')
}

func (j *jsonOutput) end() error {
	if j.rows > 0 {
		j.w.WriteByte('\n')
	}
	j.w.WriteString("]\n")
	return j.w.Flush()
}

// jsonValue keeps what JSON and its readers hold exactly, and writes everything else as text.
func jsonValue(v dbsql.NullString, typ string) string {
	switch {
	case !v.Valid:
		return "null"
	case jsonTypes[typ] && json.Valid([]byte(v.String)): // inf and nan are not
		return v.String
	}
	return jsonText(v.String)
}

func jsonText(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always can be
	return strings.TrimSuffix(b.String(), "\n")
}

var jsonTypes = map[string]bool{
	"BOOLEAN": true, "TINYINT": true, "SMALLINT": true, "INTEGER": true, "BIGINT": true,
	"UTINYINT": true, "USMALLINT": true, "UINTEGER": true, "UBIGINT": true, "FLOAT": true, "DOUBLE": true, "JSON": true,
}

func isNumber(typ string) bool {
	return typ != "BOOLEAN" && typ != "JSON" && jsonTypes[typ] || typ == "HUGEINT" || typ == "UHUGEINT" || typ == "BIGNUM" || strings.HasPrefix(typ, "DECIMAL")
}
