package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// records splits CSV text into records at the places where DuckDB's reader does, for what DuckDB does
// not tell: the names in a header line, the line that a row is on, and how many rows there are, which
// shows when it loses some.
type records struct {
	in      *bufio.Reader
	delim   string
	quote   int // -1: none
	escape  int
	comment int
	latin1  bool
	limit   int   // bytes of the longest record
	line    int64 // of the next byte, from 1

	commented bool // the last record ended in a comment
	quoted    bool // the last field was
}

// field is one field of a record.
type field struct {
	text   string
	quoted bool
}

var errTooLong = errors.New("is longer than max_line_size")

// newRecords passes over as many records as skip says. DuckDB, too, skips records, not lines. When a
// skipped one has quotes that do not match it loses the whole file, and when one ends in a comment a
// row, both without a word; here that is an error.
func newRecords(in io.Reader, s *settings) (*records, error) {
	limit, _ := strconv.Atoi(s.text["max_line_size"])
	r := &records{
		in: bufio.NewReader(in), delim: s.text["delim"], latin1: s.text["encoding"] == "latin-1", limit: limit, line: 1,
		quote: byteOf(s.text["quote"]), escape: byteOf(s.text["escape"]), comment: byteOf(s.text["comment"]),
	}
	if head, _ := r.in.Peek(3); string(head) == "\xef\xbb\xbf" {
		_, _ = r.in.Discard(3)
	}
	skip, _ := strconv.ParseInt(s.text["skip"], 10, 64)
	for range skip {
		_, line, err := r.next()
		if err == io.EOF {
			return nil, errors.New("ends before its header: it has no more records than skip passes over")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d, which skip passes over, %w", line, err)
		}
		if r.commented {
			return nil, fmt.Errorf("line %d, which skip passes over, ends in a comment", line)
		}
	}
	return r, nil
}

func byteOf(text string) int {
	if text == "" {
		return -1
	}
	return int(text[0])
}

// next is nextFields without what only NULL depends on.
func (r *records) next() (texts []string, line int64, err error) {
	fields, line, err := r.nextFields()
	if err != nil || len(fields) == 0 {
		return nil, line, err
	}
	texts = make([]string, len(fields))
	for i, f := range fields {
		texts[i] = f.text
	}
	return texts, line, nil
}

// nextFields returns the fields of the next record and the line it starts on. Comment lines are passed
// over, empty lines are records without fields. At the end it returns io.EOF.
func (r *records) nextFields() (fields []field, line int64, err error) {
	for {
		line = r.line
		b, err := r.in.Peek(1)
		if err != nil {
			return nil, line, err
		}
		if int(b[0]) != r.comment {
			break
		}
		if err := r.skipLine(); err != nil {
			return nil, line, err
		}
	}
	r.commented = false
	for size := 0; ; {
		text, read, last, err := r.field()
		if err != nil {
			return nil, line, err
		}
		if size += read; size > r.limit {
			return nil, line, errTooLong
		}
		if last && len(fields) == 0 && text == "" && read <= len("\r\n") {
			return nil, line, nil
		}
		fields = append(fields, field{text, r.quoted})
		if last {
			return fields, line, nil
		}
	}
}

// field reads one field and what ends it; last is set at the end of the record.
func (r *records) field() (text string, read int, last bool, err error) {
	var b bytes.Buffer
	quoted, closed := false, false
	defer func() { r.quoted = quoted }()
	for {
		c, err := r.in.ReadByte()
		if err != nil && err != io.EOF {
			return "", read, false, err
		}
		if read++; read > r.limit+1 {
			return "", read, false, errTooLong
		}
		switch {
		case err == io.EOF && quoted && !closed:
			return "", read, false, errors.New("has a quote that is never closed")
		case err == io.EOF:
			text, err := r.decode(b.Bytes())
			return text, read, true, err
		case quoted && !closed:
			closed = r.inQuotes(&b, c)
		case c == '\n' || c == '\r':
			r.endLine(c)
			text, err := r.decode(b.Bytes())
			return text, read, true, err
		case int(c) == r.comment:
			r.commented = true
			if err := r.skipLine(); err != nil && err != io.EOF {
				return "", read, false, err
			}
			text, err := r.decode(b.Bytes())
			return text, read, true, err
		case r.atDelim(c):
			text, err := r.decode(b.Bytes())
			return text, read, false, err
		case closed && c == ' ':
		case closed:
			return "", read, false, fmt.Errorf("has %q after a closing quote", string(c))
		case int(c) == r.quote && len(bytes.TrimLeft(b.Bytes(), " ")) == 0:
			quoted = true
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
}

// inQuotes takes a byte of a quoted field and tells whether it closed it.
func (r *records) inQuotes(b *bytes.Buffer, c byte) (closed bool) {
	following, _ := r.in.Peek(1)
	if int(c) == r.escape && len(following) == 1 && (r.escape != r.quote || int(following[0]) == r.quote) {
		c, _ = r.in.ReadByte()
		following, _ = r.in.Peek(1)
	} else if int(c) == r.quote {
		return true
	}
	if c == '\n' || c == '\r' && (len(following) == 0 || following[0] != '\n') {
		r.line++
	}
	b.WriteByte(c)
	return false
}

func (r *records) atDelim(c byte) bool {
	if r.delim == "" || c != r.delim[0] {
		return false
	}
	rest := r.delim[1:]
	if head, _ := r.in.Peek(len(rest)); string(head) != rest {
		return false
	}
	_, _ = r.in.Discard(len(rest))
	return true
}

// endLine takes the second byte of a line end that has two.
func (r *records) endLine(c byte) {
	r.line++
	if c == '\r' {
		if b, _ := r.in.Peek(1); len(b) == 1 && b[0] == '\n' {
			_, _ = r.in.Discard(1)
		}
	}
}

func (r *records) skipLine() error {
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			return err
		}
		if c == '\n' || c == '\r' {
			r.endLine(c)
			return nil
		}
	}
}

func (r *records) decode(b []byte) (string, error) {
	if r.latin1 {
		var s strings.Builder
		for _, c := range b {
			s.WriteRune(rune(c))
		}
		return s.String(), nil
	}
	if !utf8.Valid(b) {
		return "", errors.New("is not valid UTF-8")
	}
	return string(b), nil
}
