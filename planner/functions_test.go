package planner

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"lockstep/engine/duck"
)

// The list of allowed functions against DuckDB's catalogue: each exists, none is volatile for DuckDB or
// sounds as if it read more than its arguments, and every aggregate has a rule or a way around.
func TestAllowedFunctionsExistAndArePure(t *testing.T) {
	eng := openEngine(t, 1)
	stability := map[string][]string{}
	aggregates := map[string]bool{}
	rows, err := eng.Query(t.Context(), "SELECT DISTINCT function_name, function_type, coalesce(stability, '') FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate')")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind, how string
		if err := rows.Scan(&name, &kind, &how); err != nil {
			t.Fatal(err)
		}
		if kind == "aggregate" {
			aggregates[name] = true
		} else {
			stability[name] = append(stability[name], how)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for name := range scalarFunctions {
		switch how := stability[name]; {
		case len(how) == 0:
			t.Errorf("DuckDB has no scalar function %s", name)
		case name == "error": // volatile, so that it is not folded; it gives no value at all
		case slices.ContainsFunc(how, func(s string) bool { return s != "CONSISTENT" }):
			t.Errorf("%s is allowed and %v", name, how)
		}
		if impure[name] != "" && name != "age" { // age/2 is pure
			t.Errorf("%s is allowed and %s", name, impure[name])
		}
	}
	for name := range stability {
		if scalarFunctions[name] && suspicious(name) {
			t.Errorf("%s is allowed and does not sound pure", name)
		}
	}
	for name := range aggregates {
		if !aggregate(name) {
			t.Errorf("aggregate %s has neither a rule nor a hint", name)
		}
		if aggregateFunctions[name] && aggregateHints[name] != "" {
			t.Errorf("aggregate %s has a rule and a hint against it", name)
		}
	}
	for name := range aggregateHints {
		if !aggregates[name] && stability[name] == nil {
			t.Errorf("DuckDB has no aggregate %s", name)
		}
	}
}

// suspicious words in a name: the clock, chance, the session, the catalogue, files.
func suspicious(name string) bool {
	for _, w := range []string{"current", "now", "today", "random", "uuidv", "gen_", "seed", "nextval", "currval", "setting", "getenv",
		"variable", "version", "txid", "schema", "database", "catalog", "query", "connection", "transaction", "read_", "write_", "log_",
		"glob", "sleep", "stats", "icu_", "compress", "sql", "plan", "storage", "__internal"} {
		if strings.Contains(name, w) && !slices.Contains([]string{"uuid_extract_version"}, name) {
			return true
		}
	}
	return false
}

// testdata/functions.txt and expressions.txt have an expression per line over the table of functionRows.
// Each must bind, mean the same when the planner renders it, and give the same in another engine with
// other threads and another state of the session. Together they call every function that a pipeline may
// call, and write every kind of literal, operator and cast.
func TestExpressions(t *testing.T) {
	exprs := append(lines(t, "testdata/functions.txt"), lines(t, "testdata/expressions.txt")...)
	called := map[string]bool{}
	plain, other := openEngine(t, 1), openEngine(t, 2)
	for _, eng := range []*duck.Engine{plain, other} {
		mustExec(t, eng, declaredTypes("t"), "INSERT INTO t "+functionRows)
	}
	mustExec(t, other, "SELECT setseed(0.5)", "CREATE SCHEMA elsewhere", "SET VARIABLE x = 1")
	for _, expr := range exprs {
		query := "SELECT id, " + expr + " AS v FROM t"
		root, err := bindText(t, plain, query)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		walkNodes(root, func(n Node) {
			eachExpr(n, func(e *Expr) {
				e.walk(func(x *Expr) {
					if x.Op == opFunc || x.Op == opStruct {
						called[x.Name] = true
					}
				})
			})
		})
		again, err := bindText(t, plain, planQuery(root))
		if err != nil {
			t.Errorf("%s: rendered as %s: %v", expr, planQuery(root), err)
			continue
		}
		if was, is := describe(root), describe(again); was.rows != is.rows || !slices.Equal(was.cols, is.cols) {
			t.Errorf("%s: rendered as %s it means\n%s, not\n%s", expr, planQuery(root), is.cols, was.cols)
		}
		const digest = "SELECT string_agg(id || ':' || coalesce(v::VARCHAR, '∅'), '|' ORDER BY id) FROM (%s) x(id, v)"
		want := mustQuery(t, plain, fmt.Sprintf(digest, query))
		if got := mustQuery(t, plain, fmt.Sprintf(digest, planQuery(root))); got != want {
			t.Errorf("%s: rendered as %s it gives\n%s, not\n%s", expr, planQuery(root), got, want)
		}
		if got := mustQuery(t, other, fmt.Sprintf(digest, query)); got != want {
			t.Errorf("%s: elsewhere it gives\n%s, not\n%s", expr, got, want)
		}
	}
	for name := range scalarFunctions {
		if !called[name] && name != "error" {
			t.Errorf("no expression of testdata/functions.txt calls %s", name)
		}
	}
}

const functionRows = `SELECT i, i % 5, (i * 7919) % 100 - 50, ((i * 31) % 1000 / 7)::DECIMAL(12,2),
	['Größe 1', 'a-b-c', '', 'x', 'SGVsbG8=', 'aGFsbG8', '12', NULL, 'http://a/b c?d', '2024-03-01'][i % 10 + 1],
	[0.5, -1.25, 0.0, 'nan'::DOUBLE, 1e10, 0.999][i % 6 + 1], TIMESTAMP '2024-02-28 22:30:00.123456' + to_hours(i * 37), i % 3 = 0,
	('{"a": ' || i || ', "b": ["x", null, 2.5], "c": {"d": "é"}}')::JSON, [i, NULL, i % 3, 7], {'x': i, 'y': 'y' || i},
	(CASE WHEN i % 2 = 0 THEN 'b' ELSE 'a' END)::ENUM('b', 'a'), MAP {'k' || (i % 3): i},
	('00000000-0000-7000-8000-0000000000' || lpad(i::VARCHAR, 2, '0'))::UUID, '2024-05-05'::DATE + i::INTEGER, '0101'::BIT, i::VARCHAR::BLOB,
	(i || ' days')::INTERVAL FROM range(1, 25) r(i)`

// declaredTypes is the table functions and expressions are tried on, as DDL.
func declaredTypes(name string) string {
	return "CREATE TABLE " + name + ` (id BIGINT, k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
	l BIGINT[], s STRUCT(x BIGINT, y VARCHAR), e ENUM('b', 'a'), m MAP(VARCHAR, BIGINT), u UUID, day DATE, bits BIT, bytes BLOB, iv INTERVAL)`
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if line := strings.TrimSpace(sc.Text()); line != "" && !strings.HasPrefix(line, "--") {
			out = append(out, line)
		}
	}
	return out
}
