package planner

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
)

// The canonical form names what a thing means in terms of source columns: no aliases, no positions,
// no case, no order that does not matter. Two pipelines that mean the same have the same form.
// canonVersion changes whenever the form of an unchanged pipeline does; then the stored SQL is hashed
// again with the new code before plans are compared.
const canonVersion = 2

// description is the canonical form of a node: of each column, and of the rows.
type description struct {
	cols []string
	rows string
}

func describe(n Node) description {
	switch n := n.(type) {
	case *Scan:
		d := description{rows: "source(" + canonName(n.Source) + ")"}
		for _, c := range n.Cols {
			d.cols = append(d.cols, canonName(n.Source)+"."+canonName(c))
		}
		return d
	case *Filter:
		in := describe(n.In)
		return description{cols: in.cols, rows: "filter(" + canonConjuncts(n.Conjuncts, in.cols) + " | " + in.rows + ")"}
	case *Project:
		in := describe(n.In)
		return description{cols: canonAll(n.Exprs, in.cols), rows: in.rows}
	case *Aggregate:
		in := describe(n.In)
		groups := canonAll(n.Groups, in.cols)
		d := description{cols: slices.Clone(groups), rows: "groups(" + strings.Join(groups, "; ") + " | " + in.rows + ")"}
		for _, a := range n.Aggs {
			d.cols = append(d.cols, a.canon(in.cols)+levelOf(n))
		}
		return d
	case *Window:
		d := describe(n.In)
		for _, c := range n.Calls {
			d.cols = append(slices.Clone(d.cols), "row_number("+c.canon(d.cols)+")")
		}
		return d
	case *Top:
		in := describe(n.In)
		return description{cols: append(slices.Clone(in.cols), "row_number"+levelOf(n)), rows: fmt.Sprintf("first(%d | %s | %s)", n.Rows, n.canon(in.cols), in.rows)}
	case *Union:
		var rows []string // the branches are in order: order.go
		columns := make([][]string, len(n.Type))
		for _, in := range n.Ins {
			b := describe(in)
			rows = append(rows, b.rows)
			for i, col := range b.cols {
				columns[i] = append(columns[i], col)
			}
		}
		d := description{rows: "union(" + strings.Join(rows, ", ") + ")"}
		for _, col := range columns {
			d.cols = append(d.cols, "each("+strings.Join(col, " | ")+")")
		}
		return d
	}
	panic(fmt.Sprintf("planner: no canonical form for %T", n))
}

// levelOf tells a step's own results from the equally named ones of the steps below it: count(*) of
// groups by count(*).
func levelOf(n Node) string {
	if level := stepsDeep(n) - 1; level > 0 {
		return fmt.Sprintf("^%d", level)
	}
	return ""
}

// stepsDeep is how many steps lie above each other in n.
func stepsDeep(n Node) int {
	deepest := 0
	for _, in := range n.inputs() {
		deepest = max(deepest, stepsDeep(in))
	}
	if _, ok := stepRowKey(n); ok {
		deepest++
	}
	return deepest
}

// canon writes an expression with its columns spelled out. A cast of a text constant and the constant
// of that type are the same thing.
func (e *Expr) canon(below []string) string {
	arg := func(i int) string { return e.Args[i].canon(below) }
	switch e.Op {
	case opRef:
		return below[e.Ref]
	case opConst:
		return "[" + strings.TrimSuffix(strings.TrimPrefix(e.Name, "CAST("), " AS "+e.Type+")") + " " + e.Type + "]"
	case opCast:
		if in := e.Args[0]; in.Op == opConst && (in.Type == "VARCHAR" || in.Type == "NULL") {
			return "[" + in.Name + " " + e.Type + "]"
		}
		return "cast(" + arg(0) + " as " + e.Type + ")"
	case opTryCast:
		return "try_cast(" + arg(0) + " as " + e.Type + ")"
	case opCompare:
		return canonCompare(e.Name, arg(0), arg(1))
	case opNot: // DuckDB's parser turns the comparison round where it sees one
		in := e.Args[0]
		switch in.Op {
		case opCompare:
			return canonCompare(negated[in.Name], in.Args[0].canon(below), in.Args[1].canon(below))
		case opIn, opNotIn:
			turned := *in
			turned.Op = map[Op]Op{opIn: opNotIn, opNotIn: opIn}[in.Op]
			return turned.canon(below)
		}
	case opAnd, opOr:
		parts := canonAll(flattened(e.Op, e.Args), below)
		slices.Sort(parts)
		return string(e.Op) + "(" + strings.Join(slices.Compact(parts), ", ") + ")"
	case opFunc:
		return e.Name + "(" + strings.Join(canonAll(e.Args, below), ", ") + ")"
	case opStruct:
		return e.Type + "(" + strings.Join(canonAll(e.Args, below), ", ") + ")"
	}
	return string(e.Op) + "(" + strings.Join(canonAll(e.Args, below), ", ") + ")"
}

// flattened splits ANDs, or ORs, into their parts.
func flattened(op Op, exprs []*Expr) []*Expr {
	var out []*Expr
	for _, e := range exprs {
		if e.Op == op {
			out = append(out, flattened(op, e.Args)...)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// lower folds letter case as DuckDB does for identifiers: ASCII only, so É and é stay two columns.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// canonName writes an identifier so that none can be taken for a piece of the form around it.
func canonName(s string) string {
	s = lower(s)
	for i := 0; i < len(s); i++ {
		if !isWord(s[i]) {
			return duck.Quote(s)
		}
	}
	return s
}

var negated = map[string]string{"=": "<>", "<>": "=", "<": ">=", ">": "<=", "<=": ">", ">=": "<",
	"IS DISTINCT FROM": "IS NOT DISTINCT FROM", "IS NOT DISTINCT FROM": "IS DISTINCT FROM"}

// canonCompare writes a > b as b < a.
func canonCompare(op, left, right string) string {
	switch op {
	case ">":
		op, left, right = "<", right, left
	case ">=":
		op, left, right = "<=", right, left
	case "=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM":
		if left > right {
			left, right = right, left
		}
	}
	return "(" + left + " " + op + " " + right + ")"
}

func canonAll(exprs []*Expr, below []string) []string {
	out := make([]string, len(exprs))
	for i, e := range exprs {
		out[i] = e.canon(below)
	}
	return out
}

func canonConjuncts(conjuncts []*Expr, below []string) string {
	parts := canonAll(conjuncts, below)
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " and ")
}

func (a *Agg) canon(below []string) string {
	s := a.Name + "(" + a.distinctly("distinct ") + strings.Join(canonAll(a.Args, below), ", ") + ")"
	if len(a.Order) > 0 {
		s += " order by " + canonKeys(a.Order, below)
	}
	if a.Filter != nil {
		s += " filter " + a.Filter.canon(below)
	}
	return s
}
