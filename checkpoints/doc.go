// Package checkpoints holds what makes progress durable and recoverable: the position of a
// pipeline, the manifest that records each batch, and the segments its state is stored in.
//
// A pipeline's durable life is a chain of manifests, one per change, ordered by seq:
//
//	manifest 0 ── manifest 1 ── manifest 2 ── …      (seq; never reset)
//	   │ +segments    │ +segments    │ +segments
//
// A checkpoint at seq s is the set of segments that are live at s: added at or before s and not
// removed at or before s. Replaying them in the order of their seq, the newest row per key
// winning, gives every step's state as it was after s. The position is kept the same way, as the
// step "position": one row per split.
//
// What is stored can be checked: a segment by its SHA-256, a manifest by its checksum and by the laws
// its counts obey, a position and the rows of a table by a Digest, which is kept from changes alone.
//
// Nothing here talks to a database. A destination stores and returns these values; this package
// encodes them, checks them and says in plain words what is wrong with a damaged one.
package checkpoints
