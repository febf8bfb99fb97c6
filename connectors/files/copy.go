package files

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"lockstep/engine/duck"
)

// Text is copied in two steps. The first reads all files at once and marks the rows that are not good;
// when there are none, as nearly always, that is all. The second takes each file that has some, or
// that DuckDB could not read, and sifts it: records are split here instead, where each one's place and
// text are known, and go to the copy or to the rejects.

// verdict is what came of a file.
type verdict struct {
	rows     int64 // read
	rejected int64
	sifted   bool
}

// suspect is a file to be sifted.
type suspect struct {
	file
	layout layout
	failed error // of DuckDB's reader
}

func (sc *scan) Copy(ctx context.Context, table string) error {
	err := sc.copy(ctx, table)
	if err != nil {
		_ = sc.s.eng.Exec(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS temp."+duck.Quote(table)) // err is what matters
	}
	return err
}

func (sc *scan) copy(ctx context.Context, table string) error {
	s := sc.s
	switch s.settings.format {
	case formatParquet:
		return sc.Explain(ctx, s.eng.Exec(ctx, "CREATE OR REPLACE TEMP TABLE "+duck.Quote(table)+" AS "+sc.parquetSQL(true)))
	case formatJSON:
		if err := sc.copyJSON(ctx, table); err != nil {
			return err
		}
	default:
		if err := sc.copyCSV(ctx, table); err != nil {
			return err
		}
	}
	if err := sc.judge(ctx, table); err != nil {
		return err
	}
	if err := sc.sift(ctx, table); err != nil {
		return err
	}
	return s.eng.Exec(ctx, "ALTER TABLE temp."+duck.Quote(table)+" DROP COLUMN "+goodName)
}

// copyCSV lets DuckDB read all files, or, when that fails, one after the other to find out which.
func (sc *scan) copyCSV(ctx context.Context, table string) error {
	s := sc.s
	terms := []string{s.nothing("CAST(NULL AS VARCHAR) AS "+splitName, "true AS "+goodName)}
	for i, sh := range sc.sheets {
		if i == 0 {
			terms = nil
		}
		terms = append(terms, s.judged(s.csvTexts(sh, sh.files)))
	}
	create := "CREATE OR REPLACE TEMP TABLE " + duck.Quote(table) + " AS "
	err := s.eng.Exec(ctx, create+strings.Join(terms, " UNION ALL "))
	if err == nil || !blamesInput(ctx, err) {
		return err
	}
	if err := s.eng.Exec(ctx, create+s.nothing("CAST(NULL AS VARCHAR) AS "+splitName, "true AS "+goodName)); err != nil {
		return err
	}
	for _, sh := range sc.sheets {
		for _, f := range sh.files {
			if err := s.openable(f); err != nil {
				return err
			}
			err := s.eng.Exec(ctx, "INSERT INTO temp."+duck.Quote(table)+" "+s.judged(s.csvTexts(sh, []file{f})))
			switch {
			case err != nil && !blamesInput(ctx, err):
				return err
			case err != nil:
				sc.suspects = append(sc.suspects, suspect{f, sh.layout, err})
			}
		}
	}
	return nil
}

func (sc *scan) copyJSON(ctx context.Context, table string) error {
	s := sc.s
	r := s.readJSON(ctx, sc.files, false)
	defer r.close()
	rows := newBatchReader(ctx, s.recordSchema(false), r.next)
	defer rows.Release()
	err := s.eng.LoadAs(ctx, table, rows, s.judged)
	switch {
	case rows.err != nil:
		return rows.err
	case err != nil && blamesInput(ctx, err):
		return s.explainComputed(ctx, sc.files, layout{}, err)
	}
	return err
}

// judged selects the declared columns, the split, and whether the row is good.
func (s *Source) judged(texts string) string {
	good := allGood(s.tests(true))
	if s.settings.format == formatJSON {
		good = problemName + " IS NULL AND " + good
	}
	return "SELECT " + s.declared() + ", " + splitName + ", " + good + " AS " + goodName + " FROM (" + s.computed(s.values(texts, s.kept()...)) + ")"
}

// kept are the columns of a relation of texts that are needed beside the texts.
func (s *Source) kept() []string {
	keep := []string{splitName}
	if s.settings.format == formatJSON {
		keep = append(keep, problemName)
	}
	if s.wantsRows() {
		keep = append(keep, rowName)
	}
	return keep
}

// judge counts the rows of the copy by file, and notes which files have bad ones.
func (sc *scan) judge(ctx context.Context, table string) error {
	bad := map[string]bool{}
	query := "SELECT " + splitName + ", count(*), count(*) FILTER (NOT " + goodName + ") FROM temp." + duck.Quote(table) + " GROUP BY ALL"
	err := sc.s.eng.Each(ctx, query, nil, func(rows *sql.Rows) error {
		var split string
		var all, flagged int64
		err := rows.Scan(&split, &all, &flagged)
		sc.verdicts[split] = verdict{rows: all}
		bad[split] = flagged > 0
		return err
	})
	if err != nil {
		return err
	}
	layouts := map[string]layout{}
	for _, sh := range sc.sheets {
		for _, f := range sh.files {
			layouts[f.id] = sh.layout
		}
	}
	for _, f := range sc.files {
		if bad[f.id] {
			sc.suspects = append(sc.suspects, suspect{file: f, layout: layouts[f.id]})
		}
	}
	return nil
}

// sift reads the suspects again and puts their rows where they belong.
func (sc *scan) sift(ctx context.Context, table string) error {
	var over []string
	fatal := false
	for i, sus := range sc.suspects {
		if err := sc.s.eng.Exec(ctx, "DELETE FROM temp."+duck.Quote(table)+" WHERE "+splitName+" = ?", sus.id); err != nil {
			return err
		}
		v, failed, err := sc.s.siftFile(ctx, table, sus, &sc.rejects)
		if err != nil {
			return err
		}
		sc.verdicts[sus.id] = v
		fatal = fatal || failed
		if failed || !sc.s.settings.maxRejects.allows(v.rejected, v.rows) {
			over = append(over, sc.s.shown(sus.path)+": "+tooManyBad(v.rejected, v.rows, sc.s.settings.maxRejects))
		}
		if len(over) == shownRows && i+1 < len(sc.suspects) {
			over = append(over, fmt.Sprintf("and %d more files with bad rows", len(sc.suspects)-i-1))
			break
		}
	}
	if len(over) > 0 {
		return sc.rejects.tooMany(ctx, over, fatal)
	}
	return nil
}
