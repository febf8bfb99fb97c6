package files

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Whatever files there are and come, and whatever the limits: the batches together have every row
// once, in the order of each file, and the position says so.
func TestBatchesCoverEveryRowOnce(t *testing.T) {
	w := newWorld(t, "in/**/*.parquet", "file VARCHAR", "n BIGINT")
	root, checks := w.dir, 0
	rapid.Check(t, func(rt *rapid.T) {
		checks++
		w.dir = filepath.Join(root, strconv.Itoa(checks))
		w.spec.Base, w.src, w.seen = w.dir, nil, checkpoints.Splits{}
		w.must(os.MkdirAll(w.path("in"), 0o755))
		want := map[string]int{}
		got := map[string]int{}
		for round := range rapid.IntRange(1, 2).Draw(rt, "rounds") {
			for i := range rapid.IntRange(0, 4).Draw(rt, "files") {
				id := fmt.Sprintf("%s%d-%d.parquet", rapid.SampledFrom([]string{"", "a/", "z/"}).Draw(rt, "folder"), i, round)
				rows := rapid.SampledFrom([]int{0, 1, 3, 10, 5000}).Draw(rt, "rows")
				typ := rapid.SampledFrom([]string{"BIGINT", "INTEGER"}).Draw(rt, "type")
				w.parquet("in/"+id, fmt.Sprintf("SELECT '%s' AS file, i::%s AS n FROM range(%d) t(i)", id, typ, rows))
				want[id] = rows
			}
			limit := connectors.Limit{Rows: rapid.SampledFrom([]int64{0, 1000, 2048, 7777}).Draw(rt, "limit")}
			if rapid.Bool().Draw(rt, "bytes") {
				limit.Bytes = rapid.Int64Range(3000, 50000).Draw(rt, "limit bytes")
			}
			for {
				b, err := w.plan(limit)
				w.must(err)
				if len(b.Ranges) == 0 {
					if b.Waiting != 0 {
						rt.Fatalf("nothing planned of %d waiting", b.Waiting)
					}
					break
				}
				if !slices.IsSortedFunc(b.Ranges, func(x, y connectors.Range) int { return strings.Compare(x.Split, y.Split) }) {
					rt.Fatalf("not sorted: %+v", b.Ranges)
				}
				planned := int64(0)
				for _, r := range b.Ranges {
					planned += r.Rows
				}
				if limit.Rows > 0 && planned > limit.Rows {
					rt.Fatalf("%d rows in a batch of at most %d", planned, limit.Rows)
				}
				rows, done, err := w.read(b.Ranges)
				w.must(err)
				if int64(len(rows)) != planned {
					rt.Fatalf("%d rows read, %d planned", len(rows), planned)
				}
				for _, row := range rows {
					id, n, _ := strings.Cut(row, "|")
					if n != strconv.Itoa(got[id]) {
						rt.Fatalf("row %s of %s comes after %d rows", n, id, got[id])
					}
					got[id]++
				}
				w.commit(b, done)
			}
		}
		maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(got, want) {
			rt.Fatalf("read %v of %v", got, want)
		}
		for id, s := range w.seen {
			if s.Next != int64(want[id]) || s.Rows != s.Next || len(s.Content) != 32 {
				rt.Fatalf("%s: %+v", id, s)
			}
		}
	})
}

// The same for text, plain or compressed, of which some rows are bad: every row is accepted or rejected.
func TestTextBatchesCoverEveryRowOnce(t *testing.T) {
	w := newWorld(t, "in/**/*", "file VARCHAR", "n BIGINT", "place BIGINT").with("max_rejects", "100%")
	w.spec.Columns[2].Metadata = "file_row_number"
	root, checks := w.dir, 0
	rapid.Check(t, func(rt *rapid.T) {
		checks++
		format := rapid.SampledFrom([]string{formatCSV, formatJSON}).Draw(rt, "format")
		w.dir = filepath.Join(root, strconv.Itoa(checks))
		w.spec.Base, w.src, w.seen = w.dir, nil, checkpoints.Splits{}
		w.with("format", format)
		w.must(os.MkdirAll(w.path("in"), 0o755))
		want, got := map[string]int{}, map[string]int{}
		bad := map[string]bool{}
		for i := range rapid.IntRange(0, 5).Draw(rt, "files") {
			id := fmt.Sprintf("%s%d%s", rapid.SampledFrom([]string{"", "a/"}).Draw(rt, "folder"), i, rapid.SampledFrom([]string{".txt", ".gz", ".zst"}).Draw(rt, "kind"))
			rows := rapid.SampledFrom([]int{0, 1, 3, 100, 3000}).Draw(rt, "rows")
			text := ""
			if format == formatCSV {
				text = "n,file\n"
			}
			for n := range rows {
				value := strconv.Itoa(n)
				switch rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 1, 2}).Draw(rt, "row") {
				case 1:
					value = `"x"`
				case 2:
					value = `[`
				}
				if value[0] == '"' || value[0] == '[' {
					bad[fmt.Sprintf("%s|%d", id, n)] = true
				}
				if format == formatCSV {
					text += value + "," + id + "\n"
				} else {
					text += fmt.Sprintf("{\"n\":%s,\"file\":%q}\n", value, id)
				}
			}
			want[id] = rows
			switch filepath.Ext(id) {
			case ".gz":
				text = gzipOf(text)
			case ".zst":
				text = zstdOf(text)
			}
			if text == "" {
				text = "\n"
			}
			w.write("in/"+id, text)
		}
		limit := connectors.Limit{Bytes: rapid.SampledFrom([]int64{0, 1, 500}).Draw(rt, "limit")}
		for {
			b, err := w.plan(limit)
			w.must(err)
			if len(b.Ranges) == 0 {
				break
			}
			out, err := w.sift(limit)
			w.must(err)
			for _, row := range out.rows {
				f := strings.Split(row, "|")
				if f[1] != f[2] || bad[f[0]+"|"+f[2]] {
					rt.Fatalf("row %s", row)
				}
				got[f[0]]++
			}
			for _, row := range out.rejects {
				f := strings.Split(row, "|")
				if !bad[f[1]+"|"+f[2]] {
					rt.Fatalf("reject %s", row)
				}
				got[f[1]]++
			}
		}
		maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(got, want) {
			rt.Fatalf("read %v of %v", got, want)
		}
		for id, s := range w.seen {
			if s.Rows != int64(want[id]) || s.Next != s.Size {
				rt.Fatalf("%s: %+v", id, s)
			}
		}
	})
}

func TestCSVLimits(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	for i := range 4 {
		w.write(fmt.Sprintf("in/%d.csv", i), fmt.Sprintf("id\n%d\n", i))
	}
	for _, want := range []string{"0 1", "2 3", ""} {
		rows, err := w.batch(connectors.Limit{Rows: 1, Bytes: 14})
		w.must(err)
		if got := strings.Join(rows, " "); got != want {
			t.Errorf("%q", got)
		}
	}
}

func TestOversizedFileIsPlannedAlone(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n2\n3\n")
	w.write("in/b.csv", "id\n4\n")
	b, err := w.plan(connectors.Limit{Bytes: 1})
	w.must(err)
	if len(b.Ranges) != 1 || b.Waiting != 2 {
		t.Errorf("%+v", b)
	}
}

func TestShare(t *testing.T) {
	const big = int64(1) << 62
	for _, c := range []struct{ whole, part, of, want int64 }{
		{10, 1, 2, 5}, {10, 3, 2, 10}, {10, 1, 0, 10}, {big, big - 1, big, big - 1}, {0, 1, 2, 0}, {7, 0, 3, 0},
	} {
		if got := share(c.whole, c.part, c.of); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, text := range []string{"", "abc", "abc/12", "/12"} {
		if got := identityOf(text).String(); got != text {
			t.Errorf("%q: %q", text, got)
		}
	}
}
