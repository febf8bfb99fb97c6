package planner

import (
	"fmt"
	"slices"
	"strings"
)

// facts are what the declarations of the sources promise: by source and column, both in lower case,
// which columns are never NULL. The reader of a source holds it to that.
type facts map[string]map[string]bool

// unique: no two rows of n have the same values in the key's columns. The empty key means at most one
// row.
func (f facts) unique(n Node, key []int) bool {
	switch n := n.(type) {
	case *Filter:
		for i := range n.In.Types() {
			if n.fixes(i) {
				key = union(key, []int{i})
			}
		}
		return f.unique(n.In, key)
	case *Top:
		own, plain := n.plainKey()
		return plain && subset(own, key) || f.unique(n.In, below(key, len(n.In.Types())))
	case *Project:
		for _, own := range topKeys(n) {
			if subset(own, key) {
				return true
			}
		}
		var below []int
		for _, k := range key {
			if n.Exprs[k].Op == opRef {
				below = append(below, n.Exprs[k].Ref)
			}
		}
		return f.unique(n.In, below)
	case *Aggregate:
		for i, g := range n.Groups {
			if !g.constant() && !slices.Contains(key, i) {
				return false
			}
		}
		return true
	case *Union:
		a, b, _ := f.overlapping(n, key)
		return a == nil && b == nil
	}
	return false
}

// overlapping finds two branches of a union that may have the same key; one alone when it is not unique
// by itself. The column is one that may be NULL and thereby like that of the other branch, or −1.
func (f facts) overlapping(u *Union, key []int) (a, b Node, nullable int) {
	for i, in := range u.Ins {
		if !f.unique(in, key) {
			return in, nil, -1
		}
		for _, other := range u.Ins[:i] {
			nullable, apart := -1, false
			for _, k := range key {
				v, w := f.value(in, k), f.value(other, k)
				apart = apart || v.differs(w)
				if v.null && w == (value{}) || w.null && v == (value{}) {
					nullable = k
				}
			}
			if !apart {
				return in, other, nullable
			}
		}
	}
	return nil, nil, -1
}

// value is what is known of a column in all rows.
type value struct {
	null    bool
	notNull bool
	text    string // of a constant, of a type whose equal values have one text
}

func (v value) differs(w value) bool {
	return v.null && w.notNull || v.notNull && w.null || v.text != "" && w.text != "" && v.text != w.text
}

// value looks for where a column comes from.
func (f facts) value(n Node, col int) value {
	switch n := n.(type) {
	case *Scan:
		return value{notNull: f[lower(n.Source)][lower(n.Cols[col])]}
	case *Filter:
		v := f.value(n.In, col)
		for _, e := range n.Conjuncts {
			v = v.and(conclude(e, col))
		}
		return v
	case *Project:
		return f.of(n.Exprs[col], n.In)
	case *Aggregate:
		if col < len(n.Groups) {
			return f.of(n.Groups[col], n.In)
		}
		agg := n.Aggs[col-len(n.Groups)]
		return value{notNull: agg.Name == "count" || agg.Name == "count_star"}
	case *Top:
		if col < len(n.In.Types()) {
			return f.value(n.In, col)
		}
		return value{notNull: true}
	case *Union:
		v := f.value(n.Ins[0], col)
		for _, in := range n.Ins[1:] {
			w := f.value(in, col)
			v.null, v.notNull = v.null && w.null, v.notNull && w.notNull
			if v.text != w.text {
				v.text = ""
			}
		}
		return v
	}
	return value{}
}

func (v value) and(w value) value {
	if w.text != "" {
		v.text = w.text
	}
	v.notNull = v.notNull || w.notNull
	return v
}

// conclude is what a condition that is true says of a column.
func conclude(e *Expr, col int) value {
	is := func(x *Expr) bool { return x.Op == opRef && x.Ref == col }
	switch {
	case e.Op == opIsNotNull && is(e.Args[0]), e.Op == opIn && is(e.Args[0]):
		return value{notNull: true}
	case e.Op == opCompare && !strings.HasPrefix(e.Name, "IS "):
		for i, x := range e.Args {
			if is(x) {
				v := value{notNull: true}
				if other := e.Args[1-i]; e.Name == "=" && other.Op == opConst {
					v.text = constantText(other)
				}
				return v
			}
		}
	}
	return value{}
}

// neverNull functions give a value for arguments that all are one.
var neverNull = words("date_trunc time_bucket timezone lower upper trim ltrim rtrim concat || abs md5 sha256 length")

// of is what is known of an expression over in.
func (f facts) of(e *Expr, in Node) value {
	notNull := func(args ...*Expr) bool {
		return !slices.ContainsFunc(args, func(a *Expr) bool { return !f.of(a, in).notNull })
	}
	switch e.Op {
	case opRef:
		return f.value(in, e.Ref)
	case opConst:
		if anyNull([]*Expr{e}) {
			return value{null: true}
		}
		return value{notNull: true, text: constantText(e)}
	case opCast:
		v := f.of(e.Args[0], in)
		from := e.Args[0].Type // a JSON null is a value and casts to NULL, as infinity does to a TIME
		known := from != "JSON" && !isNested(from) && !isNested(e.Type) && e.Type != "TIME" && e.Type != "TIME WITH TIME ZONE"
		out := value{null: v.null, notNull: v.notNull && known}
		if isInteger(e.Type) && isInteger(from) {
			out.text = v.text
		}
		return out
	case opCoalesce:
		return value{notNull: slices.ContainsFunc(e.Args, func(a *Expr) bool { return notNull(a) })}
	case opIsNull, opIsNotNull:
		return value{notNull: true}
	case opCase:
		results := []*Expr{e.Args[len(e.Args)-1]}
		for i := 1; i < len(e.Args); i += 2 {
			results = append(results, e.Args[i])
		}
		return value{notNull: notNull(results...)}
	case opFunc:
		numbers := !slices.ContainsFunc(e.Args, func(a *Expr) bool { return !isNumber(a.Type) })
		known := neverNull[e.Name] || numbers && (e.Name == "+" || e.Name == "-" || e.Name == "*" || divides[e.Name] && notZero(e.Args[1]))
		return value{notNull: known && notNull(e.Args...)}
	case opCompare, opAnd, opOr, opNot, opIn, opNotIn:
		return value{notNull: notNull(e.Args...)}
	}
	return value{}
}

var divides = words("/ // %")

// notZero: a constant to divide by.
func notZero(e *Expr) bool {
	for e.Op == opCast {
		e = e.Args[0]
	}
	digits, _, _ := strings.Cut(strings.TrimPrefix(e.Name, "CAST('"), "'")
	return e.Op == opConst && strings.ContainsAny(digits, "123456789") && !strings.ContainsAny(digits, "eE")
}

func constantText(e *Expr) string {
	switch {
	case e.Type == "VARCHAR":
		return e.Name
	case isInteger(e.Type): // CAST('1' AS BIGINT) is 1 of another type
		digits, _, _ := strings.Cut(strings.TrimPrefix(e.Name, "CAST('"), "'")
		return digits
	}
	return ""
}

// proveKey explains why the sink's key may not be unique; nil when it is proven to be.
func (f facts) proveKey(root Node, names []string, key []int) *refusal {
	if f.unique(root, key) {
		return nil
	}
	_, first := belowProjections(root).(*Top)
	if need, ok := f.lacking(root, key); ok && !first {
		return missing(root, names, key, need)
	}
	switch below := belowProjections(root).(type) {
	case *Top:
		return below.keyRefusal(joinNames(names, key))
	case *Union:
		return f.overlap(root, below, names, key)
	case *Aggregate:
		return refuse(-1, "select every column of the GROUP BY and name it in PRIMARY KEY", "the key (%s) cannot be proven unique: not every group column is selected as it is", joinNames(names, key))
	}
	return refuse(-1, fmt.Sprintf("add GROUP BY %s and aggregate the other columns", joinNames(names, key)),
		"the key (%s) cannot be proven unique: two input rows may have the same one", joinNames(names, key))
}

// lacking are the columns that, together with those there are, make rows of n unique; not ok when none do.
func (f facts) lacking(n Node, have []int) (columns []int, ok bool) {
	need := all(len(n.Types()))
	if !f.unique(n, need) {
		return nil, false
	}
	for c := len(need) - 1; c >= 0; c-- {
		without := slices.DeleteFunc(slices.Clone(need), func(k int) bool { return k == c })
		if !slices.Contains(have, c) && f.unique(n, without) {
			need = without
		}
	}
	return slices.DeleteFunc(need, func(k int) bool { return slices.Contains(have, k) }), true
}

// missing names the columns that make the key unique.
func missing(root Node, names []string, key, need []int) *refusal {
	m := joinNames(names, need)
	top, grouped := belowProjections(root).(*Aggregate)
	var asked *asked
	if grouped {
		asked = top.Asked
	}
	switch {
	case len(key) == 0 && asked != nil:
		return refuse(-1, "name its columns in PRIMARY KEY", "PRIMARY KEY () is a table of at most one row, but the SELECT gives one per distinct row")
	case len(key) == 0:
		return refuse(-1, "name the columns of the GROUP BY in PRIMARY KEY", "PRIMARY KEY () is a table of at most one row, but the SELECT gives one per group")
	case !grouped:
		return refuse(-1, "add "+m+" to PRIMARY KEY", "the key (%s) can have several rows: only with %s too is it unique", joinNames(names, key), m)
	case asked != nil:
		return refuse(-1, fmt.Sprintf("add %s to PRIMARY KEY, or take it out of the SELECT", m), "the key (%s) can have several rows: %s keeps each %s of it", joinNames(names, key), asked.word, m)
	}
	return refuse(-1, fmt.Sprintf("add %s to PRIMARY KEY; or, if it is the same in all rows of a key, write min(%s) AS %s and take it out of the GROUP BY", m, names[need[0]], names[need[0]]),
		"the key (%s) can have several rows: the SELECT also groups by %s", joinNames(names, key), m)
}

// overlap explains why two branches of a union may have the same key, whatever columns are in it.
func (f facts) overlap(root Node, u *Union, names []string, key []int) *refusal {
	shown := throughProjections(root) // columns of the union
	columns := slices.DeleteFunc(slices.Clone(shown), func(c int) bool { return c < 0 })
	const constants = "select another constant in each branch, as in 'a' AS part, and add it to the key"
	cannot := func(hint, why string) *refusal {
		return refuse(-1, hint, "the key (%s) cannot be proven unique: %s", joinNames(names, key), why)
	}
	nullable := map[int]bool{}
	for i, a := range u.Ins {
		if !f.unique(a, columns) {
			return cannot("select every column of the GROUP BY and name it in PRIMARY KEY", "not every group column is selected as it is")
		}
		for _, b := range u.Ins[:i] {
			if x, _, null := f.overlapping(&Union{Ins: []Node{a, b}}, columns); x == nil {
				continue
			} else if null < 0 && u.Sets {
				return cannot("write each set once", "two grouping sets have the same columns")
			} else if null < 0 {
				return cannot(constants, "two branches of the UNION ALL may have the same one")
			} else {
				nullable[null] = true
			}
		}
	}
	var null []string
	for i, c := range shown {
		if nullable[c] && slices.Index(shown, c) == i {
			null = append(null, names[i])
		}
	}
	n := strings.Join(null, ", ")
	if u.Sets {
		return cannot(fmt.Sprintf("declare %[2]s NOT NULL, or group by coalesce(%[1]s, …); or select grouping(%[2]s) AS level, and add level to the key", null[0], n),
			n+" may be NULL in a row, and is NULL in a subtotal")
	}
	return cannot(constants+"; or declare "+n+" NOT NULL", n+" may be NULL in one branch of the UNION ALL, and is NULL in another")
}

// throughProjections tells which column of what is below them a column is; -1 for one that is computed.
func throughProjections(n Node) []int {
	out := all(len(n.Types()))
	for {
		switch x := n.(type) {
		case *Filter:
			n = x.In
		case *Project:
			for i, c := range out {
				if c >= 0 && x.Exprs[c].Op == opRef {
					out[i] = x.Exprs[c].Ref
				} else {
					out[i] = -1
				}
			}
			n = x.In
		default:
			return out
		}
	}
}

func belowProjections(n Node) Node {
	for {
		switch x := n.(type) {
		case *Project:
			n = x.In
		case *Filter:
			n = x.In
		default:
			return n
		}
	}
}

func subset(a, b []int) bool {
	return !slices.ContainsFunc(a, func(x int) bool { return !slices.Contains(b, x) })
}

func joinNames(names []string, at []int) string {
	out := make([]string, len(at))
	for i, k := range at {
		out[i] = names[k]
	}
	return strings.Join(out, ", ")
}
