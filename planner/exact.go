package planner

// exactness tells how far a value of a table agrees with that of the one-shot SELECT.
type exactness int

const (
	exact   exactness = iota // always the same
	rounded                  // the same but where an inexact value lies on the edge that rounding decides
	inexact                  // may differ in its last digits, with the order of the rows
)

// smooth functions change little where their argument changes little, so an inexact argument gives a
// result that is inexact in the same sense. All others could jump: floor(2.9999999999) is not
// floor(3.0).
var smooth = words(`+ - * / @ ** ^ abs add subtract multiply divide pow power sqrt cbrt exp ln log log10 log2
sin cos tanh sinh cosh atan asinh radians degrees greatest least`)

// exactness of an expression over columns of known exactness. What is decided by an inexact value is
// refused on the way: a comparison in a CASE, a text, a floor. Rounding it first is the way out.
func (c *checker) exactness(e *Expr, in []exactness) exactness {
	if e.Op == opRef {
		return in[e.Ref]
	}
	args := make([]exactness, len(e.Args))
	worst := exact
	for i, a := range e.Args {
		args[i] = c.exactness(a, in)
		worst = max(worst, args[i])
	}
	if worst < inexact {
		return worst
	}
	switch e.Op {
	case opIsNull, opIsNotNull:
		return exact
	case opCoalesce:
		return inexact
	case opStruct:
		c.decided(e, "a struct")
		return rounded
	case opCase:
		for i := 0; i+1 < len(args); i += 2 {
			if args[i] == inexact {
				c.decided(e.Args[i], "a CASE")
				return rounded
			}
		}
		return inexact
	case opCast, opTryCast:
		switch {
		case isInteger(e.Type) || isDecimal(e.Type):
			return rounded
		case isFloat(e.Type):
			return inexact
		}
		c.decided(e, "a value of type "+article(e.Type))
		return rounded
	case opFunc:
		switch {
		case e.Name == "round":
			return rounded
		case e.Name == "isnan" || e.Name == "isinf" || e.Name == "isfinite":
			return exact
		case smooth[e.Name]:
			return inexact
		}
		c.decided(e, e.Name+"()")
		return rounded
	}
	return inexact // comparisons and conditions: who uses them refuses them
}

// inexact: the expression may not decide anything.
func (c *checker) inexact(e *Expr, in []exactness) bool { return c.exactness(e, in) == inexact }

func (c *checker) decided(e *Expr, what string) {
	c.refuse(e.position(), exactHint, "%s made from a floating-point aggregate could differ from run to run", what)
}
