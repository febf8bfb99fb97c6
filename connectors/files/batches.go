package files

import (
	"context"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// record is one row of a file of text as we split it, apart from DuckDB.
type record struct {
	row     int64  // ordinal in the file, from 0
	line    int64  // it starts on, from 1
	problem string // why it has no fields; "" = it has
	raw     []byte // its text without the line end
}

const (
	batchRows  = 8192
	batchBytes = 4 << 20 // of raw text
)

const (
	problemName = `"_:problem"`
	lineName    = `"_:line"`
	rawName     = `"_:raw"`
)

// textColumn is a column of texts in Arrow's layout. Arrow's own builder takes three times as long.
type textColumn struct {
	offsets []int32
	data    []byte
	valid   []byte // a bit per row
	nulls   int
}

func (c *textColumn) append(text []byte) { appendText(c, text) }

func appendText[T []byte | string](c *textColumn, text T) {
	n := len(c.offsets)
	if n&7 == 0 {
		c.valid = append(c.valid, 0)
	}
	c.valid[n>>3] |= 1 << (n & 7)
	c.data = append(c.data, text...)
	c.offsets = append(c.offsets, int32(len(c.data)))
}

func (c *textColumn) appendNull() {
	if n := len(c.offsets); n&7 == 0 {
		c.valid = append(c.valid, 0)
	}
	c.nulls++
	c.offsets = append(c.offsets, int32(len(c.data)))
}

// take makes an array of the column and begins a new one of about the same size.
func (c *textColumn) take() arrow.Array {
	n := len(c.offsets)
	offsets := append(make([]int32, 1, n+1), c.offsets...)
	d := array.NewData(arrow.BinaryTypes.String, n, []*memory.Buffer{
		memory.NewBufferBytes(c.valid), memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(c.data),
	}, nil, c.nulls, 0)
	defer d.Release()
	*c = textColumn{offsets: c.offsets[:0], valid: make([]byte, 0, len(c.valid)), data: make([]byte, 0, len(c.data)+len(c.data)/8)}
	return array.NewStringData(d)
}

// batchBuilder collects records as Arrow: split, row, problem, maybe line and raw, and a text per
// input column.
type batchBuilder struct {
	schema  *arrow.Schema
	split   []byte
	inputs  []int // index among the declared columns
	withRaw bool

	rows, lines     []int64
	splits, problem textColumn
	raw             textColumn
	texts           []textColumn
	bytes           int
}

// withRaw records have their line and text.
func (s *Source) newBatchBuilder(split string, withRaw bool) *batchBuilder {
	inputs := s.inputs()
	return &batchBuilder{schema: s.recordSchema(withRaw), split: []byte(split), inputs: inputs, withRaw: withRaw, texts: make([]textColumn, len(inputs))}
}

// inputs are the declared columns that come from the files.
func (s *Source) inputs() []int {
	var out []int
	for i, c := range s.spec.Columns {
		if isInput(c) {
			out = append(out, i)
		}
	}
	return out
}

func (s *Source) recordSchema(withRaw bool) *arrow.Schema {
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: unquoted(name), Type: t, Nullable: true}
	}
	fields := []arrow.Field{{Name: splitName, Type: arrow.BinaryTypes.String}, field(rowName, arrow.PrimitiveTypes.Int64), field(problemName, arrow.BinaryTypes.String)}
	if withRaw {
		fields = append(fields, field(lineName, arrow.PrimitiveTypes.Int64), field(rawName, arrow.BinaryTypes.String))
	}
	for _, i := range s.inputs() {
		fields = append(fields, field(textName(i), arrow.BinaryTypes.String))
	}
	return arrow.NewSchema(fields, nil)
}

func unquoted(name string) string { return name[1 : len(name)-1] }

// start appends all of a record but its texts, which the caller appends, one per input.
func (b *batchBuilder) start(r record) {
	b.splits.append(b.split)
	b.rows = append(b.rows, r.row)
	if r.problem == "" {
		b.problem.appendNull()
	} else {
		b.problem.append([]byte(r.problem))
	}
	if b.withRaw {
		b.lines = append(b.lines, r.line)
		b.raw.append(r.raw)
	}
	b.bytes += len(r.raw)
}

// bad appends a record without texts.
func (b *batchBuilder) bad(r record) {
	b.start(r)
	for i := range b.texts {
		b.texts[i].appendNull()
	}
}

func (b *batchBuilder) full() bool { return len(b.rows) >= batchRows || b.bytes >= batchBytes }

// take returns what was collected; nil when that is nothing.
func (b *batchBuilder) take() arrow.RecordBatch {
	n := len(b.rows)
	if n == 0 {
		return nil
	}
	columns := []arrow.Array{b.splits.take(), numbers(&b.rows), b.problem.take()}
	if b.withRaw {
		columns = append(columns, numbers(&b.lines), b.raw.take())
	}
	for i := range b.texts {
		columns = append(columns, b.texts[i].take())
	}
	batch := array.NewRecordBatch(b.schema, columns, int64(n))
	for _, c := range columns {
		c.Release()
	}
	b.bytes = 0
	return batch
}

// numbers makes an array of a column and begins a new one.
func numbers(values *[]int64) arrow.Array {
	n := len(*values)
	d := array.NewData(arrow.PrimitiveTypes.Int64, n, []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(*values))}, nil, 0, 0)
	defer d.Release()
	*values = make([]int64, 0, n)
	return array.NewInt64Data(d)
}

// batchReader gives batches to DuckDB. next returns nil at the end.
type batchReader struct {
	schema *arrow.Schema
	next   func() (arrow.RecordBatch, error)
	now    arrow.RecordBatch
	err    error
	refs   atomic.Int64
}

func newBatchReader(ctx context.Context, schema *arrow.Schema, next func() (arrow.RecordBatch, error)) *batchReader {
	r := &batchReader{schema: schema}
	r.next = func() (arrow.RecordBatch, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return next()
	}
	r.refs.Add(1)
	return r
}

func (r *batchReader) Retain() { r.refs.Add(1) }

func (r *batchReader) Release() {
	if r.refs.Add(-1) == 0 {
		r.drop()
	}
}

func (r *batchReader) drop() {
	if r.now != nil {
		r.now.Release()
		r.now = nil
	}
}

func (r *batchReader) Schema() *arrow.Schema { return r.schema }

func (r *batchReader) Next() bool {
	r.drop()
	if r.err == nil {
		r.now, r.err = r.next()
	}
	return r.now != nil && r.err == nil
}

func (r *batchReader) RecordBatch() arrow.RecordBatch { return r.now }
func (r *batchReader) Record() arrow.RecordBatch      { return r.now }
func (r *batchReader) Err() error                     { return r.err }
