package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/sql"
)

// part is one nameable piece of what a pipeline means, with the author's words for it.
type part struct {
	class Class
	of    string // the sink or source
	name  string // what the author calls it
	asked string // DISTINCT or a set operation, for which it is a "group by"
	canon string
	text  string // the author's words
	pos   int
	alone bool // the plan has one sink, which needs no name
}

// name records the parts of a sink.
func (p *planning) name(s *sql.Sink, sink *Sink, g *gate) {
	sink.wrote = &g.authored
	if len(p.plan.parts) == 0 {
		p.sourceParts()
	}
	add := func(class Class, name, canon, text string, pos int) {
		if pos < 0 {
			pos = s.Select.Span.Start
		}
		p.plan.parts = append(p.plan.parts, part{
			class: class, of: "sink " + sink.Name, name: name, canon: canon, text: text, pos: pos, alone: len(p.script.Sinks) == 1})
	}
	top := topSteps(sink.root)
	walkNodes(sink.root, func(n Node) {
		switch n := n.(type) {
		case *Filter:
			for _, f := range filterParts(n, &g.authored) {
				class, name := Rebuild, "filter"
				if above(n, top) {
					class, name = Refinalise, "having"
				}
				add(class, name, f.canon, f.text, f.pos)
			}
		case *Aggregate:
			if len(n.Groups) > 0 {
				text, pos := groupWords(n, &g.authored)
				if n.Asked != nil {
					text, pos = n.Asked.word+" "+text, n.Asked.pos
				}
				add(Incompatible, "group by", strings.Join(canonAll(n.Groups, describe(n.In).cols), ", "), text, pos)
				if n.Asked != nil {
					p.plan.parts[len(p.plan.parts)-1].asked = n.Asked.word
				}
			}
			if top[n] {
				return
			}
			for _, a := range n.Aggs { // those of the topmost are in the output columns
				add(Refinalise, "inner aggregate", a.canon(describe(n.In).cols), oneLine(callText(g.text, a.Pos)), a.Pos)
			}
		case *Top:
			below := describe(n.In).cols
			add(Incompatible, "partition by", strings.Join(canonAll(n.Parts, below), ", "), n.text, n.Pos)
			add(Rebuild, "order by", fmt.Sprintf("%s first %d", canonKeys(n.Order, below), n.Rows), n.text, n.Pos)
		case *Union:
			word := "UNION ALL"
			if n.Sets {
				word = "GROUPING SETS"
			}
			add(Incompatible, "union all", branches(n), word, -1)
			p.plan.parts[len(p.plan.parts)-1].asked = lower(word)
		}
	})
	d := describe(sink.root)
	for i, col := range sink.Columns {
		text, pos := columnWords(col.Name, i, len(sink.Columns), s, g)
		add(Refinalise, col.Name, col.Type+" "+d.cols[i], text, pos)
	}
	names := make([]string, len(sink.Key))
	for i, k := range sink.Key {
		names[i] = canonName(k)
	}
	add(Incompatible, "PRIMARY KEY", strings.Join(sorted(names), ", "), "("+strings.Join(sink.Key, ", ")+")", keySpan(s).Start)
}

// filterParts groups the conjuncts of a filter by the WHERE or HAVING they come from.
func filterParts(f *Filter, g *authored) []part {
	below := describe(f.In).cols
	var out []part
	conjuncts := map[int][]string{} // by place
	for _, e := range f.Conjuncts {
		text, pos := g.words(e, f.In, whereItem, havingItem)
		if a, ok := f.In.(*Aggregate); ok && a.Asked != nil && pos < 0 {
			text, pos = a.Asked.word, a.Asked.pos
		}
		if conjuncts[pos] == nil {
			out = append(out, part{text: text, pos: pos})
		}
		conjuncts[pos] = append(conjuncts[pos], e.canon(below))
	}
	for i, p := range out {
		out[i].canon = strings.Join(sorted(conjuncts[p.pos]), " and ")
	}
	return out
}

// groupWords are the author's for the groups of an aggregate, and where the first stands.
func groupWords(a *Aggregate, g *authored) (string, int) {
	type found struct {
		text string
		pos  int
	}
	var list []found
	for _, e := range a.Groups {
		text, pos := g.words(e, a.In, groupItem, selectItem)
		if text == "" {
			text = e.canon(describe(a.In).cols)
		}
		list = append(list, found{text, pos})
	}
	slices.SortStableFunc(list, func(a, b found) int { return a.pos - b.pos })
	var texts []string
	first := -1
	for _, f := range list {
		texts = append(texts, f.text)
		if first < 0 {
			first = f.pos
		}
	}
	return strings.Join(texts, ", "), first
}

// columnWords finds what the author wrote for an output column: by its alias, or by its place when the
// SELECT list has no star.
func columnWords(name string, at, width int, s *sql.Sink, g *gate) (string, int) {
	var list []item
	for _, it := range g.items {
		if it.kind != selectItem || it.start < s.Select.Span.Start || it.end > s.Select.Span.End {
			continue
		}
		if len(list) > 0 && it.depth < list[0].depth {
			list = nil // those were in a subquery
		}
		if len(list) == 0 || it.depth == list[0].depth {
			list = append(list, it)
		}
	}
	for _, it := range list {
		if strings.EqualFold(it.alias, name) || it.alias == "" && strings.EqualFold(it.column, name) {
			return g.snippet(it), it.start
		}
	}
	if len(list) == width {
		return g.snippet(list[at]), list[at].start
	}
	return name, -1
}

// topSteps are those whose rows reach the table: above them are projections, filters and unions.
func topSteps(n Node) map[Node]bool {
	out := map[Node]bool{}
	var visit func(Node)
	visit = func(n Node) {
		if _, key := stepKey(n); key != "" {
			out[n] = true
			return
		}
		for _, in := range n.inputs() {
			visit(in)
		}
	}
	visit(n)
	return out
}

// above: the filter is one of finished aggregates, a HAVING.
func above(f *Filter, top map[Node]bool) bool {
	found := false
	for n := range topSteps(f) {
		found = found || top[n]
	}
	return found
}

// branches names what a union is of, without the filters and groups there: these are parts of their own.
func branches(n Node) string {
	switch n := n.(type) {
	case *Scan:
		return describe(n).rows
	case *Union:
		parts := make([]string, len(n.Ins))
		for i, in := range n.Ins {
			parts[i] = branches(in)
		}
		return "union(" + strings.Join(sorted(parts), ", ") + ")"
	}
	return branches(n.inputs()[0])
}

func (p *planning) sourceParts() {
	used := usedColumns(p.plan)
	for _, s := range p.plan.Sources {
		c := canonSource(s, used[s.Name])
		add := func(name, canon, text string, pos int) {
			p.plan.parts = append(p.plan.parts, part{class: Incompatible, of: "source " + s.Name, name: name, canon: canon, text: text, pos: pos})
		}
		from := s.Decl.Head.Start
		if s.Decl.FromTable == nil {
			from = s.Decl.From.Span.Start
		}
		add("FROM", c.From, "FROM "+c.From, from)
		for _, o := range s.Decl.With {
			if canon := canonOption(o); canon != "" {
				add("option "+strings.ToLower(o.Name.Text), canon, oneLine(p.script.Text[o.Span.Start:o.Span.End]), o.Span.Start)
			}
		}
		if w := s.Decl.Watermark; w != nil {
			add("WATERMARK", c.Watermark, oneLine(p.script.Text[w.Span.Start:w.Span.End]), w.Span.Start)
		}
		for i, check := range s.Checks {
			decl := s.Decl.Checks[i]
			add("CHECK "+cmp.Or(check.Name, fmt.Sprint(i+1)), check.canon, oneLine(decl.Expr.Text), decl.Span.Start)
		}
		for i, col := range s.Decl.Columns {
			add("column "+col.Name.Text, canonColumn(s.Columns[i]), oneLine(p.script.Text[col.Span.Start:col.Span.End]), col.Span.Start)
		}
		if len(s.Decl.Columns) > 0 {
			continue
		}
		for _, col := range s.Shown() {
			if used[s.Name][col.Name] {
				add("column "+col.Name, canonColumn(col), col.Name+" "+col.Type, s.Decl.Head.Start)
			}
		}
	}
}
