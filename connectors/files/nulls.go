package files

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"lockstep/engine/duck"
)

// checkNotNull looks for NULLs in columns declared NOT NULL. The consuming query could not tell: it
// may not read the column at all. Most footers count NULLs, so that columns without any are known to
// be; the others are looked through, which costs about as much as reading them.
func (s *Source) checkNotNull(ctx context.Context, parts []part) error {
	var names []string
	for _, c := range s.spec.Columns {
		if c.NotNull {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	for _, p := range parts {
		doubtful, err := s.mayBeNull(ctx, names, p)
		if err != nil {
			return s.explainParquet(ctx, []part{p}, err)
		}
		if len(doubtful) == 0 {
			continue
		}
		for _, f := range p.files {
			one := p
			one.files = []file{f}
			for _, c := range doubtful {
				n, err := s.countNulls(ctx, c, one)
				if err != nil {
					return s.explainParquet(ctx, []part{one}, err)
				}
				if n > 0 {
					return s.nulls(f.path, c, n)
				}
			}
		}
	}
	return nil
}

// mayBeNull returns those of the columns whose footers count NULLs, or do not count.
func (s *Source) mayBeNull(ctx context.Context, names []string, p part) (doubtful []string, err error) {
	lower := make([]string, len(names))
	for i, n := range names {
		lower[i] = duck.Literal(strings.ToLower(n))
	}
	clean := map[string]bool{}
	query := "SELECT lower(path_in_schema), bool_and(coalesce(stats_null_count = 0, false)) FROM parquet_metadata(" + list(p.files) +
		") WHERE lower(path_in_schema) IN (" + strings.Join(lower, ", ") + ") GROUP BY ALL"
	err = s.eng.Each(ctx, query, nil, func(r *sql.Rows) error {
		var name string
		var without bool
		err := r.Scan(&name, &without)
		clean[name] = without
		return err
	})
	for _, n := range names {
		if !clean[strings.ToLower(n)] {
			doubtful = append(doubtful, n)
		}
	}
	return doubtful, err
}

func (s *Source) countNulls(ctx context.Context, column string, p part) (n int64, err error) {
	err = s.eng.QueryRow(ctx, "SELECT count(*) FROM ("+s.partSQL(p)+") WHERE "+duck.Quote(column)+" IS NULL", nil, &n)
	return n, err
}

func (s *Source) nulls(where, column string, n int64) error {
	return s.dataError(where, fmt.Sprintf("column %q is declared NOT NULL, but is NULL in %d row(s)", column, n),
		"correct the file, or declare the column without NOT NULL")
}
