package planner

import (
	"context"
	"errors"

	"lockstep/engine/duck"
)

// foldNulls replaces functions of a NULL constant by NULL where DuckDB's binder does: x + NULL, but not
// concat(x, NULL). Merging projections brings such constants into functions that were bound over a
// column, and the rendered plan must be what DuckDB would make of it.
func foldNulls(ctx context.Context, eng *duck.Engine, root Node) (Node, error) {
	f := &nullFolder{ctx: ctx, eng: eng, known: map[string]bool{}}
	out := f.node(root)
	if !f.changed {
		return root, f.err
	}
	return normalise(out), f.err
}

type nullFolder struct {
	ctx     context.Context
	eng     *duck.Engine
	known   map[string]bool // expression, with the types of its columns → it is NULL
	changed bool
	err     error
}

func (f *nullFolder) node(n Node) Node {
	switch n := n.(type) {
	case *Filter:
		return &Filter{In: f.node(n.In), Conjuncts: mapExprs(n.Conjuncts, f.expr)}
	case *Project:
		return &Project{In: f.node(n.In), Exprs: mapExprs(n.Exprs, f.expr)}
	case *Window:
		w := &Window{In: f.node(n.In)}
		for _, c := range n.Calls {
			call := c.mapExprs(f.expr)
			w.Calls = append(w.Calls, &call)
		}
		return w
	case *Top:
		return &Top{In: f.node(n.In), Over: n.mapExprs(f.expr), Rows: n.Rows}
	case *Aggregate:
		return n.with(f.node(n.In), mapExprs(n.Groups, f.expr), mapAggs(n.Aggs, f.expr))
	}
	return mapInputs(n, f.node)
}

func (f *nullFolder) expr(e *Expr) *Expr {
	if len(e.Args) == 0 {
		return e
	}
	c := *e
	c.Args = mapExprs(e.Args, f.expr)
	if c.Op != opFunc || !anyNull(c.Args) {
		return &c
	}
	stmt := "SELECT " + c.sql(cols("")) + " AS c0 FROM " + typedColumns(&c)
	isNull, seen := f.known[stmt]
	if !seen && f.err == nil {
		isNull = f.isNull(stmt)
		f.known[stmt] = isNull
	}
	if !isNull {
		return &c
	}
	f.changed = true
	return &Expr{Op: opConst, Name: null(c.Type).Name, Type: c.Type, Pos: c.Pos}
}

// isNull asks the binder.
func (f *nullFolder) isNull(stmt string) bool {
	tree, err := serialize(f.ctx, f.eng, "json_serialize_plan", composed{text: stmt})
	var r *refusal
	if err != nil && !errors.As(err, &r) {
		f.err = err
	}
	plans := children(tree, "plans")
	if len(plans) != 1 {
		return false
	}
	plan, _ := plans[0].(object)
	exprs := children(plan, "expressions")
	if len(exprs) != 1 {
		return false
	}
	o, _ := exprs[0].(object)
	for text(o, "expression_class") == "BOUND_CAST" { // a column of a NULL without a type is made one of INTEGER
		o = child(o, "child")
	}
	return text(o, "expression_class") == "BOUND_CONSTANT" && isSet(child(o, "value"), "is_null")
}

func anyNull(exprs []*Expr) bool {
	for _, e := range exprs {
		for e.Op == opCast {
			e = e.Args[0]
		}
		if e.Op != opConst && e.constant() {
			return true // it may be: nullif('x', 'x')
		}
		if e.Op == opConst && (e.Type == "NULL" || e.Name == "CAST(NULL AS "+e.Type+")") {
			return true
		}
	}
	return false
}
