package targets

import (
	"slices"
	"strings"

	"lockstep/connectors"
)

// Compare tells how a table that is there stands to a sink, for a correction. has tells whether it has a
// column in the sink's type; names are all of its columns. own is the record of the table.
func Compare(sink connectors.SinkSpec, own Owner, relation string, names []string, has func(connectors.SinkColumn) bool) (connectors.Found, error) {
	f := connectors.Found{Relation: relation, OtherKey: !SameKey(own.Key, sink.Key)}
	var columns []string
	for _, c := range sink.Columns {
		columns = append(columns, c.Name)
		switch {
		case has(c):
			f.Columns = append(f.Columns, c.Name)
		case named(sink.Key, c.Name):
			f.OtherKey = true
		}
	}
	f.Seq = has(connectors.SinkColumn{Name: Seq, Type: "BIGINT"})
	var others []string
	for _, name := range names {
		switch {
		case named(columns, name) || name == Seq:
		case named(own.Columns, name):
			f.Lost = append(f.Lost, name)
		default:
			others = append(others, name)
		}
	}
	if f.OtherKey && len(others) > 0 {
		return f, &connectors.TargetError{Table: sink.Name, Reason: "its key changes, so its rows are other ones, and columns that are not the pipeline's would lose their values: " + strings.Join(others, ", "),
			Hint: "move those columns to a table of your own and drop them, or give the sink another table"}
	}
	return f, nil
}

// SameKey compares keys as sets of names.
func SameKey(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(name string) bool { return !named(b, name) })
}

func named(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
