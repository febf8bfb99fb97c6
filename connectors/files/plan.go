package files

import (
	"context"
	"fmt"
	"math/bits"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Plan returns the next files, in the order of their ids, until a limit is reached. A Parquet file
// with more rows than the limit is read in several batches, each of which holds nothing else but
// the last. The rows of CSV files are not known before they are read: only limit.Bytes bounds them.
func (s *Source) Plan(ctx context.Context, seen checkpoints.Splits, limit connectors.Limit) (connectors.Batch, error) {
	found, err := s.list(seen)
	if err != nil {
		return connectors.Batch{}, err
	}
	if s.pattern.plain && len(found) == 0 && len(seen) == 0 {
		return connectors.Batch{}, s.dataError(s.pattern.abs(s.pattern.rest[0]), "there is no such file", "check the path")
	}
	look, err := s.compare(ctx, found, seen)
	if err != nil {
		return connectors.Batch{}, err
	}
	for _, u := range look.unread {
		if u.size == 0 {
			reason := "is empty (0 bytes): it lacks even a header"
			if s.settings.format == formatJSON {
				reason = "is empty (0 bytes)"
			}
			return connectors.Batch{}, s.dataError(u.path, reason,
				"it may be a failed or unfinished upload: write it again or remove it")
		}
	}
	ranges, err := s.ranges(ctx, look.unread, limit)
	if err != nil {
		return connectors.Batch{}, err
	}
	return connectors.Batch{Ranges: ranges, Waiting: len(look.unread), Moved: look.moved, Gone: look.gone}, nil
}

func (s *Source) ranges(ctx context.Context, waiting []unread, limit connectors.Limit) ([]connectors.Range, error) {
	var totals map[string]int64
	if s.settings.format == formatParquet {
		files := make([]file, len(waiting))
		for i, u := range waiting {
			files[i] = u.file
		}
		var err error
		if totals, err = s.rowsOf(ctx, files); err != nil {
			return nil, err
		}
	}
	var out []connectors.Range
	var rows, bytes int64
	for _, u := range waiting {
		r, size := wholeCSV(u), u.size
		if s.settings.format == formatParquet {
			total := totals[u.id]
			if err := s.stillHas(u, total); err != nil {
				return nil, err
			}
			r = restOf(u, total)
			if len(out) == 0 {
				r = shorten(r, u, total, limit)
			}
			size = share(u.size, r.Rows, total)
		}
		rows += max(r.Rows, 0)
		bytes += size
		over := limit.Rows > 0 && rows > limit.Rows || limit.Bytes > 0 && bytes > limit.Bytes
		if over && len(out) > 0 {
			break
		}
		out = append(out, r)
	}
	return out, nil
}

func wholeCSV(u unread) connectors.Range {
	return connectors.Range{Split: u.id, To: u.size, Rows: -1,
		Next: checkpoints.Split{Next: u.size, Size: u.size, ModTime: u.mtime}}
}

func restOf(u unread, total int64) connectors.Range {
	return rowsTo(u, total, total)
}

// shorten cuts the first range of a batch down to the limits, but not below one row.
func shorten(r connectors.Range, u unread, total int64, limit connectors.Limit) connectors.Range {
	n := r.Rows
	if limit.Rows > 0 {
		n = min(n, limit.Rows)
	}
	if limit.Bytes > 0 {
		n = min(n, max(1, share(total, limit.Bytes, u.size)))
	}
	return rowsTo(u, r.From+n, total)
}

// rowsTo is the range from where a Parquet file was left up to a row.
func rowsTo(u unread, to, total int64) connectors.Range {
	content := identity{hash: identityOf(u.seen.Content).hash}
	if to < total {
		content.rows = total
	}
	return connectors.Range{Split: u.id, From: u.seen.Next, To: to, Rows: to - u.seen.Next,
		Next: checkpoints.Split{Next: to, Rows: to, Size: u.size, ModTime: u.mtime, Content: content.String(), Times: u.seen.Times}}
}

// share is whole * part / of; whole when of is 0. The product may exceed 64 bits.
func share(whole, part, of int64) int64 {
	if of <= 0 || part >= of {
		return whole
	}
	hi, lo := bits.Mul64(uint64(whole), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(of))
	return int64(q)
}

// stillHas checks a footer against what was recorded of a partly read file.
func (s *Source) stillHas(u unread, total int64) error {
	if recorded := identityOf(u.seen.Content).rows; recorded > 0 && recorded != total {
		return s.changed(u.id, u.seen, u.size, fmt.Sprintf("it has %d rows now", total))
	}
	return nil
}

func compareIDs(a, b file) int { return strings.Compare(a.id, b.id) }
