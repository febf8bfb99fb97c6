package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"lockstep/engine/duck"
)

// refusal is why a piece of SQL has no place in a pipeline: what, where, and what to write instead.
type refusal struct {
	pos  int // byte offset in the bound text, -1 unknown
	msg  string
	hint string
}

func (r *refusal) Error() string { return r.msg }

func refuse(pos int, hint, format string, args ...any) *refusal {
	return &refusal{pos: pos, msg: fmt.Sprintf(format, args...), hint: hint}
}

// serialize asks DuckDB for the parse tree (json_serialize_sql) or the bound plan
// (json_serialize_plan) of a SELECT.
func serialize(ctx context.Context, eng *duck.Engine, function, query string) (object, error) {
	var out string
	if err := eng.QueryRow(ctx, "SELECT "+function+"("+duck.Literal(query)+")::VARCHAR", nil, &out); err != nil {
		return nil, fmt.Errorf("DuckDB could not analyse the query: %w", err)
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	var tree object
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("DuckDB's analysis of the query could not be read: %w", err)
	}
	if flag(tree, "error") {
		return nil, refusalOf(tree)
	}
	return tree, nil
}

// refusalOf turns DuckDB's message into ours: its first sentence, its suggestion as the hint, and
// no list of every overload.
func refusalOf(tree object) *refusal {
	r := &refusal{pos: -1}
	var pos int
	if _, err := fmt.Sscan(text(tree, "position"), &pos); err == nil {
		r.pos = pos
	}
	lines := strings.Split(text(tree, "error_message"), "\n")
	r.msg = lowerFirst(strings.TrimRight(lines[0], "!. "))
	for _, l := range lines[1:] {
		l = strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(l, "Did you mean"):
			r.hint = strings.ToLower(l[:1]) + l[1:]
		case strings.HasPrefix(l, "Candidate bindings:"):
			r.hint = "there is " + strings.TrimSpace(strings.TrimPrefix(l, "Candidate bindings:"))
		}
	}
	return r
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// binder turns DuckDB's bound plan into the IR.
type binder struct {
	sources map[string]string // table name as DuckDB has it → source name
	ctes    map[int]*Shared
}

// bind plans a SELECT over the empty source tables.
func bind(ctx context.Context, eng *duck.Engine, sources map[string]string, query string) (Node, error) {
	tree, err := serialize(ctx, eng, "json_serialize_plan", query)
	if err != nil {
		return nil, err
	}
	plans := children(tree, "plans")
	if len(plans) != 1 {
		return nil, refuse(-1, "", "expected one SELECT")
	}
	b := &binder{sources: sources, ctes: map[int]*Shared{}}
	root, _ := plans[0].(object)
	return b.node(root)
}

func (b *binder) node(n object) (Node, error) {
	var in []object
	for _, c := range children(n, "children") {
		o, _ := c.(object)
		in = append(in, o)
	}
	switch kind := text(n, "type"); kind {
	case "LOGICAL_GET":
		return b.scan(n)
	case "LOGICAL_FILTER":
		if len(children(n, "projection_map")) > 0 {
			return nil, refuse(-1, "", "a filter that drops columns has no rule")
		}
		below, exprs, err := b.nodeAndExprs(in[0], n, "expressions")
		return &Filter{In: below, Conjuncts: exprs}, err
	case "LOGICAL_PROJECTION":
		below, exprs, err := b.nodeAndExprs(in[0], n, "expressions")
		return &Project{In: below, Exprs: exprs}, err
	case "LOGICAL_AGGREGATE_AND_GROUP_BY":
		return b.aggregate(n, in[0])
	case "LOGICAL_UNION":
		if !flag(n, "setop_all") {
			return nil, refuse(-1, "write UNION ALL, and GROUP BY where duplicates must go", "UNION without ALL is not supported by this version")
		}
		return b.union(in)
	case "LOGICAL_ORDER_BY": // a table has no order
		return b.node(in[0])
	case "LOGICAL_MATERIALIZED_CTE":
		index, ok := integer(n["table_index"])
		if !ok {
			return nil, refuse(-1, "", "a common table expression without an index has no rule")
		}
		def, err := b.node(in[0])
		if err != nil {
			return nil, err
		}
		b.ctes[index] = &Shared{In: def}
		return b.node(in[1])
	case "LOGICAL_CTE_REF":
		index, _ := integer(n["cte_index"])
		shared := b.ctes[index]
		if shared == nil {
			return nil, refuse(-1, "", "a recursive common table expression has no incremental rule")
		}
		shared.refs++
		return shared, nil
	default:
		return nil, refuse(-1, operatorHint(kind), "%s is not supported by this version", operatorName(kind))
	}
}

func operatorName(kind string) string {
	switch kind {
	case "LOGICAL_COMPARISON_JOIN", "LOGICAL_ANY_JOIN", "LOGICAL_DELIM_JOIN", "LOGICAL_CROSS_PRODUCT", "LOGICAL_ASOF_JOIN", "LOGICAL_POSITIONAL_JOIN":
		return "a join"
	case "LOGICAL_DISTINCT":
		return "DISTINCT"
	case "LOGICAL_WINDOW":
		return "a window function"
	case "LOGICAL_LIMIT":
		return "LIMIT"
	case "LOGICAL_UNNEST":
		return "UNNEST"
	case "LOGICAL_EXCEPT", "LOGICAL_INTERSECT":
		return strings.TrimPrefix(kind, "LOGICAL_")
	case "LOGICAL_DUMMY_SCAN", "LOGICAL_EXPRESSION_GET", "LOGICAL_COLUMN_DATA_GET":
		return "a SELECT that reads no source"
	}
	return "the operator " + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(kind, "LOGICAL_"), "_", " "))
}

func operatorHint(kind string) string {
	switch kind {
	case "LOGICAL_DISTINCT":
		return "SELECT DISTINCT a, b is GROUP BY a, b"
	case "LOGICAL_DUMMY_SCAN", "LOGICAL_EXPRESSION_GET", "LOGICAL_COLUMN_DATA_GET":
		return "read from a CREATE SOURCE; constants can be columns of such a SELECT"
	}
	return ""
}

func (b *binder) nodeAndExprs(in, n object, key string) (Node, []*Expr, error) {
	below, err := b.node(in)
	if err != nil {
		return nil, nil, err
	}
	exprs, err := bindExprs(n[key])
	return below, exprs, err
}

func (b *binder) scan(n object) (Node, error) {
	fd := child(n, "function_data")
	source, ok := b.sources[text(fd, "table")]
	if !ok || text(n, "name") != "seq_scan" {
		return nil, refuse(-1, "declare what is read with CREATE SOURCE", "table function %s is not a source", text(n, "name"))
	}
	names, types := children(n, "names"), children(n, "returned_types")
	s := &Scan{Source: source}
	for _, c := range children(n, "column_indexes") {
		ci, _ := c.(object)
		i, ok := integer(ci["index"])
		if !ok || i >= len(names) {
			// count(*) reads no column: DuckDB asks for the row id, which nothing refers to.
			s.Cols, s.Type = append(s.Cols, ""), append(s.Type, "BIGINT")
			continue
		}
		name, _ := names[i].(string)
		typ, err := typeName(types[i])
		if err != nil {
			return nil, refuse(-1, "cast it in the source", "column %s: %v cannot be kept", name, err)
		}
		s.Cols, s.Type = append(s.Cols, name), append(s.Type, typ)
	}
	return s, nil
}

func (b *binder) aggregate(n, in object) (Node, error) {
	below, groups, err := b.nodeAndExprs(in, n, "groups")
	if err != nil {
		return nil, err
	}
	if sets := children(n, "grouping_sets"); len(sets) > 1 || len(children(n, "grouping_functions")) > 0 {
		return nil, refuse(-1, "write one sink per grouping", "GROUPING SETS, ROLLUP and CUBE are not supported by this version")
	}
	a := &Aggregate{In: below, Groups: groups}
	for _, x := range children(n, "expressions") {
		o, _ := x.(object)
		agg, err := bindAgg(o)
		if err != nil {
			return nil, err
		}
		a.Aggs = append(a.Aggs, agg)
	}
	return a, nil
}

func (b *binder) union(in []object) (Node, error) {
	u := &Union{}
	for _, c := range in {
		branch, err := b.node(c)
		if err != nil {
			return nil, err
		}
		u.Ins = append(u.Ins, branch)
	}
	u.Type = u.Ins[0].Types()
	return u, nil
}
