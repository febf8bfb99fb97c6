package checkpoints

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// PositionStep is the step that a source's position is stored as.
func PositionStep(source string) string { return positionPrefix + source }

const positionPrefix = "position/"

// OpColumn marks what a row of a state segment does: 1 puts the row, 0 deletes its key. In a position 2 puts a
// lost split.
const OpColumn = "_op"

const (
	opDelete = 0
	opPut    = 1
	opLost   = 2
)

var positionSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String},
	{Name: "next", Type: arrow.PrimitiveTypes.Int64},
	{Name: "rows", Type: arrow.PrimitiveTypes.Int64},
	{Name: "size", Type: arrow.PrimitiveTypes.Int64},
	{Name: "modtime", Type: arrow.PrimitiveTypes.Int64},
	{Name: "content", Type: arrow.BinaryTypes.String},
	{Name: "seq", Type: arrow.PrimitiveTypes.Int64},
	{Name: OpColumn, Type: arrow.PrimitiveTypes.Int8},
	{Name: "min_time", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "max_time", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

// positionBatch bounds the rows of a record batch.
const positionBatch = 1 << 16

// EncodePosition stores what the change seq did to a source's position: gone leave, moved enter.
// nil means nothing changed.
func EncodePosition(source string, seq int64, moved Splits, gone []string) (*Segment, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, positionSchema)
	defer b.Release()
	var batches []arrow.RecordBatch
	defer func() {
		for _, r := range batches {
			r.Release()
		}
	}()
	rows := 0
	add := func(id string, s Split, op int8) {
		b.Field(0).(*array.StringBuilder).Append(id)
		for i, v := range []int64{s.Next, s.Rows, s.Size, s.ModTime} {
			b.Field(1 + i).(*array.Int64Builder).Append(v)
		}
		b.Field(5).(*array.StringBuilder).Append(s.Content)
		b.Field(6).(*array.Int64Builder).Append(s.Seq)
		b.Field(7).(*array.Int8Builder).Append(op)
		for i, v := range []int64{s.Times.Min, s.Times.Max} {
			if times := b.Field(8 + i).(*array.Int64Builder); s.Times.Some {
				times.Append(v)
			} else {
				times.AppendNull()
			}
		}
		if rows++; rows%positionBatch == 0 {
			batches = append(batches, b.NewRecordBatch())
		}
	}
	// Deletions first: an id that left and came back in one change is there after it.
	for _, id := range slices.Sorted(slices.Values(gone)) {
		add(id, Split{}, opDelete)
	}
	for _, id := range slices.Sorted(maps.Keys(moved)) {
		op := int8(opPut)
		if moved[id].Lost {
			op = opLost
		}
		add(id, moved[id], op)
	}
	batches = append(batches, b.NewRecordBatch())
	reader, err := array.NewRecordReader(positionSchema, batches)
	if err != nil {
		return nil, fmt.Errorf("encode the position of source %s: %w", source, err)
	}
	defer reader.Release()
	return EncodeSegment(PositionStep(source), seq, reader)
}

// DecodePosition replays the position segments of one source, oldest first. Each must hold its
// Parts; each is verified.
func DecodePosition(segments []Segment) (Splits, error) {
	splits := Splits{}
	for i := range segments {
		if err := replayPosition(splits, map[string]bool{}, &segments[i]); err != nil {
			return nil, err
		}
	}
	return splits, nil
}

// replayPosition applies a segment to splits and notes in gone which ids it leaves deleted.
func replayPosition(splits Splits, gone map[string]bool, s *Segment) error {
	rows, err := s.Records()
	if err != nil {
		return err
	}
	defer rows.Release()
	if !rows.Schema().Equal(positionSchema) {
		return s.unreadable(fmt.Errorf("it is not a position"))
	}
	for rows.Next() {
		batch := rows.RecordBatch()
		ids, content := batch.Column(0).(*array.String), batch.Column(5).(*array.String)
		ints := func(col int) []int64 { return batch.Column(col).(*array.Int64).Int64Values() }
		next, read, size, modtime, seq := ints(1), ints(2), ints(3), ints(4), ints(6)
		ops := batch.Column(7).(*array.Int8).Int8Values()
		for i, op := range ops {
			// The strings point into a buffer that the next batch replaces.
			id := strings.Clone(ids.Value(i))
			if op == opDelete {
				delete(splits, id)
				gone[id] = true
				continue
			}
			delete(gone, id)
			split := Split{
				Next: next[i], Rows: read[i], Size: size[i], ModTime: modtime[i],
				Content: strings.Clone(content.Value(i)), Seq: seq[i], Lost: op == opLost,
			}
			if batch.Column(8).IsValid(i) {
				split.Times = Times{Some: true, Min: ints(8)[i], Max: ints(9)[i]}
			}
			splits[id] = split
		}
	}
	return rows.Err()
}
