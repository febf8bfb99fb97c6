package postgres

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// decoder reads the bytes of a COPY … TO STDOUT in binary as Arrow batches. It is an array.RecordReader.
type decoder struct {
	in      *bufio.Reader
	schema  *arrow.Schema
	forms   []form
	builder *array.RecordBuilder
	now     arrow.RecordBatch
	begun   bool
	done    bool
	err     error
}

// arrowTypes are those of the forms in which values come back.
var arrowTypes = map[form]arrow.DataType{
	asBool: arrow.FixedWidthTypes.Boolean, asInt2: arrow.PrimitiveTypes.Int16, asInt4: arrow.PrimitiveTypes.Int32, asInt8: arrow.PrimitiveTypes.Int64,
	asFloat4: arrow.PrimitiveTypes.Float32, asFloat8: arrow.PrimitiveTypes.Float64, asText: arrow.BinaryTypes.String, asBytes: arrow.BinaryTypes.Binary,
	asDate: arrow.FixedWidthTypes.Date32, asTime: arrow.FixedWidthTypes.Time64us, asTimestamp: &arrow.TimestampType{Unit: arrow.Microsecond},
}

func newDecoderOf(names []string, forms []form, zoned []bool) func(io.Reader) *decoder {
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		fields[i] = arrow.Field{Name: name, Type: arrowTypes[forms[i]], Nullable: true}
		if zoned[i] {
			fields[i].Type = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
		}
	}
	schema := arrow.NewSchema(fields, nil)
	return func(in io.Reader) *decoder {
		return &decoder{in: bufio.NewReaderSize(in, 1<<16), schema: schema, forms: forms, builder: array.NewRecordBuilder(memory.DefaultAllocator, schema)}
	}
}

func (d *decoder) Retain()                        {}
func (d *decoder) Schema() *arrow.Schema          { return d.schema }
func (d *decoder) RecordBatch() arrow.RecordBatch { return d.now }
func (d *decoder) Record() arrow.RecordBatch      { return d.now }
func (d *decoder) Err() error                     { return d.err }

func (d *decoder) Release() {
	d.drop()
	if d.builder != nil {
		d.builder.Release()
		d.builder = nil
	}
}

func (d *decoder) drop() {
	if d.now != nil {
		d.now.Release()
		d.now = nil
	}
}

func (d *decoder) Next() bool {
	const rows = 8192
	d.drop()
	n := 0
	for ; n < rows && !d.done && d.err == nil; n++ {
		var more bool
		if more, d.err = d.row(); !more {
			break
		}
	}
	if n == 0 || d.err != nil {
		return false
	}
	d.now = d.builder.NewRecordBatch()
	return true
}

// row reads one row; false at the end.
func (d *decoder) row() (bool, error) {
	if !d.begun {
		header := make([]byte, len(copyHeader))
		if _, err := io.ReadFull(d.in, header); err != nil {
			return false, err
		}
		if !bytes.Equal(header, copyHeader) {
			return false, errors.New("the rows do not begin as they must")
		}
		d.begun = true
	}
	var head [4]byte
	if _, err := io.ReadFull(d.in, head[:2]); err != nil {
		return false, noEOF(err)
	}
	fields := int16(binary.BigEndian.Uint16(head[:2]))
	if fields == -1 {
		d.done = true
		return false, nil
	}
	if int(fields) != len(d.forms) {
		return false, fmt.Errorf("a row has %d values, not %d", fields, len(d.forms))
	}
	for i, f := range d.forms {
		if _, err := io.ReadFull(d.in, head[:]); err != nil {
			return false, noEOF(err)
		}
		size := int32(binary.BigEndian.Uint32(head[:]))
		if size < 0 {
			d.builder.Field(i).AppendNull()
			continue
		}
		value := make([]byte, size)
		if _, err := io.ReadFull(d.in, value); err != nil {
			return false, noEOF(err)
		}
		if err := appendValue(d.builder.Field(i), f, value); err != nil {
			return false, err
		}
	}
	return true, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// sizes of the values that have always the same.
var sizes = map[form]int{asBool: 1, asInt2: 2, asInt4: 4, asInt8: 8, asFloat4: 4, asFloat8: 8, asDate: 4, asTime: 8, asTimestamp: 8}

func appendValue(to array.Builder, f form, v []byte) error {
	if size, ok := sizes[f]; ok && len(v) != size {
		return fmt.Errorf("a value has %d bytes, not %d", len(v), size)
	}
	switch to := to.(type) {
	case *array.BooleanBuilder:
		to.Append(v[0] != 0)
	case *array.Int16Builder:
		to.Append(int16(binary.BigEndian.Uint16(v)))
	case *array.Int32Builder:
		to.Append(int32(binary.BigEndian.Uint32(v)))
	case *array.Int64Builder:
		to.Append(int64(binary.BigEndian.Uint64(v)))
	case *array.Float32Builder:
		to.Append(math.Float32frombits(binary.BigEndian.Uint32(v)))
	case *array.Float64Builder:
		to.Append(math.Float64frombits(binary.BigEndian.Uint64(v)))
	case *array.StringBuilder:
		to.Append(string(v))
	case *array.BinaryBuilder:
		to.Append(v)
	case *array.Date32Builder:
		to.Append(arrow.Date32(duckDate(int32(binary.BigEndian.Uint32(v)))))
	case *array.Time64Builder:
		to.Append(arrow.Time64(binary.BigEndian.Uint64(v)))
	case *array.TimestampBuilder:
		to.Append(arrow.Timestamp(duckTimestamp(int64(binary.BigEndian.Uint64(v)))))
	default:
		return fmt.Errorf("nothing reads %T", to)
	}
	return nil
}

func duckDate(days int32) int32 {
	switch days {
	case math.MaxInt32:
		return math.MaxInt32
	case math.MinInt32:
		return -math.MaxInt32
	}
	return days + epochDays
}

func duckTimestamp(micros int64) int64 {
	switch micros {
	case math.MaxInt64:
		return math.MaxInt64
	case math.MinInt64:
		return -math.MaxInt64
	}
	return micros + epochMicros
}
