package planner

import (
	"strings"
	"testing"
)

// Each case is a rule that has cost somebody a wrong answer: rows (id is added), batches, queries by
// their key. mustEqual compares with the SELECT after every batch.
var correctCases = []struct {
	name    string
	columns string
	rows    string // VALUES
	sizes   []int
	sinks   [][2]string // key, query
}{
	{"null groups, and groups of NULLs only", "k INTEGER, a INTEGER, f BOOLEAN",
		"(NULL, 1, true), (NULL, NULL, NULL), (1, NULL, NULL), (NULL, 2, false), (1, 3, NULL), (2, NULL, NULL)", []int{1, 1, 1, 1, 1, 1},
		[][2]string{{"k", "SELECT k, count(*) AS n, count(a) AS na, sum(a) AS s, avg(a) AS v, min(a) AS lo, bool_and(f) AS ba, bool_or(f) AS bo, count_if(f) AS c, stddev(a) AS d, var_pop(a) AS p FROM t GROUP BY k"}}},
	{"signed zero as key and value", "d DOUBLE, r FLOAT",
		"('-0.0', '0.0'), ('0.0', '-0.0'), ('-0.0', '1.0'), ('nan', 'nan'), ('-nan', 'nan'), (NULL, NULL), ('-0.0', '0.0')", []int{1, 1, 1, 2, 2},
		[][2]string{{"d", "SELECT d, count(*) AS n, min(r) AS lo, max(r) AS hi FROM t GROUP BY d"},
			{"r, x", "SELECT r, d + 0 AS x, count(*) AS n FROM t GROUP BY r, x"},
			{"m", "SELECT m, count(*) AS n FROM (SELECT d, min(r) AS m FROM t GROUP BY d) GROUP BY m"}}},
	{"a NaN of either sign is one group, as one value", "k INTEGER, d DOUBLE",
		"(1, 'nan'), (-1, 'nan'), (1, 'inf'), (-1, 'nan'), (1, 'nan'), (-1, 'inf')", []int{1, 1, 1, 1, 2},
		[][2]string{{"n", "SELECT n, count(*) AS g, min(x) AS x FROM (SELECT d * k AS x, count(*) AS n FROM t GROUP BY x) GROUP BY n"},
			{"", "SELECT x, n FROM (SELECT CASE WHEN k < 0 THEN -d ELSE d END AS x, count(*) AS n FROM t GROUP BY x) QUALIFY row_number() OVER (ORDER BY x DESC) = 1"}}}, {"nan and infinities in sums", "k INTEGER, d DOUBLE, r FLOAT",
		"(1, 1.5, 2.5), (1, 'inf', 1), (2, '-inf', 'nan'), (2, 'inf', 1), (3, 'nan', '-inf'), (1, 2, 'inf'), (4, 1e308, 1), (4, 1e308, 2), (4, 1, 3)", []int{1, 1, 1, 1, 1, 1, 1, 1, 1},
		[][2]string{{"k", "SELECT k, sum(d) AS s, avg(d) AS v, sum(r) AS sr, avg(r) AS vr, max(d) AS hi, min(d) AS lo FROM t GROUP BY k"}}},
	{"overflow to infinity inside one batch", "k INTEGER, d DOUBLE",
		"(1, 1e308), (1, 1e308), (1, 1e308), (2, -1e308), (2, -1e308)", []int{5},
		[][2]string{{"k", "SELECT k, sum(d) AS s, avg(d) AS v FROM t GROUP BY k"}}},
	{"moments of one row, of equal rows, of far rows", "k INTEGER, a INTEGER, e BIGINT, d DOUBLE",
		"(1, 5, 5, 5), (2, 7, 7, 1e15), (2, 7, 7, 1e15), (3, 2147483647, 9000000000000000, 1e9), (3, -2147483648, -9000000000000000, 1e9 + 1), (2, 7, 7, 1e15), (3, 2147483647, 1, 1e9 + 2), (1, NULL, NULL, NULL)", []int{1, 1, 1, 1, 1, 1, 1, 1},
		[][2]string{{"k", "SELECT k, stddev(a) AS s, stddev_pop(a) AS p, var_samp(e) AS ve, var_pop(e) AS pe, stddev(d) AS sd, var_pop(d) AS pd FROM t GROUP BY k"}}},
	{"a cast on the way to a moment changes the value", "k INTEGER, a INTEGER",
		"(1, 16777217), (1, 16777216), (1, 0), (1, 3), (1, 2)", []int{1, 1, 1, 1, 1},
		[][2]string{{"k", "SELECT k, var_pop(a::FLOAT) AS f, var_pop(a::BOOLEAN::INTEGER) AS b, var_pop((a <> 0)::INTEGER::DOUBLE) AS c, var_pop(a::BIGINT) AS w, var_pop(a::VARCHAR::DOUBLE) AS t FROM t GROUP BY k"}}},
	{"groups that vanish in an aggregate of an aggregate", "k INTEGER, a INTEGER",
		"(1, 1), (2, 1), (1, 1), (2, 1), (3, NULL), (3, NULL), (1, -2)", []int{1, 1, 1, 1, 1, 1, 1},
		[][2]string{{"n", "SELECT n, count(*) AS g, sum(s) AS s, bool_and(s > 0) AS b, count(s) AS c, avg(s) AS v FROM (SELECT k, count(*) AS n, sum(a) AS s FROM t GROUP BY k) GROUP BY n"},
			{"n", "SELECT n, count(*) AS g FROM (SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) <> 2) GROUP BY n HAVING ln(count(*)) >= 0"},
			{"", "SELECT sum(g) AS g, count(*) AS n FROM (SELECT n, count(*) AS g FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n)"}}},
	{"sum back to zero is not gone", "k INTEGER, a INTEGER", "(1, 5), (1, -5), (1, 0)", []int{1, 1, 1},
		[][2]string{{"k", "SELECT k, sum(a) AS s FROM t GROUP BY k"}, {"s", "SELECT s, count(*) AS n FROM (SELECT k, sum(a) AS s FROM t GROUP BY k) GROUP BY s"}}},
	{"a global aggregate before any row, nested", "k INTEGER, a INTEGER", "(1, 5), (1, NULL), (2, 0)", []int{0, 0, 1, 1, 1},
		[][2]string{{"", "SELECT count(*) AS n, sum(a) AS s, min(a) AS lo, bool_and(a > 0) AS b FROM t"},
			{"", "SELECT count(*) AS n, sum(c) AS s FROM (SELECT count(*) AS c FROM t)"},
			{"", "SELECT count(*) AS n FROM (SELECT count(*) AS c FROM t HAVING count(*) > 1)"},
			{"c", "SELECT c, count(*) AS n FROM (SELECT count(*) AS c FROM t) GROUP BY c"},
			{"", "SELECT 'x' AS x FROM (SELECT count(*) AS c FROM t)"},
			{"", "SELECT 1 AS one FROM t HAVING true"},
			{"", "SELECT sum(a) AS s FROM t HAVING sum(a) > 3"},
			{"", "SELECT count(*) AS n FROM t GROUP BY ()"}}},
	{"constant groups", "k INTEGER, a INTEGER", "(1, 5), (1, NULL), (2, 0)", []int{0, 1, 1, 1},
		[][2]string{{"x", "SELECT 'x' AS x, count(*) AS n FROM t GROUP BY 'x'"}, {"x, k", "SELECT 'x' AS x, k, count(*) AS n FROM t GROUP BY ALL"},
			{"k", "SELECT k, 'x' AS x, count(*) AS n FROM t GROUP BY k"}, {"x", "SELECT NULL::INTEGER AS x, count(*) AS n FROM t GROUP BY 1"}}},
	{"no aggregate at all", "k INTEGER, a INTEGER", "(1, 5), (1, 5), (2, NULL), (NULL, NULL)", []int{1, 1, 1, 1},
		[][2]string{{"k", "SELECT k FROM t GROUP BY k"}, {"k, a", "SELECT k, a FROM t GROUP BY ALL"}, {"a", "SELECT a FROM (SELECT k, a FROM t GROUP BY ALL) GROUP BY a"},
			{"", "SELECT count(*) AS n FROM (SELECT k FROM t GROUP BY k)"}}},
	{"unions of weighted and unweighted rows, without columns", "k INTEGER, a INTEGER", "(1, 5), (1, 7), (2, NULL), (3, 5)", []int{1, 1, 1, 1},
		[][2]string{{"", "SELECT count(*) AS n FROM (SELECT k FROM t UNION ALL SELECT a FROM t)"},
			{"", "SELECT count(*) AS n FROM (SELECT k FROM t UNION ALL SELECT count(*) FROM t GROUP BY a UNION ALL SELECT a FROM t WHERE a > 5)"},
			{"v", "SELECT v, count(*) AS n FROM (SELECT k AS v FROM t UNION ALL SELECT count(*) FROM t GROUP BY a HAVING count(*) > 0) WHERE v > 0 GROUP BY v"},
			{"p, v", "SELECT 'k' AS p, k AS v, count(*) AS n FROM t GROUP BY k UNION ALL SELECT 'a', a, sum(k) FROM t GROUP BY a UNION ALL SELECT 'g', NULL, count(*) FROM t"},
			{"p", "SELECT 1 AS p, count(*) AS n FROM t UNION ALL SELECT 2, sum(a) FROM t WHERE k = 1 UNION ALL SELECT 3, sum(n) FROM (SELECT k, count(*) AS n FROM t GROUP BY k)"},
			{"k", "SELECT k, sum(a) AS s, sum(b) AS t FROM (SELECT k, a, 1 AS b FROM t UNION ALL SELECT k, NULL, a FROM t UNION ALL SELECT k, sum(a), 0 FROM t GROUP BY k) GROUP BY k"}}},
	{"the same aggregate twice, and columns twice", "k INTEGER, a INTEGER", "(1, 5), (1, 7), (2, NULL)", []int{1, 1, 1},
		[][2]string{{"k", "SELECT k, sum(a) AS s, SUM(t.a) AS s2, avg(a) AS v, mean(a) AS v2, k AS k2, sum(a) + sum(a) AS d FROM t GROUP BY k"}}},
	{"filters: NULL is not true; FILTER with HAVING", "k INTEGER, a INTEGER, f BOOLEAN", "(1, 5, NULL), (1, 7, true), (2, NULL, false), (2, 3, true)", []int{1, 1, 1, 1},
		[][2]string{{"k", "SELECT k, count(*) FILTER (f) AS n, sum(a) FILTER (WHERE NOT f) AS s, count(a) FILTER (WHERE a > 4 OR f) AS c, min(a) FILTER (f) AS m FROM t GROUP BY k HAVING count(*) FILTER (f) < 2 OR sum(a) FILTER (f) IS NULL"}}},
	{"errors only in rows that are filtered out", "k INTEGER, c VARCHAR", "(1, '5'), (1, 'x'), (2, '7')", []int{1, 1, 1},
		[][2]string{{"k", "SELECT k, sum(c::INTEGER) AS s FROM t WHERE c ~ '[0-9]+' GROUP BY k"},
			{"k", "SELECT k, sum(CASE WHEN c ~ '[0-9]+' THEN c::INTEGER END) AS s FROM t GROUP BY k"},
			{"k", "SELECT k, CASE WHEN count(*) = 2 THEN 0 ELSE ln(2 - count(*)) END AS l FROM t GROUP BY k"},
			{"k", "SELECT k, ln(count(*) - 1) AS l FROM t GROUP BY k HAVING count(*) > 1"},
			{"k", "SELECT k, CASE WHEN min(c) = 'x' THEN CAST(min(c) AS INTEGER) ELSE 1 END AS l FROM t GROUP BY k HAVING min(c) <> 'x'"},
			{"k", "SELECT k, CASE WHEN false THEN error('no') ELSE 'yes' END AS l FROM t GROUP BY k"}}},
	{"round makes exact", "k INTEGER, a INTEGER, d DOUBLE", "(1, 5, 0.1), (1, 8, 0.2), (2, 5, 0.30004), (3, 9, 7)", []int{1, 1, 1, 1},
		[][2]string{{"r", "SELECT r, count(*) AS n, sum(r) AS s FROM (SELECT k, round(avg(a), 1)::DECIMAL(9,1) AS r FROM t GROUP BY k) GROUP BY r"},
			{"k", "SELECT k, CASE WHEN round(sum(d), 3) >= 0.3 THEN 'high' END AS h, avg(a)::INTEGER AS i FROM t GROUP BY k HAVING round(avg(a), 1) > 5.5"}}},
	{"decimals keep every digit", "k INTEGER, b DECIMAL(38,2), c DECIMAL(18,6)",
		"(1, 123456789012345678901234567890123456.78, 0.000001), (1, -123456789012345678901234567890123456.77, 123456789012.000001), (2, 0.01, NULL)", []int{1, 1, 1},
		[][2]string{{"k", "SELECT k, sum(b) AS s, avg(b) AS v, sum(c) AS sc, sum(c * 2) AS dc, min(b) AS m FROM t GROUP BY k"},
			{"", "SELECT sum(s) AS s FROM (SELECT k, sum(c) AS s FROM t GROUP BY k)"}}},
	{"sums of booleans and unsigned", "k INTEGER, f BOOLEAN, u UBIGINT, h UHUGEINT",
		"(1, true, 18446744073709551615, 5), (1, true, 18446744073709551615, 7), (1, NULL, 0, 0), (2, false, NULL, NULL)", []int{1, 1, 1, 1},
		[][2]string{{"k", "SELECT k, sum(f) AS s, sum(u) AS su, avg(u) AS au, sum(h) AS sh FROM t GROUP BY k"},
			{"n", "SELECT n, sum(b) AS s FROM (SELECT k, count(*) AS n, bool_or(f) AS b FROM t GROUP BY k) GROUP BY n"}}},
}

func TestCorrect(t *testing.T) {
	eng := openEngine(t, 1)
	for _, tc := range correctCases {
		t.Run(strings.ReplaceAll(tc.name, " ", "_"), func(t *testing.T) {
			mustExec(t, eng, "CREATE OR REPLACE TABLE given ("+tc.columns+")", "INSERT INTO given VALUES "+tc.rows,
				"CREATE OR REPLACE TABLE all_t AS SELECT row_number() OVER () AS id, * FROM given")
			total := 0
			for _, n := range tc.sizes {
				total += n
			}
			for _, s := range tc.sinks {
				plan := mustCompile(t, "ATTACH 'm.duckdb' AS m; CREATE SOURCE t (id BIGINT, "+tc.columns+") FROM 't.parquet'; CREATE SINK m.out PRIMARY KEY ("+s[0]+") AS "+s[1]+";")
				mustEqual(t, eng, plan, tc.sizes...)
				mustEqual(t, eng, plan, total)
			}
		})
	}
}

// An overflow is an error, in whichever batch it comes; never a wrong number.
func TestOverflowIsAnError(t *testing.T) {
	eng := openEngine(t, 1)
	for _, tc := range []struct{ typ, value, query string }{
		{"DECIMAL(38,0)", "60000000000000000000000000000000000000", "SELECT k, sum(v) AS s FROM t GROUP BY k"},
		{"HUGEINT", "100000000000000000000000000000000000000", "SELECT k, sum(v) AS s FROM t GROUP BY k"},
		{"HUGEINT", "100000000000000000000000000000000000000", "SELECT sum(s) AS s FROM (SELECT k, id, sum(v) AS s FROM t GROUP BY k, id)"},
		{"DECIMAL(38,0)", "60000000000000000000000000000000000000", "SELECT sum(s) AS s FROM (SELECT k, id, sum(v) AS s FROM t GROUP BY k, id)"},
		{"DOUBLE", "1e200", "SELECT k, stddev(v * (id - 2)) AS s FROM t GROUP BY k"},
	} {
		for _, sizes := range [][]int{{4}, {1, 1, 1, 1}, {2, 2}} {
			mustExec(t, eng, "CREATE OR REPLACE TABLE all_t AS SELECT i AS id, 1 AS k, ("+tc.value+")::"+tc.typ+" AS v FROM range(1, 5) r(i)")
			key := "k"
			if strings.Contains(tc.query, "SELECT sum") {
				key = ""
			}
			plan := mustCompile(t, "ATTACH 'm.duckdb' AS m; CREATE SOURCE t (id BIGINT, k INTEGER, v "+tc.typ+") FROM 't.parquet'; CREATE SINK m.out PRIMARY KEY ("+key+") AS "+tc.query+";")
			l, err := begin(eng, plan)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range sizes {
				if err == nil {
					err = l.batch(n)
				}
			}
			if err == nil {
				t.Errorf("no error from %s over %s in batches of %v: %s", tc.query, tc.typ, sizes, mustQuery(t, eng, "SELECT string_agg(s::VARCHAR, ',') FROM target0"))
			}
		}
	}
}

// A floating sum stays within 1e-12 × Σ|x| of the true sum, however many batches there are and however
// much cancels. The values are whole, so that the truth is exact in a HUGEINT.
func TestFloatSumsStayClose(t *testing.T) {
	eng := openEngine(t, 1)
	mustExec(t, eng, `CREATE TABLE all_t AS SELECT i AS id, (i % 2)::INTEGER AS k,
		(CASE WHEN i % 3 = 0 THEN -1 ELSE 1 END * ((i * 7919) % 1000003)::DOUBLE * CASE i % 4 WHEN 0 THEN 1e12 WHEN 1 THEN 1 ELSE 1e6 END) AS d FROM range(1, 4001) r(i)`)
	plan := mustCompile(t, "ATTACH 'm.duckdb' AS m; CREATE SOURCE t (id BIGINT, k INTEGER, d DOUBLE) FROM 't.parquet'; CREATE SINK m.out PRIMARY KEY (k) AS SELECT k, sum(d) AS s FROM t GROUP BY k;")
	l, err := begin(eng, plan)
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if err := l.batch(100); err != nil {
			t.Fatal(err)
		}
	}
	worst := mustQuery(t, eng, `SELECT max(abs(g.s::HUGEINT - w.s) / w.size) <= 1e-12 FROM target0 g JOIN
		(SELECT k, sum(d::HUGEINT) AS s, sum(abs(d)::HUGEINT)::DOUBLE AS size FROM t GROUP BY k) w USING (k)`)
	if worst != "true" {
		t.Errorf("too far: %s", mustQuery(t, eng, "SELECT list(s)::VARCHAR FROM target0"))
	}
}
