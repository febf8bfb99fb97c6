package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"lockstep/connectors"
)

// jsonReader reads files of JSON lines as batches. One goroutine cuts the text into blocks of whole
// lines, several take the lines apart, and next returns what they made in the order of the text.
type jsonReader struct {
	s       *Source
	withRaw bool
	cancel  context.CancelFunc
	blocks  chan *block // to be taken apart
	order   chan *block // the same, in the order of the text
	done    sync.WaitGroup
	now     *block
}

// block is a piece of a file that holds whole lines.
type block struct {
	split string
	lines []rawLine
	text  []byte // what the lines are parts of
	err   error  // reading stops here
	made  chan []arrow.RecordBatch
	out   []arrow.RecordBatch
}

type rawLine struct {
	text      []byte
	row, line int64
	problem   string
}

const (
	blockBytes = 1 << 20
	keptBytes  = 64 << 10 // of the text of a line that is too long
)

func (s *Source) readJSON(ctx context.Context, files []file, withRaw bool) *jsonReader {
	ctx, cancel := context.WithCancel(ctx)
	workers := runtime.GOMAXPROCS(0)
	r := &jsonReader{s: s, withRaw: withRaw, cancel: cancel, blocks: make(chan *block, workers), order: make(chan *block, 2*workers)}
	r.done.Add(1 + workers)
	go func() {
		defer r.done.Done()
		defer close(r.order)
		defer close(r.blocks)
		for _, f := range files {
			if !r.cut(ctx, f) {
				return
			}
		}
	}()
	for range workers {
		go func() {
			defer r.done.Done()
			for b := range r.blocks {
				out := r.parse(b)
				r.s.blocks.Put(b.text)
				b.made <- out
			}
		}()
	}
	return r
}

// close ends the work and waits for its end.
func (r *jsonReader) close() {
	r.cancel()
	for b := range r.order {
		for _, batch := range append(b.out, <-b.made...) {
			batch.Release()
		}
	}
	r.done.Wait()
	if r.now != nil {
		for _, batch := range r.now.out {
			batch.Release()
		}
	}
}

func (r *jsonReader) next() (arrow.RecordBatch, error) {
	for {
		if r.now != nil && len(r.now.out) > 0 {
			batch := r.now.out[0]
			r.now.out = r.now.out[1:]
			return batch, nil
		}
		if r.now != nil && r.now.err != nil {
			return nil, r.now.err
		}
		b, ok := <-r.order
		if !ok {
			return nil, nil
		}
		b.out = <-b.made
		r.now = b
	}
}

// send passes a block on; false when nobody wants it any more.
func (r *jsonReader) send(ctx context.Context, b *block) bool {
	b.made = make(chan []arrow.RecordBatch, 1)
	select {
	case r.order <- b:
	case <-ctx.Done():
		return false
	}
	r.blocks <- b // a worker takes it, or has room for it
	return b.err == nil && ctx.Err() == nil
}

// cut reads a file and sends its blocks.
func (r *jsonReader) cut(ctx context.Context, f file) bool {
	in, err := openText(f.path)
	if err != nil {
		return r.send(ctx, &block{split: f.id, err: r.s.unreadable(ctx, f, err)})
	}
	defer in.Close()
	c := newLineCutter(in, r.s.settings.lineLimit())
	for {
		buffer, _ := r.s.blocks.Get().([]byte)
		lines, buffer, err := c.next(buffer)
		b := &block{split: f.id, lines: lines, text: buffer}
		if err != nil && err != io.EOF {
			b.err = r.s.unreadable(ctx, f, err)
		}
		if len(lines) > 0 || b.err != nil {
			if !r.send(ctx, b) {
				return false
			}
		}
		if err != nil {
			return true
		}
	}
}

func (r *jsonReader) parse(b *block) (out []arrow.RecordBatch) {
	builder := r.s.newBatchBuilder(b.split, r.withRaw)
	columns := make([]connectors.SourceColumn, len(builder.inputs))
	for i, at := range builder.inputs {
		columns[i] = r.s.spec.Columns[at]
	}
	l := newJSONLine(columns)
	for _, line := range b.lines {
		rec := record{row: line.row, line: line.line, raw: line.text, problem: line.problem}
		if rec.problem == "" {
			rec.problem = l.parse(line.text)
		}
		if rec.problem != "" {
			rec.raw = bytes.ToValidUTF8(rec.raw, []byte("\uFFFD"))
			builder.bad(rec)
		} else {
			builder.start(rec)
			for i := range columns {
				if text := l.text(i); text == nil {
					builder.texts[i].appendNull()
				} else {
					builder.texts[i].append(text)
				}
			}
		}
		if builder.full() {
			out = append(out, builder.take())
		}
	}
	if last := builder.take(); last != nil {
		out = append(out, last)
	}
	return out
}

// lineLimit is the bytes of the longest line of JSON.
func (s *settings) lineLimit() int {
	n, _ := strconv.Atoi(s.text["maximum_object_size"])
	return n
}

// lineCutter cuts text into lines and passes over blank ones.
type lineCutter struct {
	in        io.Reader
	limit     int
	carry     []byte // begin of a line whose end was not read yet
	row, line int64
	begun     bool
}

func newLineCutter(in io.Reader, limit int) *lineCutter {
	return &lineCutter{in: in, limit: limit, line: 1}
}

// next returns the lines of about blockBytes of text, at the end with io.EOF. They are parts of text,
// which is buffer or a larger one.
func (c *lineCutter) next(buffer []byte) (lines []rawLine, text []byte, err error) {
	size := len(c.carry) + blockBytes
	if cap(buffer) < size {
		buffer = make([]byte, size)
	}
	buffer = buffer[:size]
	copy(buffer, c.carry)
	n, err := io.ReadFull(c.in, buffer[len(c.carry):])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	b := buffer[:len(c.carry)+n]
	if !c.begun {
		b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
		c.begun = true
	}
	for {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			break
		}
		lines = c.add(lines, b[:end])
		b = b[end+1:]
	}
	switch {
	case err == io.EOF:
		c.carry = c.carry[:0]
		lines = c.add(lines, b)
	case len(b) > c.limit:
		c.carry = c.carry[:0]
		lines = c.add(lines, b)
		if skipErr := c.skip(); skipErr != nil {
			err = skipErr
		}
	default:
		c.carry = append(c.carry[:0], b...)
	}
	return lines, buffer, err
}

func (c *lineCutter) add(lines []rawLine, b []byte) []rawLine {
	l := rawLine{text: bytes.Trim(b, " \t\r"), line: c.line, row: c.row}
	c.line++
	if len(l.text) == 0 {
		return lines
	}
	if len(b) > c.limit {
		l.text, l.problem = l.text[:min(len(l.text), keptBytes)], fmt.Sprintf("is longer than maximum_object_size, %d bytes", c.limit)
	}
	c.row++
	return append(lines, l)
}

// skip passes over the rest of a line that is too long.
func (c *lineCutter) skip() error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.in.Read(buffer)
		if end := bytes.IndexByte(buffer[:n], '\n'); end >= 0 {
			c.carry = append(c.carry[:0], buffer[end+1:n]...)
			return nil
		}
		if err != nil {
			return err
		}
	}
}
