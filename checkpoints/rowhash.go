package checkpoints

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Rows are digested over their exact columns. FLOAT and DOUBLE are left out, alone and inside
// nested types: the same query may give other last bits of a floating sum when run again.
//
// The canonical bytes of a row are its values in the order of the named columns. A value is a tag,
// then a form that does not depend on how Arrow lays the type out, so that a digest survives a new
// version of DuckDB that exports, say, large strings. Changing any of this needs a new version of
// the canonical form, as stored digests would differ.
//
//	0                        NULL
//	1  8 bytes               an integer that fits 64 bits with sign, of any SQL type
//	2  sign, 16 bytes        other HUGEINT, UHUGEINT, UBIGINT; two's complement
//	3  1 byte                BOOLEAN
//	4  scale, size, bytes    DECIMAL, the unscaled number in 16 bytes, 32 when it needs them
//	5  length, bytes         text, ENUM
//	6  length, bytes         BLOB, UUID, BIT, and other types that are opaque to Arrow
//	7  8 bytes               DATE, days since 1970
//	8  seconds, nanoseconds  TIMESTAMP of any unit, with or without time zone
//	9  8 bytes               TIME, nanoseconds
//	10 months, days, nanos   INTERVAL, as stored
//	11 count, values         LIST, ARRAY, and MAP as a list of pairs
//	12 values                STRUCT
const (
	tagNull = iota
	tagInt
	tagWide
	tagBool
	tagDecimal
	tagText
	tagBytes
	tagDate
	tagTimestamp
	tagTime
	tagInterval
	tagList
	tagStruct
)

// ExactColumns lists the columns of a schema that a digest can cover.
func ExactColumns(schema *arrow.Schema) []string {
	var names []string
	for _, f := range schema.Fields() {
		if exact(f.Type) {
			names = append(names, f.Name)
		}
	}
	return names
}

func exact(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type:
		return false
	case arrow.ExtensionType:
		return exact(t.StorageType())
	case arrow.NestedType:
		for _, f := range t.Fields() {
			if !exact(f.Type) {
				return false
			}
		}
	}
	return true
}

// DigestRows reads a stream to its end and returns the digest of its rows over the named columns.
// It does not release the reader.
func DigestRows(rows array.RecordReader, columns []string) (Digest, error) {
	var sum Digest
	for rows.Next() {
		d, err := DigestBatch(rows.RecordBatch(), columns)
		if err != nil {
			return Digest{}, err
		}
		sum = sum.Add(d)
	}
	return sum, rows.Err()
}

// DigestBatch returns the digest of a batch's rows over the named columns.
func DigestBatch(batch arrow.RecordBatch, columns []string) (Digest, error) {
	encoders := make([]encoder, len(columns))
	for i, name := range columns {
		at := batch.Schema().FieldIndices(name)
		if len(at) != 1 {
			return Digest{}, fmt.Errorf("digest: the rows have %d columns named %s", len(at), name)
		}
		enc, err := encoderOf(batch.Column(at[0]), batch.Schema().Field(at[0]))
		if err != nil {
			return Digest{}, fmt.Errorf("digest: column %s: %w", name, err)
		}
		encoders[i] = enc
	}
	var sum Digest
	buf := make([]byte, 0, 256)
	for row := range int(batch.NumRows()) {
		buf = buf[:0]
		for _, enc := range encoders {
			buf = enc(buf, row)
		}
		sum = sum.Add(digestOf(buf))
	}
	return sum, nil
}

// encoder appends the canonical bytes of the value at a row.
type encoder func(b []byte, row int) []byte

// encoderOf also handles NULL, for every type alike.
func encoderOf(a arrow.Array, field arrow.Field) (encoder, error) {
	if ext, ok := a.(array.ExtensionArray); ok {
		a = ext.Storage()
	}
	enc, err := valueEncoder(a, field)
	if err != nil || a.NullN() == 0 {
		return enc, err
	}
	return func(b []byte, row int) []byte {
		if a.IsNull(row) {
			return append(b, tagNull)
		}
		return enc(b, row)
	}, nil
}

func valueEncoder(a arrow.Array, field arrow.Field) (encoder, error) {
	switch a := a.(type) {
	case *array.Null:
		return func(b []byte, _ int) []byte { return append(b, tagNull) }, nil
	case *array.Boolean:
		return func(b []byte, row int) []byte {
			if a.Value(row) {
				return append(b, tagBool, 1)
			}
			return append(b, tagBool, 0)
		}, nil
	case *array.Int8:
		return integer(a.Int8Values()), nil
	case *array.Int16:
		return integer(a.Int16Values()), nil
	case *array.Int32:
		return integer(a.Int32Values()), nil
	case *array.Int64:
		return integer(a.Int64Values()), nil
	case *array.Uint8:
		return integer(a.Uint8Values()), nil
	case *array.Uint16:
		return integer(a.Uint16Values()), nil
	case *array.Uint32:
		return integer(a.Uint32Values()), nil
	case *array.Uint64:
		v := a.Uint64Values()
		return func(b []byte, row int) []byte { return appendWide(b, 0, v[row], false) }, nil
	case *array.Decimal32:
		return decimal32Encoder(a), nil
	case *array.Decimal64:
		return decimal64Encoder(a), nil
	case *array.Decimal128:
		return decimal128Encoder(a), nil
	case *array.Decimal256:
		return decimal256Encoder(a), nil
	case *array.FixedSizeBinary:
		return fixedEncoder(a, field), nil
	case *array.Binary:
		return bytesEncoder(tagBytes, a.Value), nil
	case *array.LargeBinary:
		return bytesEncoder(tagBytes, a.Value), nil
	case *array.BinaryView:
		return bytesEncoder(tagBytes, a.Value), nil
	case *array.String:
		return bytesEncoder(tagText, a.Value), nil
	case *array.LargeString:
		return bytesEncoder(tagText, a.Value), nil
	case *array.StringView:
		return bytesEncoder(tagText, a.Value), nil
	case *array.Dictionary:
		return dictionaryEncoder(a, field)
	default:
		if enc := timeEncoder(a); enc != nil {
			return enc, nil
		}
		return nestedEncoder(a)
	}
}

func integer[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](v []T) encoder {
	return func(b []byte, row int) []byte {
		return binary.LittleEndian.AppendUint64(append(b, tagInt), uint64(int64(v[row])))
	}
}

// appendWide writes the 128-bit integer hi:lo in the shorter form when it fits.
func appendWide(b []byte, hi, lo uint64, negative bool) []byte {
	if (!negative && hi == 0 && int64(lo) >= 0) || (negative && hi == ^uint64(0) && int64(lo) < 0) {
		return binary.LittleEndian.AppendUint64(append(b, tagInt), lo)
	}
	sign := byte(0)
	if negative {
		sign = 1
	}
	b = binary.LittleEndian.AppendUint64(append(b, tagWide, sign), lo)
	return binary.LittleEndian.AppendUint64(b, hi)
}

func bytesEncoder[T string | []byte](tag byte, value func(int) T) encoder {
	return func(b []byte, row int) []byte {
		v := value(row)
		b = binary.AppendUvarint(append(b, tag), uint64(len(v)))
		return append(b, v...)
	}
}

// fixedEncoder tells HUGEINT and UHUGEINT, which Arrow has no type for, from other 16-byte values by
// the metadata DuckDB writes on the field.
func fixedEncoder(a *array.FixedSizeBinary, field arrow.Field) encoder {
	meta, _ := field.Metadata.GetValue("ARROW:extension:metadata")
	unsigned := strings.Contains(meta, `"uhugeint"`)
	if !unsigned && !strings.Contains(meta, `"hugeint"`) {
		return bytesEncoder(tagBytes, a.Value)
	}
	return func(b []byte, row int) []byte {
		v := a.Value(row)
		lo, hi := binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
		return appendWide(b, hi, lo, !unsigned && int64(hi) < 0)
	}
}

func dictionaryEncoder(a *array.Dictionary, field arrow.Field) (encoder, error) {
	enc, err := encoderOf(a.Dictionary(), field)
	if err != nil {
		return nil, err
	}
	return func(b []byte, row int) []byte { return enc(b, a.GetValueIndex(row)) }, nil
}
