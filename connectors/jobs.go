package connectors

import "lockstep/checkpoints"

// Job is a state on its way to be that of a correction, saved so that a run that was killed need not begin
// anew. It is no progress of the pipeline and needs no lease: it only says what some steps come to for some
// input. A pipeline has one of a kind.
type Job struct {
	Pipeline string
	Kind     string // of the correction, and which one of them
	BaseSeq  int64  // the head it is built for
	Spec     string // what it is a state of: of another spec it is of no use
	Segments []checkpoints.Segment
}
