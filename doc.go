// Package lockstep holds no code: the command is cmd/etl, the life of a batch is engine/batch.go.
// Its tests look at the repository as a whole.
package lockstep
