package files

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"lockstep/connectors"
)

// derived declares a file name, a row number, and an expression over them.
func derived(w *world) *world {
	w.spec.Columns = append(w.spec.Columns,
		connectors.SourceColumn{Name: "filename", Type: "VARCHAR", Metadata: "filename"},
		connectors.SourceColumn{Name: "twice", Type: "BIGINT", Computed: "2 * id"},
		connectors.SourceColumn{Name: "place", Type: "VARCHAR", Computed: "filename || ':' || n"},
		connectors.SourceColumn{Name: "n", Type: "BIGINT", Metadata: "file_row_number"})
	return w
}

func TestComputedAndMetadata(t *testing.T) {
	csv := derived(newWorld(t, "in/**/*.csv*", "id BIGINT").with("format", "csv").with("max_rejects", "1"))
	csv.write("in/a/x.csv", "note,id\n,1\n,2\n")
	csv.write("in/b.csv", "id\n3\nx\n4\n")
	csv.write("in/c.csv.gz", gzipOf("id\n5\n", "6\n"))
	want := []string{"1|a/x.csv|2|a/x.csv:0|0", "2|a/x.csv|4|a/x.csv:1|1", "5|c.csv.gz|10|c.csv.gz:0|0", "6|c.csv.gz|12|c.csv.gz:1|1", "3|b.csv|6|b.csv:0|0", "4|b.csv|8|b.csv:2|2"}
	got, err := csv.sift(connectors.Limit{})
	csv.must(err)
	same(t, got.rows, want)
	same(t, got.rejects, []string{`orders|b.csv|1|3|column "id": "x" is not a BIGINT|x`})

	json := derived(newWorld(t, "in/*.json", "id BIGINT"))
	json.write("in/a.json", "{\"id\": 1}\n\n{\"id\": 2}")
	json.take("1|a.json|2|a.json:0|0", "2|a.json|4|a.json:1|1")

	parquet := derived(newWorld(t, "in/*/*.parquet", "id BIGINT"))
	parquet.parquet("in/a/x.parquet", "SELECT i + 1 AS id, 'own' AS filename FROM range(2) t(i)")
	parquet.parquet("in/b/x.parquet", "SELECT 3::BIGINT AS id")
	parquet.take("1|a/x.parquet|2|a/x.parquet:0|0", "2|a/x.parquet|4|a/x.parquet:1|1", "3|b/x.parquet|6|b/x.parquet:0|0")
	parquet.parquet("in/c/x.parquet", "SELECT 3::BIGINT AS id, 1 AS file_row_number")
	fails[dataError](parquet, `in/c/x.parquet: has a column "file_row_number" of its own, so column "n" cannot be read
  give the file's column another name`)
}

func TestComputedColumnThatFails(t *testing.T) {
	const want = `: computed column "day": Could not parse string "x" according to format specifier "%Y"
  nothing was committed: let the expression give NULL for such rows, as try_cast and try_strptime do`
	for format, write := range map[string]func(w *world){
		"csv":     func(w *world) { w.write("in/a.csv", "id,text\n1,2024\n2,x\n") },
		"json":    func(w *world) { w.write("in/a.json", `{"id":1,"text":"2024"}`+"\n"+`{"id":2,"text":"x"}`) },
		"parquet": func(w *world) { w.parquet("in/a.parquet", "SELECT 1::BIGINT AS id, unnest(['2024', 'x']) AS text") },
	} {
		w := newWorld(t, "in/*."+format, "day DATE", "id BIGINT", "text VARCHAR")
		w.spec.Columns[0].Computed = "strptime(text, '%Y')"
		write(w)
		_, err := w.sift(connectors.Limit{})
		failed[dataError](t, err, "in/a."+format+want)
		w.spec.Columns[0].Computed, w.spec.Columns[0].Type, w.src = "id", "BIGINT", nil
		w.check("ok", "strptime(text, '%Y') > DATE '2020-01-01'", false)
		_, err = w.sift(connectors.Limit{})
		failed[dataError](t, err, "in/a."+format+`: CHECK (strptime(text, '%Y') > DATE '2020-01-01'): Could not parse string "x" according to format specifier "%Y"
  nothing was committed: let the expression give NULL for such rows, as try_cast and try_strptime do`)
	}
}

func gzipOf(parts ...string) string {
	var b bytes.Buffer
	for _, p := range parts { // several members, as after cat
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(p))
		_ = w.Close()
	}
	return b.String()
}

func zstdOf(text string) string {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	defer w.Close()
	return string(w.EncodeAll([]byte(text), nil))
}

func TestCompressedText(t *testing.T) {
	for suffix, pack := range map[string]func(string) string{".gz": func(s string) string { return gzipOf(s) }, ".zst": zstdOf} {
		csv := newWorld(t, "in/*.csv"+suffix, "id BIGINT", "note VARCHAR").with("max_rejects", "1")
		text := "id,note\n1,\"two\nlines\"\n2,b\n"
		csv.write("in/a.csv"+suffix, pack(text))
		csv.take("1|two\nlines", "2|b")
		if s := csv.seen["a.csv"+suffix]; s.Size != int64(len(pack(text))) || s.Next != s.Size || s.Rows != 2 {
			t.Errorf("%+v", s)
		}
		csv.write("in/b.csv"+suffix, pack("note,id\n\"two\nlines\",x\nb,3\n"))
		got, err := csv.sift(connectors.Limit{})
		csv.must(err)
		same(t, got.rows, []string{"3|b"})
		same(t, got.rejects, []string{"orders|b.csv" + suffix + "|0|2|column \"id\": \"x\" is not a BIGINT|\"two\nlines\",x"})

		json := newWorld(t, "in/*.jsonl"+suffix, "id BIGINT", "note VARCHAR")
		json.write("in/a.jsonl"+suffix, pack("{\"id\":1}\n{\"note\":\"x\"}\n"))
		json.take("1|NULL", "NULL|x")

		broken := newWorld(t, "in/*.csv"+suffix, "id BIGINT")
		whole := pack("id\n1\n2\n3\n")
		broken.write("in/a.csv"+suffix, whole[:len(whole)-6])
		how := map[string]string{".gz": "gzip", ".zst": "zstd"}[suffix]
		_, err = broken.sift(connectors.Limit{})
		failed[dataError](t, err, "in/a.csv"+suffix+": is damaged, incomplete or not compressed by "+how+", as its name says: unexpected EOF")
		broken.write("in/a.csv"+suffix, "id\n1\n2\n3\n4\n5\n6\n")
		if _, err := broken.sift(connectors.Limit{}); err == nil || !strings.HasPrefix(err.Error(), "in/a.csv"+suffix+": is damaged, incomplete or not compressed by "+how) {
			t.Error(err)
		}
		// Damage behind the header, and all rows before it could be read.
		long := pack("id\n" + strings.Repeat("123456789\n", 200000))
		broken.write("in/a.csv"+suffix, long[:len(long)-10])
		if _, err := broken.sift(connectors.Limit{}); err == nil || !strings.HasPrefix(err.Error(), "in/a.csv"+suffix+": ") {
			t.Error(err)
		} else if _, ok := err.(dataError); !ok {
			t.Errorf("%T %v", err, err)
		}
	}
}
