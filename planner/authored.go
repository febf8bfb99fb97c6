package planner

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// authored is what the author of a SELECT wrote, by its place in the pipeline file. Bound aggregates
// and plain columns have no position, and bound expressions have only that of their operator: the
// words for them are found here.
type authored struct {
	text      string // of the pipeline file
	calls     []call
	items     []item
	named     []word
	orderings []ordering
	asks      []ask // outermost first: of a chain of UNIONs the last
}

// ask is a DISTINCT, or a set operation without ALL.
type ask struct {
	word  string
	pos   int // of the keyword
	sel   int // which SELECT it is in, 0 for a set operation
	from  int // where the left side of a set operation begins
	depth int
	used  bool
}

// call is a call of an aggregate.
type call struct {
	name     string // canonical
	distinct bool
	filter   bool
	column   string // the argument when it is a plain column
	pos, end int
	sel      int // which SELECT it is in
	used     bool
}

// item is an element of a SELECT list or GROUP BY, a WHERE or a HAVING.
type item struct {
	kind       itemKind
	start, end int
	column     string // when it is a plain column
	alias      string
	sel        int // which SELECT it is in
	depth      int // of that
}

type itemKind int

const (
	selectItem itemKind = iota
	groupItem
	whereItem
	havingItem
)

// word is a name or constant of the author's.
type word struct {
	name string
	pos  int
}

func (g *gate) callOf(o object, name string, args []any, pos int) call {
	name = canonicalAggregate(name)
	c := call{name: name, distinct: isSet(o, "distinct") && !sameDistinct(name), filter: child(o, "filter") != nil, pos: pos, sel: g.sel}
	if len(args) == 1 {
		arg, _ := args[0].(object)
		if parts := children(arg, "column_names"); len(parts) > 0 {
			c.column, _ = parts[len(parts)-1].(string)
		}
	}
	c.end = pos + len(callText(g.text, pos))
	return c
}

// itemsOf records the parts of one SELECT.
func (g *gate) itemsOf(o object) {
	add := func(kind itemKind, v any) {
		start := g.first(v)
		if start < 0 {
			return
		}
		for start > 0 && strings.ContainsRune("( \n\t\r", rune(g.text[start-1])) { // (a + b) * c starts at its bracket
			if before := strings.TrimRight(g.text[:start], " \n\t\r"); !strings.HasSuffix(before, "(") || setsOpen.MatchString(before) {
				break
			} else {
				start = len(before) - 1
			}
		}
		it := item{kind: kind, start: start, sel: g.sel, depth: g.depth}
		it.end = start + len(rawSnippet(g.text, start, kind == selectItem || kind == groupItem))
		if x, _ := v.(object); x != nil {
			it.alias = text(x, "alias")
			if parts := children(x, "column_names"); len(parts) > 0 {
				it.column, _ = parts[len(parts)-1].(string)
			}
		}
		g.items = append(g.items, it)
	}
	for _, x := range children(o, "select_list") {
		add(selectItem, x)
	}
	for _, x := range children(o, "group_expressions") {
		add(groupItem, x)
	}
	add(whereItem, o["where_clause"])
	add(havingItem, o["having"])
	g.wordsOf(o)
}

// setsOpen is the bracket of grouping sets, which is not one of an expression.
var setsOpen = regexp.MustCompile(`(?i)\b(rollup|cube|sets)\s*\($`)

// wordsOf records the names and constants of one SELECT, in order of position.
func (g *gate) wordsOf(v any) {
	switch v := v.(type) {
	case object:
		if pos := g.at(v); pos >= 0 {
			switch text(v, "class") {
			case "COLUMN_REF":
				for _, part := range children(v, "column_names") {
					name, _ := part.(string)
					g.named = append(g.named, word{name, pos})
				}
			case "FUNCTION":
				g.named = append(g.named, word{text(v, "function_name"), pos})
			case "CONSTANT":
				if s, ok := child(v, "value")["value"].(string); ok {
					g.named = append(g.named, word{s, pos})
				}
			}
		}
		for _, c := range v {
			g.wordsOf(c)
		}
	case []any:
		for _, c := range v {
			g.wordsOf(c)
		}
	}
}

// locate gives every bound aggregate the position of its call, and every group that is a plain column
// that of its name in the GROUP BY. The outer SELECT comes first in the tree.
func (a *authored) locate(n Node) {
	taken := map[int]bool{}
	walkNodes(n, func(n Node) {
		switch n := n.(type) {
		case *Window:
			for _, c := range n.Calls {
				a.locateOrder("row_number", c)
			}
		case *Top:
			a.locateOrder(n.bound, &n.Over)
		}
		agg, ok := n.(*Aggregate)
		if !ok || agg.located() {
			return
		}
		if agg.Asked != nil {
			a.locateAsked(agg)
			return
		}
		sel := a.selectOf(agg, taken)
		taken[sel] = true
		for _, x := range agg.Aggs {
			if c := a.callFor(x, agg.In, sel); c != nil {
				c.used, x.Pos = true, c.pos
			}
		}
		for _, g := range agg.Groups {
			if g.Op == opRef && g.Pos < 0 {
				if it := a.itemFor(g.Name, sel); it != nil {
					g.Pos = it.start
				}
			}
		}
	})
}

// locateAsked finds the DISTINCT or set operation that distinct rows are from, and its columns: those of
// the first SELECT.
func (a *authored) locateAsked(agg *Aggregate) {
	at := slices.IndexFunc(a.asks, func(k ask) bool { return !k.used && k.word == agg.Asked.word })
	if at < 0 {
		return
	}
	k := &a.asks[at]
	k.used = true
	agg.Asked.pos = k.pos
	for _, g := range agg.Groups {
		at := slices.IndexFunc(a.items, func(it item) bool {
			here := it.sel == k.sel || k.sel == 0 && it.start >= k.from && it.start < k.pos
			return here && it.kind == selectItem && g.Name != "" && (strings.EqualFold(it.column, g.Name) || strings.EqualFold(it.alias, g.Name))
		})
		if at >= 0 {
			g.Pos = a.items[at].start
		}
	}
}

// located: a common table expression is met once for each of its readers.
func (n *Aggregate) located() bool {
	return n.Asked != nil && n.Asked.pos >= 0 || slices.ContainsFunc(n.Aggs, func(a *Agg) bool { return a.Pos >= 0 })
}

// selectOf finds the SELECT an aggregate was bound from: one that has a call for each of its functions
// and a name for each of its plain groups. Of several, the outermost that is left.
func (a *authored) selectOf(agg *Aggregate, taken map[int]bool) int {
	best, bestDepth := 0, 0
	for _, it := range a.items {
		if taken[it.sel] || best == it.sel || best != 0 && it.depth >= bestDepth {
			continue
		}
		fits := true
		for _, x := range agg.Aggs {
			fits = fits && a.callFor(x, agg.In, it.sel) != nil
		}
		for _, g := range agg.Groups {
			fits = fits && (g.Op != opRef || g.Pos >= 0 || a.itemFor(g.Name, it.sel) != nil)
		}
		if fits {
			best, bestDepth = it.sel, it.depth
		}
	}
	return best
}

// itemFor is what the author wrote for a group that is a plain column: in the GROUP BY, or, for GROUP
// BY ALL and ordinals, in the SELECT list.
func (a *authored) itemFor(column string, sel int) *item {
	for _, kind := range []itemKind{groupItem, selectItem} {
		for i := range a.items {
			it := &a.items[i]
			if it.kind == kind && it.sel == sel && column != "" && strings.EqualFold(it.column, column) {
				return it
			}
		}
	}
	return nil
}

// callFor is a call in a SELECT that an aggregate can come from, one that has no other if there is.
func (a *authored) callFor(agg *Agg, in Node, sel int) *call {
	var best *call
	for i := range a.calls {
		c := &a.calls[i]
		if c.sel == sel && c.name == cmp.Or(agg.wrote, agg.Name) && c.distinct == agg.Distinct && c.filter == agg.hasFilter() && (best == nil || best.used && !c.used) && c.holds(agg, in) {
			best = c
		}
	}
	return best
}

// hasFilter: the author wrote a FILTER.
func (a *Agg) hasFilter() bool {
	if a.wrote != "" {
		return a.filtered
	}
	return a.Filter != nil
}

// holds: the bound aggregate can come from this call.
func (c *call) holds(agg *Agg, in Node) bool {
	if len(agg.Args) == 1 {
		if plain := plainColumn(agg.Args[0], in); plain != "" && c.column != "" {
			return strings.EqualFold(c.column, plain)
		}
		if pos := agg.Args[0].position(); pos >= 0 {
			return pos >= c.pos && pos < c.end
		}
	}
	if agg.Filter != nil {
		if pos := agg.Filter.position(); pos >= 0 {
			return pos >= c.pos && pos < c.end
		}
	}
	return true
}

// plainColumn is the source column an expression reads, through casts; "" when it is not one.
func plainColumn(e *Expr, in Node) string {
	for e.Op == opCast {
		e = e.Args[0]
	}
	if e.Op != opRef {
		return ""
	}
	switch in := in.(type) {
	case *Scan:
		return in.Cols[e.Ref]
	case *Filter:
		return plainColumn(e, in.In)
	case *Top:
		if e.Ref < len(in.In.Types()) {
			return plainColumn(e, in.In)
		}
	case *Project:
		return plainColumn(in.Exprs[e.Ref], in.In)
	case *Aggregate:
		if e.Ref < len(in.Groups) {
			return plainColumn(in.Groups[e.Ref], in.In)
		}
	}
	return ""
}

// owner is the smallest item that an offset lies in; nil when there is none.
func (a *authored) owner(pos int) *item {
	var best *item
	for i := range a.items {
		it := &a.items[i]
		if pos >= it.start && pos < it.end && (best == nil || it.end-it.start <= best.end-best.start) {
			best = it
		}
	}
	return best
}

// words are the author's for an expression over in, and where they stand: an item of the kinds rather
// than another. A plain column is found by its name among them, else it stands for itself.
func (a *authored) words(e *Expr, in Node, kinds ...itemKind) (string, int) {
	column := plainColumn(e, in)
	if column != "" && e.Op == opRef {
		for _, kind := range kinds {
			for _, it := range a.items {
				if it.kind == kind && strings.EqualFold(it.column, column) {
					return a.snippet(it), it.start
				}
			}
		}
		return column, -1
	}
	var best *item
	e.walk(func(x *Expr) {
		it := a.owner(x.Pos)
		if it != nil && (best == nil || slices.Contains(kinds, it.kind) && !slices.Contains(kinds, best.kind)) {
			best = it
		}
	})
	if best != nil {
		return a.snippet(*best), best.start
	}
	if pos := e.position(); pos >= 0 {
		return oneLine(a.text[pos:wordAt(a.text, pos).End]), pos
	}
	return column, -1
}

func (a *authored) snippet(it item) string { return oneLine(a.text[it.start:it.end]) }
