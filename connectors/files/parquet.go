package files

import (
	"context"
	"fmt"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// part is what one scan of DuckDB's Parquet reader covers: whole files of the same columns, or a
// range of rows of one file.
type part struct {
	files    []file
	columns  string // select list
	partial  bool
	from, to int64
}

func (s *Source) partSQL(p part) string {
	sql := "SELECT " + p.columns + " FROM " + s.readParquet(p.files)
	if p.partial {
		// DuckDB skips row groups by this column.
		sql += fmt.Sprintf(" WHERE file_row_number >= %d AND file_row_number < %d", p.from, p.to)
	}
	return sql
}

// partsOf groups ranges into as few scans as their columns allow, in the order of each one's first range.
func (s *Source) partsOf(ctx context.Context, files []file, ranges []connectors.Range) ([]part, error) {
	if len(files) == 0 {
		return nil, nil
	}
	totals, err := s.rowsOf(ctx, files)
	if err != nil {
		return nil, err
	}
	schemas, err := s.schemas(ctx, files)
	if err != nil {
		return nil, err
	}
	var parts []part
	shapes, whole := map[string]shape{}, map[string]int{}
	for i, r := range ranges {
		f, total := files[i], totals[files[i].id]
		if r.To > total {
			return nil, s.inputError(f.id, fmt.Sprintf("has %d rows, but rows up to %d are to be read", total, r.To), "restore the original file")
		}
		schema := schemas[f.path]
		sh, known := shapes[schema]
		if !known {
			if sh, err = s.shapeOf(ctx, f); err != nil {
				return nil, err
			}
			shapes[schema] = sh
		}
		p := part{files: []file{f}, columns: sh.columns, partial: r.From > 0 || r.To < total, from: r.From, to: r.To}
		at, begun := whole[schema]
		switch {
		case p.partial && sh.ownPlace != "":
			return nil, s.dataError(f.path, fmt.Sprintf("has a column %q of its own, so it cannot be read in parts", sh.ownPlace),
				fmt.Sprintf("allow batches of its %d rows", total))
		case !p.partial && begun:
			parts[at].files = append(parts[at].files, f)
			continue
		case !p.partial:
			whole[schema] = len(parts)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// shape is how files of one schema give the declared columns.
type shape struct {
	columns  string // select list
	ownPlace string // the name of a column that hides DuckDB's own file_row_number
}

// shapeOf checks a file's columns against the declared ones and writes the select list: plain names
// where the types are equal, so that DuckDB reads only what the query uses, and casts that cannot fail.
func (s *Source) shapeOf(ctx context.Context, f file) (shape, error) {
	var sh shape
	has, err := s.describe(ctx, f)
	if err != nil {
		return sh, err
	}
	names := make([]string, len(has))
	for i, c := range has {
		names[i] = c.Name
		if strings.EqualFold(c.Name, "file_row_number") {
			sh.ownPlace = c.Name
		}
	}
	selects := make([]string, len(s.spec.Columns))
	for i, want := range s.spec.Columns {
		at, found := find(names, want.Name)
		if found != 1 {
			bad := badName(want.Name, names, found, "the file")
			return sh, s.dataError(f.path, bad.reason, bad.hint)
		}
		name, from := duck.Quote(has[at].Name), has[at].Type
		switch {
		case from == want.Type:
			selects[i] = name + " AS " + duck.Quote(want.Name)
		case lossless(from, want.Type):
			selects[i] = "CAST(" + name + " AS " + want.Type + ") AS " + duck.Quote(want.Name)
		default:
			return sh, s.dataError(f.path, fmt.Sprintf("column %q is %s in the file, but declared as %s, which cannot hold all its values unchanged", want.Name, from, want.Type),
				"declare it as "+from+" and convert it in the SELECT")
		}
	}
	sh.columns = strings.Join(selects, ", ")
	return sh, nil
}

// explainParquet finds the damaged file by decoding the declared columns of each alone.
func (s *Source) explainParquet(ctx context.Context, parts []part, err error) error {
	for _, p := range parts {
		for _, f := range p.files {
			if problem := s.openable(f); problem != nil {
				return problem
			}
			one := p
			one.files = []file{f}
			// A hash over all columns: counts would be answered from the footer.
			var ignore any
			if err := s.eng.QueryRow(ctx, "SELECT bit_xor(hash(t)) FROM ("+s.partSQL(one)+") t", nil, &ignore); err != nil {
				return s.damaged(ctx, f, err)
			}
		}
	}
	return err
}
