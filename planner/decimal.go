package planner

import (
	"context"
	"fmt"
	"strings"

	"lockstep/engine/duck"
)

// form is how the arguments of a function are written, so that DuckDB binds it to the type it had.
//
// DuckDB computes the type of a sum or product of decimals from its arguments, and casts these to it:
// DECIMAL(12,2) + 1 is DECIMAL(13,2), with 1 cast to that. Written with the cast, the same sum would be
// one digit wider.
type form int

const (
	asBound   form = iota // with DuckDB's casts
	asWritten             // without them
	asTyped               // without them, and integer constants with a type
)

// uncast writes the arguments without the casts around them.
func (e *Expr) uncast(col columns) []string {
	out := make([]string, len(e.Args))
	for i, a := range e.Args {
		if a.Op == opCast && isDecimal(a.Type) {
			a = a.Args[0]
			if e.Form == asTyped && a.Op == opConst && a.Type == "INTEGER" {
				out[i] = "CAST(" + a.sql(col) + " AS INTEGER)"
				continue
			}
		}
		out[i] = a.sql(col)
	}
	return out
}

// settle finds the form of every function whose arguments are cast to decimals. What stays wrong is
// found by the render proof.
func settle(ctx context.Context, eng *duck.Engine, root Node) error {
	known := map[string]form{}
	var failed error
	visit := func(e *Expr) {
		if failed == nil && e.castsDecimals() {
			failed = e.settle(ctx, eng, known)
		}
	}
	walkNodes(root, func(n Node) {
		eachExpr(n, func(e *Expr) { e.walkUp(visit) })
	})
	return failed
}

func (e *Expr) castsDecimals() bool {
	if e.Op != opFunc || !isDecimal(e.Type) {
		return false
	}
	for _, a := range e.Args {
		if a.Op == opCast && isDecimal(a.Type) {
			return true
		}
	}
	return false
}

// typedColumns is a relation with the columns an expression reads.
func typedColumns(e *Expr) string {
	var columns []string
	seen := map[int]bool{}
	e.walk(func(x *Expr) {
		if x.Op == opRef && !seen[x.Ref] {
			seen[x.Ref] = true
			columns = append(columns, fmt.Sprintf("CAST(NULL AS %s) AS c%d", x.Type, x.Ref))
		}
	})
	return "(SELECT " + list(strings.Join(columns, ", "), "true AS _row") + ")"
}

func (e *Expr) settle(ctx context.Context, eng *duck.Engine, known map[string]form) error {
	from := typedColumns(e)
	e.Form = asBound
	key := e.sql(cols("")) + from
	if f, ok := known[key]; ok {
		e.Form = f
		return nil
	}
	for _, f := range []form{asBound, asWritten, asTyped} {
		e.Form = f
		var typ string
		if err := eng.QueryRow(ctx, "SELECT any_value(t) FROM (SELECT typeof("+e.sql(cols(""))+") AS t FROM "+from+")", nil, &typ); err != nil {
			continue // this form does not bind
		}
		if typ == e.Type {
			known[key] = f
			return nil
		}
	}
	e.Form = asBound
	return ctx.Err()
}
