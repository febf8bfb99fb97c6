package checkpoints

import (
	"slices"
	"time"
)

// Kinds of durable change. Only a batch consumes new input; the others carry the batch number of the batch
// before them. Corrections make state and tables what they should be; the other kinds leave the tables.
const (
	KindBatch      = "batch"
	KindCompaction = "compaction" // merges segments and drops those that no kept checkpoint needs
	// A recovery replaces a damaged state by the same one, built again from recorded ranges.
	KindRecovery = "recovery"
	// An environment is the first change under another DuckDB, which was shown to do the same.
	KindEnvironment = "environment"
	// A loss accepts that input is gone or was changed after it was read: the position takes it as it is now.
	KindLoss       = "loss"
	KindRebuild    = "rebuild"    // a changed plan, from input that was read before and is read again
	KindRefinalise = "refinalise" // a changed plan, from the kept state; reads nothing
	KindRepair     = "repair"     // tables that were edited, and state that is not what the input gives
	KindBackfill   = "backfill"   // the keys of a part of the input, which was changed
)

// Corrects tells the kinds that may change tables without new input. What such a change did to the state
// cannot be replayed from the state before it: checkpoints before one that changed the state are of
// another meaning.
func Corrects(kind string) bool {
	return slices.Contains([]string{KindRebuild, KindRefinalise, KindRepair, KindBackfill}, kind)
}

// Manifest is the durable record of one change.
type Manifest struct {
	Pipeline    string                 `json:"pipeline"`
	Seq         int64                  `json:"seq"` // 1 for the first; never reset
	Incarnation int64                  `json:"incarnation"`
	Batch       int64                  `json:"batch"` // 0 for the first of an incarnation
	Attempt     string                 `json:"attempt"`
	Kind        string                 `json:"kind"`
	ParentSeq   int64                  `json:"parent_seq"` // 0: none
	ParentSHA   string                 `json:"parent_sha"`
	PlanID      string                 `json:"plan_id"`
	Env         Env                    `json:"env"`
	BatchTime   time.Time              `json:"batch_time"` // UTC, microseconds
	Position    map[string]PositionSum `json:"position"`   // per source, after the change
	Sources     map[string]SourceCount `json:"sources"`
	Sinks       map[string]SinkCount   `json:"sinks"`            // every sink, also one without changes
	RangesSHA   string                 `json:"ranges_sha"`       // over the ranges this change read
	Live        LiveSum                `json:"live"`             // the segments live after it
	Losses      map[string]LossCount   `json:"losses,omitempty"` // per source, what was accepted; of a loss only
}

// LossCount is what was accepted to be lost of one source, and was not before.
type LossCount struct {
	Splits int   `json:"splits"`
	Read   int64 `json:"read"`   // rows of them that were read, and stay in the tables
	Unread int64 `json:"unread"` // rows of them that were given up before they were read
}

// Env is what the result may depend on besides plan and input.
type Env struct {
	Engine   string `json:"engine"` // version of etl
	DuckDB   string `json:"duckdb"`
	TimeZone string `json:"time_zone"`
}

// SourceCount counts the rows of one batch from one source: Read = Accepted + Rejected.
type SourceCount struct {
	Splits   int   `json:"splits"` // that it read from
	Read     int64 `json:"read"`
	Accepted int64 `json:"accepted"`
	Rejected int64 `json:"rejected"`
}

// SinkCount counts what a batch did to one sink. Rows is the table's size after it.
type SinkCount struct {
	Inserted int64  `json:"inserted"`
	Updated  int64  `json:"updated"`
	Deleted  int64  `json:"deleted"`
	Rows     int64  `json:"rows"`
	Digest   string `json:"digest"` // additive, over the exact columns of all rows
}

// Range is a half-open piece of a split that a change consumed.
type Range struct {
	Source  string
	Split   string
	From    int64
	To      int64
	Rows    int64
	Content string
}
