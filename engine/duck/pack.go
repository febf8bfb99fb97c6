package duck

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

const packedColumn = "packed"

// packedReader gives a stream's batches as one column of structs.
type packedReader struct {
	array.RecordReader
	schema *arrow.Schema
	now    arrow.RecordBatch
}

// pack takes a reference to the stream.
func pack(rows array.RecordReader) array.RecordReader {
	rows.Retain()
	fields := arrow.StructOf(rows.Schema().Fields()...)
	return &packedReader{RecordReader: rows, schema: arrow.NewSchema([]arrow.Field{{Name: packedColumn, Type: fields}}, nil)}
}

func (p *packedReader) Schema() *arrow.Schema { return p.schema }

func (p *packedReader) Next() bool {
	p.drop()
	if !p.RecordReader.Next() {
		return false
	}
	rows := array.RecordToStructArray(p.RecordReader.RecordBatch())
	defer rows.Release()
	p.now = array.NewRecordBatch(p.schema, []arrow.Array{rows}, int64(rows.Len()))
	return true
}

func (p *packedReader) drop() {
	if p.now != nil {
		p.now.Release()
		p.now = nil
	}
}

func (p *packedReader) RecordBatch() arrow.RecordBatch { return p.now }
func (p *packedReader) Record() arrow.RecordBatch      { return p.now }
