package planner

import (
	"testing"
)

// The author's names are those of the statements the planner writes.
func TestNamesDoNotClash(t *testing.T) {
	eng := openEngine(t, 1)
	const columns = `"c0" INTEGER, "c1" INTEGER, "_w" INTEGER, "_n" VARCHAR, "_had" INTEGER, "_row" BOOLEAN, "n0" INTEGER, "_on" INTEGER,
		"weird ""name""" INTEGER, "select" INTEGER, "With Space" VARCHAR, "UPPER" INTEGER, "_new" INTEGER, "d" INTEGER, "s" INTEGER, "_t" INTEGER, "é;--" INTEGER`
	mustExec(t, eng, `CREATE TABLE all_t (id BIGINT, `+columns+`)`,
		`INSERT INTO all_t SELECT i, i % 3, i % 2, i, 'n' || i % 4, i % 5, i % 2 = 0, -i, i % 7, i, i % 3, 'x y' || i % 2, i, i % 2, i % 4, i, i % 6, i FROM range(1, 21) r(i)`)
	for _, tc := range []struct{ key, query string }{
		{`"n0", "_new"`, `SELECT "c0" AS "n0", "_had" AS "_new", sum("_w") AS "_old", count(*) AS "o0", min("_n") AS "n1", max("n0") AS "o1", sum("_on") AS "c0", bool_or("_row") AS "_row" FROM t GROUP BY "c0", "_had"`},
		{`"weird ""name"""`, `SELECT "select" AS "weird ""name""", sum("weird ""name""") AS "select", max("With Space") AS "WITH space", min(upper) AS "group" FROM t GROUP BY "select"`},
		{`"With Space"`, `SELECT "With Space", sum("_t") AS "_p", sum(d) AS "s0", sum(s) AS "n", count("é;--") AS "é;--" FROM t GROUP BY 1`},
		{`c1, _w`, `SELECT c1, _w, count(*) AS _n FROM (SELECT c0, c1, count(*) AS _w FROM t GROUP BY c0, c1) GROUP BY c1, _w`},
		{`_tag, "_n"`, `SELECT 'a' AS _tag, _n, sum(c1) AS w0 FROM t GROUP BY _n UNION ALL SELECT 'b', "With Space", sum("_w") FROM t GROUP BY "With Space"`},
		{`n0`, `WITH s0 AS (SELECT c0 AS n0, c1 AS _w, sum(n0) AS p0 FROM t GROUP BY ALL), n0 AS (SELECT n0, sum(p0) AS p0 FROM s0 GROUP BY n0 UNION ALL SELECT _w, p0 FROM s0) SELECT n0, sum(p0) AS staged0 FROM n0 GROUP BY n0`},
		{`k`, `SELECT c0 AS k, sum(t."c1") AS s, count(t) AS "count(t)" FROM t GROUP BY c0`},
	} {
		plan := mustCompile(t, "ATTACH 'm.duckdb' AS m; CREATE SOURCE t (id BIGINT, "+columns+") FROM 't.parquet'; CREATE SINK m.out PRIMARY KEY ("+tc.key+") AS "+tc.query+";")
		mustEqual(t, eng, plan, 1, 6, 13)
	}
}

// A source's and a view's name may be anything too.
func TestSourceNames(t *testing.T) {
	for _, name := range []string{"plain", "UPPER", `"with space"`, `"quote "" inside"`, `"select"`, `"n0"`, `"_in_t"`, `"a.b"`, `"duckdb_tables"`, `"é"`} {
		plan := mustCompile(t, "ATTACH 'm.duckdb' AS m; CREATE SOURCE "+name+" (k INTEGER, a INTEGER) FROM 't.parquet';"+
			"CREATE VIEW \"view of \"\"it\"\"\" AS SELECT * FROM "+name+" WHERE a > 0;"+
			"CREATE SINK m.out PRIMARY KEY (k) AS SELECT k, sum(a) AS s FROM \"view of \"\"it\"\"\" GROUP BY k;")
		if plan.Sources[0].Reads != 1 {
			t.Errorf("%s is read %d times", name, plan.Sources[0].Reads)
		}
	}
}
