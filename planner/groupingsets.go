package planner

import "fmt"

// GROUPING SETS, ROLLUP and CUBE are a UNION ALL of one Aggregate per set: what a set does not group by is
// NULL, and GROUPING() is a constant of each.

// sets is what one Aggregate of DuckDB's has more than a GROUP BY, until expanded takes it away.
type sets struct {
	of        [][]int // the groups of each set
	groupings [][]int // the groups of each GROUPING()
}

// groupingSets reads them from a bound aggregate; nil for a plain GROUP BY.
func groupingSets(n object, groups int) (*sets, error) {
	s := &sets{of: indexLists(n["grouping_sets"]), groupings: indexLists(n["grouping_functions"])}
	for _, list := range append(append([][]int{}, s.of...), s.groupings...) {
		for _, i := range list {
			if i < 0 || i >= groups {
				return nil, refuse(-1, "", "a grouping set of other columns than those of the GROUP BY has no rule")
			}
		}
	}
	if len(s.groupings) == 0 && (len(s.of) == 0 || len(s.of) == 1 && len(s.of[0]) == groups) {
		return nil, nil
	}
	if len(s.of) == 0 {
		s.of = [][]int{all(groups)}
	}
	return s, nil
}

func indexLists(v any) [][]int {
	lists, _ := v.([]any)
	var out [][]int
	for _, list := range lists {
		items, _ := list.([]any)
		indexes := []int{}
		for _, x := range items {
			i, ok := integer(x)
			if !ok {
				i = -1
			}
			indexes = append(indexes, i)
		}
		out = append(out, indexes)
	}
	return out
}

// expanded writes every Aggregate with sets as the union it stands for.
func expanded(n Node) Node {
	a, ok := n.(*Aggregate)
	if !ok || a.Sets == nil {
		return mapInputs(n, expanded)
	}
	in := expanded(a.In)
	u := &Union{Type: a.Types(), Sets: true}
	for _, set := range a.Sets.of {
		u.Ins = append(u.Ins, a.set(in, set))
	}
	if len(u.Ins) == 1 {
		return u.Ins[0]
	}
	return u
}

// set is the branch of one grouping set.
func (n *Aggregate) set(in Node, set []int) Node {
	branch := &Aggregate{In: in, Aggs: n.Aggs}
	p := &Project{In: branch}
	at := map[int]int{}
	for _, i := range set {
		if _, twice := at[i]; !twice {
			at[i] = len(branch.Groups)
			branch.Groups = append(branch.Groups, n.Groups[i])
		}
	}
	for i, g := range n.Groups {
		if to, grouped := at[i]; grouped {
			p.Exprs = append(p.Exprs, ref(to, g.Type))
		} else {
			p.Exprs = append(p.Exprs, null(g.Type))
		}
	}
	for i, a := range n.Aggs {
		p.Exprs = append(p.Exprs, ref(len(branch.Groups)+i, a.Type))
	}
	for _, of := range n.Sets.groupings {
		bits := uint64(0) // one per argument, the last is the lowest: set where the row is not grouped by it
		for _, i := range of {
			bits <<= 1
			if _, grouped := at[i]; !grouped {
				bits |= 1
			}
		}
		p.Exprs = append(p.Exprs, &Expr{Op: opConst, Name: fmt.Sprintf("CAST('%d' AS BIGINT)", bits), Type: "BIGINT", Pos: -1})
	}
	return p
}

func null(typ string) *Expr {
	name := "CAST(NULL AS " + typ + ")"
	if typ == "NULL" {
		name = "NULL"
	}
	return &Expr{Op: opConst, Name: name, Type: typ, Pos: -1}
}
