package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

// csvReader reads a CSV file record by record, without DuckDB: it knows where each one is, and goes on
// after one that cannot be split.
type csvReader struct {
	s     *Source
	width int   // columns of the file
	at    []int // index among them, per declared column
	text  *textFile
	in    *bufio.Reader // of the whole records that were not read yet
	rec   records       // reads one record out of a window of the text
	bytes bytes.Reader
	limit int
	row   int64
	build *batchBuilder

	fields []field // of a plain line; used again for the next
}

func (s *Source) openCSV(f file, l layout) (*csvReader, error) {
	text, err := openText(f.path)
	if err != nil {
		return nil, err
	}
	limit, _ := strconv.Atoi(s.settings.text["max_line_size"])
	in := bufio.NewReaderSize(text, limit+4096)
	rec, err := newRecords(in, &s.settings)
	if err == nil && s.settings.text["header"] == "true" {
		_, _, err = rec.next()
	}
	if err != nil {
		_ = text.Close()
		return nil, err
	}
	r := &csvReader{s: s, width: len(l.names), at: l.at, text: text, in: in, rec: *rec, limit: limit, build: s.newBatchBuilder(f.id, true)}
	r.rec.in = bufio.NewReaderSize(&r.bytes, 4096)
	return r, nil
}

func (r *csvReader) close() {
	_ = r.text.Close() // only read
}

// batch returns the next records, nil at the end.
func (r *csvReader) batch() (arrow.RecordBatch, error) {
	for !r.build.full() {
		rec, fields, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if rec.problem != "" {
			r.build.bad(rec)
			continue
		}
		r.build.start(rec)
		for i, at := range r.build.inputs {
			if f := fields[r.at[at]]; r.s.settings.isNull(f) {
				r.build.texts[i].appendNull()
			} else {
				appendText(&r.build.texts[i], f.text)
			}
		}
	}
	return r.build.take(), nil
}

// isNull tells the fields that are read as NULL.
func (s *settings) isNull(f field) bool {
	return f.text == s.text["nullstr"] && (!f.quoted || s.text["allow_quoted_nulls"] == "true")
}

// next returns the next record, with as many fields as the file has columns, or with a problem.
func (r *csvReader) next() (record, []field, error) {
	for {
		rec, fields, err := r.split()
		if err != nil {
			return rec, nil, err
		}
		if rec.problem == "" && len(fields) == 0 {
			if r.width > 1 {
				continue // an empty line
			}
			fields = []field{{}}
		}
		rec.row = r.row
		r.row++
		if rec.problem == "" {
			fields, rec.problem = r.fit(fields)
		}
		return rec, fields, nil
	}
}

// fit checks the number of fields.
func (r *csvReader) fit(fields []field) ([]field, string) {
	n := len(fields)
	switch {
	case n == r.width:
	case n == r.width+1 && fields[r.width].text == "":
		fields = fields[:r.width] // DuckDB lets a record end in a delimiter
	case n < r.width && r.s.settings.text["null_padding"] == "true":
		for range r.width - n {
			fields = append(fields, field{text: r.s.settings.text["nullstr"]})
		}
	default:
		return nil, fmt.Sprintf("has %d column(s) instead of %d", n, r.width)
	}
	return fields, ""
}

// split takes the next record out of the text. One that cannot be split ends with its first line.
func (r *csvReader) split() (rec record, fields []field, err error) {
	for size := 4096; ; size *= 2 {
		size = min(size, r.limit+2)
		if size <= r.in.Buffered() && size == 4096 {
			size = min(r.in.Buffered(), 64<<10)
		}
		window, err := r.in.Peek(size)
		if err != nil && err != io.EOF {
			return rec, nil, err
		}
		whole := err == io.EOF
		if len(window) == 0 {
			return rec, nil, io.EOF
		}
		if int(window[0]) == r.rec.comment {
			r.skipLine()
			size = 2048
			continue
		}
		if fields, n, ok := r.plainLine(window, whole); ok {
			rec := record{line: r.rec.line, raw: trimEnd(window[:n])}
			r.pass(window[:n])
			return r.shown(rec), fields, nil
		}
		r.bytes.Reset(window)
		r.rec.in.Reset(&r.bytes)
		line := r.rec.line
		fields, _, err := r.rec.nextFields()
		r.rec.line = line
		n := len(window) - r.bytes.Len() - r.rec.in.Buffered()
		if !whole && (err != nil || n == len(window)) && size < r.limit+2 {
			continue // the record may go on behind the window
		}
		if err != nil {
			return r.unsplit(err)
		}
		rec := record{line: line, raw: trimEnd(window[:n])}
		r.pass(window[:n])
		return r.shown(rec), fields, nil
	}
}

// plainLine splits a line that holds nothing special.
func (r *csvReader) plainLine(window []byte, whole bool) (fields []field, size int, ok bool) {
	n := bytes.IndexByte(window, '\n')
	size = n + 1
	if n < 0 {
		if !whole {
			return nil, 0, false
		}
		n, size = len(window), len(window)
	}
	line := bytes.TrimSuffix(window[:n], []byte{'\r'})
	if bytes.IndexByte(line, '\r') >= 0 || has(line, r.rec.comment) || has(line, r.rec.quote) || len(line) > r.limit || r.rec.delim == "" {
		return nil, 0, false
	}
	if len(line) == 0 {
		return nil, size, true
	}
	text, err := r.rec.decode(line)
	if err != nil {
		return nil, 0, false
	}
	fields = r.fields[:0]
	for {
		at := strings.Index(text, r.rec.delim)
		if at < 0 {
			break
		}
		fields = append(fields, field{text: text[:at]})
		text = text[at+len(r.rec.delim):]
	}
	r.fields = append(fields, field{text: text})
	return r.fields, size, true
}

// pass moves on behind text.
func (r *csvReader) pass(text []byte) {
	r.rec.line += lineEnds(text)
	_, _ = r.in.Discard(len(text))
}

// lineEnds counts them: \n, \r\n and a lone \r.
func lineEnds(text []byte) int64 {
	n := bytes.Count(text, []byte{'\n'}) + bytes.Count(text, []byte{'\r'}) - bytes.Count(text, []byte("\r\n"))
	return int64(n)
}

func trimEnd(b []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte{'\n'}), []byte{'\r'})
}

// shown makes the raw text of a record, which is valid until the next one, UTF-8.
func (r *csvReader) shown(rec record) record {
	if r.rec.latin1 {
		text, _ := r.rec.decode(rec.raw) // all bytes are characters
		rec.raw = []byte(text)
	} else if !utf8.Valid(rec.raw) {
		rec.raw = bytes.ToValidUTF8(rec.raw, []byte("\uFFFD"))
	}
	return rec
}

// unsplit takes one line as a record that cannot be split.
func (r *csvReader) unsplit(reason error) (record, []field, error) {
	rec := record{line: r.rec.line, problem: reason.Error()}
	if errors.Is(reason, errTooLong) {
		rec.problem = fmt.Sprintf("is longer than max_line_size, %d bytes", r.limit)
	}
	rec.raw = r.skipLine()
	return r.shown(rec), nil, nil
}

// skipLine passes over a line of any length and returns its first part.
func (r *csvReader) skipLine() (first []byte) {
	for {
		window, _ := r.in.Peek(max(1, min(r.in.Buffered(), 64<<10)))
		if len(window) == 0 {
			return first
		}
		n := bytes.IndexAny(window, "\r\n")
		if n >= 0 && window[n] == '\r' {
			if n+1 == len(window) { // the \n may be the next byte
				window, _ = r.in.Peek(n + 2)
			}
			if n+1 < len(window) && window[n+1] == '\n' {
				n++
			}
		}
		if n < 0 {
			n = len(window) - 1
		}
		if len(first) < keptBytes {
			first = append(first, window[:n+1]...)
		}
		ended := window[n] == '\n' || window[n] == '\r'
		r.pass(window[:n+1])
		if ended {
			return trimEnd(first)
		}
	}
}

// readCSVFile reads a file as batches; the caller calls done.
func (s *Source) readCSVFile(ctx context.Context, f file, l layout) (next func() (arrow.RecordBatch, error), done func(), err error) {
	r, err := s.openCSV(f, l)
	if err != nil {
		return nil, nil, s.unreadable(ctx, f, err)
	}
	return func() (arrow.RecordBatch, error) {
		b, err := r.batch()
		if err != nil {
			err = s.unreadable(ctx, f, err)
		}
		return b, err
	}, r.close, nil
}
