package planner

import (
	"cmp"
	"slices"
	"strings"

	"lockstep/sql"
)

// Class says what a change costs, as in the compatibility table of docs/protocol.md.
type Class string

const (
	None         Class = "none"         // the plans are the same
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
	if Same(old.Hash, now.Hash) {
		c := Comparison{Class: None}
		if old.Hash.Env != now.Hash.Env {
			c.Class = Environment
		}
		c.Why = c.Class.why()
		return c
	}
	changes := append(sinkChanges(old, now), partChanges(old.parts, now.parts)...)
	c := Comparison{Class: Refinalise}
	for _, ch := range changes {
		if ch.class == Incompatible || ch.class == Rebuild && c.Class == Refinalise {
			c.Class = ch.class
		}
	}
	if c.Class == Refinalise && !keptAlready(old, now) {
		c.Class = Rebuild
	}
	c.Differences = differences(now.Script, said(changes))
	if len(c.Differences) == 0 {
		c.Differences = differences(now.Script, []change{{name: "the shape of the query", pos: now.Script.Sinks[0].Select.Span.Start}})
	}
	c.Why = c.Class.why()
	if len(changes) > 0 && !slices.ContainsFunc(changes, func(ch change) bool { return !ch.sink }) && c.Class != Incompatible {
		c.Why = "the set of tables changed; the others mean the same"
	}
	return c
}

func (c Class) why() string {
	switch c {
	case None:
		return "the pipeline means the same"
	case Refinalise:
		return "output columns changed; the kept state still serves"
	case Rebuild:
		return "a kept aggregate or a filter below it changed"
	case Environment:
		return "the same pipeline on another DuckDB"
	}
	return "a key, table, group or source changed"
}

// change is a difference on its way to be one: pos is in the new file.
type change struct {
	class    Class
	name     string
	old, now string
	pos      int
	sink     bool // a whole sink is new or gone
}

// sinkChanges: a table the old plan has not, or the new one has no more.
func sinkChanges(old, now *Plan) []change {
	var out []change
	for _, s := range now.Sinks {
		if !hasSink(old, s) {
			out = append(out, change{class: Rebuild, name: "sink " + s.Name, now: headText(now.Script, s.Decl), pos: s.Decl.Head.Start, sink: true})
		}
	}
	for _, s := range old.Sinks {
		if !hasSink(now, s) {
			class := Refinalise
			if len(out) > 0 && out[0].class != Refinalise { // one went and one came: a renamed table
				class = Incompatible
			}
			out = append(out, change{class: class, name: "sink " + s.Name, old: headText(old.Script, s.Decl), pos: now.Script.Sinks[0].Head.Start, sink: true})
		}
	}
	return out
}

func hasSink(p *Plan, s Sink) bool {
	return slices.ContainsFunc(p.Sinks, func(x Sink) bool { return lower(x.Name) == lower(s.Name) })
}

func headText(script *sql.Script, s *sql.Sink) string {
	return oneLine(script.Text[s.Head.Start:s.Head.End])
}

// partChanges pairs what is not the same in both plans: by its name, then by its order.
func partChanges(old, now []part) []change {
	key := func(p part) string { return lower(p.of) + "\x00" + lower(p.name) }
	owners := map[string]int{} // bit 1: in the old plan, bit 2: in the new
	left := map[string][]part{}
	for _, p := range old {
		owners[lower(p.of)] |= 1
		left[key(p)] = append(left[key(p)], p)
	}
	var fresh []part
	for _, p := range now {
		owners[lower(p.of)] |= 2
		same := slices.IndexFunc(left[key(p)], func(o part) bool { return o.canon == p.canon })
		if same >= 0 {
			left[key(p)] = slices.Delete(left[key(p)], same, same+1)
		} else {
			fresh = append(fresh, p)
		}
	}
	var out []change
	add := func(p part, was, is string) {
		if owners[lower(p.of)] != 3 && (isSink(p) || p.name != "FROM") {
			return // that the whole sink or source is new or gone is told once
		}
		out = append(out, change{class: p.class, name: p.title(), old: was, now: is, pos: p.pos})
	}
	for _, p := range fresh {
		was := ""
		if olds := left[key(p)]; len(olds) > 0 {
			was, left[key(p)] = olds[0].text, olds[1:]
		}
		add(p, was, p.text)
	}
	for _, p := range old {
		if olds := left[key(p)]; len(olds) > 0 && olds[0] == p {
			left[key(p)] = olds[1:]
			p.pos = ownerPos(now, p.of)
			add(p, p.text, "")
		}
	}
	return out
}

func isSink(p part) bool { return strings.HasPrefix(p.of, "sink ") }

// title names a part in a message; an output column is named by itself.
func (p part) title() string {
	name := cmp.Or(p.asked, p.name)
	if isSink(p) && p.alone {
		return name
	}
	return p.of + ": " + name
}

// ownerPos is where the sink or source of a part that is gone stands now.
func ownerPos(parts []part, of string) int {
	for _, p := range parts {
		if lower(p.of) == lower(of) && (p.name == "PRIMARY KEY" || p.name == "FROM") {
			return p.pos
		}
	}
	return 0
}

// said leaves out changes that show only as a consequence of another: their text is the same.
func said(changes []change) []change {
	var out []change
	for _, c := range changes {
		if c.old != c.now {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return changes
	}
	return out
}

// keptAlready: what the new plan keeps, the old one keeps too.
func keptAlready(old, now *Plan) bool {
	return !slices.ContainsFunc(now.state, func(s canonicalState) bool { return !kept(old, s) })
}

func kept(old *Plan, s canonicalState) bool {
	i := slices.IndexFunc(old.state, func(o canonicalState) bool { return o.Step == s.Step && o.Rows == s.Rows })
	if i < 0 {
		return false
	}
	return !slices.ContainsFunc(s.Keeps, func(k string) bool { return !slices.Contains(old.state[i].Keeps, k) })
}

func differences(script *sql.Script, changes []change) []Difference {
	slices.SortStableFunc(changes, func(a, b change) int { return a.pos - b.pos })
	var out []Difference
	for _, c := range changes {
		e := script.Errorf(sql.Span{Start: c.pos, End: c.pos}, "", "")
		out = append(out, Difference{File: script.File, Line: e.Line, Col: e.Col, Name: c.name, Old: c.old, New: c.now})
	}
	return out
}
