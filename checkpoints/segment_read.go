package checkpoints

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/klauspost/compress/zstd"
)

// Verify checks that the parts are the bytes that were written.
func (s *Segment) Verify() error {
	if len(s.Parts) == 0 {
		return fmt.Errorf("segment %s of step %s: its data is missing", s.ID, s.Step)
	}
	var size int64
	sum := sha256.New()
	for _, p := range s.Parts {
		size += int64(len(p))
		sum.Write(p)
	}
	if size != s.Bytes {
		return fmt.Errorf("segment %s of step %s: it has %d bytes, %d were written", s.ID, s.Step, size, s.Bytes)
	}
	if hex.EncodeToString(sum.Sum(nil)) != s.SHA256 {
		return fmt.Errorf("segment %s of step %s: its bytes are not those that were written", s.ID, s.Step)
	}
	return nil
}

// Records verifies the segment and opens its rows. The caller releases the reader. Its Err is set
// when the rows are not as many as were written.
func (s *Segment) Records() (array.RecordReader, error) {
	if err := s.Verify(); err != nil {
		return nil, err
	}
	return s.decode()
}

// decode opens bytes that Verify has passed. Panics of the libraries below become errors; damaged
// lengths could make them ask for all memory, which is why nothing is decoded unverified.
func (s *Segment) decode() (_ array.RecordReader, err error) {
	defer s.guard(&err)
	parts := make([]io.Reader, len(s.Parts))
	for i, p := range s.Parts {
		parts[i] = bytes.NewReader(p)
	}
	dec, err := zstd.NewReader(io.MultiReader(parts...), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, s.unreadable(err)
	}
	// What was written is read, however large a batch is.
	stream, err := ipc.NewReader(dec, ipc.WithBodySizeLimit(0), ipc.WithMetadataSizeLimit(0))
	if err != nil {
		dec.Close()
		return nil, s.unreadable(err)
	}
	r := &segmentReader{segment: s, stream: stream, dec: dec}
	r.refs.Store(1)
	return r, nil
}

func (s *Segment) unreadable(err error) error {
	return fmt.Errorf("segment %s of step %s cannot be read: %w", s.ID, s.Step, err)
}

// guard turns a panic into an error.
func (s *Segment) guard(err *error) {
	if p := recover(); p != nil {
		*err = s.unreadable(fmt.Errorf("%v", p))
	}
}

// segmentReader is the IPC reader with panics caught, the row count checked and zstd closed.
type segmentReader struct {
	segment *Segment
	stream  *ipc.Reader
	dec     *zstd.Decoder
	refs    atomic.Int64
	rows    int64
	err     error
}

func (r *segmentReader) Schema() *arrow.Schema          { return r.stream.Schema() }
func (r *segmentReader) RecordBatch() arrow.RecordBatch { return r.stream.RecordBatch() }
func (r *segmentReader) Record() arrow.RecordBatch      { return r.stream.RecordBatch() }
func (r *segmentReader) Err() error                     { return r.err }
func (r *segmentReader) Retain()                        { r.refs.Add(1) }

func (r *segmentReader) Release() {
	if r.refs.Add(-1) == 0 {
		r.stream.Release()
		r.dec.Close()
	}
}

func (r *segmentReader) Next() bool {
	if r.err != nil {
		return false
	}
	more, err := r.next()
	switch {
	case err != nil:
		r.err = err
	case more:
		r.rows += r.RecordBatch().NumRows()
		return true
	case r.rows != r.segment.Rows:
		r.err = r.segment.unreadable(fmt.Errorf("it has %d rows, %d were written", r.rows, r.segment.Rows))
	}
	return false
}

func (r *segmentReader) next() (more bool, err error) {
	defer r.segment.guard(&err)
	if r.stream.Next() {
		return true, nil
	}
	if err := r.stream.Err(); err != nil && !errors.Is(err, io.EOF) {
		return false, r.segment.unreadable(err)
	}
	return false, nil
}
