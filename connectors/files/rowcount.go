package files

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"lockstep/connectors"
)

// rowCounter counts the rows of a file of text, apart from those who read it; nil where only DuckDB
// can tell.
func (s *settings) rowCounter(ctx context.Context) look {
	var count func(in io.Reader) (int64, error)
	switch {
	case s.format == formatJSON:
		count = func(in io.Reader) (int64, error) { return s.countLines(ctx, in) }
	case s.countsRows():
		count = func(in io.Reader) (int64, error) { return s.countRecords(ctx, in) }
	default:
		return nil
	}
	return func(in *bufio.Reader, how string) (int64, error) {
		if how == plain {
			return count(in)
		}
		text, err := decompress(in, how)
		if err != nil {
			return 0, err
		}
		defer text.Close()
		return count(bufio.NewReaderSize(text, hashBuffer))
	}
}

// countsRows is false where DuckDB is told to make rows of text that does not follow the rules of CSV.
func (s *settings) countsRows() bool { return s.format == formatCSV && s.text["strict_mode"] == "true" }

func (s *settings) countRecords(ctx context.Context, in io.Reader) (int64, error) {
	r, err := newRecords(in, s)
	if err == nil && s.text["header"] == "true" {
		_, _, err = r.next()
	}
	if err != nil {
		return 0, err
	}
	return r.count(ctx)
}

func (s *settings) countLines(ctx context.Context, in io.Reader) (int64, error) {
	c := newLineCutter(in, s.lineLimit())
	var buffer []byte
	for {
		var err error
		if _, buffer, err = c.next(buffer); err == io.EOF {
			return c.row, nil
		} else if err != nil {
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
}

// count fills in the rows of each file of text, and checks them against what the file holds.
func (sc *scan) count(ctx context.Context, ranges []connectors.Range, sums map[string]hashed) error {
	for i := range ranges {
		r, f := &ranges[i], sc.files[i]
		v, h := sc.verdicts[r.Split], sums[r.Split]
		if h.uncounted != nil && !v.sifted {
			return sc.s.unreadable(ctx, f, h.uncounted)
		}
		// Where there is one column DuckDB takes some of the empty lines for rows, of a NULL.
		more := v.rows > h.rows && (sc.s.settings.format == formatJSON || sc.widths[r.Split] > 1)
		if sc.s.settings.rowCounter(ctx) != nil && h.uncounted == nil && (v.rows < h.rows || more) {
			return sc.s.dataError(f.path, fmt.Sprintf("has %d rows, but %d were read; nothing was committed", h.rows, v.rows),
				"it may mix kinds of line ends or have unusual quotes or comments in its first lines: write it again in a plain form")
		}
		r.Rows, r.Next.Rows, r.Rejected = v.rows, v.rows, v.rejected
	}
	return nil
}
