package files

import (
	"context"
	"database/sql"
	"fmt"

	"lockstep/connectors"
)

// rowsOf reads the row counts in the footers of Parquet files, by id.
func (s *Source) rowsOf(ctx context.Context, files []file) (map[string]int64, error) {
	var ask []file
	for _, f := range files {
		if _, known := s.footers[f]; !known {
			ask = append(ask, f)
		}
	}
	if len(ask) > 0 {
		if err := s.readFooters(ctx, ask); err != nil {
			return nil, s.culprit(ctx, ask, err)
		}
	}
	rows := make(map[string]int64, len(files))
	for _, f := range files {
		rows[f.id] = s.footers[f]
	}
	return rows, nil
}

func (s *Source) readFooters(ctx context.Context, files []file) error {
	byPath := make(map[string]file, len(files))
	for _, f := range files {
		byPath[f.path] = f
	}
	read := 0
	err := s.eng.Each(ctx, "SELECT file_name, num_rows FROM parquet_file_metadata("+list(files)+")", nil, func(r *sql.Rows) error {
		var path string
		var n int64
		if err := r.Scan(&path, &n); err != nil {
			return err
		}
		s.footers[byPath[path]] = n
		read++
		return nil
	})
	if err == nil && read != len(files) {
		err = fmt.Errorf("%d of %d files have a footer", read, len(files))
	}
	return err
}

// culprit finds the file whose footer cannot be read.
func (s *Source) culprit(ctx context.Context, files []file, err error) error {
	for _, f := range files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.readFooters(ctx, []file{f}); err != nil {
			return s.damaged(ctx, f, err)
		}
	}
	return err
}

func (s *Source) damaged(ctx context.Context, f file, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if problem := s.openable(f); problem != nil {
		return problem
	}
	return s.dataError(f.path, "is damaged or not a Parquet file: "+plainReason(err, f.path),
		"replace it with an intact copy or remove it; a file that is still being written needs a name that ends in .tmp")
}

// describe returns the columns of one file.
func (s *Source) describe(ctx context.Context, f file) ([]connectors.SourceColumn, error) {
	var out []connectors.SourceColumn
	err := s.eng.Each(ctx, "SELECT column_name, column_type FROM (DESCRIBE FROM "+s.readParquet([]file{f}, "")+")", nil, func(r *sql.Rows) error {
		var c connectors.SourceColumn
		err := r.Scan(&c.Name, &c.Type)
		out = append(out, c)
		return err
	})
	if err != nil {
		return nil, s.damaged(ctx, f, err)
	}
	return out, nil
}

// schemas returns, by path, a text that is the same for files with the same columns.
func (s *Source) schemas(ctx context.Context, files []file) (map[string]string, error) {
	out := make(map[string]string, len(files))
	const columns = "concat_ws(chr(1), name, type, type_length, num_children, converted_type, scale, precision, logical_type)"
	err := s.eng.Each(ctx, "SELECT file_name, md5(string_agg("+columns+", chr(2) ORDER BY column_id)) FROM parquet_schema("+list(files)+") GROUP BY file_name", nil, func(r *sql.Rows) error {
		var path, schema string
		err := r.Scan(&path, &schema)
		out[path] = schema
		return err
	})
	if err != nil {
		return nil, s.culprit(ctx, files, err)
	}
	return out, nil
}

// readParquet is a scan of files; more are further arguments.
func (s *Source) readParquet(files []file, more string) string {
	return "read_parquet(" + list(files) + ", " + s.settings.args() + more + ")"
}
