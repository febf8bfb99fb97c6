// Package planner turns a pipeline file into a Plan: the statements that keep each sink's table
// equal to its SELECT, batch after batch, and a hash of what the pipeline means.
//
// The way from text to plan:
//
//	gate     DuckDB's parser; what can never be incremental is refused with its position
//	bind     DuckDB's binder over empty tables; the bound plan becomes our small IR (ir.go)
//	passes   pure rewrites to one normal form (passes.go)
//	check    every construct has a proven rule, the key is proven unique (rules.go, keys.go)
//	prove    the IR rendered to SQL and bound again must mean the same (render.go)
//	compile  steps and their statements (compile.go, fold.go, sink.go)
//	hash     four hashes over the normal form (canon.go); compare.go explains a difference
//
// Rows flow between steps as deltas: columns c0..cn and, when rows can be taken back, a weight _w
// that is +1 for an inserted and −1 for a retracted row.
//
// Nothing here reads input or writes anything: a plan is a value.
package planner
