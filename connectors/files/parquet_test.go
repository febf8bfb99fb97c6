package files

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"lockstep/connectors"
)

func TestParquetByNameAndWidened(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT", "amount DECIMAL(12,2)")
	w.parquet("in/a.parquet", "SELECT 1::BIGINT AS id, 1.5::DECIMAL(12,2) AS amount")
	w.parquet("in/b.parquet", "SELECT 2.5::DECIMAL(10,2) AS AMOUNT, 'x' AS note, 2::SMALLINT AS ID")
	w.parquet("in/c.parquet", "SELECT 3::BIGINT AS id, 3.5::DECIMAL(12,2) AS amount")
	w.take("1|1.5", "3|3.5", "2|2.5")
	if got := w.seen["a.parquet"]; got.Next != 1 || got.Rows != 1 || len(got.Content) != 32 {
		t.Errorf("%+v", got)
	}
	w.take()
}

func TestParquetColumnFaults(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id INTEGER", "amount DECIMAL(12,2)")
	w.parquet("in/a.parquet", "SELECT 1::INTEGER AS id, 1.5::DECIMAL(12,2) AS amount")
	w.parquet("in/b.parquet", "SELECT 1::INTEGER AS id, 1.5::DECIMAL(12,2) AS amuont")
	fails[dataError](w, `in/b.parquet: no column "amount" in the file (it has id, amuont)
  did you mean amuont?`)
	w.parquet("in/b.parquet", "SELECT 1::BIGINT AS id, 1.5::DECIMAL(12,2) AS amount")
	fails[dataError](w, `in/b.parquet: column "id" is BIGINT in the file, but declared as INTEGER, which cannot hold all its values unchanged
  declare it as BIGINT and convert it in the SELECT`)
}

func TestParquetRowRanges(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT")
	w.parquet("in/a.parquet", "SELECT i AS id FROM range(3) t(i)")
	w.parquet("in/b.parquet", "SELECT 100 + i AS id FROM range(10) t(i)")
	var all []string
	for i, want := range []int{3, 4, 4, 2} {
		rows, err := w.batch(connectors.Limit{Rows: 4})
		w.must(err)
		if len(rows) != want {
			t.Fatalf("batch %d has %d rows: %v", i, len(rows), rows)
		}
		all = append(all, rows...)
		if got := identityOf(w.seen["b.parquet"].Content); i == 1 && (got.rows != 10 || len(got.hash) != 32) {
			t.Errorf("partly read: %+v", w.seen["b.parquet"])
		}
	}
	var want []string
	for i := range 13 {
		want = append(want, fmt.Sprint(map[bool]int{true: i, false: 97 + i}[i < 3]))
	}
	same(t, all, want)
	if got := w.seen["b.parquet"]; got.Next != 10 || got.Rows != 10 || len(got.Content) != 32 {
		t.Errorf("read to its end: %+v", got)
	}
	w.take()
}

func TestParquetBytesLimit(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT")
	w.parquet("in/a.parquet", "SELECT i AS id FROM range(10000) t(i)")
	b, err := w.plan(connectors.Limit{Bytes: 1000})
	w.must(err)
	if len(b.Ranges) != 1 || b.Ranges[0].Rows < 1 || b.Ranges[0].Rows > 5000 {
		t.Errorf("%+v", b)
	}
}

func TestParquetWithoutRows(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT")
	w.parquet("in/a.parquet", "SELECT 1 AS id WHERE false")
	w.spec.Columns[0].Type = "INTEGER"
	w.take()
	b, err := w.plan(connectors.Limit{})
	if err != nil || b.Waiting != 0 || len(w.seen) != 1 {
		t.Fatalf("%+v %v %+v", b, err, w.seen)
	}
}

func TestParquetNotNull(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT NOT NULL", "note VARCHAR")
	w.parquet("in/a.parquet", "SELECT i AS id, 'x' AS note FROM range(10) t(i)")
	w.parquet("in/b.parquet", "SELECT CASE WHEN i <> 3000 THEN i END AS id, NULL::VARCHAR AS note FROM range(5000) t(i)")
	fails[dataError](w, `in/b.parquet row 3001: column "id" is NULL, but declared NOT NULL: {'id': NULL, 'note': NULL}
in/b.parquet: 1 of 5000 rows are bad; max_rejects allows 0
  nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all`)
	// The rows before the NULL can be read; it is found with the range that holds it.
	for range 2 {
		_, err := w.batch(connectors.Limit{Rows: 2900})
		w.must(err)
	}
	if w.seen["b.parquet"].Next != 2900 {
		t.Fatalf("%+v", w.seen)
	}
	fails[dataError](w, `in/b.parquet row 3001: column "id" is NULL, but declared NOT NULL: {'id': NULL, 'note': NULL}
in/b.parquet: 1 of 2100 rows are bad; max_rejects allows 0
  nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all`)
}

func TestParquetDamagedFooter(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT")
	w.parquet("in/a.parquet", "SELECT 1::BIGINT AS id")
	w.write("in/b.parquet", "not a parquet file at all")
	const hint = "\n  replace it with an intact copy or remove it; a file that is still being written needs a name that ends in .tmp"
	fails[dataError](w, `in/b.parquet: is damaged or not a Parquet file: No magic bytes found at end`+hint)
	w.write("in/b.parquet", "hi")
	fails[dataError](w, `in/b.parquet: is damaged or not a Parquet file: too small to be a Parquet file`+hint)
	w.write("in/b.parquet", "")
	fails[dataError](w, "in/b.parquet: is empty (0 bytes): it lacks even a header\n  it may be a failed or unfinished upload: write it again or remove it")
}

func TestParquetDamagedPages(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT", "note VARCHAR")
	w.parquet("in/a.parquet", "SELECT i AS id, 'note ' || i AS note FROM range(5000) t(i)")
	w.parquet("in/b.parquet", "SELECT i AS id, md5(i::VARCHAR) AS note FROM range(5000) t(i)")
	data, err := os.ReadFile(w.path("in/b.parquet"))
	w.must(err)
	for i := 8; i < len(data)/2; i += 97 {
		data[i] ^= 0xff
	}
	w.write("in/b.parquet", string(data))
	_, err = w.batch(connectors.Limit{})
	if _, ok := err.(dataError); !ok || !strings.HasPrefix(err.Error(), "in/b.parquet: is damaged or not a Parquet file: ") {
		t.Fatalf("%T %v", err, err)
	}
	if strings.Contains(err.Error(), "SELECT") || strings.Contains(err.Error(), w.dir) {
		t.Error(err)
	}
}

func TestParquetOwnFileRowNumber(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "file_row_number BIGINT", "filename VARCHAR")
	w.parquet("in/a.parquet", "SELECT 7::BIGINT AS file_row_number, 'x' AS filename FROM range(3)")
	_, err := w.batch(connectors.Limit{Rows: 2})
	failed[dataError](t, err, `in/a.parquet: has a column "file_row_number" of its own, so it cannot be read in parts
  allow batches of its 3 rows`)
	w.take("7|x", "7|x", "7|x")
}

func TestColumnsOfFirstFile(t *testing.T) {
	w := newWorld(t, "in/day=*/*.parquet")
	w.parquet("in/day=2/b.parquet", "SELECT 1 AS other")
	w.parquet("in/day=1/a.parquet", "SELECT 1::UBIGINT AS id, [1] AS list, TIMESTAMPTZ '2024-01-01 00:00:00Z' AS at")
	got, err := Columns(t.Context(), w.eng, w.spec)
	w.must(err)
	if want := declare("id UBIGINT", "list INTEGER[]", "at TIMESTAMP WITH TIME ZONE"); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	w.spec.From = "in/none*/*.parquet"
	_, err = Columns(t.Context(), w.eng, w.spec)
	failed[dataError](t, err, "source orders: no file matches in/none*/*.parquet, so its columns are not known\n  declare them, or add a first file")
}

// The columns of a fused relation must stay plain, or DuckDB decodes those that nobody uses.
func TestRelationReadsOnlyUsedColumns(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT", "note VARCHAR")
	w.parquet("in/a.parquet", "SELECT i AS id, 'x' AS note FROM range(10) t(i)")
	w.parquet("in/b.parquet", "SELECT i::INTEGER AS id, 'x' AS note FROM range(10000) t(i)")
	b, err := w.plan(connectors.Limit{Rows: 5000})
	w.must(err)
	sc, err := w.source().Read(t.Context(), b.Ranges)
	w.must(err)
	defer sc.Close()
	rel, fused := sc.Relation()
	if !fused {
		t.Fatal("not fused")
	}
	plan, err := rowsOf(context.Background(), w.eng, "EXPLAIN SELECT sum(id) FROM "+rel)
	w.must(err)
	if text := strings.Join(plan, "\n"); strings.Contains(text, "note") {
		t.Error(text)
	}
}

func TestLossless(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"INTEGER", "INTEGER", true}, {"INTEGER", "BIGINT", true}, {"BIGINT", "INTEGER", false},
		{"UINTEGER", "BIGINT", true}, {"UINTEGER", "INTEGER", false}, {"TINYINT", "UBIGINT", false}, {"UTINYINT", "UBIGINT", true},
		{"DECIMAL(10,2)", "DECIMAL(12,2)", true}, {"DECIMAL(10,2)", "DECIMAL(12,4)", true}, {"DECIMAL(10,2)", "DECIMAL(11,4)", false},
		{"DECIMAL(12,2)", "DECIMAL(12,1)", false}, {"SMALLINT", "DECIMAL(7,2)", true}, {"INTEGER", "DECIMAL(10,2)", false},
		{"INTEGER", "DOUBLE", true}, {"BIGINT", "DOUBLE", false}, {"FLOAT", "DOUBLE", true}, {"DOUBLE", "FLOAT", false},
		{"TIMESTAMP_NS", "TIMESTAMP", false}, {"TIMESTAMP_MS", "TIMESTAMP", true}, {"TIMESTAMP", "TIMESTAMP WITH TIME ZONE", false},
		{"INTEGER", "VARCHAR", false}, {"BLOB", "VARCHAR", false}, {"UUID", "VARCHAR", true},
	} {
		if got := lossless(c.from, c.to); got != c.want {
			t.Errorf("%s to %s: %v", c.from, c.to, got)
		}
	}
}
