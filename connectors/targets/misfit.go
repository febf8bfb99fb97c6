package targets

import (
	"fmt"
	"strings"

	"lockstep/connectors"
)

// Misfit is one thing that keeps a table from being used, and the statement that mends it.
type Misfit struct {
	Say string
	Fix string // with %s for the table; "" when no statement helps
}

const remake = "drop the table and let the pipeline make it, or choose another name"

func (m Misfit) statement(table string) string { return strings.ReplaceAll(m.Fix, "%s", table) }

// Mend is what to do about it. with says where the statement can be run; it may be "".
func (m Misfit) Mend(table, with string) string {
	if m.Fix == "" {
		return remake
	}
	return "run" + with + ":\n  " + m.statement(table)
}

// NotEmpty refuses to take over a table that has rows. seq: it has the engine's column.
func NotEmpty(sink connectors.SinkSpec, table string, rows int64, seq bool) error {
	if seq {
		return &connectors.TargetError{Table: sink.Name, Reason: "it was kept by a pipeline (it has a column " + Seq + ") whose record is not in this database",
			Hint: "put the whole database back from a backup; or rename the table and let the pipeline build a new one"}
	}
	return &connectors.TargetError{Table: sink.Name, Reason: fmt.Sprintf("a table of that name exists already, and no pipeline wrote its rows (%d)", rows),
		Hint: "choose another name; or empty the table, and the pipeline fills it: DELETE FROM " + table + ";"}
}

// Unfit tells all misfits of a table and the statements that mend them; nil when there are none.
func Unfit(sink connectors.SinkSpec, table, with string, misfits []Misfit) error {
	if len(misfits) == 0 {
		return nil
	}
	var say, fix []string
	hint := ""
	for _, m := range misfits {
		say = append(say, m.Say)
		fix = append(fix, m.statement(table))
		if m.Fix == "" {
			hint = remake
		}
	}
	if hint == "" {
		hint = "make it fit" + with + ":\n  " + strings.Join(fix, "\n  ")
	}
	return &connectors.TargetError{Table: sink.Name, Reason: "it exists already, but does not fit: " + strings.Join(say, "; "), Hint: hint}
}
