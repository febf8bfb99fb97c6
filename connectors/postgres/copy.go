package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"lockstep/connectors"
)

// Rows go to Postgres in the binary format of COPY: a header, then for each row the number of fields and
// for each field its length, -1 for NULL, and its bytes. Postgres parses nothing and rounds nothing.

var (
	copyHeader  = append([]byte("PGCOPY\n\xff\r\n\x00"), 0, 0, 0, 0, 0, 0, 0, 0)
	copyTrailer = []byte{0xff, 0xff}
)

// encoder turns Arrow batches into the bytes of a COPY. It is read by the connection.
type encoder struct {
	rows    array.RecordReader
	sink    connectors.SinkSpec // its columns are the first of the rows; a last one, of text, is the op
	forms   []form
	columns []field // of the batch at hand
	next    int     // row of the batch
	buf     []byte
	at      int   // of buf
	done    bool  // everything is in buf
	count   int64 // rows
	err     error // COPY itself reports only that it failed
}

// lent is a reader that is taken back. When the connection breaks, CopyFrom returns while a goroutine of it
// still reads; what it reads from is not ours to release before that has ended.
type lent struct {
	mu   sync.Mutex
	from io.Reader
}

func (l *lent) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from == nil {
		return 0, io.ErrClosedPipe
	}
	return l.from.Read(p)
}

// takeBack waits for a Read that is under way; later ones fail.
func (l *lent) takeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = nil
}

func newEncoder(rows array.RecordReader, sink connectors.SinkSpec) *encoder {
	e := &encoder{rows: rows, sink: sink, buf: append([]byte(nil), copyHeader...)}
	for _, c := range sink.Columns {
		e.forms = append(e.forms, typeOf(c.Type).form)
	}
	e.forms = append(e.forms, asText)
	return e
}

func (e *encoder) Read(p []byte) (int, error) {
	for e.at == len(e.buf) {
		if e.done {
			return 0, io.EOF
		}
		e.buf, e.at = e.buf[:0], 0
		if e.err = e.fill(); e.err != nil {
			return 0, e.err
		}
	}
	n := copy(p, e.buf[e.at:])
	e.at += n
	return n, nil
}

// fill encodes some rows.
func (e *encoder) fill() error {
	const enough = 60 << 10
	for len(e.buf) < enough {
		if e.columns == nil || e.next == int(e.rows.RecordBatch().NumRows()) {
			if !e.rows.Next() {
				e.done = true
				e.buf = append(e.buf, copyTrailer...)
				return e.rows.Err()
			}
			if err := e.begin(e.rows.RecordBatch()); err != nil {
				return err
			}
			continue
		}
		e.buf = binary.BigEndian.AppendUint16(e.buf, uint16(len(e.columns)))
		for i, column := range e.columns {
			var err error
			if e.buf, err = column(e.buf, e.next); err != nil {
				return e.explain(i, err)
			}
		}
		e.next++
		e.count++
	}
	return nil
}

func (e *encoder) begin(batch arrow.RecordBatch) error {
	if int(batch.NumCols()) != len(e.forms) {
		return fmt.Errorf("%d columns came, not %d", batch.NumCols(), len(e.forms))
	}
	e.next, e.columns = 0, make([]field, len(e.forms))
	for i, f := range e.forms {
		column, err := fieldOf(f, batch.Column(i))
		if err != nil {
			return err
		}
		e.columns[i] = orNull(batch.Column(i), column)
	}
	return nil
}

// explain says which value of which row Postgres cannot hold.
func (e *encoder) explain(column int, err error) error {
	var value *valueError
	if !errors.As(err, &value) || column >= len(e.sink.Columns) {
		return err
	}
	where := "its one row"
	if len(e.sink.Key) > 0 {
		var key []string
		for _, k := range e.sink.Key {
			for i, c := range e.sink.Columns {
				if c.Name != k {
					continue
				}
				value := "NULL"
				if a := e.rows.RecordBatch().Column(i); !a.IsNull(e.next) {
					value = strconv.Quote(a.ValueStr(e.next))
				}
				key = append(key, k+" = "+value)
			}
		}
		where = "the row with " + strings.Join(key, ", ")
	}
	return &connectors.DataError{Where: "table " + e.sink.Name,
		Err:  fmt.Errorf("%s: column %s has %s, which Postgres cannot hold in %s", where, e.sink.Columns[column].Name, value.what, typeOf(e.sink.Columns[column].Type).name),
		Hint: "nothing was written. " + fmt.Sprintf(value.mend, e.sink.Columns[column].Name)}
}
