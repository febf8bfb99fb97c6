// Package targets has what every destination knows and says of the tables of sinks: who owns one, which
// names are the engine's, and what keeps a table from being taken over.
package targets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

const (
	// Seq is the engine's column of a target: the seq of the change that wrote the row.
	Seq = "_etl_seq"
	// Op is the last column of staged rows.
	Op = "_op"
)

// WaysOn is what helps when a target is not what the pipeline left.
const WaysOn = "`etl reconcile FILE --repair --dry-run` shows what differs from the input, `etl reconcile FILE --repair` makes it right"

// Owner is a row of etl.targets.
type Owner struct {
	Pipeline, Sink, Identity string
	File                     string // of the pipeline, when it is known
	Key, Columns             []string
}

// Key names a table. Letter case does not count: the author's SQL does not tell such names apart.
func Key(schema, table string) string {
	return strings.ToLower(duck.Quote(schema) + "." + duck.Quote(table))
}

// Mark is the comment by which a table is known again. DuckDB and Postgres keep it through ALTER and RENAME,
// Postgres also in a dump, and drop it with the table.
func Mark(pipeline, identity string) string {
	return fmt.Sprintf("kept up to date by etl, pipeline %s; do not edit [%s]", pipeline, identity)
}

// Marked is a table's comment with the mark after what it says.
func Marked(comment, pipeline, identity string) string {
	if comment == "" {
		return Mark(pipeline, identity)
	}
	return comment + "; " + Mark(pipeline, identity)
}

// Unmarked is a table's comment without the mark: what it said before the table was taken over.
func Unmarked(comment, pipeline, identity string) string {
	return strings.TrimSuffix(strings.Replace(comment, Mark(pipeline, identity), "", 1), "; ")
}

// Kept compares the record of a sink's table with the manifest. Without an error and not owned, the table is
// to be made or taken over; owned, it must have so many rows. file is that of the pipeline.
func Kept(m checkpoints.Manifest, sink connectors.SinkSpec, own Owner, owned bool, file string) (rows int64, err error) {
	counted, recorded := m.Sinks[sink.Name]
	switch {
	case !owned && recorded:
		return 0, &connectors.DamagedError{What: "the record of table " + sink.Name, Reason: "the pipeline counts its rows, but etl.targets does not list it"}
	case owned && own.Pipeline != m.Pipeline:
		return 0, own.Taken(sink, file)
	case owned && !recorded:
		return 0, &connectors.DamagedError{What: "the record of table " + sink.Name, Reason: fmt.Sprintf("etl.targets lists it, but manifest %d does not count its rows", m.Seq)}
	}
	return counted.Rows, nil
}

// Taken says that the table has another pipeline than that of a file: it may be this one under the name that its
// file had, or that the file gave it, before.
func (o Owner) Taken(sink connectors.SinkSpec, file string) error {
	reason, hint := "it belongs to pipeline "+o.Pipeline, "choose another table; a table has one pipeline"
	rename := ", say so, and it goes on where it stopped:\n  etl rename " + connectors.ShellWord(o.Pipeline) + " FILE\n  Otherwise "
	switch {
	case o.File == "":
	case o.File == file:
		reason += ", as this file named it before"
		hint = "if it is the same pipeline under a new name" + rename + "put the old name back"
	default:
		reason += " of " + o.File
		if _, err := os.Stat(o.File); errors.Is(err, fs.ErrNotExist) {
			reason += ", which is not there any more"
			hint = "if this is that file under a new name" + rename + "choose another table"
		}
	}
	return &connectors.TargetError{Table: sink.Name, Reason: reason, Hint: hint}
}

// CheckNames refuses names that the engine needs for itself.
func CheckNames(sink connectors.SinkSpec) error {
	if strings.EqualFold(sink.Schema, "etl") {
		return &connectors.TargetError{Table: sink.Name, Reason: "the schema etl is the engine's own", Hint: "choose another schema"}
	}
	for _, c := range sink.Columns {
		if strings.EqualFold(c.Name, Seq) || strings.EqualFold(c.Name, Op) {
			return &connectors.TargetError{Table: sink.Name, Reason: "the column name " + c.Name + " is the engine's own", Hint: "choose another name for it with AS"}
		}
	}
	return nil
}

// Schema tells that a database has the tables of another version of etl.
func Schema(database string, version, known int) error {
	which, hint := "a newer", "use that version, or a newer one"
	switch {
	case version == known:
		return nil
	case version < known:
		which, hint = "an older", "go on with that version, or build the tables anew in another database"
	}
	return &connectors.TargetError{Table: "etl.meta", Reason: fmt.Sprintf("%s version of etl wrote to %s (schema %d; this one knows %d)", which, database, version, known), Hint: hint}
}
