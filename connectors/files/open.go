package files

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Compressed text is told by the file's own suffix, so that a folder may hold both kinds.
const (
	gzipped  = "gzip"
	zstdtype = "zstd"
	plain    = "none"
)

// compression is how a file of text is compressed, in DuckDB's words.
func compression(path string) string {
	switch name := strings.ToLower(path); {
	case strings.HasSuffix(name, ".gz"):
		return gzipped
	case strings.HasSuffix(name, ".zst"):
		return zstdtype
	}
	return plain
}

// uncompressed is a path without the suffix of its compression.
func uncompressed(path string) string {
	if compression(path) == plain {
		return path
	}
	return path[:strings.LastIndexByte(path, '.')]
}

// decompress reads the text in a stream of bytes. The caller closes it; the stream stays open.
func decompress(in io.Reader, how string) (io.ReadCloser, error) {
	switch how {
	case gzipped:
		d, err := gzip.NewReader(in)
		if err != nil {
			return nil, &damaged{how, err}
		}
		return &decompressor{d, how}, nil
	case zstdtype:
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, &damaged{how, err}
		}
		return &decompressor{d.IOReadCloser(), how}, nil
	}
	return io.NopCloser(in), nil
}

// damaged is compressed text that cannot be read on.
type damaged struct {
	how string
	err error
}

func (d *damaged) Error() string {
	return fmt.Sprintf("is damaged, incomplete or not compressed by %s, as its name says: %v", d.how, d.err)
}
func (d *damaged) Unwrap() error { return d.err }

type decompressor struct {
	io.ReadCloser
	how string
}

func (d *decompressor) Read(b []byte) (int, error) {
	n, err := d.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		err = &damaged{d.how, err}
	}
	return n, err
}

// textFile is the decompressed content of a file.
type textFile struct {
	io.ReadCloser
	file *os.File
}

func openText(path string) (*textFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in, err := decompress(bufio.NewReaderSize(f, hashBuffer), compression(path))
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &textFile{in, f}, nil
}

// Close closes the file as well.
func (t *textFile) Close() error {
	_ = t.ReadCloser.Close() // of reading: nothing can be lost
	return t.file.Close()
}
