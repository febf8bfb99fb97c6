package planner

import (
	"fmt"
	"slices"
	"testing"
)

const hashHead = `ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP) FROM 'landing/*.parquet';
`

func sinkOf(key, query string) string {
	return "CREATE SINK m.out PRIMARY KEY (" + key + ") AS " + query + ";\n"
}

// Each group holds one pipeline written in several ways.
var sameMeaning = [][]string{
	{
		hashHead + sinkOf("k", "SELECT k, arg_max(a, b) AS x, last(c ORDER BY a) AS y FROM t GROUP BY k"),
		hashHead + sinkOf("k", "SELECT k, MAX_BY(a, t.b) AS x, first(c ORDER BY a DESC NULLS FIRST, k, 1) AS y FROM t GROUP BY k"),
		hashHead + sinkOf("k", "SELECT k, first(a ORDER BY b DESC) FILTER (WHERE b IS NOT NULL AND a IS NOT NULL) AS x, last(c ORDER BY a NULLS LAST) AS y FROM t GROUP BY k"),
	},
	{
		hashHead + sinkOf("k", "SELECT k, a, c FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY b DESC, a) = 1"),
		hashHead + sinkOf("k", "SELECT DISTINCT ON (k) k, a, c FROM t ORDER BY k, b DESC NULLS LAST, a ASC"),
		hashHead + sinkOf("k", "SELECT k, a, c FROM (SELECT *, ROW_NUMBER() OVER w AS rn FROM t WINDOW w AS (PARTITION BY k, 'x' ORDER BY b DESC, a, b, k)) WHERE 1 = rn"),
		hashHead + sinkOf("k", "WITH x AS (SELECT row_number() OVER (PARTITION BY k ORDER BY b DESC, a) AS rn, * FROM t) SELECT k, a, c FROM x WHERE rn < 2"),
	},
	{
		hashHead + sinkOf("k", "SELECT k, sum(a) AS s, avg(b) AS v FROM t WHERE a > 5 AND c <> 'x' GROUP BY k HAVING count(*) > 2"),
		"-- a comment\n" + hashHead + sinkOf("k", "select K, SUM(A) as s, Avg(t.b) v /* mean */ from T where 'x' <> c and 5 < a group by 1 having 2 < count(*) -- end\n"),
		hashHead + sinkOf("k", "SELECT x.k, sum(x.a) AS s, mean(x.b) AS v FROM t AS x WHERE a > 5 AND c <> 'x' GROUP BY ALL HAVING count(*) > 2"),
		hashHead + sinkOf("k", "SELECT g AS k, s, v FROM (SELECT k AS g, sum(a) AS s, avg(b) AS v, count(*) AS n FROM t WHERE a > 5 AND c <> 'x' GROUP BY g) WHERE n > 2"),
		hashHead + sinkOf("k", "WITH rows AS (SELECT b AS x, c AS y, a AS z, k FROM t WHERE a > 5) SELECT k, sum(z) AS s, avg(x) AS v FROM rows WHERE y <> 'x' GROUP BY k HAVING count(*) > 2"),
		hashHead + sinkOf("k", "FROM (SELECT * FROM t WHERE c <> 'x') SELECT k, s: sum(a), v: avg(b) WHERE a > 5 GROUP BY k HAVING count(*) > 2 ORDER BY s"),
		hashHead + "CREATE VIEW big AS SELECT k, a, b FROM t WHERE a > 5 AND c <> 'x';\n" + sinkOf("k", "SELECT k, sum(a) AS s, avg(b) AS v FROM big GROUP BY k HAVING count(*) > 2"),
		hashHead + "CREATE VIEW unused AS SELECT k FROM t;\n" + sinkOf("k", "SELECT avg(b) AS v, k, sum(a) AS s FROM t WHERE a > 5 AND c <> 'x' GROUP BY k HAVING count(*) > 2"),
		`ATTACH getenv('MART', 'elsewhere.duckdb') AS m;
CREATE SOURCE T (ts TIMESTAMP, c TEXT, d FLOAT8, b NUMERIC(12,2), a INT, k INT4) FROM 'landing/*.parquet' WITH (max_batch_rows = 10);
` + sinkOf("K", "SELECT k, sum(a) AS S, avg(b) AS v FROM t WHERE a > 5 AND c <> 'x' GROUP BY k HAVING count(*) > 2"),
	},
	{
		hashHead + sinkOf("k, c", "SELECT k, c, count(*) AS n FROM t GROUP BY k, c"),
		hashHead + sinkOf("c, k", "SELECT c, count(*) AS n, k FROM t GROUP BY c, k"),
		hashHead + sinkOf("k, c", "SELECT k, c, count(*) AS n FROM t GROUP BY ALL"),
		hashHead + sinkOf("k, c", "SELECT k, c, count() AS n FROM t GROUP BY 2, 1, k"),
		hashHead + sinkOf("k, c", "SELECT k, c, n FROM (SELECT k, c, count(*) AS n, sum(a) AS unread, max(ts) FROM t GROUP BY k, c)"),
	},
	{
		hashHead + sinkOf("k", "SELECT k, sum(v) AS s FROM (SELECT k, a AS v FROM t UNION ALL SELECT a, k FROM t WHERE b > 3) GROUP BY k"),
		hashHead + sinkOf("k", "SELECT k, sum(v) AS s FROM (SELECT a AS v, k FROM t UNION ALL SELECT k, a FROM t WHERE 3 < b) GROUP BY k"),
		hashHead + sinkOf("k", "SELECT k, sum(v) AS s FROM (SELECT a AS k, k AS v, c FROM t WHERE b > 3 UNION ALL SELECT k, a, 'x' FROM t) GROUP BY k"),
	},
	{
		hashHead + sinkOf("n", "SELECT n, count(*) AS g FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n"),
		hashHead + sinkOf("n", "WITH p AS (SELECT k, count(*) AS n FROM t GROUP BY k) SELECT n, count(*) AS g FROM p GROUP BY n"),
		hashHead + "CREATE VIEW per_k AS SELECT count(*) AS n, k, min(a) AS m FROM t GROUP BY k;" + sinkOf("n", "SELECT n, count(*) AS g FROM per_k GROUP BY n"),
	},
	{
		hashHead + sinkOf("k, c", "SELECT DISTINCT k, c FROM t WHERE a > 3"),
		hashHead + sinkOf("c, k", "SELECT c, k FROM t WHERE 3 < a GROUP BY ALL"),
		hashHead + sinkOf("k, c", "SELECT DISTINCT * FROM (SELECT DISTINCT k, c FROM t WHERE a > 3) ORDER BY c"),
		hashHead + sinkOf("k, c", "WITH x AS (SELECT DISTINCT k, c, b FROM t WHERE a > 3) SELECT DISTINCT k, c FROM x"),
	},
	{
		hashHead + sinkOf("k", "SELECT k FROM t UNION SELECT a FROM t WHERE b > 3"),
		hashHead + sinkOf("k", "SELECT a AS k FROM t WHERE b > 3 UNION SELECT k FROM t"),
		hashHead + sinkOf("k", "SELECT DISTINCT k FROM (SELECT k FROM t UNION ALL SELECT a FROM t WHERE b > 3)"),
		hashHead + sinkOf("k", "SELECT k FROM t UNION BY NAME (SELECT DISTINCT a AS k FROM t WHERE b > 3)"),
	},
	{
		hashHead + sinkOf("k", "SELECT k FROM t EXCEPT SELECT a FROM t WHERE b > 3"),
		hashHead + sinkOf("k", "SELECT DISTINCT k FROM t EXCEPT SELECT a AS x FROM t WHERE 3 < b"),
	},
	{
		hashHead + sinkOf("k, c, l", "SELECT k, c, grouping(k, c) AS l, count(*) AS n FROM t GROUP BY ROLLUP (k, c)"),
		hashHead + sinkOf("k, c, l", "SELECT c, k, count(*) AS n, grouping_id(k, c) AS l FROM t GROUP BY GROUPING SETS ((), (k), (c, k))"),
	},
	{
		hashHead + sinkOf("k", "SELECT k, count(DISTINCT a) AS n, sum(DISTINCT b) FILTER (c = 'x') AS s, max(a) AS m FROM t GROUP BY k"),
		hashHead + sinkOf("k", "SELECT max(DISTINCT a) AS m, sum(DISTINCT t.b) FILTER (WHERE 'x' = c) AS s, COUNT(distinct A) AS n, k FROM t GROUP BY ALL"),
	},
	{
		hashHead + "SET VARIABLE since = DATE '2024-01-31';" + sinkOf("k", "SELECT k, count(*) AS n FROM t WHERE ts >= getvariable('since') GROUP BY k"),
		hashHead + sinkOf("k", "SELECT k, count(*) AS n FROM t WHERE ts >= DATE '2024-01-31' GROUP BY k"),
	},
	{
		"ATTACH 'm.duckdb' AS m; CREATE SOURCE t (k INTEGER) FROM getenv('LANDING') || '/*.parquet';" + sinkOf("k", "SELECT k, count(*) AS n FROM t GROUP BY k"),
		"ATTACH 'm.duckdb' AS m; CREATE SOURCE t (k INTEGER) FROM getenv('LANDING')||'/*.parquet' ;" + sinkOf("k", "SELECT k, count(*) AS n FROM t GROUP BY k"),
	},
	{
		hashHead + "CREATE SINK m.x PRIMARY KEY (k) AS SELECT k, sum(a) AS s FROM t GROUP BY k; CREATE SINK m.y PRIMARY KEY (k) AS SELECT k, count(a) AS n, max(c) AS c FROM t GROUP BY k;",
		hashHead + "CREATE SINK m.y PRIMARY KEY (k) AS SELECT k, count(a) AS n, max(c) AS c FROM t GROUP BY k; CREATE SINK m.x PRIMARY KEY (k) AS SELECT k, sum(a) AS s FROM t GROUP BY k;",
	},
}

func TestSameMeaningSameHash(t *testing.T) {
	for i, group := range sameMeaning {
		first := mustCompile(t, group[0])
		for j, text := range group[1:] {
			other := mustCompile(t, text)
			if !Same(first.Hash, other.Hash) || first.Hash.ID != other.Hash.ID {
				t.Errorf("group %d, text %d:\n%s\n%s", i, j+1, first.Hash.Canonical, other.Hash.Canonical)
				continue
			}
			if c := Compare(first, other); c.Class != None || len(c.Differences) > 0 {
				t.Errorf("group %d, text %d: %+v", i, j+1, c)
			}
			sameState(t, fmt.Sprintf("group %d, text %d", i, j+1), first, other)
		}
	}
}

// sameState: a checkpoint of one plan restores into the other.
func sameState(t interface {
	Helper()
	Errorf(string, ...any)
}, where string, a, b *Plan) {
	t.Helper()
	if len(a.Steps) != len(b.Steps) {
		t.Errorf("%s: %d and %d steps", where, len(a.Steps), len(b.Steps))
		return
	}
	for _, s := range a.Steps {
		i := slices.IndexFunc(b.Steps, func(o Step) bool { return o.ID == s.ID })
		if i < 0 {
			t.Errorf("%s: no step %s", where, s.ID)
			continue
		}
		if o := b.Steps[i]; !slices.Equal(o.State.Cols, s.State.Cols) || o.State.Key != s.State.Key {
			t.Errorf("%s: step %s keeps %v and %v", where, s.ID, s.State.Cols, o.State.Cols)
		}
	}
}

// The classes of the table of docs/protocol.md. Only the parts named may differ.
var otherMeaning = []struct {
	name, old, now string
	class          Class
	input, state   bool // the part differs; the output always does, but for input alone
}{
	{"order of the latest", sinkOf("k", "SELECT DISTINCT ON (k) k, a FROM t ORDER BY k, a DESC"), sinkOf("k", "SELECT DISTINCT ON (k) k, a FROM t ORDER BY k, a"), Rebuild, false, true},
	{"nulls of the latest", sinkOf("k", "SELECT DISTINCT ON (k) k, a FROM t ORDER BY k, a DESC"), sinkOf("k", "SELECT DISTINCT ON (k) k, a FROM t ORDER BY k, a DESC NULLS FIRST"), Rebuild, false, true},
	{"partition of the latest", sinkOf("k, c", "SELECT DISTINCT ON (k) k, a, c FROM t ORDER BY k, a DESC"), sinkOf("k, c", "SELECT DISTINCT ON (c) k, a, c FROM t ORDER BY c, a DESC"), Incompatible, false, true},
	{"column of the latest", sinkOf("k", "SELECT DISTINCT ON (k) k, a FROM t ORDER BY k, a DESC"), sinkOf("k", "SELECT DISTINCT ON (k) k, a, c FROM t ORDER BY k, a DESC"), Rebuild, false, true},
	{"expression over the latest", sinkOf("k", "SELECT DISTINCT ON (k) k, a FROM t ORDER BY k, a DESC"), sinkOf("k", "SELECT DISTINCT ON (k) k, a + 1 AS a FROM t ORDER BY k, t.a DESC"), Refinalise, false, false},
	{"filter over the latest", sinkOf("k", "SELECT DISTINCT ON (k) k, a FROM t ORDER BY k, a DESC"), sinkOf("k", "FROM (SELECT DISTINCT ON (k) k, a FROM t ORDER BY k, a DESC) WHERE a > 0"), Refinalise, false, false},
	{"how many of the first", sinkOf("k, rn", "SELECT k, row_number() OVER (PARTITION BY k ORDER BY a) AS rn FROM t QUALIFY rn < 3"), sinkOf("k, rn", "SELECT k, row_number() OVER (PARTITION BY k ORDER BY a) AS rn FROM t QUALIFY rn <= 3"), Rebuild, false, true},
	{"arg_max for arg_min", sinkOf("k", "SELECT k, arg_max(a, b) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, arg_min(a, b) AS x FROM t GROUP BY k"), Rebuild, false, true},
	{"order of a first", sinkOf("k", "SELECT k, first(a ORDER BY b) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, first(a ORDER BY b NULLS FIRST) AS x FROM t GROUP BY k"), Rebuild, false, true},
	{"swapped", sinkOf("k", "SELECT k, sum(a) AS x, sum(b) AS y FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(b) AS x, sum(a) AS y FROM t GROUP BY k"), Refinalise, false, false},
	{"expression", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(a) + 1 AS x FROM t GROUP BY k"), Refinalise, false, false},
	{"renamed", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(a) AS y FROM t GROUP BY k"), Refinalise, false, false},
	{"avg beside sum", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(a) AS x, avg(a) AS v FROM t GROUP BY k"), Refinalise, false, false},
	{"dropped", sinkOf("k", "SELECT k, sum(a) AS x, max(b) AS y FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), Refinalise, false, true},
	{"having", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k HAVING sum(a) > 3"), Refinalise, false, false},
	{"aggregate", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(b) AS x FROM t GROUP BY k"), Rebuild, false, true},
	{"filter", sinkOf("k", "SELECT k, sum(a) AS x FROM t WHERE a > 3 GROUP BY k"), sinkOf("k", "SELECT k, sum(a) AS x FROM t WHERE a > 4 GROUP BY k"), Rebuild, false, true},
	{"filter added", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(a) AS x FROM t WHERE a > 4 GROUP BY k"), Rebuild, false, true},
	{"variable", "SET VARIABLE v = 3;" + sinkOf("k", "SELECT k, sum(a) AS x FROM t WHERE a > getvariable('v') GROUP BY k"), "SET VARIABLE v = 4;" + sinkOf("k", "SELECT k, sum(a) AS x FROM t WHERE a > getvariable('v') GROUP BY k"), Rebuild, false, true},
	{"filter clause", sinkOf("k", "SELECT k, sum(a) FILTER (a > 3) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(a) FILTER (a > 4) AS x FROM t GROUP BY k"), Rebuild, false, true},
	{"group", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT a AS k, sum(a) AS x FROM t GROUP BY a"), Incompatible, false, true},
	{"distinct", sinkOf("k", "SELECT k, count(*) AS n FROM (SELECT k, a FROM t) GROUP BY k"), sinkOf("k", "SELECT k, count(*) AS n FROM (SELECT DISTINCT k, a FROM t) GROUP BY k"), Incompatible, false, true},
	{"distinct column", sinkOf("k, a", "SELECT DISTINCT k, a FROM t"), sinkOf("k, b", "SELECT DISTINCT k, b FROM t"), Incompatible, false, true},
	{"distinct filter", sinkOf("k", "SELECT DISTINCT k FROM t WHERE a > 3"), sinkOf("k", "SELECT DISTINCT k FROM t WHERE a > 4"), Rebuild, false, true},
	{"distinct and its number", sinkOf("k", "SELECT DISTINCT k FROM t"), sinkOf("k", "SELECT k, count(*) AS n FROM t GROUP BY k"), Refinalise, false, false},
	{"union without all", sinkOf("k", "SELECT k, count(*) AS n FROM (SELECT k FROM t UNION ALL SELECT a FROM t) GROUP BY k"), sinkOf("k", "SELECT k, count(*) AS n FROM (SELECT k FROM t UNION SELECT a FROM t) GROUP BY k"), Incompatible, false, true},
	{"distinct aggregate", sinkOf("k", "SELECT k, sum(a) AS n FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(DISTINCT a) AS n FROM t GROUP BY k"), Rebuild, false, true},
	{"distinct aggregate gone", sinkOf("k", "SELECT k, sum(a) AS n, count(DISTINCT b) AS d FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(a) AS n FROM t GROUP BY k"), Refinalise, false, true},
	{"avg of distinct beside sum", sinkOf("k", "SELECT k, sum(DISTINCT a) AS n FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(DISTINCT a) AS n, avg(DISTINCT a) AS v FROM t GROUP BY k"), Refinalise, false, false},
	{"distinct aggregate's filter", sinkOf("k", "SELECT k, count(DISTINCT a) AS n FROM t GROUP BY k"), sinkOf("k", "SELECT k, count(DISTINCT a) FILTER (b > 0) AS n FROM t GROUP BY k"), Rebuild, false, true},
	{"grouping set added", sinkOf("k, a, l", "SELECT k, a, grouping(k, a) AS l, sum(b) AS n FROM t GROUP BY GROUPING SETS ((k, a), (k))"), sinkOf("k, a, l", "SELECT k, a, grouping(k, a) AS l, sum(b) AS n FROM t GROUP BY ROLLUP (k, a)"), Incompatible, false, true},
	{"aggregate of grouping sets", sinkOf("k, l", "SELECT k, grouping(k) AS l, sum(b) AS n FROM t GROUP BY ROLLUP (k)"), sinkOf("k, l", "SELECT k, grouping(k) AS l, sum(a) AS n FROM t GROUP BY ROLLUP (k)"), Rebuild, false, true},
	{"output of grouping sets", sinkOf("k, l", "SELECT k, grouping(k) AS l, sum(b) AS n FROM t GROUP BY ROLLUP (k)"), sinkOf("k, l", "SELECT k, grouping(k) AS l, sum(b) + 1 AS n FROM t GROUP BY ROLLUP (k)"), Refinalise, false, false},
	{"having of grouping sets", sinkOf("k, l", "SELECT k, grouping(k) AS l, sum(b) AS n FROM t GROUP BY ROLLUP (k)"), sinkOf("k, l", "SELECT k, grouping(k) AS l, sum(b) AS n FROM t GROUP BY ROLLUP (k) HAVING sum(b) > 0"), Refinalise, false, false},
	{"branch added", sinkOf("k", "SELECT k FROM t UNION SELECT a FROM t"), sinkOf("k", "SELECT k FROM t UNION SELECT a FROM t UNION SELECT d FROM t"), Incompatible, false, true},
	{"except", sinkOf("k", "SELECT k FROM t EXCEPT SELECT a FROM t"), sinkOf("k", "SELECT k FROM t INTERSECT SELECT a FROM t"), Rebuild, false, true},
	{"column of a branch", sinkOf("p", "SELECT 'x' AS p, sum(a) AS s FROM t UNION ALL SELECT 'y', sum(k) FROM t"), sinkOf("p", "SELECT 'x' AS p, sum(a) AS s FROM t UNION ALL SELECT 'z', sum(k) FROM t"), Refinalise, false, false},
	{"aggregate of a branch", sinkOf("p", "SELECT 'x' AS p, sum(a) AS s FROM t UNION ALL SELECT 'y', sum(k) FROM t"), sinkOf("p", "SELECT 'x' AS p, sum(a) AS s FROM t UNION ALL SELECT 'y', sum(b)::HUGEINT FROM t"), Rebuild, false, true},
	{"key", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), sinkOf("k, x", "SELECT k, sum(a) AS x FROM t GROUP BY k"), Incompatible, false, false},
	{"table", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), "CREATE SINK m.other PRIMARY KEY (k) AS SELECT k, sum(a) AS x FROM t GROUP BY k;", Incompatible, false, false},
	{"inner filter", sinkOf("n", "SELECT n, count(*) AS g FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n"), sinkOf("n", "SELECT n, count(*) AS g FROM (SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > 1) GROUP BY n"), Rebuild, false, true},
	{"inner aggregate", sinkOf("n", "SELECT n, sum(s) AS g FROM (SELECT k, count(*) AS n, sum(a) AS s FROM t GROUP BY k) GROUP BY n"), sinkOf("n", "SELECT n, sum(s) AS g FROM (SELECT k, count(*) AS n, sum(b) AS s FROM t GROUP BY k) GROUP BY n"), Rebuild, false, true},
	{"inner group", sinkOf("n", "SELECT n, count(*) AS g FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n"), sinkOf("n", "SELECT n, count(*) AS g FROM (SELECT c, count(*) AS n FROM t GROUP BY c) GROUP BY n"), Incompatible, false, true},
	{"sink added", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k") + "CREATE SINK m.two PRIMARY KEY (c) AS SELECT c, sum(a) AS x FROM t GROUP BY c;", Rebuild, false, true},
	{"sink removed", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k") + "CREATE SINK m.two PRIMARY KEY (c) AS SELECT c, sum(a) AS x FROM t GROUP BY c;", sinkOf("k", "SELECT k, sum(a) AS x FROM t GROUP BY k"), Refinalise, false, true},
	{"case of a text", sinkOf("k", "SELECT k, sum(a) AS x FROM t WHERE c = 'x' GROUP BY k"), sinkOf("k", "SELECT k, sum(a) AS x FROM t WHERE c = 'X' GROUP BY k"), Rebuild, false, true},
	{"rounding", sinkOf("k", "SELECT k, round(avg(a), 1) AS x FROM t GROUP BY k"), sinkOf("k", "SELECT k, round(avg(a), 2) AS x FROM t GROUP BY k"), Refinalise, false, false},
}

func TestOtherMeaning(t *testing.T) {
	for _, tc := range otherMeaning {
		t.Run(tc.name, func(t *testing.T) {
			old, now := mustCompile(t, hashHead+tc.old), mustCompile(t, hashHead+tc.now)
			if (old.Hash.Input != now.Hash.Input) != tc.input || (old.Hash.State != now.Hash.State) != tc.state {
				t.Errorf("input differs %v, state differs %v\n%s\n%s", old.Hash.Input != now.Hash.Input, old.Hash.State != now.Hash.State, old.Hash.Canonical, now.Hash.Canonical)
			}
			if !tc.input && old.Hash.Output == now.Hash.Output {
				t.Error("same output hash")
			}
			if c := Compare(old, now); c.Class != tc.class {
				t.Errorf("class %s, not %s: %+v", c.Class, tc.class, c.Differences)
			}
		})
	}
}

func TestOtherSource(t *testing.T) {
	const sink = "CREATE SINK m.out PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t GROUP BY k;"
	base := "ATTACH 'm.duckdb' AS m; CREATE SOURCE t (k INTEGER, a INTEGER NOT NULL, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 days') FROM 'x/*.csv' WITH (delim = ';');"
	old := mustCompile(t, base+sink)
	for _, source := range []string{
		"CREATE SOURCE t (k BIGINT, a INTEGER NOT NULL, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 days') FROM 'x/*.csv' WITH (delim = ';');",
		"CREATE SOURCE t (k INTEGER, a INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 days') FROM 'x/*.csv' WITH (delim = ';');",
		"CREATE SOURCE t (k INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 days') FROM 'x/*.csv' WITH (delim = ';');",
		"CREATE SOURCE t (k INTEGER, a INTEGER NOT NULL, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '3 days') FROM 'x/*.csv' WITH (delim = ';');",
		"CREATE SOURCE t (k INTEGER, a INTEGER NOT NULL, ts TIMESTAMP) FROM 'x/*.csv' WITH (delim = ';');",
		"CREATE SOURCE t (k INTEGER, a INTEGER NOT NULL, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 days') FROM 'y/*.csv' WITH (delim = ';');",
		"CREATE SOURCE t (k INTEGER, a INTEGER NOT NULL, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 days') FROM 'X/*.csv' WITH (delim = ';');",
		"CREATE SOURCE t (k INTEGER, a INTEGER NOT NULL, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 days') FROM 'x/*.csv' WITH (delim = ',');",
		"CREATE SOURCE t (k INTEGER, a INTEGER NOT NULL, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 days') FROM 'x/*.csv';",
	} {
		now := mustCompile(t, "ATTACH 'm.duckdb' AS m; "+source+sink)
		if old.Hash.Input == now.Hash.Input || old.Hash.ID == now.Hash.ID {
			t.Errorf("same input hash: %s", source)
		}
		if c := Compare(old, now); c.Class != Incompatible || len(c.Differences) != 1 {
			t.Errorf("%s: %+v", source, c)
		}
	}
	layout := mustCompile(t, "ATTACH 'm.duckdb' AS m; CREATE SOURCE T (a INT NOT NULL, TS TIMESTAMP, WATERMARK FOR ts AS ts  -  interval '2 days' /* late */, k INT) FROM 'x/*.csv' WITH (DELIM = ';', max_batch_rows = 5);"+sink)
	if old.Hash.ID != layout.Hash.ID {
		t.Errorf("the layout of a source is in the hash:\n%s\n%s", old.Hash.Canonical, layout.Hash.Canonical)
	}
}

func TestEnvironment(t *testing.T) {
	old := mustCompile(t, hashHead+sinkOf("k", "SELECT k, count(*) AS n FROM t GROUP BY k"))
	now := *old
	now.Hash.Env = "another DuckDB"
	if c := Compare(old, &now); c.Class != Environment {
		t.Errorf("%+v", c)
	}
}
