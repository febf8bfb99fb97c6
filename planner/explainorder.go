package planner

import (
	"fmt"
	"strings"
)

const placeDecides = "are decided by the row's place: its file's path, then its number in the file"

func (e *explanation) top(s Step, n *Top) {
	wrote := e.author(n)
	per := "of all"
	if len(n.Parts) > 0 {
		per = "of each partition"
	}
	first := fmt.Sprintf("the first %d rows", n.Rows)
	if n.Rows == 1 {
		first = "the first row"
	}
	e.item("keeps", "%s %s: %s", first, per, n.text)
	if byItsPlace(n.In) {
		direction := "ascending"
		if n.Order[len(n.Order)-1].desc {
			direction = "descending"
		}
		e.item("ties", placeDecides+", %s", direction)
	}
	e.input(n.In, wrote)
	columns := fmt.Sprintf("%d columns", len(s.State.Cols))
	if !retracts(n.In) {
		e.item("local", "the rows of the partitions that a batch touches are ordered again")
		growth := "one row"
		switch {
		case len(n.Parts) > 0 && n.Rows == 1:
			growth = "one row per partition"
		case len(n.Parts) > 0:
			growth = fmt.Sprintf("up to %d rows per partition", n.Rows)
		case n.Rows > 1:
			growth = fmt.Sprintf("up to %d rows", n.Rows)
		}
		e.item("state", "%s: %s", growth, columns)
		return
	}
	e.item("local", "when a first row is taken back, any other may take its place: those of the partitions")
	e.item("", "that a batch touches are ordered again")
	e.item("state", "every row of the input: %s", columns)
}

// topStepOf is the step that a sink's rows come from, through projections and filters; nil when they
// come from several.
func topStepOf(n Node) Node {
	n = belowProjections(n)
	if _, key := stepKey(n); key == "" {
		return nil
	}
	return n
}

// uniqueRows says why no key can come twice where the rows are those of a local step.
func (e *explanation) uniqueRows(s Sink) string {
	top, _ := topStepOf(s.root).(*Top)
	steps := strings.Join(e.feeds(s.root), ", ")
	switch {
	case len(top.Parts) == 0 && top.Rows == 1:
		return "the one row of " + steps
	case top.Rows == 1:
		return "the partitions of " + steps + ", or what is unique below it"
	}
	return "partition and row number of " + steps + ", or what is unique below it"
}
