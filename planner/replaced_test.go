package planner

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/planner/plannertest"
)

// Files of the source are replaced, by others that have some of their rows: after every batch the tables
// equal the SELECTs over the files as they are.
func TestRandomReplacedFiles(t *testing.T) {
	want := plannertest.Cases() / 4
	if testing.Short() {
		want /= 10
	}
	eng, planned := openEngine(t, 1), openEngine(t, 1)
	drawn, accepted := 0, 0
	plannertest.Draw(t, func() bool { return accepted >= want }, func(t *rapid.T) {
		drawn++
		query, plan := drawnPlan(t, planned, "WITH (files = 'replace')")
		if plan == nil {
			return
		}
		mustExecRapid(t, eng.Exec(t.Context(), "CREATE OR REPLACE TABLE all_t ("+plannertest.Columns+")"))
		l, err := begin(eng, plan)
		mustExecRapid(t, err)
		mustExecRapid(t, l.exec(
			"CREATE OR REPLACE TABLE fresh_t ("+plannertest.Columns+")",
			"CREATE OR REPLACE TABLE now_t AS SELECT '' AS _etl_file, 0::BIGINT AS _etl_row, * FROM fresh_t",
			"CREATE OR REPLACE VIEW t AS SELECT * EXCLUDE (_etl_file, _etl_row) FROM now_t",
			"CREATE OR REPLACE TEMP VIEW _placed_t AS FROM now_t",
			"CREATE OR REPLACE TEMP TABLE changed (file VARCHAR)", "CREATE OR REPLACE TEMP TABLE _withdrawn_t (file VARCHAR)",
			"CREATE OR REPLACE TEMP VIEW _in_t AS FROM now_t WHERE _etl_file IN (FROM changed)",
		))
		for range rapid.IntRange(2, 4).Draw(t, "batches") {
			mustExecRapid(t, l.exec("DELETE FROM changed", "DELETE FROM _withdrawn_t"))
			for _, file := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 2, rapid.ID).Draw(t, "files") {
				stay := rapid.IntRange(0, 4).Draw(t, "stay")
				mustExecRapid(t, l.exec(
					"INSERT INTO changed VALUES ('"+file+"')",
					"INSERT INTO _withdrawn_t SELECT DISTINCT _etl_file FROM now_t WHERE _etl_file = '"+file+"'",
					fmt.Sprintf("DELETE FROM now_t WHERE _etl_file = '%s' AND _etl_row > %d", file, stay),
					"DELETE FROM fresh_t",
					"INSERT INTO fresh_t VALUES "+plannertest.Rows(t, rapid.IntRange(1, 6).Draw(t, "rows")),
					fmt.Sprintf("INSERT INTO now_t SELECT '%s', %d + row_number() OVER (), * FROM fresh_t", file, stay),
				))
			}
			ours := l.batch(0)
			diff, theirs := l.differs()
			if ours == nil && theirs == nil && diff == "" {
				diff, ours = l.anew()
			}
			switch {
			case theirs != nil && strings.Contains(theirs.Error(), "Could not set"):
				t.Fatal(theirs)
			case theirs != nil:
				return // the SELECT fails on such rows
			case ours != nil:
				t.Fatalf("%s\n%v", query, ours)
			case diff != "":
				t.Fatalf("%s\n%s", query, diff)
			}
		}
		accepted++
	})
	t.Logf("%d queries: %d accepted", drawn, accepted)
	if drawn >= 100 && 2*accepted < drawn {
		t.Error("fewer than half of the queries were accepted")
	}
}
