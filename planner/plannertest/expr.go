package plannertest

import (
	"fmt"
	"strings"
)

// expr draws an expression of a kind over a relation.
func (g *gen) expr(r rel, kind string, depth int) string {
	if depth <= 0 || g.chance(35) {
		return g.leaf(r, kind)
	}
	e := func(k string) string { return g.expr(r, k, depth-1) }
	if g.chance(15) {
		switch g.between(0, 3) {
		case 0:
			return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", e(kBool), e(kind), e(kind))
		case 1:
			return fmt.Sprintf("coalesce(%s, %s)", e(kind), e(kind))
		case 2:
			return fmt.Sprintf("nullif(%s, %s)", e(kind), e(kind))
		default:
			return fmt.Sprintf("greatest(%s, %s)", e(kind), e(kind))
		}
	}
	switch kind {
	case kInt:
		return fill(g.pick("int", "(%[1]s::HUGEINT + %[2]s)", "(%[1]s::HUGEINT - 3)", "(%[1]s %% 7)", "(%[1]s // 3)", "abs(%[1]s::HUGEINT)", "(%[1]s::HUGEINT * 2)", "len(%[3]s)",
			"(%[4]s)::INTEGER", "date_part('day', %[5]s)", "(%[1]s & 7)", "sign(%[1]s)") + "\x00" + strings.Join([]string{e(kInt), e(kInt), e(kText), e(kBool), e(kTime)}, "\x00"))
	case kDec:
		return fill(g.pick("dec", "(%[1]s + 1)", "(- %[1]s)", "round(%[1]s, 1)", "abs(%[1]s)") + "\x00" + e(kDec))
	case kDbl:
		return fill(g.pick("dbl", "(%[1]s * 0.5)", "(%[1]s + 1)", "(- %[1]s)", "(%[2]s / 4)", "(%[2]s::DOUBLE)", "floor(%[1]s)", "round(%[1]s, 1)") + "\x00" + e(kDbl) + "\x00" + e(kInt))
	case kText:
		return fill(g.pick("text", "(%[1]s || 'x')", "upper(%[1]s)", "(%[2]s::VARCHAR)", "left(%[1]s, 1)", "replace(%[1]s, 'a', '')", "strftime(%[3]s, '%%Y-%%m')") + "\x00" + e(kText) + "\x00" + e(kInt) + "\x00" + e(kTime))
	case kTime:
		return fill(g.pick("time", "date_trunc('hour', %[1]s)", "(%[1]s + INTERVAL 1 DAY)", "time_bucket(INTERVAL '6 hours', %[1]s)") + "\x00" + e(kTime))
	case kDate:
		return fill(g.pick("date", "(%[1]s)::DATE", "last_day(%[1]s)") + "\x00" + e(kTime))
	}
	return g.boolean(r, depth)
}

// fill puts the drawn arguments into a drawn form.
func fill(s string) string {
	parts := strings.Split(s, "\x00")
	args := make([]any, len(parts)-1)
	for i, p := range parts[1:] {
		args[i] = p
	}
	return strings.Split(fmt.Sprintf(parts[0], args...), "%!(EXTRA")[0]
}

func (g *gen) boolean(r rel, depth int) string {
	e := func(k string) string { return g.expr(r, k, depth-1) }
	kind := g.pick("compared", kInt, kInt, kText, kDec, kDbl, kTime, kDate)
	switch g.between(0, 7) {
	case 0, 1:
		return "(" + e(kind) + g.pick("op", " = ", " <> ", " < ", " > ", " <= ", " >= ", " IS DISTINCT FROM ", " IS NOT DISTINCT FROM ") + e(kind) + ")"
	case 2:
		return "(" + e(kBool) + g.pick("and", " AND ", " OR ") + e(kBool) + ")"
	case 3:
		return "(NOT " + e(kBool) + ")"
	case 4:
		return "(" + e(kind) + g.pick("null", " IS NULL", " IS NOT NULL") + ")"
	case 5:
		return fmt.Sprintf("(%s %sIN (%s, %s))", e(kind), g.pick("not", "", "NOT "), e(kind), e(kind))
	case 6:
		return fmt.Sprintf("(%s BETWEEN %s AND %s)", e(kind), e(kind), e(kind))
	}
	return "(" + e(kText) + g.pick("like", " LIKE 'a%'", " ILIKE '%A'", " NOT LIKE '_'") + ")"
}

func (g *gen) leaf(r rel, kind string) string {
	var names []string
	for _, c := range r.cols {
		if c.kind == kind && (!c.loose || g.chance(3)) {
			names = append(names, c.name, c.name, c.name)
		}
	}
	constants := map[string][]string{
		kInt: {"0", "1", "-3", "NULL::INTEGER"}, kDec: {"0.5", "-1.25", "100.00"}, kDbl: {"0.5::DOUBLE", "'nan'::DOUBLE", "1e3"},
		kText: {"'a'", "''", "'it''s'"}, kBool: {"true", "false", "NULL::BOOLEAN"},
		kTime: {"TIMESTAMP '2024-03-31 01:00:00'"}, kDate: {"DATE '2024-02-29'"},
	}
	return g.pick("leaf", append(names, constants[kind][g.between(0, len(constants[kind])-1)])...)
}
