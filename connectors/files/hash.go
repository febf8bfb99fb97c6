package files

import (
	"bufio"
	"context"
	"encoding/hex"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
)

// identity is what Split.Content says of a file: the hash of its bytes and, while only some of its
// rows were read, how many rows it has. "9f…" is a file read to its end, "9f…/20000000" one with
// unread rows. The number is kept there because nothing else in a position tells, without opening
// the file, whether more of it is to be read.
type identity struct {
	hash string // xxh3-128, hex; "" until it is known
	rows int64  // 0: read to its end
}

func identityOf(content string) identity {
	hash, rows, partial := strings.Cut(content, "/")
	if !partial {
		return identity{hash: hash}
	}
	n, _ := strconv.ParseInt(rows, 10, 64)
	return identity{hash: hash, rows: n}
}

func (i identity) String() string {
	if i.rows == 0 {
		return i.hash
	}
	return i.hash + "/" + strconv.FormatInt(i.rows, 10)
}

const hashBuffer = 1 << 20

// hashed is what reading all bytes of a file gave.
type hashed struct {
	sum  string
	size int64
	rows int64 // of a file of text
	err  error
	// uncounted is why the rows could not be counted.
	uncounted error
}

// digest hashes and counts what is written to it.
type digest struct {
	ctx  context.Context
	hash *xxh3.Hasher
	size int64
	read func(bytes int64) // nil: nobody watches
}

func (d *digest) Write(b []byte) (int, error) {
	d.size += int64(len(b))
	_, _ = d.hash.Write(b)
	if d.read != nil {
		d.read(int64(len(b)))
	}
	return len(b), d.ctx.Err()
}

// look sees the bytes of a file on their way to the hash, and counts rows.
type look func(in *bufio.Reader, how string) (rows int64, err error)

// hashFile reads a file once. see and read may be nil.
func hashFile(ctx context.Context, path string, see look, read func(bytes int64)) (h hashed) {
	f, err := os.Open(path)
	if err != nil {
		return hashed{err: err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return hashed{err: err}
	}
	buffer := int(min(info.Size()+1, hashBuffer))
	d := &digest{ctx: ctx, hash: xxh3.New(), read: read}
	if see != nil {
		h.rows, h.uncounted = see(bufio.NewReaderSize(io.TeeReader(f, d), buffer), compression(path))
	}
	// Without the wrapper the file would copy itself, in smaller pieces.
	if _, err := io.CopyBuffer(d, struct{ io.Reader }{f}, make([]byte, buffer)); err != nil {
		return hashed{err: err}
	}
	sum := d.hash.Sum128().Bytes()
	h.sum, h.size = hex.EncodeToString(sum[:]), d.size
	return h
}

// hasher hashes files in the background, one after the other, while DuckDB reads them.
type hasher struct {
	cancel context.CancelFunc
	done   chan struct{}
	sums   map[string]hashed // by id; read after done is closed
}

// watch, which may be nil, is told of the bytes as they are read, and of all there are.
func startHasher(ctx context.Context, files []file, see look, watch func(done, total int64)) *hasher {
	ctx, cancel := context.WithCancel(ctx)
	var read func(int64)
	if watch != nil {
		var done, total int64
		for _, f := range files {
			total += f.size
		}
		read = func(n int64) { done += n; watch(done, total) }
	}
	h := &hasher{cancel: cancel, done: make(chan struct{}), sums: make(map[string]hashed, len(files))}
	go func() {
		defer close(h.done)
		for _, f := range files {
			h.sums[f.id] = hashFile(ctx, f.path, see, read)
		}
	}()
	return h
}

// wait returns the hashes once all files are read, or the error of ctx.
func (h *hasher) wait(ctx context.Context) (map[string]hashed, error) {
	select {
	case <-h.done:
		return h.sums, ctx.Err() // a cancelled hash ends as well
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stop ends the work and waits for its end.
func (h *hasher) stop() {
	h.cancel()
	<-h.done
}
