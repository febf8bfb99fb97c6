package planner

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"lockstep/engine/duck"
	"lockstep/planner/plannertest"
	"lockstep/sql"
)

func openEngine(t testing.TB, threads int) *duck.Engine {
	t.Helper()
	eng, err := duck.Open(context.Background(), duck.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

func mustExec(t testing.TB, eng *duck.Engine, stmts ...string) {
	t.Helper()
	for _, s := range stmts {
		if err := eng.Exec(context.Background(), s); err != nil {
			t.Fatalf("%v\nin %s", err, s)
		}
	}
}

// mustQuery is the first value of a query, as text.
func mustQuery(t testing.TB, eng *duck.Engine, query string) string {
	t.Helper()
	var out *string
	if err := eng.QueryRow(context.Background(), query, nil, &out); err != nil {
		t.Fatalf("%v\nin %s", err, query)
	}
	if out == nil {
		return "NULL"
	}
	return *out
}

// bindText brings a SELECT over the table t of the engine to its normal form.
func bindText(t testing.TB, eng *duck.Engine, query string) (Node, error) {
	t.Helper()
	q := compose(nil, sql.Expr{Text: query})
	bound, err := bind(context.Background(), eng, map[string]bool{"t": true}, q)
	if err != nil {
		return nil, err
	}
	root, err := foldNulls(context.Background(), eng, normalise(bound))
	if err != nil {
		return nil, err
	}
	return root, settle(context.Background(), eng, root)
}

// planQuery is what the planner makes of a SELECT, as one SELECT.
func planQuery(root Node) string { return query(root) }

func mustCompile(t testing.TB, text string) *Plan {
	t.Helper()
	plan, err := compileText(context.Background(), text)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func compileText(ctx context.Context, text string) (*Plan, error) {
	script, err := sql.Parse("p.sql", text)
	if err != nil {
		return nil, err
	}
	return Compile(ctx, script, nil)
}

// drawnPlan compiles random SELECTs over a source t; no plan when one of them is refused.
func drawnPlan(t *rapid.T, eng *duck.Engine, options string) (query string, plan *Plan) {
	query = plannertest.Pipeline(plannertest.Sinks(t), "t.parquet", options)
	script, err := sql.Parse("p.sql", query)
	mustExecRapid(t, err)
	plan, err = compileIn(t.Context(), eng, script, nil)
	var faults sql.Errors
	if errors.As(err, &faults) {
		return query, nil
	}
	mustExecRapid(t, err)
	return query, plan
}
