package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The binary forms of the values in a COPY.

// Days and microseconds from DuckDB's epoch, 1970, to that of Postgres, 2000; and what Postgres holds,
// counted from its own.
const (
	epochDays   = 10957
	epochMicros = epochDays * 86_400_000_000

	minDate      = -2451545            // 4714-11-24 BC
	endDate      = 2145031949          // 5874898-01-01
	minTimestamp = -211813488000000000 // 4714-11-24 BC
)

// field appends the value of a row, with its length, to buf.
type field func(buf []byte, row int) ([]byte, error)

// valueError is a value that the Postgres type does not have.
type valueError struct{ what, mend string }

func (e *valueError) Error() string { return e.what }

var (
	zeroByte = &valueError{"text with a zero byte (0x00)", "Take it out in the SELECT: replace(%[1]s, chr(0), '') AS %[1]s"}
	nanos    = &valueError{"a time with nanoseconds", "Say in the SELECT how to round: date_trunc('microsecond', %[1]s) AS %[1]s"}
	tooEarly = &valueError{"a time before 24 November 4714 BC", "Leave such rows out of the SELECT, or write NULL for it"}
	tooLate  = &valueError{"a time that is too late", "Leave such rows out of the SELECT, or write NULL for it"}
)

func orNull(a arrow.Array, f field) field {
	if a.NullN() == 0 {
		return f
	}
	return func(buf []byte, row int) ([]byte, error) {
		if a.IsNull(row) {
			return append(buf, 0xff, 0xff, 0xff, 0xff), nil
		}
		return f(buf, row)
	}
}

func put16(buf []byte, v int16) []byte {
	return binary.BigEndian.AppendUint16(append(buf, 0, 0, 0, 2), uint16(v))
}
func put32(buf []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(append(buf, 0, 0, 0, 4), uint32(v))
}
func put64(buf []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(buf, 0, 0, 0, 8), uint64(v))
}

func putBytes[T string | []byte](buf []byte, v T) []byte {
	return append(binary.BigEndian.AppendUint32(buf, uint32(len(v))), v...)
}

// integer reads a column of whole numbers of any width that fits in 64 bits with sign.
func integer(a arrow.Array) (func(int) int64, bool) {
	switch a := a.(type) {
	case *array.Int8:
		return func(i int) int64 { return int64(a.Value(i)) }, true
	case *array.Int16:
		return func(i int) int64 { return int64(a.Value(i)) }, true
	case *array.Int32:
		return func(i int) int64 { return int64(a.Value(i)) }, true
	case *array.Int64:
		return a.Value, true
	case *array.Uint8:
		return func(i int) int64 { return int64(a.Value(i)) }, true
	case *array.Uint16:
		return func(i int) int64 { return int64(a.Value(i)) }, true
	case *array.Uint32:
		return func(i int) int64 { return int64(a.Value(i)) }, true
	}
	return nil, false
}

// text reads a column of texts.
func text(a arrow.Array) (func(int) string, bool) {
	switch a := a.(type) {
	case *array.String:
		return a.Value, true
	case *array.LargeString:
		return a.Value, true
	case *array.StringView:
		return a.Value, true
	}
	return nil, false
}

// fieldOf writes the values of an Arrow column in a form.
func fieldOf(f form, a arrow.Array) (field, error) {
	if value, ok := integer(a); ok {
		switch f {
		case asBool: // DuckDB's travels as a byte
			return func(buf []byte, i int) ([]byte, error) { return append(buf, 0, 0, 0, 1, byte(value(i))), nil }, nil
		case asInt2:
			return func(buf []byte, i int) ([]byte, error) { return put16(buf, int16(value(i))), nil }, nil
		case asInt4:
			return func(buf []byte, i int) ([]byte, error) { return put32(buf, int32(value(i))), nil }, nil
		case asInt8:
			return func(buf []byte, i int) ([]byte, error) { return put64(buf, value(i)), nil }, nil
		}
	}
	if value, ok := text(a); ok {
		switch f {
		case asText:
			return func(buf []byte, i int) ([]byte, error) { return putText(buf, value(i)) }, nil
		case asNumeric:
			return func(buf []byte, i int) ([]byte, error) { return putNumeric(buf, value(i), 0), nil }, nil
		case asUUID:
			return func(buf []byte, i int) ([]byte, error) { return putUUID(buf, value(i)) }, nil
		case asBits:
			return func(buf []byte, i int) ([]byte, error) { return putBits(buf, value(i)), nil }, nil
		case asInterval:
			return func(buf []byte, i int) ([]byte, error) { return putInterval(buf, value(i)) }, nil
		case asTimeTZ:
			return func(buf []byte, i int) ([]byte, error) { return putTimeTZ(buf, value(i)) }, nil
		}
	}
	switch a := a.(type) {
	case *array.Boolean:
		if f == asBool {
			return func(buf []byte, i int) ([]byte, error) {
				if a.Value(i) {
					return append(buf, 0, 0, 0, 1, 1), nil
				}
				return append(buf, 0, 0, 0, 1, 0), nil
			}, nil
		}
	case *array.Float32:
		if f == asFloat4 {
			return func(buf []byte, i int) ([]byte, error) { return put32(buf, int32(math.Float32bits(a.Value(i)))), nil }, nil
		}
	case *array.Float64:
		if f == asFloat8 {
			return func(buf []byte, i int) ([]byte, error) { return put64(buf, int64(math.Float64bits(a.Value(i)))), nil }, nil
		}
	case *array.Decimal128:
		if f == asNumeric {
			scale := int(a.DataType().(*arrow.Decimal128Type).Scale)
			return func(buf []byte, i int) ([]byte, error) {
				v := a.Value(i)
				if whole := int64(v.LowBits()); v.HighBits() == whole>>63 && whole > -1<<53 && whole < 1<<53 {
					return putSmallNumeric(buf, whole, scale), nil
				}
				return putNumeric(buf, v.BigInt().String(), scale), nil
			}, nil
		}
	case *array.Binary:
		if f == asBytes {
			return func(buf []byte, i int) ([]byte, error) { return putBytes(buf, a.Value(i)), nil }, nil
		}
	case *array.LargeBinary:
		if f == asBytes {
			return func(buf []byte, i int) ([]byte, error) { return putBytes(buf, a.Value(i)), nil }, nil
		}
	case *array.Date32:
		if f == asDate {
			return func(buf []byte, i int) ([]byte, error) { return putDate(buf, int32(a.Value(i))) }, nil
		}
	case *array.Time64:
		if f == asTime && a.DataType().(*arrow.Time64Type).Unit == arrow.Microsecond {
			return func(buf []byte, i int) ([]byte, error) { return put64(buf, int64(a.Value(i))), nil }, nil
		}
	case *array.Timestamp:
		if f == asTimestamp {
			unit := a.DataType().(*arrow.TimestampType).Unit
			return func(buf []byte, i int) ([]byte, error) { return putTimestamp(buf, int64(a.Value(i)), unit) }, nil
		}
	}
	return nil, fmt.Errorf("%s came for form %d", a.DataType(), f)
}

func putText(buf []byte, v string) ([]byte, error) {
	if strings.IndexByte(v, 0) >= 0 {
		return buf, zeroByte
	}
	return putBytes(buf, v), nil
}

func putUUID(buf []byte, v string) ([]byte, error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(v, "-", ""))
	if err == nil && len(raw) != 16 {
		err = fmt.Errorf("a UUID of %d bytes", len(raw))
	}
	return putBytes(buf, raw), err
}

// putBits writes a text of 0 and 1.
func putBits(buf []byte, v string) []byte {
	size := (len(v) + 7) / 8
	buf = binary.BigEndian.AppendUint32(buf, uint32(4+size))
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(v)))
	start := len(buf)
	buf = append(buf, make([]byte, size)...)
	for i := range len(v) {
		if v[i] == '1' {
			buf[start+i/8] |= 0x80 >> (i % 8)
		}
	}
	return buf
}

func putDate(buf []byte, days int32) ([]byte, error) {
	switch days { // DuckDB's infinities
	case math.MaxInt32:
		return put32(buf, math.MaxInt32), nil
	case -math.MaxInt32:
		return put32(buf, math.MinInt32), nil
	}
	since := int64(days) - epochDays
	switch {
	case since < minDate:
		return buf, tooEarly
	case since >= endDate:
		return buf, tooLate
	}
	return put32(buf, int32(since)), nil
}

func putTimestamp(buf []byte, v int64, unit arrow.TimeUnit) ([]byte, error) {
	switch v {
	case math.MaxInt64:
		return put64(buf, math.MaxInt64), nil
	case -math.MaxInt64:
		return put64(buf, math.MinInt64), nil
	}
	micros := int64(1)
	switch unit {
	case arrow.Nanosecond:
		if v%1000 != 0 {
			return buf, nanos
		}
		v /= 1000
	case arrow.Millisecond:
		micros = 1000
	case arrow.Second:
		micros = 1_000_000
	}
	switch {
	case v > math.MaxInt64/micros:
		return buf, tooLate
	case v < (minTimestamp+epochMicros)/micros:
		return buf, tooEarly
	}
	return put64(buf, v*micros-epochMicros), nil
}

// putTimeTZ writes a text of the form 12:34:56.123456+05:30.
func putTimeTZ(buf []byte, v string) ([]byte, error) {
	at := strings.LastIndexAny(v, "+-")
	if at < 0 {
		return buf, fmt.Errorf("a time with zone came as %q", v)
	}
	clock, fraction, _ := strings.Cut(v[:at], ".")
	seconds, err := clockSeconds(clock)
	zone, zoneErr := clockSeconds(v[at+1:])
	micros, fractionErr := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
	if err := errors.Join(err, zoneErr, fractionErr); err != nil {
		return buf, err
	}
	if v[at] == '+' {
		zone = -zone // Postgres counts to the west
	}
	buf = append(buf, 0, 0, 0, 12)
	buf = binary.BigEndian.AppendUint64(buf, uint64(seconds*1_000_000+micros))
	return binary.BigEndian.AppendUint32(buf, uint32(int32(zone))), nil
}

// clockSeconds reads 12, 12:34 or 12:34:56.
func clockSeconds(v string) (int64, error) {
	var total int64
	parts := strings.Split(v, ":")
	for i := range 3 {
		total *= 60
		if i < len(parts) {
			n, err := strconv.ParseInt(parts[i], 10, 64)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}

// putInterval writes months|days|microseconds.
func putInterval(buf []byte, v string) ([]byte, error) {
	parts := strings.Split(v, "|")
	if len(parts) != 3 {
		return buf, fmt.Errorf("an interval came as %q", v)
	}
	months, monthsErr := strconv.ParseInt(parts[0], 10, 32)
	days, daysErr := strconv.ParseInt(parts[1], 10, 32)
	micros, microsErr := strconv.ParseInt(parts[2], 10, 64)
	if err := errors.Join(monthsErr, daysErr, microsErr); err != nil {
		return buf, err
	}
	buf = append(buf, 0, 0, 0, 16)
	buf = binary.BigEndian.AppendUint64(buf, uint64(micros))
	buf = binary.BigEndian.AppendUint32(buf, uint32(int32(days)))
	return binary.BigEndian.AppendUint32(buf, uint32(int32(months))), nil
}

// putSmallNumeric is putNumeric for numbers whose digits, moved by up to three places, fit in 64 bits.
func putSmallNumeric(buf []byte, v int64, scale int) []byte {
	sign := uint16(0)
	if v < 0 {
		sign, v = 0x4000, -v
	}
	for range (4 - scale%4) % 4 {
		v *= 10
	}
	var groups [6]uint16 // least first
	n, skip := 0, 0
	for ; v > 0; v /= 10000 {
		g := uint16(v % 10000)
		if g == 0 && n == skip {
			skip++ // zeros at the end are not written
		}
		groups[n] = g
		n++
	}
	weight := n - (scale+3)/4 - 1
	buf = binary.BigEndian.AppendUint32(buf, uint32(8+2*(n-skip)))
	buf = binary.BigEndian.AppendUint16(buf, uint16(n-skip))
	buf = binary.BigEndian.AppendUint16(buf, uint16(int16(weight)))
	buf = binary.BigEndian.AppendUint16(buf, sign)
	buf = binary.BigEndian.AppendUint16(buf, uint16(scale))
	for i := n - 1; i >= skip; i-- {
		buf = binary.BigEndian.AppendUint16(buf, groups[i])
	}
	return buf
}

// putNumeric writes a whole number, given by its digits, divided by ten to the scale. Postgres keeps
// groups of four decimal digits, counted from the point.
func putNumeric(buf []byte, digits string, scale int) []byte {
	sign := uint16(0)
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		sign, digits = 0x4000, rest
	}
	digits += strings.Repeat("0", (4-scale%4)%4)
	digits = strings.Repeat("0", (4-len(digits)%4)%4) + digits
	var groups []uint16
	for i := 0; i < len(digits); i += 4 {
		n, _ := strconv.ParseUint(digits[i:i+4], 10, 16)
		groups = append(groups, uint16(n))
	}
	weight := len(groups) - (scale+3)/4 - 1
	for len(groups) > 0 && groups[0] == 0 {
		groups, weight = groups[1:], weight-1
	}
	for len(groups) > 0 && groups[len(groups)-1] == 0 {
		groups = groups[:len(groups)-1]
	}
	if len(groups) == 0 {
		weight, sign = 0, 0
	}
	buf = binary.BigEndian.AppendUint32(buf, uint32(8+2*len(groups)))
	buf = binary.BigEndian.AppendUint16(buf, uint16(len(groups)))
	buf = binary.BigEndian.AppendUint16(buf, uint16(int16(weight)))
	buf = binary.BigEndian.AppendUint16(buf, sign)
	buf = binary.BigEndian.AppendUint16(buf, uint16(scale))
	for _, g := range groups {
		buf = binary.BigEndian.AppendUint16(buf, g)
	}
	return buf
}
