package files

import (
	"context"
	"database/sql"
	"strings"

	"lockstep/engine/duck"
)

// checkParquet looks for rows that break NOT NULL or a check. The consuming query could not tell: it
// may not read the column at all. Most footers count NULLs, so that columns without any are known to
// be; what is left is looked through, which costs about as much as reading those columns. Only when
// there are bad rows the relation gets a filter, and they go to the rejects.
func (sc *scan) checkParquet(ctx context.Context) error {
	s := sc.s
	counts := map[string]int64{}
	fatal := false
	for i := range sc.parts {
		p := &sc.parts[i]
		tests, err := s.doubtful(ctx, *p)
		if err != nil {
			return s.explainParquet(ctx, []part{*p}, err)
		}
		if len(tests) == 0 {
			continue
		}
		rows := "(" + s.computed(s.partSQL(*p, true)) + ") WHERE NOT (" + allGood(tests) + ")"
		found, failed, err := s.countBad(ctx, rows)
		if err != nil {
			return s.explainParquet(ctx, []part{*p}, err)
		}
		if len(found) == 0 {
			continue
		}
		if p.ownPlace != "" {
			return s.ownPlace(p.files[0].path, p.ownPlace, "its bad rows have no place")
		}
		fatal = fatal || failed
		p.filter = allGood(tests)
		for split, n := range found {
			counts[split] += n
		}
		query := "SELECT " + splitName + ", " + rowName + ", NULL, " + firstReason(tests) + ", " + s.rowText() + " FROM " + rows
		if err := sc.rejects.add(ctx, query); err != nil {
			return err
		}
	}
	var over []string
	for i, f := range sc.files {
		n, rows := counts[f.id], sc.ranges[i].Rows
		if n == 0 {
			continue
		}
		sc.verdicts[f.id] = verdict{rows: rows, rejected: n}
		if (fatal || !s.settings.maxRejects.allows(n, rows)) && len(over) < shownRows {
			over = append(over, s.shown(f.path)+": "+tooManyBad(n, rows, s.settings.maxRejects))
		}
	}
	if len(over) > 0 {
		return sc.rejects.tooMany(ctx, over, fatal)
	}
	return nil
}

// countBad counts rows by split, and tells whether one breaks a check ON VIOLATION FAIL.
func (s *Source) countBad(ctx context.Context, rows string) (counts map[string]int64, failed bool, err error) {
	counts = map[string]int64{}
	err = s.eng.Each(ctx, "SELECT "+splitName+", count(*), bool_or("+s.fails()+") FROM "+rows+" GROUP BY ALL", nil, func(r *sql.Rows) error {
		var split string
		var n int64
		var fails bool
		err := r.Scan(&split, &n, &fails)
		counts[split] = n
		failed = failed || fails
		return err
	})
	return counts, failed, err
}

// rowText is a row of Parquet in DuckDB's way of writing a STRUCT.
func (s *Source) rowText() string {
	var fields []string
	for _, c := range s.spec.Columns {
		if isInput(c) {
			fields = append(fields, duck.Literal(c.Name)+": "+duck.Quote(c.Name))
		}
	}
	return "CAST({" + strings.Join(fields, ", ") + "} AS VARCHAR)"
}

// doubtful are the tests that footers do not answer.
func (s *Source) doubtful(ctx context.Context, p part) ([]test, error) {
	var names []string
	for _, c := range s.spec.Columns {
		if c.NotNull {
			names = append(names, c.Name)
		}
	}
	clean := map[string]bool{}
	if len(names) > 0 {
		var err error
		if clean, err = s.withoutNulls(ctx, names, p); err != nil {
			return nil, err
		}
	}
	doubt := *s
	doubt.spec.Columns = nil
	for _, c := range s.spec.Columns {
		c.NotNull = c.NotNull && !clean[strings.ToLower(c.Name)]
		doubt.spec.Columns = append(doubt.spec.Columns, c)
	}
	return doubt.tests(false), nil
}

// withoutNulls tells by their lower-case names the columns whose footers count no NULL.
func (s *Source) withoutNulls(ctx context.Context, names []string, p part) (map[string]bool, error) {
	lower := make([]string, len(names))
	for i, n := range names {
		lower[i] = duck.Literal(strings.ToLower(n))
	}
	clean := map[string]bool{}
	query := "SELECT lower(path_in_schema), bool_and(coalesce(stats_null_count = 0, false)) FROM parquet_metadata(" + list(p.files) +
		") WHERE lower(path_in_schema) IN (" + strings.Join(lower, ", ") + ") GROUP BY ALL"
	err := s.eng.Each(ctx, query, nil, func(r *sql.Rows) error {
		var name string
		var without bool
		err := r.Scan(&name, &without)
		clean[name] = without
		return err
	})
	return clean, err
}
