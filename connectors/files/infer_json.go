package files

import (
	"context"
	"fmt"
	"strings"

	"lockstep/connectors"
)

const inferTable = "_files_infer"

// json finds the keys of files of JSON lines, in the order they first come in, and a type for each
// that all sampled values fit.
func (in *inference) json(ctx context.Context) error {
	s := in.src
	var keys []string
	seen := map[string]bool{}
	for _, f := range in.files {
		err := s.eachLine(ctx, f, func(l *jsonLine) {
			for _, k := range l.names() {
				if !seen[k] {
					seen[k] = true
					keys = append(keys, k)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	for i, k := range keys {
		at, count := find(keys[:i], k)
		if k == "" || count > 0 {
			in.notes = append(in.notes, fmt.Sprintf("the key %q is left out: it is empty or like %q but for letter case", k, keys[at]))
			continue
		}
		in.columns = append(in.columns, connectors.SourceColumn{Name: k, Type: "JSON"})
	}
	if len(in.columns) == 0 {
		return s.dataError(in.files[0].path, "has no line that is an object with keys", "each line must be a JSON object")
	}
	s.spec.Columns = in.columns
	defer func() { _ = s.eng.Exec(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS temp."+inferTable) }() // a leftover of a failure
	r := s.readJSON(ctx, in.files, false)
	defer r.close()
	rows := newBatchReader(ctx, s.recordSchema(false), r.next)
	defer rows.Release()
	err := s.eng.LoadAs(ctx, inferTable, rows, func(rows string) string { return fmt.Sprintf("FROM %s LIMIT %d", rows, inferFiles*inferRows) })
	if err != nil {
		return err
	}
	return in.jsonTypes(ctx)
}

// eachLine takes apart the first lines of a file.
func (s *Source) eachLine(ctx context.Context, f file, see func(l *jsonLine)) error {
	in, err := openText(f.path)
	if err != nil {
		return s.unreadable(ctx, f, err)
	}
	defer in.Close()
	lines, _, err := newLineCutter(in, s.settings.lineLimit()).next(nil)
	if len(lines) == 0 && err != nil {
		return s.unreadable(ctx, f, err)
	}
	l := newJSONLine(nil)
	for _, line := range lines {
		if line.problem == "" && l.parse(line.text) == "" {
			see(l)
		}
	}
	return nil
}

// names are the keys of the line that was parsed last.
func (l *jsonLine) names() (out []string) {
	l.at = 0
	l.space()
	for first := true; ; first = false {
		key, more, err := l.key(first)
		if err != nil || !more {
			return out
		}
		out = append(out, string(l.content(key)))
		if _, err := l.value(1); err != nil {
			return out
		}
	}
}

// jsonTypes guesses like types of CSV do, but a string stays one unless it is a time.
func (in *inference) jsonTypes(ctx context.Context) error {
	for i := range in.columns {
		raw := textName(i)
		selects := []string{"count(v)", "coalesce(bool_and(k = 'text'), false)", "coalesce(bool_and(k = 'number'), false)",
			"coalesce(max(length(v) - instr(v, '.')) FILTER (contains(v, '.')), 0)"}
		all := guesses("", "")
		for _, g := range all {
			selects = append(selects, allFit(g.fits))
		}
		var filled, scale int64
		var texts, numbers bool
		fit := make([]bool, len(all))
		into := []any{&filled, &texts, &numbers, &scale}
		for j := range fit {
			into = append(into, &fit[j])
		}
		query := "SELECT " + strings.Join(selects, ", ") + " FROM (SELECT CASE left(r, 1) WHEN '\"' THEN json_extract_string(r, '$') ELSE r END AS v, " +
			"CASE WHEN left(r, 1) = '\"' THEN 'text' WHEN r IN ('true', 'false') THEN 'boolean' WHEN left(r, 1) IN ('{', '[') THEN 'nested' ELSE 'number' END AS k " +
			"FROM (SELECT " + raw + " AS r FROM temp." + inferTable + " WHERE " + raw + " IS NOT NULL))"
		if err := in.eng.QueryRow(ctx, query, nil, into...); err != nil {
			return err
		}
		c := &in.columns[i]
		if filled == 0 {
			in.notes = append(in.notes, c.Name+" is null in all sampled rows")
			c.Type = "VARCHAR"
			continue
		}
		if texts {
			c.Type = "VARCHAR"
		}
		for j, g := range all {
			inText := g.typ == "DATE" || strings.HasPrefix(g.typ, "TIME")
			if fit[j] && g.option == "" && (texts && inText || !texts && (g.typ == "BOOLEAN" || numbers && !inText)) {
				in.choose(c, g, scale, false)
				break
			}
		}
	}
	return nil
}
