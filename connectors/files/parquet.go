package files

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// part is what one scan of DuckDB's Parquet reader covers: whole files of the same columns, or a
// range of rows of one file.
type part struct {
	files []file
	shape
	partial  bool
	from, to int64
	filter   string // condition of good rows; "" when all are
}

// fusedSQL selects the declared columns of good rows, and maybe _split.
func (s *Source) fusedSQL(p part, withSplit bool) string {
	if p.filter == "" && !withSplit && !s.layered() {
		return s.partSQL(p, false)
	}
	sql := "SELECT " + s.declared()
	if withSplit {
		sql += ", " + splitName
	}
	sql += " FROM (" + s.computed(s.partSQL(p, withSplit)) + ")"
	if p.filter != "" {
		sql += " WHERE " + p.filter
	}
	return sql
}

// layered tells that some column is not plain input.
func (s *Source) layered() bool {
	return slices.ContainsFunc(s.spec.Columns, func(c connectors.SourceColumn) bool { return !isInput(c) })
}

// partSQL selects input and metadata columns; placed adds _split and the row's ordinal.
func (s *Source) partSQL(p part, placed bool) string {
	columns, args := p.columns, ""
	if placed {
		columns += ", " + s.splitOf(pathName) + " AS " + splitName
		if p.ownPlace == "" {
			columns += ", file_row_number AS " + rowName
		}
	}
	if placed || p.named {
		args = ", filename = " + duck.Literal(unquoted(pathName))
	}
	sql := "SELECT " + columns + " FROM " + s.readParquet(p.files, args)
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
		p := part{files: []file{f}, shape: sh, partial: r.From > 0 || r.To < total, from: r.From, to: r.To}
		at, begun := whole[schema]
		switch {
		case p.partial && sh.ownPlace != "":
			err := s.ownPlace(f.path, sh.ownPlace, "it cannot be read in parts")
			err.Hint = fmt.Sprintf("allow batches of its %d rows", total)
			return nil, err
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

// pathName is what DuckDB is told to call a file's path: a file may have a column filename.
const pathName = `"_:path"`

// shape is how files of one schema give the declared columns.
type shape struct {
	columns  string // select list of input and metadata columns
	named    bool   // it reads the file's path
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
	var selects []string
	for _, want := range s.spec.Columns {
		switch {
		case want.Computed != "":
			continue
		case want.Metadata == "file_row_number" && sh.ownPlace != "":
			return sh, s.ownPlace(f.path, sh.ownPlace, fmt.Sprintf("column %q cannot be read", want.Name))
		case want.Metadata == "file_row_number":
			selects = append(selects, "CAST(file_row_number AS "+want.Type+") AS "+duck.Quote(want.Name))
			continue
		case want.Metadata != "":
			sh.named = true
			selects = append(selects, "CAST("+s.splitOf(pathName)+" AS "+want.Type+") AS "+duck.Quote(want.Name))
			continue
		}
		at, found := find(names, want.Name)
		if found != 1 {
			bad := badName(want.Name, names, found, "the file")
			return sh, s.dataError(f.path, bad.reason, bad.hint)
		}
		name, from := duck.Quote(has[at].Name), has[at].Type
		switch {
		case from == want.Type:
			selects = append(selects, name+" AS "+duck.Quote(want.Name))
		case lossless(from, want.Type):
			selects = append(selects, "CAST("+name+" AS "+want.Type+") AS "+duck.Quote(want.Name))
		default:
			return sh, s.dataError(f.path, fmt.Sprintf("column %q is %s in the file, but declared as %s, which cannot hold all its values unchanged", want.Name, from, want.Type),
				"declare it as "+from+" and convert it in the SELECT")
		}
	}
	sh.columns = strings.Join(selects, ", ")
	return sh, nil
}

// ownPlace is the fault of a file that has a column where DuckDB has the row's number.
func (s *Source) ownPlace(path, column, so string) *connectors.DataError {
	return s.dataError(path, fmt.Sprintf("has a column %q of its own, so %s", column, so), "give the file's column another name")
}

// explainParquet finds the damaged file by decoding the declared columns of each alone, or the computed
// column that fails.
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
			if err := s.eng.QueryRow(ctx, "SELECT bit_xor(hash(t)) FROM ("+s.partSQL(one, false)+") t", nil, &ignore); err != nil {
				return s.damaged(ctx, f, err)
			}
			if err := s.blame(ctx, f.path, "("+s.partSQL(one, false)+")"); err != nil {
				return err
			}
		}
	}
	return err
}
