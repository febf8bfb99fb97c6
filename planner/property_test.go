package planner

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/planner/plannertest"
	"lockstep/sql"
)

// After every batch the table equals the SELECT over all rows so far: random queries over random rows
// in random batches. Values are small enough that a floating sum is right to 1e-9.
func TestRandomQueries(t *testing.T) {
	want := plannertest.Cases()
	if testing.Short() {
		want /= 10
	}
	eng, planned := openEngine(t, 1), openEngine(t, 1)
	all := tally{shapes: map[string]bool{}, refused: map[string]int{}}
	plannertest.Draw(t, func() bool { return all.accepted >= want }, func(t *rapid.T) {
		query := plannertest.Pipeline(plannertest.Sinks(t), "t.parquet", "")
		all.drawn++
		script, err := sql.Parse("p.sql", query)
		if err != nil {
			t.Fatalf("%s\n%v", query, err)
		}
		plan, err := compileIn(t.Context(), planned, script, nil)
		var faults sql.Errors
		if errors.As(err, &faults) {
			for _, f := range faults {
				if strings.Contains(f.Hint, "report") {
					t.Fatalf("%s\n%s", query, faults.Render())
				}
			}
			all.refused[reason(faults[0].Message)]++
			return
		}
		if err != nil {
			t.Fatalf("%s\n%v", query, err)
		}
		n := rapid.IntRange(1, 30).Draw(t, "rows")
		mustExecRapid(t, eng.Exec(t.Context(), "CREATE OR REPLACE TABLE all_t ("+plannertest.Columns+")"))
		mustExecRapid(t, eng.Exec(t.Context(), "INSERT INTO all_t VALUES "+plannertest.Rows(t, n)))
		l, err := begin(eng, plan)
		mustExecRapid(t, err)
		for l.upto < n {
			size := min(n-l.upto, rapid.IntRange(0, 18).Draw(t, "batch"))
			ours := l.batch(size)
			diff, theirs := l.differs()
			if l.upto == n && ours == nil && theirs == nil && diff == "" {
				diff, ours = l.anew()
			}
			switch {
			case theirs != nil && strings.Contains(theirs.Error(), "Could not set"):
				t.Fatal(theirs)
			case theirs != nil: // such as an overflow in an expression: whether it is reached may differ
				all.failing++
				return
			case ours != nil:
				t.Fatalf("%s\n%v", query, ours)
			case diff != "":
				t.Fatalf("%s\n%s", query, diff)
			}
		}
		all.accepted++
		all.shapes[shape(plan)] = true
	})
	if !t.Failed() {
		all.report(t)
	}
}

// tally is what came of random queries.
type tally struct {
	drawn, accepted, failing int
	shapes                   map[string]bool
	refused                  map[string]int
}

func (a tally) report(t *testing.T) {
	answered := a.accepted + a.failing
	t.Logf("%d queries: %d accepted (%.0f %%), %d of them fail in DuckDB itself; %d distinct plan shapes", a.drawn, answered,
		100*float64(answered)/float64(max(a.drawn, 1)), a.failing, len(a.shapes))
	if a.drawn >= 100 && 10*answered < 6*a.drawn {
		t.Error("fewer than 60 % of the queries were accepted: the generator draws what the planner has no rule for")
	}
	for why, n := range a.refused {
		t.Logf("refused %d: %s", n, why)
	}
}

func mustExecRapid(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

var (
	constants = regexp.MustCompile(`\[('[^']*'|[^\] ]*)[^\]]*\]`)
	digits    = regexp.MustCompile(`\d+`)
)

// shape is what is left of a plan without its constants.
func shape(p *Plan) string {
	var parts []string
	for _, s := range p.state {
		parts = append(parts, s.Rows+" keeps "+strings.Join(s.Keeps, ", "))
	}
	return constants.ReplaceAllString(strings.Join(parts, "\n"), "?")
}

// reason is a refusal without its names.
func reason(msg string) string { return digits.ReplaceAllString(msg, "#") }
