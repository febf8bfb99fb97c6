package planner

import (
	"fmt"
	"strings"
	"testing"
)

// Distinct rows, set operations, distinct aggregates and grouping sets, over the rows of makeT.
var setCases = []struct{ name, key, query string }{
	{"distinct", "k, c", "SELECT DISTINCT k, c FROM t"},
	{"distinct, ordered", "x", "SELECT DISTINCT k + 1 AS x FROM t WHERE a > 0 ORDER BY x DESC"},
	{"distinct floats", "d, r", "SELECT DISTINCT d, r FROM t"},
	{"distinct over groups takes nothing away", "k", "SELECT DISTINCT k, avg(a) AS v, count(*) AS n FROM t GROUP BY k"},
	{"distinct results of groups", "n, s", "SELECT DISTINCT count(*) % 5 AS n, sum(a) % 3 AS s FROM t GROUP BY k, c"},
	{"distinct of one", "x", "SELECT DISTINCT 'x' AS x FROM t"},
	{"groups of distinct rows", "k", "SELECT k, count(*) AS n, sum(a) AS s, max(c) AS m, avg(d) AS v FROM (SELECT DISTINCT k, a, c, d FROM t) GROUP BY k"},
	{"groups of distinct rows that go", "n", "SELECT n, count(*) AS g, sum(s) AS s FROM (SELECT DISTINCT count(*) % 7 AS n, sum(a) AS s FROM t GROUP BY k, c) GROUP BY n"},
	{"max of distinct rows", "k", "SELECT k, max(a) AS m, min(c) AS lo FROM (SELECT DISTINCT k, a, c, e FROM t) GROUP BY k"},
	{"union", "v", "SELECT k AS v FROM t UNION SELECT a FROM t"},
	{"union of three, with groups", "v", "SELECT k AS v FROM t UNION SELECT a FROM t WHERE f UNION SELECT count(*)::INTEGER FROM t GROUP BY c"},
	{"union and union all", "v", "SELECT v, count(*) AS n FROM (SELECT k AS v FROM t UNION SELECT a FROM t UNION ALL SELECT a FROM t WHERE f) GROUP BY v"},
	{"union by name", "k, a, c", "SELECT k, a FROM t WHERE f UNION BY NAME SELECT c, k FROM t"},
	{"intersect", "v, c", "SELECT k AS v, c FROM t INTERSECT SELECT a % 20, c FROM t WHERE f"},
	{"except", "v", "SELECT a AS v FROM t EXCEPT SELECT k FROM t WHERE id > 20"},
	{"except of groups", "k", "SELECT k FROM t GROUP BY k HAVING count(*) > 2 EXCEPT SELECT k FROM t GROUP BY k HAVING sum(a) > 10"},
	{"intersect of floats", "d", "SELECT d FROM t INTERSECT SELECT -d FROM t"},
	{"set operations in one another", "v", "SELECT k AS v FROM t UNION (SELECT a FROM t EXCEPT (SELECT a FROM t WHERE f INTERSECT SELECT k * 3 FROM t)) EXCEPT SELECT id FROM t"},
	{"groups of an except", "n", "SELECT v % 3 AS n, count(*) AS m, sum(v) AS s FROM (SELECT a AS v FROM t EXCEPT SELECT k FROM t) GROUP BY n"},
	{"distinct aggregates", "k", "SELECT k, count(DISTINCT a) AS n, sum(DISTINCT a) AS s, avg(DISTINCT b) AS v, count(*) AS al, sum(a) AS sa, max(DISTINCT c) AS m, count(DISTINCT c) AS nc FROM t GROUP BY k"},
	{"distinct aggregates without groups", "", "SELECT count(DISTINCT a) AS n, sum(DISTINCT d) AS s, count(DISTINCT f) AS nf, count_if(DISTINCT f) AS cf, bool_and(DISTINCT f) AS bf, count(DISTINCT 5) AS five FROM t WHERE a > 10"},
	{"distinct aggregates alone", "k", "SELECT k, count(DISTINCT c) AS n FROM t GROUP BY k HAVING count(DISTINCT c) > 2"},
	{"distinct aggregates with FILTER", "k", "SELECT k, count(DISTINCT a) FILTER (f) AS n, count(DISTINCT a) AS m, sum(DISTINCT a) FILTER (WHERE c = 'a' AND f) AS s, count(*) FILTER (f) AS c FROM t GROUP BY k"},
	{"distinct floats in aggregates", "k", "SELECT k, count(DISTINCT d) AS n, sum(DISTINCT d) AS s, avg(DISTINCT r) AS v, stddev(DISTINCT d) AS sd, count(DISTINCT d * 0) AS z FROM t GROUP BY k"},
	{"distinct moments", "k", "SELECT k, stddev(DISTINCT a) AS s, var_pop(DISTINCT k) AS p, var_samp(DISTINCT e) AS e, count(DISTINCT a) AS n FROM t GROUP BY k"},
	{"distinct aggregates of groups", "n", "SELECT n, count(DISTINCT s) AS d, sum(DISTINCT s) AS sd, count(*) AS g, stddev(DISTINCT m) AS sm, count(DISTINCT k) FILTER (s > 0) AS p FROM (SELECT k, c, count(*) % 4 AS n, sum(a) AS s, (count(*) % 7)::INTEGER AS m FROM t GROUP BY k, c) GROUP BY n"},
	{"groups of distinct aggregates", "n", "SELECT n, count(*) AS g, sum(s) AS s FROM (SELECT k, count(DISTINCT c) AS n, sum(DISTINCT a) AS s FROM t GROUP BY k) GROUP BY n"},
	{"distinct constants of a global aggregate", "", "SELECT count(DISTINCT 'nan'::DOUBLE) AS n, sum(DISTINCT 3) AS s, count(DISTINCT a) AS d FROM t HAVING count(DISTINCT 1) < 2"},
	{"distinct with a FILTER that the WHERE says", "k", "SELECT k, count(DISTINCT k) FILTER (f) AS n, count(DISTINCT a) FILTER (f) AS m FROM t WHERE f GROUP BY k"},
	{"distinct of the group itself", "x", "SELECT a % 3 AS x, count(DISTINCT a % 3) AS n, count(DISTINCT a) AS m, count(DISTINCT a % 3 + 1) AS y, sum(DISTINCT a % 3) AS s, avg(DISTINCT 7) AS v, stddev_pop(DISTINCT a % 3) AS z FROM t GROUP BY x"},
	{"distinct over a union", "p", "SELECT p, count(DISTINCT v) AS n, sum(DISTINCT v) AS s FROM (SELECT k AS p, a AS v FROM t UNION ALL SELECT a % 8, k FROM t WHERE f) GROUP BY p"},
	{"rollup with its level", "k, c, l", "SELECT k, c, grouping(k, c) AS l, count(*) AS n, sum(a) AS s, avg(b) AS v FROM t GROUP BY ROLLUP (k, c)"},
	{"rollup of what is never NULL", "i, x", "SELECT id % 3 AS i, coalesce(c, '-') AS x, count(*) AS n, count(DISTINCT a) AS d FROM t GROUP BY ROLLUP (id % 3, coalesce(c, '-'))"},
	{"cube where nothing is NULL", "k, c", "SELECT k, c, max(e) AS m, count(*) FILTER (f) AS n FROM t WHERE k IS NOT NULL AND c <> '' GROUP BY CUBE (k, c)"},
	{"grouping sets", "k, c, f, g1, g2", "SELECT k, c, f, grouping(k) AS g1, grouping(c, f) AS g2, sum(b) AS s FROM t GROUP BY GROUPING SETS ((k), (k, c), (f), ())"},
	{"group by with rollup", "k, c, l", "SELECT k, c, grouping(c) AS l, min(a) AS m FROM t GROUP BY k, ROLLUP (c)"},
	{"having over grouping", "k, c, l", "SELECT k, c, grouping_id(k, c) AS l, count(*) AS n FROM t GROUP BY CUBE (k, c) HAVING grouping(k) = 0 AND count(*) % 3 <> 1 OR grouping(k, c) = 3"},
	{"grouping of a plain group", "k", "SELECT k, grouping(k) AS g, count(*) AS n FROM t GROUP BY k"},
	{"one grouping set", "k", "SELECT k, count(*) AS n FROM t GROUP BY GROUPING SETS ((k))"},
	{"the empty grouping set", "", "SELECT count(*) AS n, sum(a) AS s FROM t WHERE a > 45 GROUP BY GROUPING SETS (())"},
	{"groups of grouping sets", "g", "SELECT g, count(*) AS n, sum(m) AS s, sum(DISTINCT m) AS d FROM (SELECT k, c, grouping(k, c) AS g, count(*) AS m FROM t GROUP BY CUBE (k, c)) GROUP BY g"},
	{"a grouping set twice, counted", "n", "SELECT n, count(*) AS g FROM (SELECT count(*) % 5 AS n FROM t GROUP BY GROUPING SETS ((k), (k), (), ())) GROUP BY n"},
	{"rollup of groups", "k, l", "SELECT k, grouping(k) AS l, count(*) AS g, sum(s) AS s FROM (SELECT k, c, sum(a) AS s FROM t GROUP BY k, c) GROUP BY ROLLUP (k)"},
	{"distinct of grouping sets", "k, c", "SELECT DISTINCT k, c FROM (SELECT k, c FROM t GROUP BY CUBE (k, c))"},
	{"rollup of distinct rows", "k, l", "SELECT k, grouping(k) AS l, max(a) AS m, count(*) AS n FROM (SELECT DISTINCT k, a FROM t) GROUP BY ROLLUP (k)"},
	{"expressions of a rolled up group", "k, l", "SELECT k, grouping(k) AS l, coalesce(k + 1, -1) AS k1, CASE WHEN grouping(k) = 1 THEN 'all' ELSE 'k' END AS w, sum(k) AS s FROM t GROUP BY ROLLUP (k)"},
	{"branches of constants of other types", "p", "SELECT 1 AS p, count(*) AS n FROM t UNION ALL SELECT 2::BIGINT, sum(k) FROM t"},
	{"bits", "k", "SELECT k, bit_and(a) AS x, bit_or(e) AS y, bit_xor(big) AS z, bit_xor(DISTINCT a) AS d, bit_or(DISTINCT a) FILTER (f) AS o, bit_xor(a::TINYINT) AS t, bit_xor((a + 50)::UBIGINT) AS u, bit_and(e::UHUGEINT) AS h FROM t GROUP BY k"},
	{"bit strings", "k", "SELECT k, bit_and(e::BIT) AS x, bit_or(a::BIT) AS y, bit_xor(a::BIT) AS z, bit_xor(DISTINCT a::BIT) AS d FROM t GROUP BY k"},
	{"bits of groups", "n", "SELECT n, bit_xor(s) AS x, bit_xor(DISTINCT s) AS d FROM (SELECT k, c, count(*) % 3 AS n, sum(a) AS s FROM t GROUP BY k, c) GROUP BY n"},
	{"having over distinct", "k", "SELECT k FROM (SELECT DISTINCT k, a FROM t) GROUP BY k HAVING count(*) % 3 = 1"},
	{"cte of distinct rows read twice", "p", "WITH x AS (SELECT DISTINCT k, a FROM t) SELECT 'n' AS p, count(*) AS n FROM x UNION ALL SELECT 'd', count(*) FROM (SELECT DISTINCT k FROM x)"},
}

func TestSets(t *testing.T) {
	eng := openEngine(t, 1)
	mustExec(t, eng, strings.ReplaceAll(makeT, "ROWS", "300"))
	var together strings.Builder
	together.WriteString("ATTACH 'm.duckdb' AS m;" + declareT)
	for i, tc := range setCases {
		fmt.Fprintf(&together, "CREATE SINK m.out%d PRIMARY KEY (%s) AS %s;\n", i, tc.key, tc.query)
		t.Run(strings.ReplaceAll(tc.name, " ", "_"), func(t *testing.T) {
			plan := mustCompile(t, "ATTACH 'm.duckdb' AS m;"+declareT+"CREATE SINK m.out PRIMARY KEY ("+tc.key+") AS "+tc.query+";")
			if !testing.Short() {
				mustEqual(t, eng, plan, mixed...)
			}
			mustEqual(t, eng, plan, whole...)
		})
	}
	t.Run("together", func(t *testing.T) {
		mustEqual(t, eng, mustCompile(t, together.String()), 20, 0, 200, 80)
	})
}

// Steps that a SELECT needs: a DISTINCT that takes nothing away keeps nothing.
func TestDoubledDistinct(t *testing.T) {
	for _, tc := range []struct {
		steps      int
		key, query string
	}{
		{1, "k", "SELECT DISTINCT k, count(*) AS n FROM t GROUP BY k"},
		{1, "k", "SELECT DISTINCT k FROM (SELECT DISTINCT k, a FROM t)"},
		{1, "v", "SELECT k AS v FROM t UNION SELECT a FROM t UNION SELECT id FROM t"},
		{1, "d", "SELECT d FROM t UNION SELECT r FROM t UNION SELECT d FROM t WHERE f"},
		{2, "x", "SELECT DISTINCT 1 / d AS x FROM (SELECT DISTINCT d FROM t)"},
		{1, "x", "SELECT DISTINCT a / 2 AS x FROM (SELECT DISTINCT a FROM t WHERE f)"},
		{1, "k", "SELECT k, max(a) AS m FROM (SELECT DISTINCT k, a, c FROM t) GROUP BY k"},
		{2, "k", "SELECT k, max(a) AS m, count(*) AS n FROM (SELECT DISTINCT k, a, c FROM t) GROUP BY k"},
		{1, "", "SELECT DISTINCT count(*) AS n FROM t"},
	} {
		plan := mustCompile(t, shareHead+"CREATE SINK m.out PRIMARY KEY ("+tc.key+") AS "+tc.query+";")
		if len(plan.Steps) != tc.steps {
			t.Errorf("%s has %d steps:\n%s", tc.query, len(plan.Steps), plan.Explain())
		}
	}
}
