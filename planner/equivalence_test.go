package planner

import (
	"fmt"
	"strings"
	"testing"
)

const declareT = `
CREATE SOURCE t (id BIGINT NOT NULL, k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, e BIGINT, ts TIMESTAMP, f BOOLEAN, big HUGEINT, r FLOAT) FROM 't.parquet';
`

const makeT = `CREATE TABLE all_t AS SELECT i AS id,
	CASE WHEN hash(i) % 10 = 0 THEN NULL ELSE (hash(i*3) % 8)::INTEGER END AS k,
	CASE WHEN hash(i*5) % 7 = 0 THEN NULL ELSE (hash(i*7) % 100)::INTEGER - 50 END AS a,
	CASE WHEN hash(i*11) % 10 = 0 THEN NULL ELSE ((hash(i*13) % 100000)::BIGINT / 100)::DECIMAL(12,2) END AS b,
	CASE WHEN hash(i*17) % 10 = 0 THEN NULL ELSE chr(97 + (hash(i*19) % 5)::INTEGER) END AS c,
	CASE hash(i*23) % 40 WHEN 0 THEN NULL WHEN 1 THEN -0.0 WHEN 2 THEN 0.0 ELSE (hash(i*29) % 1000)::BIGINT / 7.0 END::DOUBLE AS d,
	(hash(i*31) % 1000000000000)::BIGINT AS e,
	TIMESTAMP '2026-03-28' + to_minutes((hash(i*37) % 5000)::BIGINT) AS ts,
	CASE hash(i*41) % 3 WHEN 0 THEN NULL WHEN 1 THEN true ELSE false END AS f,
	((hash(i*43) % 1000)::HUGEINT - 500) * 10000000000000000000000000 AS big,
	(hash(i*47) % 100)::FLOAT / 3 AS r
	FROM range(1, ROWS + 1) r(i)`

var equivalenceCases = []struct{ name, key, query string }{
	{"group", "k", "SELECT k, count(*) AS n, count(a) AS na, sum(a) AS sa, sum(b) AS sb, avg(a) AS aa, avg(b) AS ab, min(c) AS mc, max(ts) AS mt, sum(d) AS sd, avg(d) AS ad FROM t GROUP BY k"},
	{"no group", "", "SELECT count(*) AS n, sum(a) AS s, min(b) AS m, max(c) AS x, avg(e) AS v FROM t WHERE a > 40"},
	{"no group, having", "", "SELECT count(*) AS n FROM t HAVING count(*) % 2 = 1"},
	{"group by all, expressions", "day, cc", "SELECT date_trunc('day', ts) AS day, c AS cc, sum(b) AS s, s + 1 AS s1 FROM t WHERE cc <> 'a' OR cc IS NULL GROUP BY ALL ORDER BY 1"},
	{"having enters and leaves", "k, c", "SELECT k, c, sum(a) AS s FROM t GROUP BY 1, 2 HAVING s % 2 = 0"},
	{"filter clauses", "k", "SELECT k, count(*) FILTER (c = 'a') AS n, sum(b) FILTER (WHERE a > 5) AS s, max(b) FILTER (a < 10) AS m, count(a) FILTER (f) AS fa FROM t GROUP BY k"},
	{"booleans", "k", "SELECT k, bool_and(f) AS x, bool_or(a > 48) AS y, count_if(f) AS z, bool_and(f) FILTER (a > 0) AS w FROM t GROUP BY k"},
	{"moments", "k", "SELECT k, stddev(a) AS s, var_pop(a) AS v, var_samp(d) AS w, stddev_pop(e) AS p, variance(k) AS kk FROM t GROUP BY k"},
	{"wide integers", "k", "SELECT k, sum(e) AS s, sum(big) AS g, max(big) AS m, avg(e) AS v, sum(id)::BIGINT AS i FROM t GROUP BY k"},
	{"floats as key", "d", "SELECT d, count(*) AS n, sum(r) AS s FROM t GROUP BY d"},
	{"aggregate of aggregate", "n", "SELECT n, count(*) AS groups, sum(s) AS s, avg(s) AS v, stddev(m) AS sm, bool_or(s > 100) AS b FROM (SELECT k, c, count(*) % 4 AS n, sum(a) AS s, (count(*) % 7)::INTEGER AS m FROM t GROUP BY k, c) GROUP BY n"},
	{"three deep, with CTEs", "q", "WITH x AS (SELECT k, c, sum(a) AS s, count(*) AS n FROM t GROUP BY ALL), y AS (SELECT k, sum(s) AS m, count(*) AS n FROM x GROUP BY k HAVING count(*) > 2) SELECT m % 3 AS q, count(*) AS z, sum(n) AS sn FROM y GROUP BY q"},
	{"count of a global", "", "SELECT count(*) AS n, sum(s) AS s FROM (SELECT sum(a) AS s FROM t HAVING count(*) % 3 <> 1)"},
	{"union all below", "k", "SELECT k, count(*) AS n, sum(v) AS s, min(v) AS m FROM (SELECT k, a::BIGINT AS v FROM t UNION ALL SELECT a % 8, e FROM t WHERE f) GROUP BY k"},
	{"union all of an aggregate", "k", "SELECT k, count(*) AS n, sum(v) AS s FROM (SELECT k, a::BIGINT AS v FROM t UNION ALL SELECT k, count(*) FROM t GROUP BY k) GROUP BY k"},
	{"cte read twice", "k", "WITH x AS (SELECT k, c, sum(a) AS s, count(*) AS n FROM t GROUP BY k, c) SELECT k, sum(s) AS s, count(*) AS n FROM (SELECT k, s FROM x UNION ALL SELECT k, n FROM x WHERE n > 2) GROUP BY k"},
	{"union all above", "kind, k", "SELECT 'k' AS kind, k, count(*) AS n FROM t GROUP BY k UNION ALL SELECT 'a' AS kind, a % 3, sum(e)::BIGINT FROM t GROUP BY 2"},
	{"key in other order, extra key", "x, k", "SELECT max(a) AS x, k FROM t GROUP BY k"},
	{"division in a guarded projection", "k", "SELECT k, 100 // (count(*) - 3) AS q FROM t GROUP BY k HAVING count(*) <> 3"},
	{"case, coalesce, in, between", "g", "SELECT CASE WHEN a BETWEEN -10 AND 10 THEN 'mid' WHEN a IN (11, 12, 13) THEN 'few' ELSE coalesce(c, 'none') END AS g, count(*) AS n, sum(CASE WHEN f THEN b ELSE 0 END) AS s FROM t GROUP BY 1"},
	{"time zone day", "day", "SELECT (timezone('UTC', ts) AT TIME ZONE 'Europe/Berlin')::DATE AS day, count(*) AS n, strftime(min(ts), '%Y') AS y FROM t GROUP BY day"},
	{"count star only", "", "SELECT count(*) AS n FROM t"},
	{"arg_max and arg_min", "k", "SELECT k, arg_max(c, id) AS x, arg_min(d, id) AS y, max_by(a, id) FILTER (WHERE f) AS z, count(*) AS n, arg_max_null(c, id) AS xn, argmin(ts, id) AS t FROM t GROUP BY k"},
	{"arg_max by place", "k", "SELECT k, arg_max(c, a) AS x, min_by(e, d) AS y, arg_max_null(b, r) AS z, sum(a) AS s FROM t WHERE a < 40 GROUP BY k"},
	{"first and last", "k", "SELECT k, first(c ORDER BY a DESC NULLS FIRST, id) AS x, last(d ORDER BY c, id) AS y, any_value(b ORDER BY d DESC, id) AS z, last(ts ORDER BY f NULLS FIRST, ts DESC, id) FILTER (WHERE e > 5) AS w, arbitrary(big ORDER BY id DESC) AS v FROM t GROUP BY k"},
	{"first and last by place", "", "SELECT first(c ORDER BY a) AS x, last(d ORDER BY a NULLS FIRST) AS y, any_value(b ORDER BY upper(c) DESC) AS z, count(*) AS n FROM t"},
	{"first of groups", "c", "SELECT c, first(k ORDER BY n DESC, k) AS best, arg_max(s, k) AS s, max(n) AS n, last(s ORDER BY s) AS hi FROM (SELECT c, k, count(*) AS n, sum(a) AS s FROM t GROUP BY c, k) GROUP BY c"},
	{"first of latest", "f", "SELECT f, first(a ORDER BY b, k) AS a1, max_by(c, k) AS c1 FROM (SELECT DISTINCT ON (k) k, a, b, c, f FROM t ORDER BY k, id DESC) GROUP BY f"},
	{"extremes of groups", "c", "SELECT c, min(s) AS lo, max(s) AS hi, count(*) AS n, sum(s) AS t, min(f) AS mf, max(d) FILTER (WHERE n > 2) AS md FROM (SELECT k, c, bool_and(f) AS f, sum(a) AS s, count(*) AS n, max(d) AS d FROM t GROUP BY k, c) GROUP BY c"},
	{"extremes of all groups", "", "SELECT min(n) AS lo, max(n) AS hi, count(*) AS n FROM (SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) % 2 = 0)"},
	{"extremes of a count", "", "SELECT max(n) AS hi FROM (SELECT count(*) AS n FROM t WHERE a > 45)"},
	{"floating sums of latest rows", "c", "SELECT c, sum(d) AS s, avg(r) AS v, stddev(d) AS sd, round(sum(d), 2) AS rs, count(d) AS n FROM (SELECT DISTINCT ON (k, f) k, f, c, d, r FROM t ORDER BY k, f, ts DESC) GROUP BY c"},
	{"counts by rounded floating sums", "rs", "SELECT rs, count(*) AS n FROM (SELECT c, round(sum(d), 0)::INTEGER AS rs FROM (SELECT DISTINCT ON (k) k, c, d FROM t ORDER BY k, ts DESC) GROUP BY c) GROUP BY rs"},
	{"extremes by a float", "d", "SELECT d, max(n) AS hi FROM (SELECT d, k, count(*) AS n FROM t GROUP BY d, k) GROUP BY d"},
	{"counts by counts of counts", "n, c", "SELECT n, c, count(*) AS m FROM (SELECT n, count(*) AS c FROM (SELECT k, c, count(*) % 5 AS n FROM t GROUP BY k, c) GROUP BY n) GROUP BY n, c"},
	{"counts by plain counts of counts", "n, c", "SELECT n, c, count(*) AS m FROM (SELECT n, count(*) AS c FROM (SELECT e % 40 AS q, count(*) AS n FROM t GROUP BY q) GROUP BY n) GROUP BY n, c"},
	{"latest row per key", "k", "SELECT k, id, a, c, d, ts FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC, id) = 1"},
	{"latest row per key, by place", "k", "SELECT k, a, b, c, id AS i FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY a DESC NULLS FIRST) = 1"},
	{"distinct on, mixed directions", "k, c", "SELECT DISTINCT ON (c, k) k, c, d, a + 1 AS a1, id AS i FROM t WHERE a <> 7 ORDER BY k, c, a DESC NULLS FIRST, d ASC NULLS LAST"},
	{"top three, numbered", "k, rn", "SELECT k, rn, a, f, id AS i FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY a DESC NULLS LAST, e) AS rn FROM t) WHERE rn <= 3"},
	{"second, by an expression", "day", "SELECT ts::DATE AS day, k, id AS i FROM t QUALIFY row_number() OVER (PARTITION BY ts::DATE ORDER BY abs(a), upper(c) DESC) = 2"},
	{"first of all", "", "SELECT id AS i, a, d FROM t ORDER BY d DESC NULLS LAST, a LIMIT 1"},
	{"top of all, numbered", "rn", "SELECT row_number() OVER (ORDER BY b DESC) AS rn, b, id AS i FROM t QUALIFY rn < 6"},
	{"latest row by a float key", "d", "SELECT d, r, id AS i FROM t QUALIFY row_number() OVER (PARTITION BY d ORDER BY r DESC) = 1"},
	{"latest rows filtered", "k", "SELECT k, a, id AS i FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC) = 1 AND a > 0"},
	{"aggregate of latest rows", "c", "SELECT c, count(*) AS n, sum(a) AS s, avg(b) AS v FROM (SELECT DISTINCT ON (k, f) k, f, a, b, c FROM t ORDER BY k, f, ts DESC) GROUP BY c"},
	{"first groups", "k", "SELECT k, sum(a) AS s FROM t GROUP BY k ORDER BY s DESC NULLS LAST, k LIMIT 3"},
	{"first groups after the first", "k", "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n DESC, k LIMIT 2 OFFSET 1"},
	{"best group per group", "c", "SELECT c, k, s FROM (SELECT c, k, sum(a) AS s FROM t GROUP BY c, k) QUALIFY row_number() OVER (PARTITION BY c ORDER BY s DESC, k) = 1"},
	{"best of the latest", "f", "SELECT f, k, a FROM (SELECT DISTINCT ON (k) k, a, f FROM t ORDER BY k, id DESC) QUALIFY row_number() OVER (PARTITION BY f ORDER BY a, k) = 1"},
	{"ties that are the same", "f, rn", "SELECT f, n, row_number() OVER (PARTITION BY f ORDER BY n DESC) AS rn FROM (SELECT f, a AS n FROM t UNION ALL SELECT f, count(*) FROM t GROUP BY f, k) QUALIFY rn <= 3"},
	{"latest of a union", "k", "SELECT k, v FROM (SELECT k, id AS v FROM t UNION ALL SELECT a % 8, e FROM t WHERE f) QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) = 1"},
	{"round makes exact", "k", "SELECT k, avg(a) AS v FROM t GROUP BY k HAVING round(avg(a), 1) > 0"},
}

// mixed has batches of one row, of a few, empty ones and large ones; whole has all rows in one.
var (
	mixed = []int{0, 1, 1, 1, 1, 1, 1, 7, 7, 0, 1, 13, 7, 60, 1, 120, 78}
	whole = []int{300}
)

func TestEquivalence(t *testing.T) {
	eng := openEngine(t, 1)
	mustExec(t, eng, strings.ReplaceAll(makeT, "ROWS", "300"))
	for _, tc := range equivalenceCases {
		t.Run(tc.name, func(t *testing.T) {
			plan := mustCompile(t, "ATTACH 'm.duckdb' AS m;"+declareT+"CREATE SINK m.out PRIMARY KEY ("+tc.key+") AS "+tc.query+";")
			if !testing.Short() {
				mustEqual(t, eng, plan, mixed...)
			}
			mustEqual(t, eng, plan, whole...)
		})
	}
}

// All cases as the sinks of one pipeline share what steps they can.
func TestEquivalenceTogether(t *testing.T) {
	eng := openEngine(t, 1)
	mustExec(t, eng, strings.ReplaceAll(makeT, "ROWS", "300"))
	var text strings.Builder
	text.WriteString("ATTACH 'm.duckdb' AS m;" + declareT)
	for i, tc := range equivalenceCases {
		fmt.Fprintf(&text, "CREATE SINK m.out%d PRIMARY KEY (%s) AS %s;\n", i, tc.key, tc.query)
	}
	plan := mustCompile(t, text.String())
	mustEqual(t, eng, plan, 20, 0, 200, 80)
}
