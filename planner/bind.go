package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
)

// serialize asks DuckDB for the parse tree (json_serialize_sql) or the bound plan
// (json_serialize_plan) of a SELECT.
func serialize(ctx context.Context, eng *duck.Engine, function string, q composed) (object, error) {
	var out string
	if err := eng.QueryRow(ctx, "SELECT "+function+"("+duck.Literal(q.text)+")::VARCHAR", nil, &out); err != nil {
		return nil, fmt.Errorf("DuckDB could not analyse the query: %w", err)
	}
	d := json.NewDecoder(strings.NewReader(quoteNonFinite(out)))
	d.UseNumber()
	var tree object
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("DuckDB's analysis of the query could not be read: %w", err)
	}
	if isSet(tree, "error") {
		return nil, refusalOf(tree, q.file)
	}
	return tree, nil
}

// quoteNonFinite turns the bare NaN, Infinity and -Infinity that DuckDB writes, and JSON does not
// know, into strings.
func quoteNonFinite(doc string) string {
	if !strings.Contains(doc, "NaN") && !strings.Contains(doc, "Infinity") {
		return doc
	}
	var b strings.Builder
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; c {
		case '"':
			end := i + 1
			for end < len(doc) && doc[end] != '"' {
				if doc[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(doc)-1)
			b.WriteString(doc[i : end+1])
			i = end
			continue
		case 'N', 'I', '-':
			for _, name := range []string{"NaN", "Infinity", "-Infinity"} {
				if strings.HasPrefix(doc[i:], name) {
					b.WriteString(`"` + name + `"`)
					i += len(name)
					break
				}
			}
		}
		if i < len(doc) {
			b.WriteByte(doc[i])
		}
	}
	return b.String()
}

// tables are the sources that DuckDB has a table for, and whether files of them may be replaced.
type tables map[string]bool

// binder turns DuckDB's bound plan into the IR.
type binder struct {
	sources tables
	file    func(int) int
	ctes    map[int]Node // common table expressions
}

// bind plans a SELECT over the empty source tables.
func bind(ctx context.Context, eng *duck.Engine, sources tables, q composed) (Node, error) {
	tree, err := serialize(ctx, eng, "json_serialize_plan", q)
	if err != nil {
		return nil, err
	}
	plans := children(tree, "plans")
	if len(plans) != 1 {
		return nil, refuse(-1, "", notOneSelect)
	}
	b := &binder{sources: sources, file: q.file, ctes: map[int]Node{}}
	plan, _ := plans[0].(object)
	root, err := b.node(plan)
	if err == nil && !wellFormed(root) {
		err = refuse(-1, "", "a plan of this form has no rule")
	}
	return root, err
}

// wellFormed: every column that is referred to exists and has the type it is said to have. A plan that
// drops or moves columns in a way this package does not know would fail here, not give a wrong answer.
func wellFormed(root Node) bool {
	ok := true
	walkNodes(root, func(n Node) {
		var below []string
		if in := n.inputs(); len(in) > 0 {
			below = in[0].Types()
		}
		eachExpr(n, func(e *Expr) {
			e.walk(func(x *Expr) {
				if x.Op == opRef && (x.Ref >= len(below) || below[x.Ref] != x.Type) {
					ok = false
				}
			})
		})
		if u, isUnion := n.(*Union); isUnion {
			for _, in := range u.Ins {
				ok = ok && slices.Equal(in.Types(), u.Type)
			}
		}
	})
	return ok
}

func (b *binder) node(n object) (Node, error) {
	var in []object
	for _, c := range children(n, "children") {
		o, _ := c.(object)
		in = append(in, o)
	}
	kind := text(n, "type")
	if need := inputsOf[kind]; len(in) < need {
		return nil, refuse(-1, "", "%s without its input has no rule", operatorName(kind))
	}
	switch kind {
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
	case "LOGICAL_WINDOW":
		return b.window(n, in[0])
	case "LOGICAL_LIMIT":
		return b.limit(n, in[0])
	case "LOGICAL_DISTINCT":
		if text(n, "distinct_type") == "DISTINCT_ON" {
			return b.distinctOn(n, in[0])
		}
		return b.distinct(n, in[0])
	case "LOGICAL_EXCEPT", "LOGICAL_INTERSECT":
		return b.setOperation(n, in)
	case "LOGICAL_UNION":
		if !isSet(n, "setop_all") {
			return nil, refuse(-1, "", "a union that drops rows itself has no rule")
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
		b.ctes[index] = def
		return b.node(in[1])
	case "LOGICAL_CTE_REF":
		index, _ := integer(n["cte_index"])
		def := b.ctes[index]
		if def == nil {
			return nil, refuse(-1, "", "a recursive common table expression has no incremental rule")
		}
		return def, nil
	default:
		return nil, refuse(-1, operatorHint(kind), "%s is not supported by this version", operatorName(kind))
	}
}

// inputsOf is how many inputs the known operators need.
var inputsOf = map[string]int{
	"LOGICAL_FILTER": 1, "LOGICAL_PROJECTION": 1, "LOGICAL_AGGREGATE_AND_GROUP_BY": 1, "LOGICAL_UNION": 2, "LOGICAL_EXCEPT": 2, "LOGICAL_INTERSECT": 2,
	"LOGICAL_ORDER_BY": 1, "LOGICAL_WINDOW": 1, "LOGICAL_LIMIT": 1, "LOGICAL_DISTINCT": 1, "LOGICAL_MATERIALIZED_CTE": 2,
}

func operatorName(kind string) string {
	switch kind {
	case "LOGICAL_COMPARISON_JOIN", "LOGICAL_ANY_JOIN", "LOGICAL_DELIM_JOIN", "LOGICAL_CROSS_PRODUCT", "LOGICAL_ASOF_JOIN", "LOGICAL_POSITIONAL_JOIN":
		return "a join"
	case "LOGICAL_WINDOW":
		return "a window function"
	case "LOGICAL_LIMIT":
		return "LIMIT"
	case "LOGICAL_UNNEST":
		return "UNNEST"
	case "LOGICAL_DUMMY_SCAN", "LOGICAL_EXPRESSION_GET", "LOGICAL_COLUMN_DATA_GET":
		return "a SELECT that reads no source"
	}
	return "the operator " + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(kind, "LOGICAL_"), "_", " "))
}

func operatorHint(kind string) string {
	switch kind {
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
	exprs, err := b.exprs(n[key])
	return below, exprs, err
}

func (b *binder) scan(n object) (Node, error) {
	source := text(child(n, "function_data"), "table")
	replaced, known := b.sources[source]
	if !known || text(n, "name") != "seq_scan" {
		return nil, refuse(-1, "declare what is read with CREATE SOURCE", "table function %s is not a source", text(n, "name"))
	}
	names, types := children(n, "names"), children(n, "returned_types")
	s := &Scan{Source: source, Replaced: replaced}
	for _, c := range children(n, "column_indexes") {
		ci, _ := c.(object)
		if kind := text(ci, "index_type"); kind != "FULL_READ" || len(children(ci, "child_indexes")) > 0 {
			return nil, refuse(-1, "", "reading a part of a column has no rule")
		}
		i, ok := integer(ci["index"])
		if !ok || i >= len(names) {
			// count(*) reads no column: DuckDB asks for the row id, which nothing refers to.
			s.Cols, s.Type = append(s.Cols, ""), append(s.Type, "BIGINT")
			continue
		}
		name, _ := names[i].(string)
		typ, err := typeName(types[i])
		if err != nil {
			return nil, refuse(-1, "declare it with another type", "column %s of %s has %v, which have no rule", name, source, err)
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
	sets, err := groupingSets(n, len(groups))
	if err != nil {
		return nil, err
	}
	a := &Aggregate{In: below, Groups: groups, Sets: sets}
	for _, x := range children(n, "expressions") {
		o, _ := x.(object)
		agg, err := b.agg(o)
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
