// Package planner turns a pipeline file into a Plan: the statements that keep each sink's table
// equal to its SELECT, batch after batch, and a hash of what the pipeline means.
//
// The way from text to plan (planning.go, query.go):
//
//	gate     DuckDB's parser; what can never be incremental is refused with its position (gate.go)
//	bind     DuckDB's binder over empty tables; the bound plan becomes our small IR (bind.go, ir.go)
//	locate   bound aggregates and groups get their place in the file (authored.go)
//	passes   pure rewrites to one normal form (passes.go, prune.go, order.go)
//	settle   what the binder decides again when the plan is written out (decimal.go, nulls.go)
//	check    every construct has a proven rule, the key is proven unique (rules.go, exact.go, keys.go)
//	prove    the IR rendered to SQL and bound again must mean the same (render.go)
//	compile  steps and their statements (compile.go, fold.go, local.go, replaced.go, sink.go)
//	hash     four hashes over the normal form (canon.go, hash.go); compare.go explains a difference
//
// Rows flow between steps as deltas: columns c0..cn and, when rows can be taken back, a weight _w
// that is +1 for an inserted and −1 for a retracted row.
//
// Beside it, of a finished plan: what another plan serves of its state (needs.go, origin.go), and which part of
// input and state a range of keys is made from (range.go, rangewhere.go, rangetime.go).
//
// What a refusal says comes from the author's text only (refusal.go, scope.go): DuckDB's messages are
// put into our words, its positions are mapped back to the file, and its lists are left out.
//
// Nothing here reads input or writes anything: a plan is a value.
package planner
