// Package engine runs pipelines: it moves a plan's state, its tables and its position forward
// together, batch by batch.
//
// A pipeline's life in one run:
//
//	open ── nothing new ────────────────────────────→ up to date
//	  │                                                   ↑
//	  └─→ take the lease, restore the state ──→ batch ──→ batch ──→ …
//	                                              │
//	                             any error: roll back, forget everything
//
// What makes state and tables something else without new input is a correction: correct.go and fold.go are
// its parts, apply.go, backfill.go and repair.go the commands.
//
// batch.go is the story of one batch, top to bottom. Whatever fails in it, or is killed, leaves the
// destination as it was after the batch before: target rows, state, position and manifest are one
// transaction. After an error nothing in memory is believed; the next run reads the head again.
package engine
