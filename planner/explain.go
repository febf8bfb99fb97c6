package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/sql"
)

// Explain tells in the author's words what runs in a batch and what is kept between batches.
func (p *Plan) Explain() string {
	e := &explanation{plan: p}
	e.line("pipeline %s, plan %s", p.Name, p.Hash.ID[:min(8, len(p.Hash.ID))])
	for _, s := range p.Sources {
		e.source(s)
	}
	for _, s := range p.Steps {
		e.step(s)
	}
	for _, s := range p.Sinks {
		e.sink(s)
	}
	return e.b.String()
}

type explanation struct {
	plan *Plan
	b    strings.Builder
}

func (e *explanation) line(format string, args ...any) { fmt.Fprintf(&e.b, format+"\n", args...) }

// item is one aligned line of a block.
func (e *explanation) item(name, format string, args ...any) {
	e.line("  %-9s %s", name, fmt.Sprintf(format, args...))
}

// place is where something stands in the file.
func (e *explanation) place(pos int) string {
	if pos < 0 {
		return ""
	}
	at := e.plan.Script.Errorf(sql.Span{Start: pos, End: pos}, "", "")
	return fmt.Sprintf("  (%d:%d)", at.Line, at.Col)
}

func (e *explanation) source(s Source) {
	from := s.Decl.From.String()
	if s.Decl.FromTable != nil {
		from = nameOf(*s.Decl.FromTable)
	}
	e.line("\nsource %s FROM %s%s", s.Name, from, e.place(s.Decl.Head.Start))
	used := usedColumns(e.plan)[s.Name]
	var reads []string
	for _, c := range s.Shown() {
		if used[c.Name] {
			reads = append(reads, c.Name)
		}
	}
	of := fmt.Sprintf("%d of %d columns", len(reads), len(s.Shown()))
	if len(reads) > 0 {
		of += ": " + strings.Join(reads, ", ")
	}
	e.item("reads", "%s", of)
	switch s.Reads {
	case 0:
		e.item("scans", "none: no SELECT reads it")
	case 1:
		e.item("scans", "one per batch")
	default:
		e.item("scans", "%d per batch", s.Reads)
	}
}

func (e *explanation) step(s Step) {
	e.line("\n%s%s", s.ID, e.place(s.Pos))
	switch n := s.node.(type) {
	case *Aggregate:
		e.aggregate(s, n)
	case *Top:
		e.top(s, n)
	}
	if s.source != "" {
		e.item("keeps", "the rows of %s, by file and number: those of a replaced file are taken back", s.source)
		e.item("state", "every row: %d columns", len(s.State.Cols))
	}
}

func (e *explanation) aggregate(s Step, a *Aggregate) {
	wrote := e.author(a)
	groups, _ := groupWords(a, wrote)
	growth := "one row per group"
	if len(a.Groups) == 0 {
		groups, growth = "nothing", "one row"
	}
	by := "groups by"
	if s.Kind == "distinct" {
		growth = "one row per distinct row"
	}
	if a.Asked != nil {
		by = lower(a.Asked.word)
	}
	e.item(by, "%s", groups)
	e.input(a.In, wrote)
	for _, v := range a.distincts() {
		e.item("and", "the distinct rows of %s", strings.Join(e.feeds(v.rows), ", "))
	}
	width := 0
	for _, x := range a.Aggs {
		width = max(width, len(aggWords(x, wrote)))
	}
	for i, x := range a.Aggs {
		name := "keeps"
		if i > 0 {
			name = ""
		}
		e.item(name, "%s", strings.TrimRight(fmt.Sprintf("%-*s%s", width, aggWords(x, wrote), e.place(x.Pos)), " "))
	}
	if byItsPlace(a.In) {
		e.item("ties", placeDecides)
	}
	if s.Kind == "local" {
		e.item("local", "rows can be taken back, and what is left of %s cannot be told without the others:", aggWords(a.firstOfRows(), wrote))
		e.item("", "the groups that a batch touches are computed again from their rows")
		e.item("state", "every distinct row that is read: %d columns", len(s.State.Cols))
		return
	}
	e.item("state", "%s: %s", growth, columnsKept(s.State))
}

// input tells which rows a step reads.
func (e *explanation) input(n Node, wrote *authored) {
	from, how := e.feeds(n), "only come"
	if len(from) == 0 {
		from = sourcesOf(n)
	}
	if retracts(n) {
		how = "can be taken back"
	}
	e.item("input", "rows of %s, which %s", strings.Join(from, ", "), how)
	for _, where := range filtersBelow(n, wrote) {
		e.item("where", "%s%s", where.text, e.place(where.pos))
	}
}

func columnsKept(t Table) string {
	n := len(t.Cols) - t.Key
	kept := fmt.Sprintf("%d accumulators", n)
	if n == 1 {
		kept = "the number of its rows"
	}
	switch t.Key {
	case 0:
		return kept
	case 1:
		return "1 key column, " + kept
	}
	return fmt.Sprintf("%d key columns, %s", t.Key, kept)
}

func aggWords(a *Agg, wrote *authored) string {
	if text := oneLine(callText(wrote.text, a.Pos)); text != "" {
		return text
	}
	if a.Filter != nil && a.Name == "count_star" { // of an INTERSECT or EXCEPT
		return map[bool]string{true: "the rows of the left side", false: "the rows of the right side"}[a.Filter.Op == opRef]
	}
	return a.Name
}

func (e *explanation) sink(s Sink) {
	e.line("\nsink %s%s", s.Name, e.place(s.Decl.Head.Start))
	e.item("key", "(%s): %s", strings.Join(s.Key, ", "), e.unique(s))
	name := "having"
	if _, ok := topStepOf(s.root).(*Top); ok {
		name = "where"
	}
	for _, f := range filtersBelow(s.root, s.wrote) {
		e.item(name, "%s%s", cmp.Or(f.text, "OFFSET"), e.place(f.pos))
	}
	for i, c := range s.Columns {
		name, note := "columns", ""
		if i > 0 {
			name = ""
		}
		if c.Inexact {
			note = ", within a tolerance"
		}
		e.item(name, "%s %s%s", c.Name, c.Type, note)
	}
}

// unique says why no key can come twice.
func (e *explanation) unique(s Sink) string {
	steps := strings.Join(e.feeds(s.root), ", ")
	switch {
	case len(s.Key) == 0:
		return "at most one row, that of " + steps
	case topStepOf(s.root) != nil:
		top, ok := topStepOf(s.root).(*Aggregate)
		switch {
		case !ok:
			return e.uniqueRows(s)
		case kindOf(top) == "distinct":
			return "the distinct rows of " + steps
		}
		return "the groups of " + steps
	}
	return "the groups of " + steps + ", of which no two share one"
}

// feeds lists the steps whose rows reach a node.
func (e *explanation) feeds(n Node) []string {
	if _, key := stepKey(n); key != "" {
		for _, s := range e.plan.Steps {
			if _, k := stepKey(s.node); k == key {
				return []string{s.ID}
			}
		}
	}
	var out []string
	for _, in := range n.inputs() {
		for _, id := range e.feeds(in) {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

func sourcesOf(n Node) []string {
	var out []string
	walkNodes(n, func(n Node) {
		if s, ok := n.(*Scan); ok && !slices.Contains(out, s.Source) {
			out = append(out, s.Source)
		}
	})
	return out
}

// filtersBelow are the conditions between a node and the steps or sources below it.
func filtersBelow(n Node, wrote *authored) []part {
	var out []part
	switch x := n.(type) {
	case *Aggregate, *Top:
		return nil
	case *Filter:
		out = filterParts(x, wrote)
	}
	for _, in := range n.inputs() {
		out = append(out, filtersBelow(in, wrote)...)
	}
	return slices.CompactFunc(out, func(a, b part) bool { return a.text == b.text && a.pos == b.pos })
}

// author is who wrote the SELECT that a step comes from.
func (e *explanation) author(step Node) *authored {
	_, key := stepKey(step)
	for _, s := range e.plan.Sinks {
		found := false
		walkNodes(s.root, func(n Node) {
			_, k := stepKey(n)
			found = found || k == key
		})
		if found {
			return s.wrote
		}
	}
	return &authored{text: e.plan.Script.Text}
}
