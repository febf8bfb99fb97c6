package files

import (
	"errors"
	"testing"

	"lockstep/connectors"
)

// An error of the query, and not of the input, stays what it is.
func TestExplainLeavesOtherErrors(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT")
	w.parquet("in/a.parquet", "SELECT 1::BIGINT AS id")
	b, err := w.plan(connectors.Limit{})
	w.must(err)
	sc, err := w.source().Read(t.Context(), b.Ranges)
	w.must(err)
	defer sc.Close()
	rel, _ := sc.Relation()
	failure := w.eng.Exec(t.Context(), "CREATE TEMP TABLE x AS SELECT error('mine') FROM "+rel)
	if failure == nil {
		t.Fatal("no error")
	}
	if got := sc.Explain(t.Context(), failure); got != failure {
		t.Error(got)
	}
	other := errors.New("not DuckDB's")
	if got := sc.Explain(t.Context(), other); got != other {
		t.Error(got)
	}
}

func TestOpenReportsFaults(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT").with("ignore_errors", "true").with("skip", "x")
	_, err := Open(t.Context(), w.eng, w.spec)
	failed[dataError](t, err, `source orders: option ignore_errors: is not allowed: a bad row must stop the run or be kept as a reject; it never just disappears (see max_rejects)
option skip: must be a whole number of at least 0`)
}
