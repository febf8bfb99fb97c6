package planner

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
)

// The order that a result depends on must leave no tie: among equal rows, DuckDB takes another one from
// run to run. Either it is proven to be unique, or the rows that tie are equal in all that is read of
// them, or the row's place in the input decides, in the direction of the last key of the order.

// tie says what decides between rows that are equal in an order.
type tie int

const (
	noTies  tie = iota // there are none
	sameTie            // they are equal in everything
	byPlace            // the place of the row in its file
	open               // nothing
)

// The hidden columns of a source that are a row's place.
const (
	placeFile = "_etl_file"
	placeRow  = "_etl_row"
)

// PlacedRelation is the relation of a source with its hidden columns, which Sink.OneShot may read.
func PlacedRelation(source string) string { return "_placed_" + source }

// placeColumns are what a source must give for the place of its rows.
func placeColumns() []Column {
	return []Column{{Name: placeFile, Type: "VARCHAR", Metadata: "filename", Hidden: true}, {Name: placeRow, Type: "BIGINT", Metadata: "file_row_number", Hidden: true}}
}

// ties tells what decides between rows of in that are equal in all of the keys.
func ties(in Node, keys []*Expr) tie {
	var plain []int
	for _, k := range keys {
		if k.Op == opRef {
			plain = append(plain, k.Ref)
		}
	}
	if (facts{}).unique(in, plain) {
		return noTies
	}
	same := true
	for i, typ := range in.Types() {
		same = same && slices.Contains(plain, i) && oneLook(typ)
	}
	switch {
	case same:
		return sameTie
	case placed(in):
		return byPlace
	}
	return open
}

// oneLook: equal values of the type are the same value. 0.0 and −0.0 are not, nor 1 month and 30 days.
func oneLook(typ string) bool {
	return !isFloat(typ) && !isNested(typ) && typ != "INTERVAL" && typ != "TIME WITH TIME ZONE" && typ != "JSON"
}

// placed: every row of n is a row of one source, so that it has a place.
func placed(n Node) bool {
	switch n := n.(type) {
	case *Scan:
		return true
	case *Filter:
		return placed(n.In)
	}
	return false
}

// withPlaces adds the place to every order that needs it, and tells which sources must give it. The
// result of a Top has the same columns as before.
func withPlaces(root Node, sources map[string]bool) Node {
	var rec func(Node) Node
	rec = func(n Node) Node {
		n = mapInputs(n, rec)
		if a, ok := n.(*Aggregate); ok {
			return a.withPlaces(sources)
		}
		top, ok := n.(*Top)
		if !ok || top.ties() != byPlace {
			return n
		}
		width := len(top.In.Types())
		in := addPlace(top.In, sources)
		exprs := append(refs(top.In.Types()), ref(width+2, "BIGINT"))
		return &Project{In: &Top{In: in, Over: Over{Parts: top.Parts, Order: byPlaceToo(top.Order, width), Pos: top.Pos, text: top.text}, Rows: top.Rows}, Exprs: exprs}
	}
	return merge(rec(root))
}

func (a *Aggregate) withPlaces(sources map[string]bool) Node {
	out := a.with(a.In, a.Groups, slices.Clone(a.Aggs))
	width := len(a.In.Types())
	for i, g := range a.Aggs {
		if len(g.Order) == 0 || g.ties(a.Groups, a.In) != byPlace {
			continue
		}
		if out.In == a.In {
			out.In = addPlace(a.In, sources)
		}
		completed := *g
		completed.Order = byPlaceToo(g.Order, width)
		out.Aggs[i] = &completed
	}
	return out
}

// byPlaceToo appends the place, whose columns start at width.
func byPlaceToo(order []sortKey, width int) []sortKey {
	desc := order[len(order)-1].desc
	return append(slices.Clone(order), sortKey{expr: ref(width, "VARCHAR"), desc: desc}, sortKey{expr: ref(width+1, "BIGINT"), desc: desc})
}

// addPlace puts the place behind the columns of a scan and what filters it.
func addPlace(n Node, sources map[string]bool) Node {
	if f, ok := n.(*Filter); ok {
		return &Filter{In: addPlace(f.In, sources), Conjuncts: f.Conjuncts}
	}
	s := n.(*Scan)
	sources[s.Source] = true
	return &Scan{Source: s.Source, Replaced: s.Replaced, Cols: append(slices.Clone(s.Cols), placeFile, placeRow), Type: append(slices.Clone(s.Type), "VARCHAR", "BIGINT")}
}

// hasPlace: the scan reads the place.
func (s *Scan) hasPlace() bool { return slices.Contains(s.Cols, placeRow) }

func (n *Top) ties() tie { return ties(n.In, n.exprs()) }

// byItsPlace: an order over the rows of a node ends with the row's place.
func byItsPlace(in Node) bool {
	for {
		switch x := in.(type) {
		case *Filter:
			in = x.In
			continue
		case *Scan:
			return x.hasPlace()
		}
		return false
	}
}

// order refuses a window or a LIMIT whose result nothing decides.
func (c *checker) order(n *Top, in []exactness) {
	for _, k := range n.Order {
		if c.inexact(k.expr, in) {
			c.refuse(k.expr.position(), exactHint, "ordering by a floating-point aggregate could decide differently from run to run")
			return
		}
	}
	if len(n.Order) == 0 && n.ties() == byPlace || n.ties() == open {
		c.refuse(n.Pos, n.orderHint(), "%s", n.orderFault())
	}
}

func (n *Top) orderFault() string {
	if len(n.Order) == 0 {
		return "without an ORDER BY, which rows are the first is another question at every run"
	}
	return "the order does not decide between all rows, so the result could differ from run to run"
}

// orderHint names the columns that would make the order unique.
func (n *Top) orderHint() string {
	if len(n.Order) == 0 {
		return "add ORDER BY: row_number() OVER (PARTITION BY key ORDER BY ts DESC), SELECT DISTINCT ON (key) … ORDER BY key, ts DESC"
	}
	return orderHint(n.In, n.exprs())
}

func orderHint(in Node, keys []*Expr) string {
	if lacking, ok := (facts{}).lacking(in, plainRefs(keys)); ok {
		var missing []string
		for _, i := range lacking {
			name := plainColumn(ref(i, ""), in)
			if name == "" {
				name = describe(in).cols[i]
			}
			missing = append(missing, name)
		}
		return fmt.Sprintf("add %s to the ORDER BY", strings.Join(missing, ", "))
	}
	return "add a column to the ORDER BY that is never the same in two rows"
}

// addPlaces makes a sink's orders unique by the place of its rows. The author's SELECT leaves open which
// of equal rows comes first; what is compared with the table is then the plan itself, written out, which
// has been proven to mean what the author's does. It is false after a fault.
func (p *planning) addPlaces(sink *Sink) bool {
	sources := map[string]bool{}
	root := withPlaces(sink.root, sources)
	if len(sources) == 0 {
		return true
	}
	sink.root = root
	names := make([]string, len(sink.Columns))
	for i, c := range sink.Columns {
		names[i] = fmt.Sprintf("c%d AS %s", i, duck.Quote(c.Name))
	}
	sink.OneShot = "SELECT " + strings.Join(names, ", ") + " FROM (" + query(root) + ")"
	for i := range p.plan.Sources {
		s := &p.plan.Sources[i]
		if sources[s.Name] && len(s.Shown()) == len(s.Columns) && !p.addPlaceTo(s) {
			return false
		}
	}
	return true
}

// addPlaceTo gives a source the columns of the place. It is false after a fault.
func (p *planning) addPlaceTo(s *Source) bool {
	for _, c := range s.Columns {
		if lower(c.Name) == placeFile || lower(c.Name) == placeRow {
			p.fault(s.Decl.Head, "give it another name", "the column name %s is taken by the place of a row", c.Name)
			return false
		}
	}
	s.Columns = append(s.Columns, placeColumns()...)
	return true
}
