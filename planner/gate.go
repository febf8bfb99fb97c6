package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
)

// gate looks at DuckDB's parse tree of a SELECT before it is bound. The tree has the author's
// positions for everything, so what has no incremental rule is refused here, all of it in one pass.
// What passes is still checked after binding: the gate is for good messages, not for safety.
type gate struct {
	file     func(int) int // position in the bound text → in the pipeline file
	scope    *scope
	ctes     []string
	reads    map[string]bool // relations read, lower case
	columns  []string        // names that a column reference could mean, for suggestions
	macros   []word          // calls of what is neither a function nor an aggregate of ours
	setOp    int             // where the second SELECT of a UNION stands
	sel, all int             // the SELECT being visited, and how many there were
	depth    int             // how many SELECTs are around the one being visited
	refusals []*refusal
	authored
}

// inspect parses a query and returns what is wrong with it and what its author wrote.
func inspect(ctx context.Context, eng *duck.Engine, q composed, pipeline string, s *scope) (*gate, error) {
	tree, err := serialize(ctx, eng, "json_serialize_sql", q)
	if err != nil {
		return nil, err
	}
	statements := children(tree, "statements")
	if len(statements) != 1 {
		return nil, refuse(-1, "", notOneSelect)
	}
	g := &gate{file: q.file, scope: s, reads: map[string]bool{}, setOp: -1}
	g.text = pipeline
	statement, _ := statements[0].(object)
	node := child(statement, "node")
	g.collect(node)
	g.value(node)
	// The tree's maps have no order.
	slices.SortStableFunc(g.calls, func(a, b call) int { return a.pos - b.pos })
	slices.SortStableFunc(g.items, func(a, b item) int { return a.start - b.start })
	slices.SortStableFunc(g.macros, func(a, b word) int { return a.pos - b.pos })
	slices.SortStableFunc(g.asks, func(a, b ask) int { return cmp.Or(a.depth-b.depth, b.pos-a.pos) })
	slices.SortStableFunc(g.refusals, func(a, b *refusal) int {
		if a.pos != b.pos {
			return a.pos - b.pos
		}
		return strings.Compare(a.msg, b.msg)
	})
	return g, nil
}

func (g *gate) refuse(pos int, hint, format string, args ...any) {
	g.refusals = append(g.refusals, refuse(pos, hint, format, args...))
}

// collect gathers the names the query defines: common table expressions and aliases, and the columns
// of what it reads.
func (g *gate) collect(v any) {
	switch v := v.(type) {
	case object:
		for _, m := range children(child(v, "cte_map"), "map") {
			entry, _ := m.(object)
			g.ctes = append(g.ctes, text(entry, "key"))
		}
		if alias := text(v, "alias"); alias != "" && text(v, "class") != "" {
			g.columns = append(g.columns, alias)
		}
		if text(v, "type") == "BASE_TABLE" {
			g.columns = append(g.columns, g.scope.columns[strings.ToLower(text(v, "table_name"))]...)
		}
		for _, c := range v {
			g.collect(c)
		}
	case []any:
		for _, c := range v {
			g.collect(c)
		}
	}
}

// value visits everything in the tree.
func (g *gate) value(v any) {
	switch v := v.(type) {
	case object:
		outer, depth := g.sel, g.depth
		if class := text(v, "class"); class != "" {
			g.expression(v, class)
			if class == "SUBQUERY" {
				return // it is refused as a whole
			}
		} else if kind := text(v, "type"); kind != "" && !g.clause(v, kind) {
			return
		}
		for _, c := range v {
			g.value(c)
		}
		g.sel, g.depth = outer, depth
	case []any:
		for _, c := range v {
			g.value(c)
		}
	}
}

func (g *gate) at(o object) int {
	if pos, ok := integer(o["query_location"]); ok {
		return g.file(pos)
	}
	return -1
}

// first is the smallest position anywhere below v, -1 when there is none.
func (g *gate) first(v any) int {
	best := -1
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case object:
			if pos := g.at(v); pos >= 0 && (best < 0 || pos < best) {
				best = pos
			}
			for _, c := range v {
				visit(c)
			}
		case []any:
			for _, c := range v {
				visit(c)
			}
		}
	}
	visit(v)
	return best
}

func (g *gate) expression(o object, class string) {
	pos := g.first(o)
	switch class {
	case "FUNCTION":
		g.function(o, g.at(o))
	case "COLUMN_REF":
		g.column(o, pos)
	case "WINDOW":
		g.window(o)
	case "SUBQUERY":
		g.refuse(pos, "give the values with SET VARIABLE, or write IN (1, 2) for = ANY([1, 2])", "a subquery inside an expression is not supported by this version")
	case "LAMBDA":
		if kind := text(o, "type"); kind != "FUNCTION" {
			g.refuse(pos, "use list_sum, list_max or list_contains where they fit", "lambda functions are not supported")
		}
	case "PARAMETER":
		if pos < 0 {
			pos = g.find([]string{"$" + text(o, "identifier"), "?"})
		}
		g.refuse(pos, "use SET VARIABLE name = value; and getvariable('name')", "parameters have no value in a pipeline")
	case "COLLATE":
		g.refuse(pos, "use lower() or upper() to compare without case", "COLLATE is not supported")
	case "POSITIONAL_REFERENCE":
		g.refuse(pos, "name the column", "positional references are not supported")
	case "DEFAULT":
		g.refuse(pos, "", "DEFAULT has no meaning in a SELECT")
	case "OPERATOR":
		switch text(o, "type") {
		case "OPERATOR_TRY":
			g.refuse(pos, "use TRY_CAST for casts, and CASE WHEN for the rest", "TRY() is not supported")
		}
	}
}

func (g *gate) column(o object, pos int) {
	parts := children(o, "column_names")
	name, _ := parts[len(parts)-1].(string)
	lower := strings.ToLower(name)
	if slices.ContainsFunc(g.columns, func(c string) bool { return strings.EqualFold(c, name) }) {
		return
	}
	switch {
	case lower == "rowid":
		g.refuse(pos, "use a column of the input", "rowid is not a column: the rows of an input have no number")
	case len(parts) == 1 && impure[lower] != "": // current_date stands without brackets
		g.refusals = append(g.refusals, refuseFunction(pos, lower))
	}
}

func (g *gate) function(o object, pos int) {
	name := strings.ToLower(text(o, "function_name"))
	args := children(o, "children")
	if !aggregate(name) && !scalarFunctions[name] && !isSet(o, "is_operator") {
		g.macros = append(g.macros, word{name, pos})
	}
	if aggregate(name) || isSet(o, "distinct") || child(o, "filter") != nil {
		g.calls = append(g.calls, g.callOf(o, name, args, pos))
	}
	switch {
	case name == "getvariable":
		g.variable(args, pos)
		return
	case name == "unnest" || name == "unlist" || name == "generate_subscripts" || name == "regexp_split_to_table":
		g.refuse(pos, "", "%s in a SELECT list is not supported by this version", name)
		return
	case impure[name] != "" && !(name == "age" && len(args) == 2): // age(a, b) reads no clock
		g.refusals = append(g.refusals, refuseFunction(pos, name))
		return
	}
	ordered := len(children(child(o, "order_bys"), "orders")) > 0
	if hint, ok := aggregateHints[canonicalAggregate(name)]; ok && !(ordered && orderedAggregates[canonicalAggregate(name)]) {
		g.refuse(pos, hint, "%s has no incremental rule in this version", name)
		return
	}
	if isSet(o, "distinct") && len(args) == 1 {
		if arg, _ := args[0].(object); text(arg, "function_name") == "row" {
			g.refuse(pos, fmt.Sprintf("aggregate the rows of SELECT DISTINCT: SELECT k, %s(*) FROM (SELECT DISTINCT k, a, b FROM t) GROUP BY k", name),
				"%s(DISTINCT …) of several columns is not supported by this version", name)
		}
	}
	if ordered && !orderedAggregates[canonicalAggregate(name)] {
		hint := "leave it out: the result does not depend on it"
		if strings.HasPrefix(canonicalAggregate(name), "arg_") {
			hint = "write first(x ORDER BY …) with the whole order"
		}
		g.refuse(pos, hint, "ORDER BY inside %s is not supported by this version", name)
	}
}

// idempotent aggregates give the same for a value that is there twice, so DISTINCT changes nothing.
var idempotent = words("min max bool_and bool_or bit_and bit_or")

func (g *gate) variable(args []any, pos int) {
	if len(args) != 1 {
		return // DuckDB says what is wrong
	}
	arg, _ := args[0].(object)
	name, ok := child(arg, "value")["value"].(string)
	if text(arg, "class") != "CONSTANT" || !ok {
		g.refuse(pos, "write its name: getvariable('name')", "getvariable takes the name of a SET VARIABLE")
		return
	}
	if slices.ContainsFunc(g.scope.variables, func(v string) bool { return strings.EqualFold(v, name) }) {
		return
	}
	hint := didYouMean(name, g.scope.variables)
	if hint == "" {
		hint = "add SET VARIABLE " + name + " = value; at the top of the file"
	}
	g.refuse(g.first(arg), hint, "there is no variable %s", name)
}

var clauseRefusals = map[string][2]string{
	"LIMIT_PERCENT_MODIFIER": {"LIMIT of a share is not supported", "write a number of rows, or filter with WHERE or HAVING"},
	"JOIN":                   {"joins are not supported by this version", "write the columns into the rows of one source"},
	"EXPRESSION_LIST":        {"VALUES is not a source", "put the rows in a file and declare it with CREATE SOURCE"},
	"PIVOT":                  {"PIVOT is not supported", "write one aggregate with FILTER (WHERE …) per column"},
	"SHOW_REF":               {"DESCRIBE, SUMMARIZE and SHOW are not sources", "declare what is read with CREATE SOURCE"},
	"RECURSIVE_CTE_NODE":     {"recursive common table expressions have no incremental rule", ""},
}

// clause is false where there is no need to look further down.
func (g *gate) clause(o object, kind string) bool {
	if o["sample"] != nil {
		g.refuse(g.first(o), "filter with WHERE on a column", "a sample is another one at every run")
	}
	if r, ok := clauseRefusals[kind]; ok {
		where := any(o)
		if kind == "JOIN" && child(o, "right") != nil {
			where = o["right"]
		}
		pos := g.first(where)
		if strings.HasPrefix(kind, "LIMIT") {
			pos = g.keywordBefore(pos, "limit")
		}
		g.refuse(pos, r[1], "%s", r[0])
		return kind != "RECURSIVE_CTE_NODE"
	}
	switch kind {
	case "BASE_TABLE":
		g.table(o, g.at(o))
	case "TABLE_FUNCTION":
		g.tableFunction(o)
	case "SET_OPERATION_NODE":
		g.setOperation(o)
	case "SELECT_NODE":
		g.all++
		g.sel = g.all
		g.depth++
		g.selectNode(o)
	}
	return true
}

// keywordBefore is the last place of a keyword up to an offset.
func (g *gate) keywordBefore(pos int, keyword string) int {
	if pos < 0 {
		return pos
	}
	if at := strings.LastIndex(lower(g.text[:min(pos, len(g.text))]), keyword); at >= 0 {
		return at
	}
	return pos
}

func (g *gate) selectNode(o object) {
	g.itemsOf(o)
	start := g.first(o["select_list"])
	g.modifiers(o)
	for _, m := range children(o, "modifiers") {
		if modifier, _ := m.(object); text(modifier, "type") == "DISTINCT_MODIFIER" && len(children(modifier, "distinct_on_targets")) == 0 {
			g.asks = append(g.asks, ask{word: "DISTINCT", pos: g.keywordBefore(start, "distinct"), sel: g.sel, depth: g.depth})
		}
	}
	if text(child(o, "from_table"), "type") == "EMPTY" {
		g.refuse(start, "read from a CREATE SOURCE; constants can be columns of such a SELECT", "a SELECT that reads no source is not supported")
	}
}

func (g *gate) setOperation(o object) {
	op := text(o, "setop_type")
	g.modifiers(o)
	if g.setOp < 0 {
		g.setOp = g.first(o["right"])
	}
	every := isSet(o, "setop_all")
	word := strings.TrimSuffix(op, "_BY_NAME")
	pos := g.keywordBefore(g.first(o["right"]), lower(word))
	switch {
	case word == "UNION" && every:
	case every:
		g.refuse(pos, setAllHint, "%s ALL is not supported by this version", op)
	default:
		g.asks = append(g.asks, ask{word: word, from: g.first(o["left"]), pos: pos, depth: g.depth})
	}
}
