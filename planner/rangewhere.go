package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
	"lockstep/sql"
)

// Within is the range of a predicate over the key columns of a sink, and of the same rows in every other
// sink. what is how the predicate is called in errors, which point into its text.
func (p *Plan) Within(ctx context.Context, sink Sink, what, text string) (*Range, error) {
	eng, err := duck.Open(ctx, duck.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	e, err := p.predicate(ctx, eng, sink, what, text)
	if err != nil {
		return nil, err
	}
	return p.rangeOf(sink, e), nil
}

// KeyCondition writes a predicate over the key columns of a sink as SQL over its table.
func (p *Plan) KeyCondition(ctx context.Context, sink Sink, what, text string) (string, error) {
	eng, err := duck.Open(ctx, duck.Options{Threads: 1})
	if err != nil {
		return "", err
	}
	defer eng.Close()
	e, err := p.predicate(ctx, eng, sink, what, text)
	if err != nil {
		return "", err
	}
	return condition(sink, e), nil
}

// Everything is the range of all there is.
func (p *Plan) Everything(why string) *Range { return &Range{Whole: why, plan: p} }

// predicate binds a predicate over a sink's columns, and wants it to be one over its key.
func (p *Plan) predicate(ctx context.Context, eng *duck.Engine, sink Sink, what, text string) (*Expr, error) {
	if err := single(ctx, eng, what, text); err != nil {
		return nil, err
	}
	const before = "SELECT ("
	relation := lower(sink.Table)
	script := &sql.Script{File: what, Text: before + text + "\n) FROM " + duck.Quote(relation)}
	span := sql.Span{Start: len(before), End: len(before) + len(text)}
	faults := func(b *planning) error { // at their places in the predicate
		out := b.distinctFaults()
		for i, f := range out {
			at := sql.Span{Start: f.Span.Start - len(before), End: f.Span.End - len(before)}
			out[i] = sql.NewError(what, text, at, f.Hint, "%s", f.Message)
		}
		return out
	}
	b := &planning{
		eng: eng, script: script, tables: tables{relation: false}, casts: map[string]string{}, types: map[string]string{},
		plan:  &Plan{Script: script},
		scope: newScope(),
	}
	if err := b.names(ctx, nil); err != nil {
		return nil, err
	}
	names, defs := columnNames(sink.Columns), make([]string, len(sink.Columns))
	for i, c := range sink.Columns {
		defs[i] = duck.Quote(c.Name) + " " + c.Type
	}
	b.scope.add(relation, names)
	if err := eng.Exec(ctx, "CREATE OR REPLACE TABLE "+duck.Quote(relation)+" ("+strings.Join(defs, ", ")+")"); err != nil {
		return nil, err
	}
	root, g, err := b.query(ctx, sql.Expr{Text: script.Text, Span: sql.Span{End: len(script.Text)}})
	if err != nil {
		return nil, err
	}
	if root == nil || len(b.faults) > 0 {
		return nil, faults(b)
	}
	project, scan := rowProject(root)
	if scan == nil {
		b.fault(span, "compare the columns of the key with constants", "%s takes a condition on the key of %s, which looks at one row", what, sink.Name)
		return nil, faults(b)
	}
	e := project.Exprs[0]
	if e.Type != "BOOLEAN" {
		b.fault(span, "compare it with something, as in "+keyExample(sink), "%s takes a condition, not a value of type %s", what, e.Type)
		return nil, faults(b)
	}
	at := make([]int, len(scan.Cols))
	for i, name := range scan.Cols {
		at[i] = slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	}
	e.walk(func(x *Expr) {
		if x.Op != opRef || slices.Contains(sink.key, at[x.Ref]) {
			return
		}
		where, hint := span, "its key is ("+strings.Join(sink.Key, ", ")+")"
		if len(sink.Key) == 0 {
			hint = "its table has one row: leave the predicate out, or write true"
		}
		if pos := g.find([]string{scan.Cols[x.Ref]}); pos >= 0 {
			where = wordAt(script.Text, pos)
		}
		b.fault(where, hint, "%s is no key column of %s: a range is one of keys", scan.Cols[x.Ref], sink.Name)
	})
	if len(b.faults) > 0 {
		return nil, faults(b)
	}
	return e.remap(at), nil
}

// single makes sure that a text is one expression by itself. In the parentheses that it gets later, half of one
// and several would be read as something else than was meant, or blamed on what stands around it.
func single(ctx context.Context, eng *duck.Engine, what, text string) error {
	const before = "SELECT "
	fault := func(start, end int, hint, format string, args ...any) error {
		return sql.Errors{sql.NewError(what, text, sql.Span{Start: start, End: end}, hint, format, args...)}
	}
	const hint = "join conditions with AND and OR"
	if strings.TrimSpace(text) == "" {
		return fault(0, 0, "", "%s is empty", what)
	}
	tree, err := serialize(ctx, eng, "json_serialize_sql", compose(nil, sql.Expr{Text: before + text + "\n", Span: sql.Span{Start: -len(before)}}))
	var r *refusal
	switch isRefused := errors.As(err, &r); {
	case isRefused && strings.HasPrefix(r.msg, "SELECT clause without"):
		return fault(0, 0, "", "%s begins with no condition", what)
	case isRefused && r.msg == notOneSelect:
		return fault(0, len(text), hint, "%s takes one condition", what)
	case isRefused && (strings.HasPrefix(r.msg, "syntax error at end of input") || r.pos >= len(text)):
		return fault(len(text), len(text), "", "the condition ends where something must follow")
	case isRefused:
		word := wordAt(text, max(r.pos, 0))
		return fault(word.Start, word.End, r.hint, "%s", r.msg)
	case err != nil:
		return err
	}
	statements := children(tree, "statements")
	first, _ := statements[0].(object)
	if len(statements) != 1 || len(children(child(first, "node"), "select_list")) != 1 {
		return fault(0, len(text), hint, "%s takes one condition", what)
	}
	return nil
}

func keyExample(sink Sink) string {
	if len(sink.Key) == 0 {
		return "true"
	}
	return sink.Key[0] + " = …"
}

// rangeOf pushes a predicate over a sink's columns down, and those that mean the same rows in the others.
func (p *Plan) rangeOf(sink Sink, e *Expr) *Range {
	whole := func(sink Sink, why string) *Range {
		return p.Everything(fmt.Sprintf("the range cannot be taken down to the input of %s: %s", sink.Name, why))
	}
	pushed := newPushing(p)
	if why := pushed.push(sink.root, e, nil); why != "" {
		return whole(sink, why)
	}
	sinks := map[string]string{sink.Name: condition(sink, e)}
	for len(sinks) < len(p.Sinks) {
		other := p.Sinks[slices.IndexFunc(p.Sinks, func(s Sink) bool { return sinks[s.Name] == "" })]
		if at := slices.IndexFunc(p.Sinks, func(s Sink) bool { return sinks[s.Name] == "" && s.reads(pushed.paths) }); at >= 0 {
			other = p.Sinks[at] // its range is found before that of sinks which share sources with it only
		}
		same, why := p.sameRows(other, pushed.paths)
		if why == "" {
			why = pushed.push(other.root, same, nil)
		}
		if why != "" {
			return whole(other, why)
		}
		sinks[other.Name] = condition(other, same)
	}
	for _, step := range p.Steps {
		if len(pushed.steps[step.ID]) == 0 { // every step is of some sink
			return whole(sink, "step "+step.ID+" was not met")
		}
	}
	return pushed.result(sinks)
}

// reads: the sink is made from rows of one of the sources.
func (s Sink) reads(sources map[string][]path) bool {
	found := false
	walkNodes(s.root, func(n Node) {
		if scan, ok := n.(*Scan); ok {
			found = found || len(sources[lower(scan.Source)]) > 0
		}
	})
	return found
}

// condition writes a predicate over a sink's columns by their names.
func condition(s Sink, e *Expr) string {
	return "coalesce(" + e.sql(func(i int) string { return duck.Quote(s.Columns[i].Name) }) + ", false)"
}

// sameRows writes the range of some rows of the sources as a predicate over the key of a sink.
func (p *Plan) sameRows(sink Sink, ranges map[string][]path) (*Expr, string) {
	if !sink.reads(ranges) {
		return &Expr{Op: opConst, Name: "CAST('f' AS BOOLEAN)", Type: "BOOLEAN", Pos: -1}, ""
	}
	keys, types := map[string][]*Expr{}, sink.root.Types()
	for _, k := range sink.key {
		below := newPushing(p)
		if below.push(sink.root, ref(k, types[k]), nil) != "" {
			continue
		}
		for source, ways := range below.paths {
			if keys[source] == nil {
				keys[source] = slices.Repeat([]*Expr{{Op: opConst, Name: "NULL", Type: "NULL", Pos: -1}}, len(types))
			}
			keys[source][k] = ways[0].in
		}
	}
	for _, s := range p.Sources {
		for _, way := range ranges[s.Name] {
			if e, ok := lifted(way.in, keys[s.Name]); ok {
				return e, ""
			}
		}
	}
	if len(sink.Key) == 0 {
		return nil, "it has one row, made of all rows"
	}
	return nil, fmt.Sprintf("its key (%s) does not say which rows are in the range", strings.Join(sink.Key, ", "))
}
