package planner

import "fmt"

// bits keeps the AND, OR or XOR of all values. XOR of an integer takes a value back by adding it again; the
// others never can, and bit strings of one length only go together.
func (f *foldRules) bits(a *Agg, arg *aggArg) finish {
	if a.Name == "bit_xor" && arg.typ != "BIT" {
		zero := "CAST(0 AS " + a.Type + ")"
		var name string
		name = f.add("bitxor", arg, a.Type, "coalesce("+arg.where("bit_xor("+arg.sql+")", "")+", "+zero+")", func(old, batch func(string) string) string {
			return fmt.Sprintf("xor(coalesce(%s, %s), CAST(%s AS %s))", old(name), zero, batch(name), a.Type)
		})
		return whenSeen(f.seen(arg), a.Type, func(acc func(string) string) string { return acc(name) })
	}
	kind, op := "bitand", "%s & %s"
	switch a.Name {
	case "bit_or":
		kind, op = "bitor", "%s | %s"
	case "bit_xor":
		kind, op = "bitstring", "xor(%s, %s)"
	}
	var name string
	name = f.add(kind, arg, a.Type, arg.where(a.Name+"("+arg.sql+")", ""), func(old, batch func(string) string) string {
		o, b := old(name), batch(name)
		return fmt.Sprintf("CASE WHEN %s IS NULL THEN %s WHEN %s IS NULL THEN %s ELSE "+op+" END", o, b, b, o, o, b)
	})
	return func(acc func(string) string) string { return acc(name) }
}
