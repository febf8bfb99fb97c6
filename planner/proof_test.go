package planner

import (
	"fmt"
	"testing"

	"lockstep/planner/plannertest"
	"lockstep/sql"
)

// SELECTs that TestRandomQueries found, whose plans were once refused because they read back as others.
func TestProven(t *testing.T) {
	for _, query := range []string{
		// A function of constants that gives NULL is folded by DuckDB's binder.
		"SELECT - nullif(p, -1.25) AS g, count(*) AS n FROM (SELECT -1.25 AS p FROM t) GROUP BY ALL",
		// Between the two unions only a projection stood that changed the order of the columns.
		"SELECT count(*) AS g FROM (SELECT id, 1 FROM t UNION SELECT n, d FROM (SELECT d, count(*) AS n FROM t GROUP BY ROLLUP (d)))",
	} {
		script, err := sql.Parse("p.sql", fmt.Sprintf("ATTACH 'm.duckdb' AS m; CREATE SOURCE t (%s) FROM 't.parquet'; CREATE SINK m.o PRIMARY KEY (g) AS %s", plannertest.Columns, query))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compile(t.Context(), script, nil); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}
