package planner

import "slices"

// plainKey is what identifies a row of a Top when its partition is of plain columns.
func (n *Top) plainKey() ([]int, bool) {
	key := []int{}
	for _, p := range n.Parts {
		if p.Op != opRef {
			return nil, false
		}
		key = append(key, p.Ref)
	}
	if n.Rows > 1 {
		key = append(key, len(n.In.Types()))
	}
	return key, true
}

// topKeys finds the partition of a Top below among the columns of a projection, when it is made of
// expressions that the projection computes in the same words.
func topKeys(p *Project) [][]int {
	n := p.In
	fixed := map[int]bool{}
	for {
		if f, ok := n.(*Filter); ok {
			for i := range f.In.Types() {
				fixed[i] = fixed[i] || f.fixes(i)
			}
			n = f.In
		} else {
			break
		}
	}
	top, ok := n.(*Top)
	if !ok {
		return nil
	}
	rowKey, _ := stepRowKey(top)
	key := []int{}
	for _, k := range rowKey {
		if k.Op == opRef && fixed[k.Ref] {
			continue
		}
		at := slices.IndexFunc(p.Exprs, func(e *Expr) bool { return e.sql(cols("")) == k.sql(cols("")) && e.Type == k.Type })
		if at < 0 {
			return nil
		}
		key = append(key, at)
	}
	return [][]int{key}
}

func (n *Top) keyRefusal(key string) *refusal {
	if n.Rows == 1 {
		hint := "select every expression of the PARTITION BY, or DISTINCT ON, in the same words and name it in PRIMARY KEY"
		if len(n.Parts) == 0 {
			hint = "there is one row: write PRIMARY KEY ()"
		}
		return refuse(-1, hint, "the key (%s) cannot be proven unique: the SELECT keeps one row of each partition", key)
	}
	return refuse(-1, "select row_number() OVER (…) AS rank beside the columns of its PARTITION BY, and name them all in PRIMARY KEY",
		"the key (%s) cannot be proven unique: the SELECT keeps up to %d rows of each partition", key, n.Rows)
}

// fixes tells that a filter lets only one value of a column through.
func (f *Filter) fixes(column int) bool {
	return slices.ContainsFunc(f.Conjuncts, func(e *Expr) bool {
		if e.Op != opCompare || e.Name != "=" {
			return false
		}
		left, right := e.Args[0], e.Args[1]
		if right.Op == opRef {
			left, right = right, left
		}
		return left.Op == opRef && left.Ref == column && right.constant()
	})
}
