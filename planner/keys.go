package planner

import (
	"fmt"
	"slices"
	"strings"
)

// uniqueKeys lists sets of columns of n that can never hold the same values twice. The empty set
// means at most one row.
func uniqueKeys(n Node) [][]int {
	switch n := n.(type) {
	case *Filter:
		var out [][]int
		for _, key := range uniqueKeys(n.In) {
			out = append(out, slices.DeleteFunc(slices.Clone(key), n.fixes))
		}
		return out
	case *Shared:
		return uniqueKeys(n.In)
	case *Aggregate:
		if !slices.ContainsFunc(n.Groups, func(g *Expr) bool { return !g.constant() }) {
			return [][]int{{}} // one group at most
		}
		return [][]int{all(len(n.Groups))}
	case *Top:
		out := uniqueKeys(n.In)
		if key, ok := n.plainKey(); ok {
			out = append(out, key)
		}
		return out
	case *Project:
		out := topKeys(n)
		for _, key := range uniqueKeys(n.In) {
			if moved, ok := throughProjection(key, n.Exprs); ok {
				out = append(out, moved)
			}
		}
		return out
	case *Union:
		return unionKeys(n)
	}
	return nil
}

// throughProjection finds a key's columns among the projected ones.
func throughProjection(key []int, exprs []*Expr) ([]int, bool) {
	out := make([]int, 0, len(key))
	for _, k := range key {
		at := slices.IndexFunc(exprs, func(e *Expr) bool { return e.Op == opRef && e.Ref == k })
		if at < 0 {
			return nil, false
		}
		out = append(out, at)
	}
	return out, true
}

// unionKeys proves a UNION ALL unique when one column is a different constant in every branch.
func unionKeys(u *Union) [][]int {
	for col := range u.Type {
		values := map[string]bool{}
		for _, in := range u.Ins {
			// Of the types whose equal values have one text.
			if p, ok := in.(*Project); ok && p.Exprs[col].Op == opConst && (u.Type[col] == "VARCHAR" || isInteger(u.Type[col])) {
				values[p.Exprs[col].Name] = true
			}
		}
		if len(values) < len(u.Ins) {
			continue
		}
		key := []int{col}
		for _, in := range u.Ins {
			keys := uniqueKeys(in)
			if len(keys) == 0 {
				return nil
			}
			key = union(key, keys[0])
		}
		return [][]int{key}
	}
	return nil
}

// proveKey explains why the sink's key may not be unique; nil when it is proven to be.
func proveKey(root Node, names []string, key []int) *refusal {
	keys := uniqueKeys(root)
	for _, unique := range keys {
		if subset(unique, key) {
			return nil
		}
	}
	_, first := belowProjections(root).(*Top)
	if len(keys) > 0 && !first {
		var missing []string
		for _, k := range keys[0] {
			if !slices.Contains(key, k) {
				missing = append(missing, names[k])
			}
		}
		if len(key) == 0 {
			return refuse(-1, "name the columns of the GROUP BY in PRIMARY KEY", "PRIMARY KEY () is a table of at most one row, but the SELECT gives one per group")
		}
		m := strings.Join(missing, ", ")
		return refuse(-1, fmt.Sprintf("add %s to PRIMARY KEY; or, if it is the same in all rows of a key, write min(%s) AS %s and take it out of the GROUP BY", m, missing[0], missing[0]),
			"the key (%s) can have several rows: the SELECT also groups by %s", joinNames(names, key), m)
	}
	if top, ok := belowProjections(root).(*Top); ok {
		return top.keyRefusal(joinNames(names, key))
	}
	if _, ok := belowProjections(root).(*Union); ok {
		return refuse(-1, "select another constant in each branch, as in 'a' AS part, and add it to the key",
			"the key (%s) cannot be proven unique: two branches of the UNION ALL may have the same one", joinNames(names, key))
	}
	if _, ok := belowProjections(root).(*Aggregate); ok {
		return refuse(-1, "select every column of the GROUP BY and name it in PRIMARY KEY", "the key (%s) cannot be proven unique: not every group column is selected as it is", joinNames(names, key))
	}
	return refuse(-1, fmt.Sprintf("add GROUP BY %s and aggregate the other columns", joinNames(names, key)),
		"the key (%s) cannot be proven unique: two input rows may have the same one", joinNames(names, key))
}

func belowProjections(n Node) Node {
	for {
		switch x := n.(type) {
		case *Project:
			n = x.In
		case *Filter:
			n = x.In
		case *Shared:
			n = x.In
		default:
			return n
		}
	}
}

func joinNames(names []string, at []int) string {
	out := make([]string, len(at))
	for i, k := range at {
		out[i] = names[k]
	}
	return strings.Join(out, ", ")
}

func subset(a, b []int) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
