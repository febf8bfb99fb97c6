package checkpoints

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The wider decimals of Arrow hold the same numbers as the narrower: all that fit 128 bits are
// written as 128 bits.

func decimal32Encoder(a *array.Decimal32) encoder {
	scale := byte(a.DataType().(*arrow.Decimal32Type).Scale)
	return func(b []byte, row int) []byte { return appendDecimal64(b, scale, int64(a.Value(row))) }
}

func decimal64Encoder(a *array.Decimal64) encoder {
	scale := byte(a.DataType().(*arrow.Decimal64Type).Scale)
	return func(b []byte, row int) []byte { return appendDecimal64(b, scale, int64(a.Value(row))) }
}

func decimal128Encoder(a *array.Decimal128) encoder {
	scale := byte(a.DataType().(*arrow.Decimal128Type).Scale)
	return func(b []byte, row int) []byte {
		v := a.Value(row)
		return appendDecimal128(b, scale, v.HighBits(), v.LowBits())
	}
}

func decimal256Encoder(a *array.Decimal256) encoder {
	scale := byte(a.DataType().(*arrow.Decimal256Type).Scale)
	return func(b []byte, row int) []byte {
		w := a.Value(row).Array() // least significant word first
		sign := uint64(int64(w[1]) >> 63)
		if w[2] == sign && w[3] == sign {
			return appendDecimal128(b, scale, int64(w[1]), w[0])
		}
		b = append(b, tagDecimal, scale, 32)
		for _, word := range w {
			b = binary.LittleEndian.AppendUint64(b, word)
		}
		return b
	}
}

func appendDecimal64(b []byte, scale byte, v int64) []byte {
	return appendDecimal128(b, scale, v>>63, uint64(v))
}

func appendDecimal128(b []byte, scale byte, hi int64, lo uint64) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, tagDecimal, scale, 16), lo)
	return binary.LittleEndian.AppendUint64(b, uint64(hi))
}

// timeEncoder returns nil for arrays that are not of dates or times.
func timeEncoder(a arrow.Array) encoder {
	switch a := a.(type) {
	case *array.Date32:
		return func(b []byte, row int) []byte { return appendTagged64(b, tagDate, int64(a.Value(row))) }
	case *array.Date64:
		const day = 24 * 60 * 60 * 1000
		return func(b []byte, row int) []byte {
			days, _ := floorDiv(int64(a.Value(row)), day)
			return appendTagged64(b, tagDate, days)
		}
	case *array.Timestamp:
		perSecond := unitsPerSecond(a.DataType().(*arrow.TimestampType).Unit)
		return func(b []byte, row int) []byte {
			// Seconds and a rest, as nanoseconds alone would overflow for far dates and ±infinity.
			sec, rest := floorDiv(int64(a.Value(row)), perSecond)
			b = appendTagged64(b, tagTimestamp, sec)
			return binary.LittleEndian.AppendUint32(b, uint32(rest*(1e9/perSecond)))
		}
	case *array.Time32:
		toNanos := 1e9 / unitsPerSecond(a.DataType().(*arrow.Time32Type).Unit)
		return func(b []byte, row int) []byte { return appendTagged64(b, tagTime, int64(a.Value(row))*toNanos) }
	case *array.Time64:
		toNanos := 1e9 / unitsPerSecond(a.DataType().(*arrow.Time64Type).Unit)
		return func(b []byte, row int) []byte { return appendTagged64(b, tagTime, int64(a.Value(row))*toNanos) }
	case *array.MonthDayNanoInterval:
		return func(b []byte, row int) []byte {
			v := a.Value(row)
			b = binary.LittleEndian.AppendUint32(append(b, tagInterval), uint32(v.Months))
			b = binary.LittleEndian.AppendUint32(b, uint32(v.Days))
			return binary.LittleEndian.AppendUint64(b, uint64(v.Nanoseconds))
		}
	}
	return nil
}

func appendTagged64(b []byte, tag byte, v int64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, tag), uint64(v))
}

func unitsPerSecond(u arrow.TimeUnit) int64 {
	switch u {
	case arrow.Millisecond:
		return 1e3
	case arrow.Microsecond:
		return 1e6
	case arrow.Nanosecond:
		return 1e9
	}
	return 1
}

// floorDiv rounds towards minus infinity, so that the rest is never negative.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

// nestedEncoder serves lists, arrays, maps and structs; a struct takes part in its parent's row
// numbers, a list has its own.
func nestedEncoder(a arrow.Array) (encoder, error) {
	switch a := a.(type) {
	case *array.Struct:
		fields := a.DataType().(*arrow.StructType).Fields()
		encoders := make([]encoder, len(fields))
		for i, f := range fields {
			enc, err := encoderOf(a.Field(i), f)
			if err != nil {
				return nil, err
			}
			encoders[i] = enc
		}
		return func(b []byte, row int) []byte {
			b = append(b, tagStruct)
			for _, enc := range encoders {
				b = enc(b, row)
			}
			return b
		}, nil
	case array.ListLike:
		elem, err := encoderOf(a.ListValues(), a.DataType().(arrow.ListLikeType).ElemField())
		if err != nil {
			return nil, err
		}
		return func(b []byte, row int) []byte {
			from, to := a.ValueOffsets(row)
			b = binary.AppendUvarint(append(b, tagList), uint64(to-from))
			for i := from; i < to; i++ {
				b = elem(b, int(i))
			}
			return b
		}, nil
	}
	return nil, fmt.Errorf("no canonical form for values of type %s", a.DataType())
}
