package files

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lockstep/connectors"
	"lockstep/connectors/connectorstest"
)

func TestParquetIsASource(t *testing.T) {
	connectorstest.TestSource(t, func(t *testing.T) connectorstest.SourceUnderTest {
		w := newWorld(t, "in/**/*.parquet", "id BIGINT NOT NULL", "note VARCHAR")
		for i, n := range []int{10, 0, 5000, 3} {
			w.parquet(fmt.Sprintf("in/%d/a.parquet", i), fmt.Sprintf("SELECT i AS id, 'x' AS note FROM range(%d) t(i)", n))
		}
		return under(w, 5013, connectors.Limit{Rows: 1500}, func() int64 {
			w.parquet("in/5/b.parquet", "SELECT i::INTEGER AS id, 'x' AS note FROM range(7) t(i)")
			return 7
		}, "in/2/a.parquet")
	})
}

func TestCSVIsASource(t *testing.T) {
	connectorstest.TestSource(t, func(t *testing.T) connectorstest.SourceUnderTest {
		w := newWorld(t, "in/*.csv", "id BIGINT NOT NULL", "note VARCHAR")
		w.write("in/a.csv", "id,note\n1,x\n2,\n")
		w.write("in/b.csv", "note,id\n")
		w.write("in/c.csv", "note,id\n\"two\nlines\",3\n")
		return under(w, 3, connectors.Limit{Bytes: 20}, func() int64 {
			w.write("in/0.csv", "id,note\n4,y\n")
			return 1
		}, "in/c.csv")
	})
}

func TestJSONIsASource(t *testing.T) {
	connectorstest.TestSource(t, func(t *testing.T) connectorstest.SourceUnderTest {
		w := newWorld(t, "in/*.jsonl*", "id BIGINT NOT NULL", "note VARCHAR")
		w.write("in/a.jsonl", "{\"id\":1,\"note\":\"x\"}\n{\"id\":2}\n")
		w.write("in/b.jsonl", "\n")
		w.write("in/c.jsonl.gz", gzipOf("{\"id\":3}\n"))
		return under(w, 3, connectors.Limit{Bytes: 40}, func() int64 {
			w.write("in/0.jsonl", "{\"id\":4}\n")
			return 1
		}, "in/c.jsonl.gz")
	})
}

func under(w *world, rows int64, limit connectors.Limit, grow func() int64, touched string) connectorstest.SourceUnderTest {
	return connectorstest.SourceUnderTest{
		Engine: w.eng, Rows: rows, Limit: limit, Grow: grow,
		Open:  func(ctx context.Context) (connectors.Source, error) { return Open(ctx, w.eng, w.spec) },
		Touch: func() { w.touch(touched, time.Unix(1_800_000_000, 0)) },
	}
}
