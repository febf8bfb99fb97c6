package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockstep/sql"
)

// output names the columns of a sink and finds the key among them; nil after a fault.
func (p *planning) output(ctx context.Context, s *sql.Sink, root Node, columns []exactness, refused bool) (*Sink, error) {
	sink := &Sink{Name: lower(nameOf(s.Name)), Table: s.Name.Parts[len(s.Name.Parts)-1].Text, Decl: s, root: root}
	if len(s.Name.Parts) == 3 {
		sink.Schema = s.Name.Parts[1].Text
	}
	names, err := p.columnNames(ctx, s.Select, root)
	if err != nil {
		return nil, err
	}
	ok := p.checkNames(s, names)
	for i, typ := range root.Types() {
		if msg, hint := unfit(typ, names[i]); msg != "" && !refused {
			p.fault(s.Head, hint, "column %s %s", names[i], msg)
			ok = false
		}
		sink.Columns = append(sink.Columns, SinkColumn{Name: names[i], Type: typ, Inexact: columns[i] != exact && isNumber(typ)})
	}
	for _, k := range s.Key {
		at := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, k.Text) })
		if at < 0 {
			hint := didYouMean(k.Text, names)
			if hint == "" {
				hint = "the SELECT has " + shortList(names)
			}
			p.fault(k.Span, hint, "the key column %s is not a column of the SELECT", k.Text)
			ok = false
			continue
		}
		if columns[at] == inexact {
			p.fault(k.Span, exactHint, "the key column %s is a floating-point aggregate and not exact", k.Text)
			ok = false
		}
		sink.key, sink.Key = append(sink.key, at), append(sink.Key, names[at])
	}
	if !ok {
		return nil, nil
	}
	return sink, nil
}

// unfit tells why a table cannot have a column of a type.
func unfit(typ, name string) (msg, hint string) {
	switch {
	case typ == "NULL" || strings.HasPrefix(typ, "NULL["):
		return "is always NULL and has no type", "cast it: NULL::VARCHAR AS " + name
	case strings.Contains(typ, "JSON"):
		return "is JSON, which is not supported as a column by this version", "keep its text: (…)::VARCHAR AS " + name
	}
	return "", ""
}

// columnNames asks DuckDB what the columns of a SELECT are called; nil when it cannot be bound.
func (p *planning) columnNames(ctx context.Context, query sql.Expr, root Node) ([]string, error) {
	if root == nil {
		return nil, nil
	}
	rows, err := p.eng.Query(ctx, "SELECT column_name FROM (DESCRIBE "+compose(p.above, query).text+"\n)")
	if err != nil {
		return nil, fmt.Errorf("DuckDB could not name the columns: %w", err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	if len(names) != len(root.Types()) && rows.Err() == nil {
		return nil, fmt.Errorf("DuckDB named %d of %d columns", len(names), len(root.Types()))
	}
	return names, rows.Err()
}

func (p *planning) checkNames(s *sql.Sink, names []string) bool {
	ok := true
	seen := map[string]bool{}
	for _, n := range names {
		l := strings.ToLower(n)
		switch {
		case seen[l]:
			p.fault(s.Head, "give one of them another name with AS", "two columns of the SELECT are named %s", n)
			ok = false
		case strings.HasPrefix(l, "_etl_") || l == "_op":
			p.fault(s.Head, "give it another name with AS", "the column name %s is reserved", n)
			ok = false
		}
		seen[l] = true
	}
	return ok
}

func columnNames(columns []SinkColumn) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// keySpan is where a message about the whole key points.
func keySpan(s *sql.Sink) sql.Span {
	if len(s.Key) == 0 {
		return s.Head
	}
	return sql.Span{Start: s.Key[0].Span.Start, End: s.Key[len(s.Key)-1].Span.End}
}
