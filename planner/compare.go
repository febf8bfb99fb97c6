package planner

import (
	"slices"
	"strings"

	"lockstep/sql"
)

// facet is one nameable part of what a pipeline means, with its text in the author's file.
type facet struct {
	class Class
	name  string // what the author calls it
	canon string
	text  string // the author's words
	pos   int
}

// Class says what a change costs, as in the compatibility table of docs/protocol.md.
type Class string

const (
	Refinalise   Class = "refinalise"   // every row can be computed again from the kept state
	Rebuild      Class = "rebuild"      // the kept state is of the old meaning; input must be read again
	Incompatible Class = "incompatible" // keys, tables or sources are other ones
	Environment  Class = "environment"  // same pipeline, other DuckDB or time zone data
)

// Difference is one change between two plans, in the author's words.
type Difference struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Col  int    `json:"column"`
	Name string `json:"name"`
	Old  string `json:"old,omitempty"` // "" when it is new
	New  string `json:"new,omitempty"` // "" when it is gone
}

// Comparison tells how the pipeline's meaning changed since the plan before.
type Comparison struct {
	Class       Class        `json:"class"`
	Why         string       `json:"why"`
	Differences []Difference `json:"differences"`
}

// Same: the two plans mean the same, so state kept under one serves the other.
func Same(a, b Hash) bool { return a.Input == b.Input && a.State == b.State && a.Output == b.Output }

// Compare explains what changed from one plan to the next.
func Compare(old, now *Plan) Comparison {
	c := Comparison{Class: Refinalise}
	worst := func(class Class) {
		if class == Incompatible || c.Class == Refinalise {
			c.Class = class
		}
	}
	for _, f := range now.facets {
		was := find(old.facets, f)
		if was != nil && was.canon == f.canon {
			continue
		}
		d := Difference{File: now.Script.File, Name: f.name, New: f.text}
		d.Line, d.Col = place(now.Script, f.pos)
		if was != nil {
			d.Old = was.text
		}
		c.Differences = append(c.Differences, d)
		worst(f.class)
	}
	for _, f := range old.facets {
		if find(now.facets, f) != nil {
			continue
		}
		d := Difference{File: now.Script.File, Name: f.name, Old: f.text}
		d.Line, d.Col = place(now.Script, now.sinkStart())
		c.Differences = append(c.Differences, d)
		worst(f.class)
	}
	// An output expression can come from accumulators that exist only if the state is the same.
	if c.Class == Refinalise && old.Hash.State != now.Hash.State {
		c.Class = Rebuild
	}
	if len(c.Differences) == 0 && !Same(old.Hash, now.Hash) {
		line, col := place(now.Script, now.sinkStart())
		c.Class = Rebuild
		c.Differences = []Difference{{File: now.Script.File, Line: line, Col: col, Name: "the shape of the query"}}
	}
	c.Why = c.Class.why()
	return c
}

func (c Class) why() string {
	switch c {
	case Refinalise:
		return "output columns changed; the kept state still serves"
	case Rebuild:
		return "a kept aggregate or a filter below it changed"
	case Environment:
		return "the same pipeline on another DuckDB"
	}
	return "a key, table, group or source changed"
}

func find(facets []facet, f facet) *facet {
	i := slices.IndexFunc(facets, func(x facet) bool { return x.name == f.name && x.class == f.class })
	if i < 0 {
		return nil
	}
	return &facets[i]
}

func (p *Plan) sinkStart() int { return p.Script.Sinks[0].Head.Start }

func place(script *sql.Script, pos int) (line, col int) {
	if pos < 0 {
		pos = 0
	}
	e := script.Errorf(sql.Span{Start: pos, End: pos}, "", "")
	return e.Line, e.Col
}

// facets records the nameable parts of a sink and, with the first sink, of the sources.
func (p *planning) facets(q composed, s *sql.Sink, sink *Sink, tree object) {
	if len(p.plan.facets) == 0 {
		p.sourceFacets()
	}
	add := func(class Class, name, canon, text string, pos int) {
		p.plan.facets = append(p.plan.facets, facet{class: class, name: sink.Name + ": " + name, canon: canon, text: text, pos: pos})
	}
	d := describe(sink.root)
	for _, g := range groupFacets(sink.root) {
		pos := q.file(g.pos)
		if pos < 0 {
			pos = s.Select.Span.Start
		}
		add(Incompatible, "group by", g.canon, g.text, pos)
	}
	text, pos := s.Select.Text, s.Select.Span.Start
	if where := child(tree, "where_clause"); where != nil {
		if at := q.file(firstPosition(where)); at >= 0 {
			text, pos = snippet(p.script.Text, at), at
		}
	}
	if below, above := filterFacets(sink.root); below+above != "" {
		add(Rebuild, "filter", below, orNone(below, text), pos)
		hpos, htext := s.Select.Span.Start, above
		if having := child(tree, "having"); having != nil {
			if at := q.file(firstPosition(having)); at >= 0 {
				hpos, htext = at, snippet(p.script.Text, at)
			}
		}
		add(Refinalise, "having", above, orNone(above, htext), hpos)
	} else {
		add(Rebuild, "filter", "", "", s.Select.Span.Start)
		add(Refinalise, "having", "", "", s.Select.Span.Start)
	}
	items := children(tree, "select_list")
	for i, col := range sink.Columns {
		at := -1
		if len(items) == len(sink.Columns) {
			at = q.file(firstPosition(items[i]))
		}
		text := col.Name
		if at >= 0 {
			text = snippet(p.script.Text, at)
		} else {
			at = s.Select.Span.Start
		}
		add(Refinalise, col.Name, col.Type+" "+d.cols[i], text, at)
	}
	key := squeeze(joinNames(columnNames(sink.Columns), sink.key))
	add(Incompatible, "PRIMARY KEY", sortedList(key), "("+key+")", keySpan(s).Start)
}

func orNone(canon, text string) string {
	if canon == "" {
		return ""
	}
	return text
}

func sortedList(s string) string {
	parts := strings.Split(s, ", ")
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (p *planning) sourceFacets() {
	for _, s := range p.plan.Sources {
		used := map[string]bool{}
		for _, col := range s.Columns {
			used[col.Name] = len(s.Decl.Columns) > 0
		}
		c := canonSource(s, used)
		add := func(name, canon, text string, pos int) {
			p.plan.facets = append(p.plan.facets, facet{class: Incompatible, name: "source " + s.Name + name, canon: canon, text: text, pos: pos})
		}
		add("", c.From+c.Watermark, c.From, s.Decl.Head.Start)
		add(": WITH", strings.Join(c.Options, ", "), strings.Join(c.Options, ", "), s.Decl.Head.Start)
		for i, col := range s.Decl.Columns {
			canon := canonColumn(s.Columns[i])
			add(": column "+col.Name.Text, canon, squeeze(p.script.Text[col.Span.Start:col.Span.End]), col.Span.Start)
		}
	}
}

type groupFacet struct {
	canon, text string
	pos         int
}

// groupFacets describes the groups of the topmost aggregate.
func groupFacets(root Node) []groupFacet {
	a := topAggregate(root)
	if a == nil {
		return nil
	}
	in := describe(a.In)
	groups := canonAll(a.Groups, in.cols)
	pos := -1
	for _, g := range a.Groups {
		if at := g.position(); at >= 0 && (pos < 0 || at < pos) {
			pos = at
		}
	}
	return []groupFacet{{canon: strings.Join(groups, ", "), text: strings.Join(groups, ", "), pos: pos}}
}

func topAggregate(n Node) *Aggregate {
	for {
		switch x := n.(type) {
		case *Project:
			n = x.In
		case *Filter:
			n = x.In
		case *Shared:
			n = x.In
		case *Aggregate:
			return x
		default:
			return nil
		}
	}
}

// filterFacets gives the conjuncts below and above the topmost aggregate.
func filterFacets(root Node) (below, above string) {
	collect := func(n Node) string {
		var parts []string
		walkNodes(n, func(n Node) {
			if f, ok := n.(*Filter); ok {
				parts = append(parts, canonConjuncts(f.Conjuncts, describe(f.In).cols))
			}
		})
		slices.Sort(parts)
		return strings.Join(slices.Compact(parts), " and ")
	}
	a := topAggregate(root)
	if a == nil {
		return collect(root), ""
	}
	n := root
	for n != Node(a) {
		if f, ok := n.(*Filter); ok {
			above = canonConjuncts(f.Conjuncts, describe(f.In).cols)
		}
		n = n.inputs()[0]
	}
	return collect(a.In), above
}

// snippet is the author's text of an expression that starts at an offset: up to a comma, a closing
// parenthesis or a clause at its own depth.
func snippet(text string, start int) string {
	depth, i := 0, start
scan:
	for i < len(text) {
		switch c := text[i]; {
		case c == '\'' || c == '"':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				i = len(text)
				break scan
			}
			i += end + 2
			continue
		case c == '-' && strings.HasPrefix(text[i:], "--"):
			if depth == 0 {
				break scan
			}
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				i = len(text)
				break scan
			}
			i += end
			continue
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			if depth == 0 {
				break scan
			}
			depth--
		case (c == ',' || c == ';') && depth == 0:
			break scan
		case depth == 0 && isWord(c) && (i == start || !isWord(text[i-1])):
			if endsExpression[strings.ToUpper(text[i:wordAt(text, i).End])] {
				break scan
			}
		}
		i++
	}
	return strings.Join(strings.Fields(text[start:i]), " ")
}

var endsExpression = words("AS FROM WHERE GROUP HAVING ORDER UNION QUALIFY LIMIT WINDOW SELECT")
