package files

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/connectors"
)

// taken is one batch: its rows, its rejects as source|split|off|line|reason|raw, its ranges.
type taken struct {
	rows, rejects []string
	ranges        []connectors.Range
}

// sift runs one batch as an engine does, and looks at the rejects before they go.
func (w *world) sift(limit connectors.Limit) (out taken, err error) {
	w.t.Helper()
	ctx := w.t.Context()
	b, err := w.plan(limit)
	w.must(err)
	sc, err := w.source().Read(ctx, b.Ranges)
	if err != nil {
		return out, err
	}
	defer func() { w.must(sc.Close()) }()
	rel, fused := sc.Relation()
	copied := ""
	if !fused {
		copied, rel = "copied", "(SELECT * EXCLUDE (_split) FROM copied)"
		if err := sc.Copy(ctx, copied); err != nil {
			return out, err
		}
	}
	if out.rows, err = rowsOf(ctx, w.eng, "FROM "+rel); err != nil {
		return out, sc.Explain(ctx, err)
	}
	if sc.Rejects() != "" {
		out.rejects, err = rowsOf(ctx, w.eng, "FROM "+sc.Rejects()+" ORDER BY split_id, off")
		w.must(err)
	}
	out.ranges, err = sc.Finish(ctx, copied)
	if err == nil {
		w.commit(b, out.ranges)
		rejected := int64(0)
		for _, r := range out.ranges {
			rejected += r.Rejected
		}
		if rejected != int64(len(out.rejects)) {
			w.t.Errorf("%d rejected, but there are\n%s", rejected, strings.Join(out.rejects, "\n"))
		}
	}
	return out, err
}

func (w *world) check(name, sql string, fail bool) *world {
	w.spec.Checks = append(w.spec.Checks, connectors.Check{Name: name, SQL: sql, Fail: fail})
	return w
}

const badCSV = "id,note,amount\n" +
	"1,fine,1.50\n" +
	"2,\"two\nlines\",1.239\n" +
	"\n" +
	"foo,3,1\n" +
	"4,x\n" +
	"5,6,7,8\n" +
	"6,\xff,1\n" +
	",y,1\n" +
	"8,z,-1\n" +
	"9,NULL passes,\n" +
	"10,\"open,1\n" +
	"11,end,3\n"

func TestRejects(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT NOT NULL", "note VARCHAR", "amount DECIMAL(12,2)").with("max_rejects", "8").check("amount_ok", "amount >= 0", false)
	w.write("in/a.csv", "id,note,amount\n0,a,0\n")
	w.write("in/b.csv", badCSV)
	w.write("in/c.csv", "note,id,amount\nc,12,0\n")
	got, err := w.sift(connectors.Limit{})
	w.must(err)
	same(t, got.rows, []string{"0|a|0", "12|c|0", "1|fine|1.5", "9|NULL passes|NULL", "11|end|3"})
	same(t, got.rejects, []string{
		"orders|b.csv|1|3|column \"amount\": \"1.239\" has more than 2 digits after the point|2,\"two\nlines\",1.239",
		"orders|b.csv|2|6|column \"id\": \"foo\" is not a BIGINT|foo,3,1",
		"orders|b.csv|3|7|has 2 column(s) instead of 3|4,x",
		"orders|b.csv|4|8|has 4 column(s) instead of 3|5,6,7,8",
		"orders|b.csv|5|9|is not valid UTF-8|6,\uFFFD,1",
		"orders|b.csv|6|10|column \"id\" is NULL, but declared NOT NULL|,y,1",
		"orders|b.csv|7|11|breaks amount_ok, CHECK (amount >= 0)|8,z,-1",
		"orders|b.csv|9|13|has a quote that is never closed|10,\"open,1",
	})
	for i, want := range []struct{ rows, rejected int64 }{{1, 0}, {11, 8}, {1, 0}} {
		if r := got.ranges[i]; r.Rows != want.rows || r.Rejected != want.rejected || r.Next.Rows != want.rows {
			t.Errorf("%+v", r)
		}
	}
}

func TestTooManyRejects(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT NOT NULL", "note VARCHAR", "amount DECIMAL(12,2)").with("max_rejects", "30%").check("", "amount >= 0", false)
	w.write("in/a.csv", badCSV)
	w.write("in/b.csv", "id,note,amount\n0,a,0\n1,a,x\n0,a,0\n0,a,0\n")
	w.write("in/c.csv", "id,note,amount\n1,a,x\n0,a,0\n0,a,0\n")
	_, err := w.sift(connectors.Limit{})
	failed[dataError](t, err, `in/a.csv:3: column "amount": "1.239" has more than 2 digits after the point: 2,"two\nlines",1.239
in/a.csv:6: column "id": "foo" is not a BIGINT: foo,3,1
in/a.csv:7: has 2 column(s) instead of 3: 4,x
in/a.csv:8: has 4 column(s) instead of 3: 5,6,7,8
in/a.csv:9: is not valid UTF-8: 6,`+"\uFFFD"+`,1
in/a.csv:10: column "id" is NULL, but declared NOT NULL: ,y,1
in/a.csv:11: breaks CHECK (amount >= 0): 8,z,-1
in/a.csv:13: has a quote that is never closed: 10,"open,1
in/b.csv:3: column "amount": "x" is not a DECIMAL(12,2): 1,a,x
in/c.csv:2: column "amount": "x" is not a DECIMAL(12,2): 1,a,x
in/a.csv: 8 of 11 rows are bad; max_rejects allows 30%
in/c.csv: 1 of 3 rows are bad; max_rejects allows 30%
  nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all`)
	if tables, err := rowsOf(t.Context(), w.eng, "SELECT table_name FROM duckdb_tables()"); err != nil || len(tables) > 0 {
		t.Errorf("left behind: %v %v", tables, err)
	}
}

func TestCheckThatFails(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT").with("max_rejects", "100%").check("positive", "id > 0", true)
	w.write("in/a.csv", "id\n1\nx\n")
	got, err := w.sift(connectors.Limit{})
	w.must(err)
	same(t, got.rows, []string{"1"})
	w.write("in/b.csv", "id\n1\n-2\n")
	_, err = w.sift(connectors.Limit{})
	failed[dataError](t, err, `in/b.csv:3: breaks positive, CHECK (id > 0): -2
in/b.csv: 1 of 2 rows are bad; max_rejects allows 100%
  nothing was committed: a check ON VIOLATION FAIL allows no such row`)
}

func TestParquetRejects(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT NOT NULL", "n BIGINT", "twice BIGINT").with("max_rejects", "2").check("small", "twice < 19998", false)
	w.spec.Columns[2].Computed = "2 * n"
	w.parquet("in/a.parquet", "SELECT i AS id, i AS n FROM range(10) t(i)")
	w.parquet("in/b.parquet", "SELECT CASE WHEN i <> 3000 THEN i END AS id, 2 * i AS n FROM range(5000) t(i)")
	var rejects []string
	rows, read := 0, int64(0)
	for range 4 {
		got, err := w.sift(connectors.Limit{Rows: 2000})
		w.must(err)
		rejects = append(rejects, got.rejects...)
		rows += len(got.rows)
		for _, r := range got.ranges {
			read += r.Rows
		}
	}
	same(t, rejects, []string{
		`orders|b.parquet|3000|NULL|column "id" is NULL, but declared NOT NULL|{'id': NULL, 'n': 6000}`,
	})
	if rows != 5009 || read != 5010 {
		t.Errorf("%d of %d rows", rows, read)
	}
	w.parquet("in/c.parquet", "SELECT i AS id, i AS n FROM range(9998, 10002) t(i)")
	_, err := w.sift(connectors.Limit{})
	failed[dataError](t, err, `in/c.parquet row 2: breaks small, CHECK (twice < 19998): {'id': 9999, 'n': 9999}
in/c.parquet row 3: breaks small, CHECK (twice < 19998): {'id': 10000, 'n': 10000}
in/c.parquet row 4: breaks small, CHECK (twice < 19998): {'id': 10001, 'n': 10001}
in/c.parquet: 3 of 4 rows are bad; max_rejects allows 2
  nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all`)
}

func TestAllowance(t *testing.T) {
	for _, c := range []struct {
		text           string
		rejected, rows int64
		want           bool
	}{
		{"0", 0, 10, true}, {"0", 1, 10, false}, {"5", 5, 5, true}, {"5", 6, 100, false},
		{"0.1%", 1, 1000, true}, {"0.1%", 1, 999, false}, {"0.1%", 0, 0, true}, {"100%", 7, 7, true}, {"33.3%", 1, 3, false}, {" 50 %", 1, 2, true},
	} {
		a, problem := parseAllowance(c.text)
		if problem != "" || a.allows(c.rejected, c.rows) != c.want {
			t.Errorf("%+v: %s", c, problem)
		}
	}
	for _, text := range []string{"", "x", "-1", "1.5", "%", "-1%", "1/3%", "1e1%", "200%"} {
		if _, problem := parseAllowance(text); problem == "" {
			t.Errorf("%q is taken", text)
		}
	}
}

// With more bad rows than fit one message, and more bad files than are looked at.
func TestManyBadFiles(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	for i := range 15 {
		w.write(fmt.Sprintf("in/%02d.csv", i), "id\nx\n1\n")
	}
	_, err := w.sift(connectors.Limit{})
	if err == nil || !strings.Contains(err.Error(), "and more\n") && !strings.Contains(err.Error(), "and 5 more files with bad rows") {
		t.Error(err)
	}
}
