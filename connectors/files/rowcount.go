package files

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// rowCounter counts the rows of a CSV file, apart from DuckDB; nil where only DuckDB can tell.
func (s *settings) rowCounter(ctx context.Context) look {
	if !s.countsRows() {
		return nil
	}
	return func(in *bufio.Reader) (int64, error) {
		r, err := newRecords(in, s)
		if err == nil && s.text["header"] == "true" {
			_, _, err = r.next()
		}
		if err != nil {
			return 0, err
		}
		return r.count(ctx)
	}
}

// countsRows is false where DuckDB is told to make rows of text that does not follow the rules of CSV.
func (s *settings) countsRows() bool { return s.format == formatCSV && s.text["strict_mode"] == "true" }

// count fills in the rows of each CSV file, as DuckDB copied them, and checks them against what the
// file holds and against NOT NULL.
func (sc *scan) count(ctx context.Context, copied string, ranges []connectors.Range, sums map[string]hashed) error {
	counts, null, err := sc.copiedRows(ctx, copied)
	if err != nil {
		return err
	}
	for i := range ranges {
		r := &ranges[i]
		n, expected := counts[r.Split], sums[r.Split].rows
		// Where there is one column DuckDB takes some of the empty lines for rows, of a NULL.
		more := n > expected && sc.widths[r.Split] > 1
		if sc.s.settings.countsRows() && (n < expected || more) {
			return sc.s.dataError(sc.files[i].path, fmt.Sprintf("has %d rows, but DuckDB's reader found %d; nothing was committed", expected, n),
				"it may mix kinds of line ends or have unusual quotes or comments in its first lines: write it again in a plain form")
		}
		r.Rows, r.Next.Rows = n, n
	}
	if null.rows > 0 {
		return sc.nullError(ctx, copied, null)
	}
	return nil
}

// copiedRows counts the rows of each split in the copy, and finds the first split that has NULLs in
// a column declared NOT NULL.
func (sc *scan) copiedRows(ctx context.Context, copied string) (map[string]int64, nullFound, error) {
	selects := []string{"_split", "count(*)"}
	var notNull []string
	for _, c := range sc.s.spec.Columns {
		if c.NotNull {
			notNull = append(notNull, c.Name)
			selects = append(selects, "count(*) - count("+duck.Quote(c.Name)+")")
		}
	}
	var split string
	numbers := make([]int64, 1+len(notNull))
	into := []any{&split}
	for i := range numbers {
		into = append(into, &numbers[i])
	}
	counts := map[string]int64{}
	var first nullFound
	query := "SELECT " + strings.Join(selects, ", ") + " FROM " + duck.Quote(copied) + " GROUP BY _split ORDER BY _split"
	err := sc.s.eng.Each(ctx, query, nil, func(rows *sql.Rows) error {
		err := rows.Scan(into...)
		counts[split] = numbers[0]
		for i, column := range notNull {
			if n := numbers[i+1]; n > 0 && first.rows == 0 {
				first = nullFound{split, column, n}
			}
		}
		return err
	})
	return counts, first, err
}

type nullFound struct {
	split, column string
	rows          int64
}

// nullError names the line of the first NULL: its row's ordinal is that of the copied rows.
func (sc *scan) nullError(ctx context.Context, copied string, n nullFound) error {
	path := sc.s.pattern.abs(n.split)
	var ordinal int64
	err := sc.s.eng.QueryRow(ctx, "SELECT min(n) FROM (SELECT row_number() OVER (ORDER BY rowid) AS n, "+duck.Quote(n.column)+" AS v FROM "+
		duck.Quote(copied)+" WHERE _split = ?) WHERE v IS NULL", []any{n.split}, &ordinal)
	if err != nil {
		return err
	}
	if line, ok := sc.s.lineOf(sc.widths[n.split], path, ordinal); ok {
		return sc.s.nulls(fmt.Sprintf("%s:%d", path, line), n.column, n.rows)
	}
	return sc.s.nulls(path, n.column, n.rows)
}

// lineOf finds the line of the nth row of a file, counted from 1. It is not ok where the reader was
// told to accept what does not follow the rules of CSV.
func (s *Source) lineOf(width int, path string, nth int64) (line int64, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	r, err := newRecords(f, &s.settings)
	if err != nil {
		return 0, false
	}
	if s.settings.text["header"] == "true" {
		nth++
	}
	for first := true; ; first = false {
		fields, at, err := r.next()
		if err == io.EOF || err != nil {
			return 0, false
		}
		if len(fields) == 0 && width > 1 && !first {
			continue // an empty line is a row of one NULL where there is one column, else nothing
		}
		if nth--; nth == 0 {
			return at, true
		}
	}
}
