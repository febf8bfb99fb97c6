package checkpoints

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/zstd"
)

// numbers makes a stream of batches of the given sizes.
func numbers(t testing.TB, sizes ...int) array.RecordReader {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "text", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	var batches []arrow.RecordBatch
	n := int64(0)
	for _, size := range sizes {
		for range size {
			b.Field(0).(*array.Int64Builder).Append(n * 2654435761)
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("row ", n))
			n++
		}
		batches = append(batches, b.NewRecordBatch())
	}
	r, err := array.NewRecordReader(schema, batches)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// read returns the rows of a stream as one text.
func read(r array.RecordReader) (string, error) {
	defer r.Release()
	var all strings.Builder
	for r.Next() {
		for i, column := range r.RecordBatch().Columns() {
			fmt.Fprintln(&all, i, column)
		}
	}
	return all.String(), r.Err()
}

func TestSegmentRoundTrip(t *testing.T) {
	for _, partSize := range []int{1, 7, 1000, maxPart} {
		s, err := encodeSegment("fold 1", 7, numbers(t, 0, 100, 0, 1, 2048), partSize)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range s.Parts {
			if len(p) > partSize || len(p) < partSize && i < len(s.Parts)-1 {
				t.Fatalf("part %d of %d has %d bytes, the bound is %d", i, len(s.Parts), len(p), partSize)
			}
		}
		if s.Rows != 2149 || s.SeqLo != 7 || s.SeqHi != 7 || s.Step != "fold 1" || !strings.Contains(s.Schema, "int64") {
			t.Errorf("the segment is %+v", s)
		}
		r, err := s.Records()
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(r)
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := read(numbers(t, 100, 1, 2048)); got != want {
			t.Error("the rows that come back are not those that went in")
		}
	}
}

func TestSegmentOfNothing(t *testing.T) {
	for _, sizes := range [][]int{{}, {0}, {0, 0}} {
		if s, err := EncodeSegment("s", 1, numbers(t, sizes...)); s != nil || err != nil {
			t.Errorf("no rows give %v, %v", s, err)
		}
	}
}

// TestEncoderIsReused: an encoder goes back to the pool in any state.
func TestEncoderIsReused(t *testing.T) {
	for range 3 {
		if _, err := EncodeSegment("s", 1, brokenReader{numbers(t, 10)}); err == nil {
			t.Error("a broken stream gives a segment")
		}
		s, err := EncodeSegment("s", 1, numbers(t, 10))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := s.Records(); err != nil {
			t.Error(err)
		} else if _, err := read(r); err != nil {
			t.Error(err)
		}
	}
}

type brokenReader struct{ array.RecordReader }

func (brokenReader) Err() error { return fmt.Errorf("the input broke") }

func TestSegmentVerify(t *testing.T) {
	good := func() *Segment {
		s, err := encodeSegment("s", 1, numbers(t, 1000), 500)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for say, spoil := range map[string]func(s *Segment){
		"its data is missing":                     func(s *Segment) { s.Parts = nil },
		"bytes, ":                                 func(s *Segment) { s.Parts = s.Parts[1:] },
		"are not those that were written":         func(s *Segment) { s.Parts[1][3] ^= 1 },
		"its bytes are not those that":            func(s *Segment) { s.Parts[0], s.Parts[1] = s.Parts[1], s.Parts[0] },
		"it has 1000 rows, 1001 were written":     func(s *Segment) { s.Rows++ },
		"of step s: its bytes are not those that": func(s *Segment) { s.SHA256 = "" },
	} {
		s := good()
		spoil(s)
		r, err := s.Records()
		if err == nil {
			_, err = read(r)
		}
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("the error is %v, want %q", err, say)
		}
	}
}

// FuzzDecodeSegment damages a segment: no row may come back but the true ones. What is behind the
// checksum is not fuzzed: Arrow's reader believes the lengths it reads and may ask for all memory,
// which ends the process.
func FuzzDecodeSegment(f *testing.F) {
	whole, want := encoded(f)
	data := bytes.Join(whole.Parts, nil)
	for _, at := range []int{0, 4, 20, len(data) / 2, len(data) - 1} {
		f.Add(data[:at], data[at:], whole.Rows, whole.Bytes, whole.SHA256)
		damaged := bytes.Clone(data)
		damaged[at] ^= 0xff
		f.Add(damaged[:at], damaged[at:], whole.Rows, whole.Bytes, whole.SHA256)
	}
	f.Fuzz(func(t *testing.T, a, b []byte, rows, size int64, sha string) {
		s := whole
		s.Parts, s.Rows, s.Bytes, s.SHA256 = [][]byte{a, b}, rows, size, sha
		r, err := s.Records()
		if err != nil {
			return
		}
		if got, err := read(r); err == nil && got != want {
			t.Error("other rows passed the checks")
		}
	})
}

func encoded(t testing.TB) (s Segment, rows string) {
	t.Helper()
	whole, err := encodeSegment("s", 1, numbers(t, 60, 5), maxPart)
	if err != nil {
		t.Fatal(err)
	}
	r, err := whole.Records()
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = read(r); err != nil {
		t.Fatal(err)
	}
	return *whole, rows
}

// TestDecodeOfCutBytes looks behind the checksum: a stream that is cut anywhere, before or after its
// compression, is an error and never fewer rows.
func TestDecodeOfCutBytes(t *testing.T) {
	whole, _ := encoded(t)
	data := bytes.Join(whole.Parts, nil)
	dec, err := zstd.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	plain, err := io.ReadAll(dec)
	if err != nil {
		t.Fatal(err)
	}
	cut := func(parts ...[]byte) {
		s := whole
		s.Parts = parts
		r, err := s.decode()
		if err != nil {
			return
		}
		if _, err := read(r); err == nil {
			t.Error("a cut stream is good")
		}
	}
	for at := range data {
		cut(data[:at])
	}
	// The last 8 bytes only say that nothing follows.
	for at := range len(plain) - 8 {
		cut(encoders.New().(*zstd.Encoder).EncodeAll(plain[:at], nil))
	}
}

// TestDecodePanics: a panic below becomes an error.
func TestDecodePanics(t *testing.T) {
	s, _ := encoded(t)
	err := func() (err error) {
		defer s.guard(&err)
		var none []int
		_ = none[len(s.Parts)]
		return nil
	}()
	if err == nil || !strings.Contains(err.Error(), "cannot be read: runtime error: index out of range") {
		t.Errorf("the error is %v", err)
	}
}

func BenchmarkEncodeSegment(b *testing.B) {
	for _, rows := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				sizes := []int{rows}
				for sizes[0] > 2048 {
					sizes[0] -= 2048
					sizes = append(sizes, 2048)
				}
				r := numbers(b, sizes...)
				b.StartTimer()
				s, err := EncodeSegment("s", 1, r)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(s.Bytes)/float64(rows), "bytes/row")
			}
		})
	}
}
