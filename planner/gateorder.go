package planner

import (
	"slices"
	"strings"
)

// What the author wrote where rows are ordered: windows, DISTINCT ON, and ORDER BY with LIMIT.

// ordering is one of them.
type ordering struct {
	kind  string   // the window function, "distinct on" or "limit"
	names []string // columns of partition and order, lower case; "" for what is no plain column
	pos   int
	text  string
	used  bool
}

func (g *gate) window(o object) {
	name, pos := text(o, "function_name"), g.at(o)
	if lower(name) != "row_number" {
		g.refuse(pos, windowHint, "window function %s is not supported by this version", name)
		return
	}
	names := append(plainNamesOf(o["partitions"]), orderNames(o["orders"])...)
	g.orderings = append(g.orderings, ordering{kind: "row_number", names: names, pos: pos, text: overText(g.text, pos)})
}

// modifiers looks at DISTINCT ON, ORDER BY and LIMIT of one SELECT.
func (g *gate) modifiers(o object) {
	var order, limit object
	for _, m := range children(o, "modifiers") {
		modifier, _ := m.(object)
		switch text(modifier, "type") {
		case "ORDER_MODIFIER":
			order = modifier
		case "LIMIT_MODIFIER":
			limit = modifier
		case "DISTINCT_MODIFIER":
			targets := modifier["distinct_on_targets"]
			if len(children(modifier, "distinct_on_targets")) > 0 {
				pos := g.keywordBefore(g.first(targets), "distinct")
				end := closing(g.text, g.keywordBefore(g.first(targets), "("))
				g.orderings = append(g.orderings, ordering{kind: "distinct on", names: plainNamesOf(targets), pos: pos, text: oneLine(g.text[max(pos, 0):max(end, pos, 0)])})
			}
		}
	}
	if limit == nil {
		return
	}
	pos := g.keywordBefore(g.first(limit), "limit")
	if order == nil {
		g.refuse(pos, limitHint, limitWithoutOrder)
		return
	}
	text := ""
	if start := g.keywordBefore(g.first(order), "order"); start >= 0 && pos >= start {
		text = oneLine(g.text[start : pos+len(rawSnippet(g.text, pos, false))])
	}
	g.orderings = append(g.orderings, ordering{kind: "limit", names: orderNames(order["orders"]), pos: pos, text: text})
}

// plainNamesOf are the names of expressions that are plain columns.
func plainNamesOf(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, x := range list {
		o, _ := x.(object)
		if parts := children(o, "column_names"); text(o, "class") == "COLUMN_REF" && len(parts) > 0 {
			name, _ := parts[len(parts)-1].(string)
			out[i] = lower(name)
		}
	}
	return out
}

func orderNames(v any) []string {
	list, _ := v.([]any)
	exprs := make([]any, len(list))
	for i, x := range list {
		o, _ := x.(object)
		exprs[i] = o["expression"]
	}
	return plainNamesOf(exprs)
}

// overText is a window function with its OVER clause, which starts at an offset.
func overText(text string, pos int) string {
	if pos < 0 {
		return ""
	}
	end := pos + len(callText(text, pos))
	rest := strings.TrimLeft(text[end:], " \t\r\n")
	if len(rest) < 4 || !strings.EqualFold(rest[:4], "over") {
		return oneLine(text[pos:end])
	}
	end = len(text) - len(rest) + 4
	if after := closing(text, end); after > end {
		end = after
	} else { // a named window
		end = wordAt(text, len(text)-len(strings.TrimLeft(text[end:], " \t\r\n"))).End
	}
	return oneLine(text[pos:end])
}

// locateOrder gives an Over its place and words.
func (a *authored) locateOrder(kind string, o *Over) {
	var names []string
	for _, e := range o.exprs() {
		name := ""
		if e.Op == opRef {
			name = lower(e.Name[strings.LastIndex(e.Name, ".")+1:])
		}
		names = append(names, name)
	}
	if kind == "distinct on" {
		names = names[:len(o.Parts)]
	}
	best, bestFit := -1, 0
	for i, w := range a.orderings {
		fit := 0
		if !w.used {
			fit++
		}
		if sameNames(w.names, names) {
			fit += 2
		}
		if w.kind == kind && (best < 0 || fit > bestFit) {
			best, bestFit = i, fit
		}
	}
	if best >= 0 {
		a.orderings[best].used = true
		o.Pos, o.text = a.orderings[best].pos, a.orderings[best].text
	}
}

func sameNames(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool { return x == "" || y == "" || x == y })
}
