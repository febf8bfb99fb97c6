package planner

import "slices"

// Op says what an Expr does.
type Op string

const (
	opRef       Op = "ref" // column Ref of the input
	opConst     Op = "const"
	opCast      Op = "cast"
	opTryCast   Op = "try_cast"
	opFunc      Op = "func"
	opCompare   Op = "compare" // Name is the operator
	opAnd       Op = "and"
	opOr        Op = "or"
	opNot       Op = "not"
	opIsNull    Op = "is_null"
	opIsNotNull Op = "is_not_null"
	opIn        Op = "in"
	opNotIn     Op = "not_in"
	opCoalesce  Op = "coalesce"
	opCase      Op = "case" // when, then, when, then, …, else
	opStruct    Op = "struct"
	opOpen      Op = "open" // the missing bound of a slice: x[2:]
)

// Expr is a bound scalar expression over the columns of one input: names are resolved, types are
// known, implicit casts are explicit.
type Expr struct {
	Op     Op
	Name   string // function or comparison operator; a constant's SQL text; what the author calls a column
	Type   string // DuckDB's name of the result type
	Ref    int
	Args   []*Expr
	Fields []string // names of a struct's Args
	Form   form     // how the arguments are written
	Pos    int      // byte offset in the pipeline file, -1 unknown
}

// Node is a relational operator of the IR.
type Node interface {
	Types() []string
	inputs() []Node
}

// Scan reads columns of a source.
type Scan struct {
	Source   string
	Cols     []string
	Type     []string
	Replaced bool // files of the source may be replaced, which takes back their rows
}

// Filter keeps the rows for which every conjunct is true.
type Filter struct {
	In        Node
	Conjuncts []*Expr
}

// Project computes columns.
type Project struct {
	In    Node
	Exprs []*Expr
}

// Aggregate groups by expressions; without any it yields one row, whatever the input. Without
// aggregates it gives the distinct rows of its groups.
type Aggregate struct {
	In     Node
	Groups []*Expr
	Aggs   []*Agg
	Asked  *asked // nil for GROUP BY
	Sets   *sets  // nil for one grouping set: so it always is once normalised
}

// asked is what the author wrote that is not a GROUP BY and has to group.
type asked struct {
	word string // DISTINCT, UNION, INTERSECT, EXCEPT
	pos  int    // byte offset in the pipeline file, -1 unknown
}

// with is the Aggregate over other parts.
func (n *Aggregate) with(in Node, groups []*Expr, aggs []*Agg) *Aggregate {
	return &Aggregate{In: in, Groups: groups, Aggs: aggs, Asked: n.Asked}
}

// Agg is one aggregate call.
type Agg struct {
	Name     string // canonical: avg, not mean
	Type     string
	Args     []*Expr
	Distinct bool
	Filter   *Expr // FILTER (WHERE …), nil for none
	Pos      int

	Order    []sortKey // of first
	inOrder  bool      // add the values in their order
	wrote    string    // the author's function, "" for Name; canonical
	filtered bool      // the author wrote a FILTER, if wrote is set
}

// Union is UNION ALL.
type Union struct {
	Ins  []Node
	Type []string
	Sets bool // the author wrote grouping sets
}

func (n *Scan) Types() []string    { return n.Type }
func (n *Filter) Types() []string  { return n.In.Types() }
func (n *Project) Types() []string { return exprTypes(n.Exprs) }
func (n *Aggregate) Types() []string {
	types := exprTypes(n.Groups)
	for _, a := range n.Aggs {
		types = append(types, a.Type)
	}
	if n.Sets != nil {
		for range n.Sets.groupings {
			types = append(types, "BIGINT")
		}
	}
	return types
}
func (n *Union) Types() []string { return n.Type }

func (n *Scan) inputs() []Node      { return nil }
func (n *Filter) inputs() []Node    { return []Node{n.In} }
func (n *Project) inputs() []Node   { return []Node{n.In} }
func (n *Aggregate) inputs() []Node { return []Node{n.In} }
func (n *Union) inputs() []Node     { return n.Ins }

func exprTypes(exprs []*Expr) []string {
	types := make([]string, len(exprs))
	for i, e := range exprs {
		types[i] = e.Type
	}
	return types
}

// walk visits e and everything below it.
func (e *Expr) walk(visit func(*Expr)) {
	visit(e)
	for _, a := range e.Args {
		a.walk(visit)
	}
}

// walkUp visits everything below e, and then e.
func (e *Expr) walkUp(visit func(*Expr)) {
	for _, a := range e.Args {
		a.walkUp(visit)
	}
	visit(e)
}

// substitute replaces every column reference by what with gives for it.
func (e *Expr) substitute(with func(*Expr) *Expr) *Expr {
	if e.Op == opRef {
		return with(e)
	}
	if len(e.Args) == 0 {
		return e
	}
	c := *e
	c.Args = make([]*Expr, len(e.Args))
	for i, a := range e.Args {
		c.Args[i] = a.substitute(with)
	}
	return &c
}

// over rewrites an expression over a projection into one over the projection's input.
func (e *Expr) over(exprs []*Expr) *Expr {
	return e.substitute(func(ref *Expr) *Expr {
		below := exprs[ref.Ref]
		if below.Pos < 0 && ref.Pos >= 0 {
			moved := *below
			moved.Pos = ref.Pos
			return &moved
		}
		return below
	})
}

// remap renumbers column references.
func (e *Expr) remap(to []int) *Expr {
	return e.substitute(func(ref *Expr) *Expr {
		c := *ref
		c.Ref = to[ref.Ref]
		return &c
	})
}

func (a *Agg) mapExprs(f func(*Expr) *Expr) *Agg {
	c := *a
	c.Args = mapExprs(a.Args, f)
	if a.Filter != nil {
		c.Filter = f(a.Filter)
	}
	c.Order = mapKeys(a.Order, f)
	return &c
}

func mapExprs(exprs []*Expr, f func(*Expr) *Expr) []*Expr {
	out := make([]*Expr, len(exprs))
	for i, e := range exprs {
		out[i] = f(e)
	}
	return out
}

func mapAggs(aggs []*Agg, f func(*Expr) *Expr) []*Agg {
	out := make([]*Agg, len(aggs))
	for i, a := range aggs {
		out[i] = a.mapExprs(f)
	}
	return out
}

func ref(i int, typ string) *Expr { return &Expr{Op: opRef, Ref: i, Type: typ, Pos: -1} }

// refsOf lists the columns an expression reads, ascending.
func refsOf(e *Expr) []int {
	var refs []int
	e.walk(func(x *Expr) {
		if x.Op == opRef {
			refs = append(refs, x.Ref)
		}
	})
	slices.Sort(refs)
	return slices.Compact(refs)
}

// position is the first known offset in the expression, -1 when there is none.
func (e *Expr) position() int {
	pos := -1
	e.walk(func(x *Expr) {
		if x.Pos >= 0 && (pos < 0 || x.Pos < pos) {
			pos = x.Pos
		}
	})
	return pos
}

// walkNodes visits n and everything below it; what is read twice, twice.
func walkNodes(n Node, visit func(Node)) {
	visit(n)
	for _, in := range n.inputs() {
		walkNodes(in, visit)
	}
}
