package files

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

const (
	shownRows = 10   // bad rows in a message
	keptRows  = 1000 // bad rows of a file that the diagnosing scan keeps
)

// badRow is a row of a CSV file that cannot be decoded.
type badRow struct {
	path   string
	line   int64
	offset int64 // bytes of decoded text before the row
	reason string
	raw    string
}

func (b badRow) String() string {
	text := b.reason
	if b.raw != "" {
		text += ": " + cut(b.raw)
	}
	return text
}

// explainCSV reads the files again, this time noting what is wrong instead of stopping at it.
func (s *Source) explainCSV(ctx context.Context, sheets []sheet, failed error) error {
	var bad []badRow
	unexplained := failed
	for _, sh := range sheets {
		for _, f := range sh.files {
			if problem := s.openable(f); problem != nil {
				return problem
			}
		}
		for _, look := range []func(context.Context, sheet) ([]badRow, error){s.rejectedIn, s.withoutOffset} {
			found, err := look(ctx, sh)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				unexplained = err
			}
			bad = append(bad, found...)
		}
	}
	if len(bad) == 0 {
		return s.unexplained(sheets, unexplained)
	}
	slices.SortStableFunc(bad, func(a, b badRow) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.line, b.line))
	})
	var msg strings.Builder
	for i, b := range bad[:min(len(bad), shownRows)] {
		if i > 0 {
			fmt.Fprintf(&msg, "\n%s: ", s.place(b))
		}
		msg.WriteString(b.String())
	}
	if len(bad) > shownRows {
		msg.WriteString("\nand more")
	}
	return &connectors.DataError{Source: s.spec.Name, Where: s.place(bad[0]), Err: errors.New(msg.String()),
		Hint: "nothing was committed: correct the rows, or declare the columns so that they fit"}
}

func (s *Source) place(b badRow) string { return fmt.Sprintf("%s:%d", s.shown(b.path), b.line) }

// unexplained passes on the reason of an error that names one of the files, else the error itself.
func (s *Source) unexplained(sheets []sheet, err error) error {
	for _, sh := range sheets {
		for _, f := range sh.files {
			switch {
			case !strings.Contains(err.Error(), f.path):
			case strings.Contains(err.Error(), "invalid state"):
				return s.dataError(f.path, "cannot be split into rows", "it may mix kinds of line ends, or its quotes do not follow the rules of CSV: write it again in a plain form")
			default:
				return s.dataError(f.path, plainReason(err, f.path), "")
			}
		}
	}
	return err
}

// rejectedIn lists what DuckDB's reader rejects in the files of a sheet.
func (s *Source) rejectedIn(ctx context.Context, sh sheet) (bad []badRow, err error) {
	const rejects, scans = "_files_rejects", "_files_scans"
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, s.eng.Exec(ctx, "DROP TABLE IF EXISTS "+rejects), s.eng.Exec(ctx, "DROP TABLE IF EXISTS "+scans))
	}()
	scan := s.readCSV(sh, sh.files, fmt.Sprintf(", store_rejects = true, rejects_table = '%s', rejects_scan = '%s', rejects_limit = %d", rejects, scans, keptRows))
	columns := make([]string, len(sh.at))
	for i, at := range sh.at {
		columns[i] = sh.name(at)
	}
	var ignore any
	if err := s.eng.QueryRow(ctx, "SELECT bit_xor(hash("+strings.Join(columns, ", ")+")) FROM "+scan, nil, &ignore); err != nil {
		return nil, err
	}
	query := "SELECT file_path, line_byte_position - 1, column_idx, error_type::VARCHAR, coalesce(csv_line, ''), error_message FROM " +
		rejects + " JOIN " + scans + " USING (scan_id, file_id) ORDER BY file_path, line_byte_position, column_idx"
	err = s.eng.Each(ctx, query, nil, func(rows *sql.Rows) error {
		var b badRow
		var column int
		var kind, message string
		err := rows.Scan(&b.path, &b.offset, &column, &kind, &b.raw, &message)
		b.reason = s.reject(sh, column-1, kind, message)
		if n := len(bad); n > 0 && bad[n-1].path == b.path && bad[n-1].offset == b.offset && bad[n-1].reason == b.reason {
			return err
		}
		bad = append(bad, b)
		return err
	})
	if err == nil {
		err = s.findLines(bad)
	}
	return bad, err
}

var (
	notConverted = regexp.MustCompile(`(?s)Could not convert string "(.*)" to '(.*)'`)
	fieldCount   = regexp.MustCompile(`Expected Number of Columns: (\d+) Found: (\d+)`)
)

// reject says in the author's words why DuckDB rejects a row.
func (s *Source) reject(sh sheet, column int, kind, message string) string {
	switch kind {
	case "CAST":
		what := "a column"
		for i, c := range s.spec.Columns {
			if sh.at[i] == column {
				what = fmt.Sprintf("column %q", c.Name)
			}
		}
		if m := notConverted.FindStringSubmatch(message); m != nil {
			return fmt.Sprintf("%s: %q is not a %s", what, cut(m[1]), m[2])
		}
		return what + " cannot be converted"
	case "MISSING COLUMNS", "TOO MANY COLUMNS":
		if m := fieldCount.FindStringSubmatch(message); m != nil {
			return fmt.Sprintf("has %s column(s) instead of %s", m[2], m[1])
		}
		return "has " + strings.ToLower(kind)
	case "UNQUOTED VALUE":
		return "a quote is never closed, or text follows a closing quote"
	case "LINE SIZE OVER MAXIMUM":
		return "is longer than max_line_size, " + s.settings.text["max_line_size"] + " bytes"
	case "INVALID ENCODING":
		return "is not valid " + s.settings.text["encoding"]
	}
	return "cannot be split into columns"
}

// findLines turns offsets, sorted within each file, into lines. DuckDB's own numbers count records,
// which are fewer than lines where a quoted text holds line ends.
func (s *Source) findLines(bad []badRow) error {
	for i := 0; i < len(bad); {
		n := 1
		for i+n < len(bad) && bad[i+n].path == bad[i].path {
			n++
		}
		if err := s.linesIn(bad[i].path, bad[i:i+n]); err != nil {
			return err
		}
		i += n
	}
	return nil
}

func (s *Source) linesIn(path string, bad []badRow) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, hashBuffer)
	latin1 := s.settings.text["encoding"] == "latin-1"
	line, offset, last := int64(1), int64(0), byte(0)
	for i := range bad {
		for offset < bad[i].offset {
			c, err := in.ReadByte()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			offset++
			if latin1 && c >= 0x80 {
				offset++ // DuckDB counts the bytes of the text as UTF-8
			}
			if c == '\n' && last != '\r' || c == '\r' {
				line++
			}
			last = c
		}
		bad[i].line = line
	}
	return nil
}

const needsOffset = `column %q: %q is not a time with an offset, like "2024-05-31 10:00:00+02", as %s needs` +
	` (for times without one declare TIMESTAMP and write %s AT TIME ZONE '…' in the SELECT)`

// withoutOffset lists the rows whose text needs an offset and has none that can be read.
func (s *Source) withoutOffset(ctx context.Context, sh sheet) (bad []badRow, err error) {
	for i, c := range s.spec.Columns {
		if !zoned(c.Type) {
			continue
		}
		name := sh.name(sh.at[i])
		for _, f := range sh.files {
			rows := "SELECT row_number() OVER () AS n, " + name + " FROM " + s.readCSV(sh, []file{f}, "")
			query := "SELECT n, " + name + " FROM (" + rows + ") WHERE " + s.undecoded(name, c) + fmt.Sprintf(" ORDER BY n LIMIT %d", shownRows+1)
			err := s.eng.Each(ctx, query, nil, func(r *sql.Rows) error {
				var n int64
				var text string
				err := r.Scan(&n, &text)
				b := badRow{path: f.path, reason: fmt.Sprintf(needsOffset, c.Name, cut(text), c.Type, duck.Quote(c.Name))}
				b.line, _ = s.lineOf(len(sh.names), f.path, n)
				bad = append(bad, b)
				return err
			})
			if err != nil {
				return bad, err
			}
		}
	}
	return bad, nil
}
