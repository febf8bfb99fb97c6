package planner

import (
	"errors"
	"os"
	"strings"
	"testing"

	"lockstep/sql"
)

// Whatever stands in a SELECT, Compile gives a plan or faults with a place and words; it never panics.
func FuzzCompile(f *testing.F) {
	for _, tc := range equivalenceCases {
		f.Add(tc.key, tc.query)
	}
	for _, tc := range correctCases {
		for _, s := range tc.sinks {
			f.Add(s[0], s[1])
		}
	}
	for _, file := range []string{"testdata/functions.txt", "testdata/expressions.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if line != "" && i%5 == 0 {
				f.Add("k", "SELECT k, max("+line+") AS m FROM t GROUP BY k")
			}
		}
	}
	for _, s := range []string{"FROM t", "SELECT t FROM t", "SELECT * FROM t GROUP BY ALL", "SELECT k FROM t WHERE (", "SELECT rowid FROM t", "SELECT $1 FROM t",
		"PIVOT t ON k USING sum(a)", "SELECT COLUMNS(*) FROM t", "SELECT unnest(l) FROM t", "WITH x AS (SELECT 1) SELECT * FROM x", "SELECT 1e999, 0x1F FROM t"} {
		f.Add("k", s)
	}
	columns := strings.TrimPrefix(declaredTypes("t"), "CREATE TABLE ")
	f.Fuzz(func(t *testing.T, key, query string) {
		script, err := sql.Parse("p.sql", "ATTACH 'm.duckdb' AS m; CREATE SOURCE "+columns+" FROM 't.parquet'; CREATE SINK m.out PRIMARY KEY ("+key+") AS "+query)
		if err != nil {
			return
		}
		plan, err := Compile(t.Context(), script, nil)
		if err == nil {
			_ = plan.Explain()
			if c := Compare(plan, plan); c.Class != None {
				t.Fatalf("%s: %+v", query, c)
			}
			return
		}
		var faults sql.Errors
		if !errors.As(err, &faults) {
			t.Fatalf("%s: %v", query, err)
		}
		for _, fault := range faults {
			if fault.Message == "" || fault.Line < 1 || strings.Contains(fault.Hint, "report") {
				t.Fatalf("%s: %s", query, fault.Render())
			}
		}
		_ = faults.Render()
	})
}
