package checkpoints

// Position is the set of next-unread offsets of a pipeline, per source. It has an entry for every
// split that was ever read from; a position that misses one is invalid.
type Position map[string]Splits

// Splits maps a split's id to its place. For files the id is the path relative to the fixed prefix
// of the glob.
type Splits map[string]Split

// Split is how far one split was read, and what it looked like.
type Split struct {
	Next    int64  // next unread offset; rows for Parquet, bytes for CSV, offsets for a log
	Rows    int64  // rows read from it so far
	Size    int64  // files: bytes
	ModTime int64  // files: nanoseconds since 1970; only saves hashing again, never decides
	Content string // files: xxh3-128 of the bytes, hex; "" elsewhere
	Seq     int64  // the change that last moved it
}
