package checkpoints_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"lockstep/checkpoints"
	"lockstep/engine/duck"
)

// types has two values of every SQL type that state may hold; each column also gets a NULL.
var types = []struct{ typ, a, b string }{
	{"BOOLEAN", "true", "false"},
	{"TINYINT", "-128", "127"},
	{"SMALLINT", "-32768", "32767"},
	{"INTEGER", "-2147483648", "2147483647"},
	{"BIGINT", "-9223372036854775808", "9223372036854775807"},
	{"HUGEINT", "-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"},
	{"UTINYINT", "0", "255"},
	{"USMALLINT", "0", "65535"},
	{"UINTEGER", "0", "4294967295"},
	{"UBIGINT", "0", "18446744073709551615"},
	{"UHUGEINT", "0", "340282366920938463463374607431768211455"},
	{"DECIMAL(4,1)", "-999.9", "999.9"},
	{"DECIMAL(9,2)", "-9999999.99", "0.01"},
	{"DECIMAL(18,3)", "-999999999999999.999", "0.001"},
	{"DECIMAL(38,10)", "-9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999"},
	{"FLOAT", "'nan'", "'-inf'"},
	{"DOUBLE", "'nan'", "'inf'"},
	{"VARCHAR", "''", "'ünï\U0001F986'"},
	{"BLOB", "'\\x00\\xFF'", "''"},
	{"BIT", "'0101101011'", "'1'"},
	{"UUID", "'ffffffff-ffff-4fff-8fff-ffffffffffff'", "'00000000-0000-4000-8000-000000000000'"},
	{"DATE", "'-infinity'", "'2024-02-29'"},
	{"TIME", "'00:00:00'", "'23:59:59.999999'"},
	{"TIMETZ", "'12:34:56.789012+05:30'", "'00:00:00-15:59'"},
	{"TIMESTAMP", "'infinity'", "'1900-01-01 00:00:00.000001'"},
	{"TIMESTAMP_S", "'1969-12-31 23:59:59'", "'2024-01-01'"},
	{"TIMESTAMP_MS", "'1969-12-31 23:59:59.999'", "'2024-01-01'"},
	{"TIMESTAMP_NS", "'1969-12-31 23:59:59.999999999'", "'2024-01-01 00:00:00.000000001'"},
	{"TIMESTAMPTZ", "'2024-03-31 02:30:00+02'", "'-infinity'"},
	{"INTERVAL", "'-1 month 40 days 00:00:00.000001'", "'13 months'"},
	{"ENUM('low', 'high')", "'high'", "'low'"},
	{"INTEGER[]", "[1, NULL, 3]", "[]"},
	{"VARCHAR[][]", "[['a'], NULL, []]", "[]"},
	{"INTEGER[3]", "[1, 2, NULL]", "[4, 5, 6]"},
	{"STRUCT(a HUGEINT, b VARCHAR)", "{a: 170141183460469231731687303715884105727, b: NULL}", "{a: NULL, b: 'x'}"},
	{"MAP(VARCHAR, DECIMAL(38,2))", "MAP {'a': 1.5, 'b': NULL}", "MAP {}"},
	{"STRUCT(d DOUBLE, l UUID[])", "{d: 'nan', l: ['ffffffff-ffff-4fff-8fff-ffffffffffff']}", "{d: -0.0, l: []}"},
}

func engine(t testing.TB) *duck.Engine {
	t.Helper()
	eng, err := duck.Open(context.Background(), duck.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// allTypes makes a table with a column of every type and rows rows.
func allTypes(t *testing.T, eng *duck.Engine, rows int) {
	t.Helper()
	columns := []string{"r BIGINT"}
	kinds := [3][]string{{"r"}, {"r"}, {"r"}} // every column is a, b and NULL in turn
	for i, c := range types {
		columns = append(columns, fmt.Sprintf("c%d %s", i, c.typ))
		for kind := range kinds {
			value := []string{c.a, c.b, "NULL"}[(kind+i)%3]
			kinds[kind] = append(kinds[kind], fmt.Sprintf("(%s)::%s", value, c.typ))
		}
	}
	exec(t, eng, "CREATE TEMP TABLE state ("+strings.Join(columns, ", ")+")")
	for kind, values := range kinds {
		exec(t, eng, fmt.Sprintf("INSERT INTO state SELECT %s FROM range(%d, %d, 3) s(r)", strings.Join(values, ", "), kind, rows))
	}
}

func exec(t testing.TB, eng *duck.Engine, stmt string) {
	t.Helper()
	if err := eng.Exec(context.Background(), stmt); err != nil {
		t.Fatal(err)
	}
}

func arrowOf(t testing.TB, eng *duck.Engine, query string) array.RecordReader {
	t.Helper()
	r, err := eng.Arrow(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSegmentKeepsEveryType sends all types out of DuckDB into a segment and back into a state table.
func TestSegmentKeepsEveryType(t *testing.T) {
	eng := engine(t)
	allTypes(t, eng, 5000)
	out := arrowOf(t, eng, "FROM state")
	s, err := checkpoints.EncodeSegment("all types", 1, out)
	out.Release()
	if err != nil {
		t.Fatal(err)
	}
	back, err := s.Records()
	if err != nil {
		t.Fatal(err)
	}
	defer back.Release()
	if err := eng.Load(context.Background(), "loaded", back); err != nil {
		t.Fatal(err)
	}
	changed := map[string]string{}
	if err := eng.Each(context.Background(), "SELECT l.column_name, s.column_type, l.column_type FROM (DESCRIBE loaded) l JOIN (DESCRIBE state) s USING (column_name) WHERE l.column_type <> s.column_type", nil, func(rows *sql.Rows) error {
		var name, was, is string
		err := rows.Scan(&name, &was, &is)
		changed[was] = is
		return err
	}); err != nil {
		t.Fatal(err)
	}
	// State tables are typed, so that text is turned into the ENUM again.
	if len(changed) != 1 || changed["ENUM('low', 'high')"] != "VARCHAR" {
		t.Errorf("types that do not come back: %v", changed)
	}
	exec(t, eng, "CREATE TEMP TABLE restored AS FROM state LIMIT 0")
	exec(t, eng, "INSERT INTO restored FROM loaded")
	var n, differ int
	// EXCEPT tells NULLs and NaNs equal, which is what is wanted here.
	if err := eng.QueryRow(context.Background(), "SELECT (SELECT count(*) FROM restored), (SELECT count(*) FROM (FROM state EXCEPT ALL FROM restored))", nil, &n, &differ); err != nil {
		t.Fatal(err)
	}
	if n != 5000 || differ != 0 {
		t.Errorf("%d rows came back, %d of 5000 differ", n, differ)
	}
}

// TestDigestOfAnyOrder: rows in any order, in any batches, by any Arrow types give one digest.
func TestDigestOfAnyOrder(t *testing.T) {
	eng := engine(t)
	allTypes(t, eng, 5000)
	r := arrowOf(t, eng, "FROM state")
	columns := checkpoints.ExactColumns(r.Schema())
	r.Release()
	for i, c := range types {
		exact := !strings.Contains(c.typ, "FLOAT") && !strings.Contains(c.typ, "DOUBLE")
		if slices.Contains(columns, fmt.Sprint("c", i)) != exact {
			t.Errorf("%s counts as exact: %v", c.typ, !exact)
		}
	}
	want := digest(t, eng, "FROM state", columns)
	if want == (checkpoints.Digest{}) {
		t.Fatal("rows have the digest of nothing")
	}
	if got := digest(t, eng, "FROM state ORDER BY hash(r)", columns); got != want {
		t.Error("the order of the rows matters")
	}
	low, high := digest(t, eng, "FROM state WHERE r % 7 < 3", columns), digest(t, eng, "FROM state WHERE r % 7 >= 3", columns)
	if low.Add(high) != want || want.Sub(high) != low {
		t.Error("parts do not add up to the whole")
	}
	for i, c := range types {
		name := fmt.Sprint("c", i)
		if !slices.Contains(columns, name) {
			continue
		}
		// Another value in one row shows, and so does NULL in place of a value.
		for _, to := range []string{"NULL", c.a, c.b} {
			one := fmt.Sprintf("SELECT r, %s FROM state WHERE r <> 42 UNION ALL SELECT 42, (%s)::%s", name, to, c.typ)
			same := fmt.Sprintf("SELECT count(*) = 0 FROM state WHERE r = 42 AND %s IS DISTINCT FROM (%s)::%s", name, to, c.typ)
			var equal bool
			if err := eng.QueryRow(context.Background(), same, nil, &equal); err != nil {
				t.Fatal(err)
			}
			changed := digest(t, eng, one, []string{"r", name}) != digest(t, eng, "SELECT r, "+name+" FROM state", []string{"r", name})
			if changed == equal {
				t.Errorf("%s set to %s in one row: the digest changed: %v", c.typ, to, changed)
			}
		}
	}
}

// TestDigestIgnoresLayout: the same numbers and texts in other Arrow types.
func TestDigestIgnoresLayout(t *testing.T) {
	eng := engine(t)
	for name, layouts := range map[string][]string{
		"integers":   {"7::TINYINT", "7::SMALLINT", "7::INTEGER", "7::BIGINT", "7::HUGEINT", "7::UHUGEINT", "7::UBIGINT", "7::UTINYINT"},
		"negative":   {"-7::TINYINT", "-7::HUGEINT", "-7::BIGINT"},
		"large":      {"18446744073709551615::UBIGINT", "18446744073709551615::HUGEINT", "18446744073709551615::UHUGEINT"},
		"decimals":   {"1.5::DECIMAL(4,1)", "1.5::DECIMAL(18,1)", "1.5::DECIMAL(38,1)"},
		"texts":      {"'low'::VARCHAR", "'low'::ENUM('low', 'high')", "'low'::ENUM('high', 'low')"},
		"timestamps": {"'2024-01-01'::TIMESTAMP", "'2024-01-01'::TIMESTAMP_S", "'2024-01-01'::TIMESTAMP_MS", "'2024-01-01'::TIMESTAMP_NS", "'2024-01-01 00:00:00+00'::TIMESTAMPTZ"},
		"nulls":      {"NULL::INTEGER", "NULL::VARCHAR", "NULL"},
	} {
		want := digest(t, eng, "SELECT "+layouts[0]+" AS v", []string{"v"})
		for _, other := range layouts[1:] {
			if got := digest(t, eng, "SELECT "+other+" AS v", []string{"v"}); got != want {
				t.Errorf("%s: %s and %s differ", name, layouts[0], other)
			}
		}
	}
	// Neighbours are not run together.
	if digest(t, eng, "SELECT 'ab' AS a, 'c' AS b", []string{"a", "b"}) == digest(t, eng, "SELECT 'a' AS a, 'bc' AS b", []string{"a", "b"}) {
		t.Error("('ab', 'c') and ('a', 'bc') have one digest")
	}
}

func digest(t testing.TB, eng *duck.Engine, query string, columns []string) checkpoints.Digest {
	t.Helper()
	r := arrowOf(t, eng, query)
	defer r.Release()
	d, err := checkpoints.DigestRows(r, columns)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDigestKeptIncrementally follows a table through random changes by their images alone.
func TestDigestKeptIncrementally(t *testing.T) {
	eng := engine(t)
	exec(t, eng, "CREATE TEMP TABLE sink (k INTEGER, v DECIMAL(38,4), note VARCHAR)")
	columns := []string{"k", "v", "note"}
	random := rand.New(rand.NewPCG(3, 4))
	var kept checkpoints.Digest
	for range 30 {
		touched := fmt.Sprintf("k %% 10 = %d", random.IntN(10))
		kept = kept.Sub(digest(t, eng, "FROM sink WHERE "+touched, columns))
		exec(t, eng, "DELETE FROM sink WHERE "+touched)
		fresh := fmt.Sprintf("SELECT k::INTEGER AS k, (k * %d)::DECIMAL(38,4) / 3 AS v, CASE WHEN k %% 3 > 0 THEN 'n' || k END AS note FROM range(%d) s(k) WHERE %s",
			random.IntN(100), random.IntN(300), touched)
		exec(t, eng, "CREATE OR REPLACE TEMP TABLE staged AS SELECT k, v::DECIMAL(38,4) AS v, note FROM ("+fresh+")")
		kept = kept.Add(digest(t, eng, "FROM staged", columns))
		exec(t, eng, "INSERT INTO sink FROM staged")
		if whole := digest(t, eng, "FROM sink", columns); whole != kept {
			t.Fatalf("kept as %s, is %s", kept, whole)
		}
	}
}

func TestDigestOfWrongColumns(t *testing.T) {
	eng := engine(t)
	for _, c := range []struct{ query, column string }{{"SELECT 1 AS a", "b"}, {"SELECT 1::DOUBLE AS a", "a"}, {"SELECT [1::FLOAT] AS a", "a"}} {
		r := arrowOf(t, eng, c.query)
		if d, err := checkpoints.DigestRows(r, []string{c.column}); err == nil {
			t.Errorf("%s: column %s gives %s", c.query, c.column, d)
		}
		r.Release()
	}
}

func BenchmarkDigest(b *testing.B) {
	eng := engine(b)
	exec(b, eng, "CREATE TEMP TABLE wide AS SELECT r AS id, r * 7 AS n, (r % 1000)::DECIMAL(12,2) AS amount, 'store ' || (r % 100) AS store, DATE '2024-01-01' + (r % 365)::INTEGER AS day FROM range(200000) s(r)")
	r := arrowOf(b, eng, "FROM wide")
	var batches []arrow.RecordBatch
	for r.Next() {
		r.RecordBatch().Retain()
		batches = append(batches, r.RecordBatch())
	}
	columns := checkpoints.ExactColumns(r.Schema())
	r.Release()
	for b.Loop() {
		for _, batch := range batches {
			if _, err := checkpoints.DigestBatch(batch, columns); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*200000*float64(len(columns))/b.Elapsed().Seconds()/1e6, "Mvalues/s")
	for _, batch := range batches {
		batch.Release()
	}
}
