package checkpoints

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// maxPart bounds a part so that no database row gets too large to handle.
const maxPart = 16 << 20

// Segment is the rows one change put into, or deleted from, the state of one step. Its parts are
// consecutive pieces of one zstd-compressed Arrow IPC stream. The fields' metadata is kept in it:
// DuckDB tells by it a HUGEINT from other 16-byte values.
type Segment struct {
	ID     string // uuid
	Step   string
	Level  int
	SeqLo  int64
	SeqHi  int64
	Rows   int64
	Bytes  int64
	Schema string // the Arrow schema, for messages
	SHA256 string // hex, over the parts in order
	Parts  [][]byte
}

// EncodeSegment reads the stream to its end and stores it as what the change seq did to the step.
// It does not release the stream. A stream without rows gives nil: nothing changed.
func EncodeSegment(step string, seq int64, rows array.RecordReader) (*Segment, error) {
	return encodeSegment(step, seq, rows, maxPart)
}

func encodeSegment(step string, seq int64, rows array.RecordReader, partSize int) (*Segment, error) {
	out := &partWriter{size: partSize, sum: sha256.New()}
	enc := encoders.Get().(*zstd.Encoder)
	enc.Reset(out)
	defer func() {
		enc.Reset(nil) // it would keep the parts alive
		encoders.Put(enc)
	}()
	stream := ipc.NewWriter(enc, ipc.WithSchema(rows.Schema()))

	var n int64
	for rows.Next() {
		batch := rows.RecordBatch()
		if batch.NumRows() == 0 {
			continue
		}
		n += batch.NumRows()
		if err := stream.Write(batch); err != nil {
			return nil, fmt.Errorf("encode the state of step %s: %w", step, err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the state of step %s: %w", step, err)
	}
	if n == 0 {
		return nil, nil
	}
	if err := stream.Close(); err != nil {
		return nil, fmt.Errorf("encode the state of step %s: %w", step, err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("compress the state of step %s: %w", step, err)
	}
	return &Segment{
		ID:     uuid.NewString(),
		Step:   step,
		SeqLo:  seq,
		SeqHi:  seq,
		Rows:   n,
		Bytes:  out.bytes,
		Schema: rows.Schema().String(),
		SHA256: hex.EncodeToString(out.sum.Sum(nil)),
		Parts:  out.parts,
	}, nil
}

// An encoder's tables cost more to allocate than a small segment costs to compress.
var encoders = sync.Pool{New: func() any {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err) // the options are constants
	}
	return enc
}}

// partWriter cuts what is written into parts of size bytes, and hashes it.
type partWriter struct {
	size  int
	parts [][]byte
	bytes int64
	sum   hash.Hash
}

func (w *partWriter) Write(p []byte) (int, error) {
	w.sum.Write(p)
	w.bytes += int64(len(p))
	for rest := p; len(rest) > 0; {
		last := len(w.parts) - 1
		if last < 0 || len(w.parts[last]) == w.size {
			w.parts = append(w.parts, nil)
			last++
		}
		n := min(len(rest), w.size-len(w.parts[last]))
		w.parts[last] = append(w.parts[last], rest[:n]...)
		rest = rest[n:]
	}
	return len(p), nil
}
