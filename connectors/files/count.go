package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// count returns how many records follow, not counting empty lines. It keeps up with DuckDB's own
// reading, because nearly all records are lines that need no closer look.
func (r *records) count(ctx context.Context) (n int64, err error) {
	for {
		if _, err := r.in.Peek(1); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
		buffered, _ := r.in.Peek(r.in.Buffered())
		records, lines, size := r.plain(buffered)
		n += records
		r.line += lines
		_, _ = r.in.Discard(size)
		if size > 0 {
			continue
		}
		fields, line, err := r.next()
		if err != nil && err != io.EOF {
			return n, fmt.Errorf("line %d %w", line, err)
		}
		if len(fields) > 0 {
			n++
		}
	}
}

// plain counts the records at the start of text that are whole lines.
func (r *records) plain(text []byte) (records, lines int64, size int) {
	for {
		n := bytes.IndexByte(text[size:], '\n')
		if n < 0 {
			return records, lines, size
		}
		line := bytes.TrimSuffix(text[size:size+n], []byte{'\r'})
		if bytes.IndexByte(line, '\r') >= 0 || has(line, r.comment) || has(line, r.quote) && !r.closed(line) {
			return records, lines, size
		}
		if len(line) > 0 {
			records++
		}
		lines++
		size += n + 1
	}
}

func has(line []byte, special int) bool {
	return special >= 0 && bytes.IndexByte(line, byte(special)) >= 0
}

// closed tells that every quoted field of a line ends in it. It is false when in doubt.
func (r *records) closed(line []byte) bool {
	delim := []byte(r.delim)
	if len(delim) == 0 {
		return false
	}
	for {
		line = bytes.TrimLeft(line, " ")
		if len(line) > 0 && int(line[0]) == r.quote {
			end := r.closing(line[1:])
			if end < 0 {
				return false
			}
			line = bytes.TrimLeft(line[1+end+1:], " ")
			if len(line) > 0 && !bytes.HasPrefix(line, delim) {
				return false
			}
		}
		n := bytes.Index(line, delim)
		if n < 0 {
			return true
		}
		line = line[n+len(delim):]
	}
}

// closing finds the quote that ends a quoted text, -1 when it is not in this line.
func (r *records) closing(text []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], byte(r.quote))
		if n < 0 || r.escape != r.quote && has(text[at:at+n], r.escape) {
			return -1
		}
		at += n
		if r.escape != r.quote || at+1 == len(text) || int(text[at+1]) != r.quote {
			return at
		}
		at += 2
	}
}
