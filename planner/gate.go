package planner

import (
	"context"
	"slices"
	"strings"

	"lockstep/engine/duck"
	"lockstep/sql"
)

// gate looks at DuckDB's parse tree of a SELECT before it is bound. The tree has the author's
// positions for everything, so what has no incremental rule is refused here, all of it in one pass.
// What passes is still checked after binding: the gate is for good messages, not for safety.
type gate struct {
	tables   map[string]bool // lower case: sources, views, common table expressions
	names    []string        // the same, for suggestions
	refusals []*refusal
	calls    []call
}

// call is a function call in the author's text; bound aggregates have no position and find it here.
type call struct {
	name     string
	distinct bool
	filter   bool
	column   string // the argument when it is a plain column
	pos      int
	used     bool
}

// inspect parses the query and returns its faults and its function calls.
func inspect(ctx context.Context, eng *duck.Engine, query string, tables []string) (*gate, object, error) {
	tree, err := serialize(ctx, eng, "json_serialize_sql", query)
	if err != nil {
		return nil, nil, err
	}
	statements := children(tree, "statements")
	if len(statements) != 1 {
		return nil, nil, refuse(-1, "", "expected one SELECT")
	}
	g := &gate{tables: map[string]bool{}, names: tables}
	for _, t := range tables {
		g.tables[strings.ToLower(t)] = true
	}
	statement, _ := statements[0].(object)
	node := child(statement, "node")
	g.collectCTEs(node)
	g.value(node)
	// The tree's maps have no order.
	slices.SortStableFunc(g.calls, func(a, b call) int { return a.pos - b.pos })
	slices.SortStableFunc(g.refusals, func(a, b *refusal) int { return a.pos - b.pos })
	return g, node, nil
}

func (g *gate) refuse(pos int, hint, format string, args ...any) {
	g.refusals = append(g.refusals, refuse(pos, hint, format, args...))
}

func (g *gate) collectCTEs(v any) {
	switch v := v.(type) {
	case object:
		for _, m := range children(child(v, "cte_map"), "map") {
			entry, _ := m.(object)
			g.tables[strings.ToLower(text(entry, "key"))] = true
			g.names = append(g.names, text(entry, "key"))
		}
		for _, c := range v {
			g.collectCTEs(c)
		}
	case []any:
		for _, c := range v {
			g.collectCTEs(c)
		}
	}
}

// value visits everything in the tree.
func (g *gate) value(v any) {
	switch v := v.(type) {
	case object:
		if class := text(v, "class"); class != "" {
			g.expression(v, class)
		} else if kind := text(v, "type"); kind != "" {
			g.clause(v, kind)
		}
		for _, c := range v {
			g.value(c)
		}
	case []any:
		for _, c := range v {
			g.value(c)
		}
	}
}

func at(o object) int {
	if pos, ok := integer(o["query_location"]); ok {
		return pos
	}
	return -1
}

func (g *gate) expression(o object, class string) {
	pos := at(o)
	switch class {
	case "FUNCTION":
		g.function(o, pos)
	case "WINDOW":
		g.refuse(pos, "a row per key can come from min, max and GROUP BY", "window function %s is not supported by this version", text(o, "function_name"))
	case "SUBQUERY":
		g.refuse(pos, "", "a subquery inside an expression is not supported by this version")
	case "LAMBDA":
		g.refuse(pos, "", "lambda functions are not supported")
	case "PARAMETER":
		g.refuse(pos, "use SET VARIABLE name = value; and getvariable('name')", "parameters have no value in a pipeline")
	case "COLLATE":
		g.refuse(pos, "use lower() or upper() to compare without case", "COLLATE is not supported")
	case "POSITIONAL_REFERENCE":
		g.refuse(pos, "name the column", "positional references are not supported")
	case "DEFAULT":
		g.refuse(pos, "", "DEFAULT has no meaning in a SELECT")
	}
}

func (g *gate) function(o object, pos int) {
	name := strings.ToLower(text(o, "function_name"))
	c := call{name: name, distinct: flag(o, "distinct"), filter: child(o, "filter") != nil, pos: pos}
	if args := children(o, "children"); len(args) == 1 {
		arg, _ := args[0].(object)
		if parts := children(arg, "column_names"); len(parts) > 0 {
			c.column, _ = parts[len(parts)-1].(string)
		}
	}
	g.calls = append(g.calls, c)
	if _, ok := impure[name]; ok {
		g.refusals = append(g.refusals, refuseFunction(pos, name))
		return
	}
	canonical := name
	if alias, ok := aggregateAliases[name]; ok {
		canonical = alias
	}
	if hint, ok := aggregateHints[canonical]; ok {
		g.refuse(pos, hint, "%s has no incremental rule in this version", name)
	}
	if len(children(child(o, "order_bys"), "orders")) > 0 {
		g.refuse(pos, "", "ORDER BY inside %s is not supported by this version", name)
	}
}

var clauseRefusals = map[string][2]string{
	"LIMIT_MODIFIER":         {"LIMIT is not supported by this version", "a table has no order; filter with WHERE or HAVING"},
	"LIMIT_PERCENT_MODIFIER": {"LIMIT is not supported by this version", "a table has no order; filter with WHERE or HAVING"},
	"DISTINCT_MODIFIER":      {"SELECT DISTINCT is not supported by this version", "SELECT DISTINCT a, b is GROUP BY a, b"},
	"JOIN":                   {"joins are not supported by this version", ""},
	"EXPRESSION_LIST":        {"VALUES is not a source", "put the rows in a file and declare it with CREATE SOURCE"},
	"PIVOT":                  {"PIVOT is not supported", "write one aggregate with FILTER (WHERE …) per column"},
	"SHOW_REF":               {"DESCRIBE and SHOW are not sources", ""},
	"RECURSIVE_CTE_NODE":     {"recursive common table expressions have no incremental rule", ""},
}

func (g *gate) clause(o object, kind string) {
	pos := at(o)
	if r, ok := clauseRefusals[kind]; ok {
		if pos < 0 {
			pos = firstPosition(o)
		}
		g.refuse(pos, r[1], "%s", r[0])
		return
	}
	switch kind {
	case "BASE_TABLE":
		g.table(o, pos)
	case "TABLE_FUNCTION":
		g.tableFunction(o, pos)
	case "SET_OPERATION_NODE":
		g.setOperation(o)
	case "SELECT_NODE":
		if len(children(o, "group_sets")) > 1 {
			g.refuse(firstPosition(o["group_expressions"]), "write one sink per grouping", "GROUPING SETS, ROLLUP and CUBE are not supported by this version")
		}
		if child(o, "qualify") != nil {
			g.refuse(firstPosition(o["qualify"]), "", "QUALIFY is not supported by this version")
		}
		if o["sample"] != nil {
			g.refuse(firstPosition(o["select_list"]), "", "a sample is another one at every run")
		}
	}
}

func (g *gate) table(o object, pos int) {
	name := text(o, "table_name")
	if schema := text(o, "schema_name") + text(o, "catalog_name"); schema != "" {
		g.refuse(pos, "declare what is read with CREATE SOURCE", "a pipeline reads its sources only, not the table %s.%s", schema, name)
		return
	}
	if !g.tables[strings.ToLower(name)] {
		hint := "declare it with CREATE SOURCE " + name
		if near := sql.Suggest(name, g.names); near != "" {
			hint = "did you mean \"" + near + "\"?"
		}
		g.refuse(pos, hint, "there is no source or view %s", name)
	}
}

func (g *gate) tableFunction(o object, pos int) {
	fn := child(o, "function")
	name := strings.ToLower(text(fn, "function_name"))
	switch name {
	case "tumble", "hop", "session":
		g.refuse(pos, "group by date_trunc('hour', ts) or time_bucket(INTERVAL '1 hour', ts)", "window table function %s is not supported by this version", name)
	default:
		g.refuse(pos, "declare what is read with CREATE SOURCE", "table function %s is not a source", name)
	}
}

func (g *gate) setOperation(o object) {
	op := text(o, "setop_type")
	if op == "UNION" && flag(o, "setop_all") {
		return
	}
	pos := firstPosition(o["right"])
	switch op {
	case "UNION":
		g.refuse(pos, "write UNION ALL, and GROUP BY where duplicates must go", "UNION without ALL is not supported by this version")
	case "UNION_BY_NAME":
		g.refuse(pos, "write UNION ALL with the columns in one order", "UNION BY NAME is not supported by this version")
	default:
		g.refuse(pos, "", "%s is not supported by this version", op)
	}
}

// firstPosition is the smallest position anywhere below v.
func firstPosition(v any) int {
	best := -1
	consider := func(pos int) {
		if pos >= 0 && (best < 0 || pos < best) {
			best = pos
		}
	}
	switch v := v.(type) {
	case object:
		consider(at(v))
		for _, c := range v {
			consider(firstPosition(c))
		}
	case []any:
		for _, c := range v {
			consider(firstPosition(c))
		}
	}
	return best
}

// locate gives every bound aggregate the position of its call in the author's text.
func (g *gate) locate(n Node) {
	walkNodes(n, func(n Node) {
		if a, ok := n.(*Aggregate); ok {
			for _, agg := range a.Aggs {
				agg.Pos = g.position(agg, a.In)
			}
		}
	})
}

func (g *gate) position(agg *Agg, in Node) int {
	best := -1
	for i := range g.calls {
		c := &g.calls[i]
		name := c.name
		if alias, ok := aggregateAliases[name]; ok {
			name = alias
		}
		if name != agg.Name || c.filter != (agg.Filter != nil) || c.used {
			continue
		}
		if c.column != "" && len(agg.Args) == 1 && !strings.EqualFold(c.column, plainColumn(agg.Args[0], in)) {
			continue
		}
		best = i
		break
	}
	if best < 0 {
		return -1
	}
	g.calls[best].used = true
	return g.calls[best].pos
}

// plainColumn is the source column an argument reads, through casts; "" when it is not one.
func plainColumn(e *Expr, in Node) string {
	for e.Op == opCast {
		e = e.Args[0]
	}
	if e.Op != opRef {
		return ""
	}
	switch in := in.(type) {
	case *Scan:
		return in.Cols[e.Ref]
	case *Filter:
		return plainColumn(e, in.In)
	case *Project:
		return plainColumn(in.Exprs[e.Ref], in.In)
	}
	return ""
}
