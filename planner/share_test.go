package planner

import (
	"slices"
	"strings"
	"testing"
)

const shareHead = "ATTACH 'm.duckdb' AS m;" + declareT

// SELECTs that group the same rows by the same columns are one step, in whatever way they are written.
func TestStepsAreShared(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps int
		sinks []string // key: query
	}{
		{"other aggregates", 1, []string{"k: SELECT k, count(*) AS n, sum(a) AS s FROM t GROUP BY k", "x: SELECT k AS x, max(e) AS m, sum(a) AS s FROM t GROUP BY x", "k: SELECT k FROM t GROUP BY k"}},
		{"without groups", 1, []string{": SELECT count(*) AS n FROM t", ": SELECT sum(a) AS s, max(c) AS m FROM t HAVING count(*) > 2"}},
		{"nested", 2, []string{"n: SELECT n, count(*) AS g FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n", "k: SELECT k, sum(a) AS s FROM t GROUP BY k",
			"n: SELECT n, sum(s) AS s FROM (SELECT k, count(*) AS n, sum(b) AS s FROM t GROUP BY k) GROUP BY n"}},
		{"above a union, of other columns", 1, []string{
			"k: SELECT k, sum(v) AS s FROM (SELECT k, a AS v, e AS w FROM t UNION ALL SELECT a, k, id FROM t WHERE f) GROUP BY k",
			"k: SELECT k, sum(w) AS s, count(v) AS n FROM (SELECT k, a AS v, e AS w FROM t UNION ALL SELECT a, k, id FROM t WHERE f) GROUP BY k"}},
		{"above a union of aggregates", 2, []string{
			"k: SELECT k, sum(v) AS s FROM (SELECT k, a AS v FROM t UNION ALL SELECT k, sum(a) FROM t GROUP BY k) GROUP BY k",
			"k: SELECT k, sum(w) AS s FROM (SELECT k, e AS w FROM t UNION ALL SELECT k, sum(e) FROM t GROUP BY k) GROUP BY k"}},
		{"other filters", 2, []string{"k: SELECT k, count(*) AS n FROM t WHERE f GROUP BY k", "k: SELECT k, count(*) AS n FROM t WHERE NOT f GROUP BY k"}},
	} {
		t.Run(strings.ReplaceAll(tc.name, " ", "_"), func(t *testing.T) {
			text := shareHead
			for i, s := range tc.sinks {
				key, query, _ := strings.Cut(s, ": ")
				text += "CREATE SINK m.out" + string(rune('a'+i)) + " PRIMARY KEY (" + key + ") AS " + query + ";\n"
			}
			plan := mustCompile(t, text)
			if len(plan.Steps) != tc.steps {
				t.Errorf("%d steps:\n%s", len(plan.Steps), plan.Explain())
			}
			eng := openEngine(t, 1)
			mustExec(t, eng, strings.ReplaceAll(makeT, "ROWS", "100"))
			mustEqual(t, eng, plan, 0, 1, 20, 1, 78)
		})
	}
}

// What a step keeps for one table stays what it is when another table comes or goes.
func TestSiblingsDoNotChangeState(t *testing.T) {
	const one = "CREATE SINK m.one PRIMARY KEY (k) AS SELECT k, sum(a) AS s FROM t GROUP BY k;\n"
	const two = "CREATE SINK m.two PRIMARY KEY (k) AS SELECT k, count(a) AS n, max(e) AS m FROM t GROUP BY k HAVING count(*) > 1;\n"
	alone, both := mustCompile(t, shareHead+one), mustCompile(t, shareHead+one+two)
	if len(both.Steps) != 1 || both.Steps[0].ID != alone.Steps[0].ID {
		t.Fatalf("steps %v and %v", alone.Steps, both.Steps)
	}
	for _, c := range alone.Steps[0].State.Cols {
		if !slices.Contains(both.Steps[0].State.Cols, c) {
			t.Errorf("%v is not kept beside a sibling", c)
		}
	}
	if c := Compare(both, alone); c.Class != Refinalise {
		t.Errorf("a table is gone: %+v", c)
	}
	if c := Compare(alone, both); c.Class != Rebuild {
		t.Errorf("a table is new: %+v", c)
	}
}
