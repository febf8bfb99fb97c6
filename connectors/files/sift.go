package files

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

const (
	siftTable  = "_files_sift"
	reasonName = `"_:reason"`
	failName   = `"_:fail"`
)

// siftFile splits a file into records here, decodes them by the same rules as ever, and moves the good
// ones to the copy and the bad ones to the rejects. failed: one breaks a check ON VIOLATION FAIL.
func (s *Source) siftFile(ctx context.Context, table string, sus suspect, bad *rejects) (v verdict, failed bool, err error) {
	if s.settings.format == formatCSV && !s.settings.countsRows() {
		return v, false, s.lax(ctx, sus)
	}
	defer func() {
		err = cmp.Or(err, s.eng.Exec(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS temp."+siftTable))
	}()
	if err := s.load(ctx, sus.file, sus.layout, siftTable, s.sifted); err != nil {
		return v, false, err
	}
	var unsplit int64
	err = s.eng.QueryRow(ctx, "SELECT count(*), count("+reasonName+"), count("+problemName+"), coalesce(bool_or("+failName+"), false) FROM temp."+siftTable, nil,
		&v.rows, &v.rejected, &unsplit, &failed)
	if err != nil {
		return v, false, err
	}
	v.sifted = true
	if sus.failed != nil && unsplit == 0 {
		// DuckDB could not read what can be read here: better no rows than other ones.
		return v, false, s.unexplained(sus, sus.failed)
	}
	if v.rejected > 0 {
		err = bad.add(ctx, "SELECT "+strings.Join([]string{splitName, rowName, lineName, reasonName, rawName}, ", ")+" FROM temp."+siftTable+" WHERE "+reasonName+" IS NOT NULL")
	}
	if err == nil {
		err = s.eng.Exec(ctx, "INSERT INTO temp."+duck.Quote(table)+" SELECT "+s.declared()+", "+splitName+", true FROM temp."+siftTable+" WHERE "+reasonName+" IS NULL")
	}
	return v, failed, err
}

// sifted selects the declared columns of records, their place, and the reason of bad ones.
func (s *Source) sifted(texts string) string {
	place := []string{splitName, rowName, lineName, problemName, rawName}
	fail := problemName + " IS NULL AND " + s.fails()
	return "SELECT " + s.declared() + ", " + strings.Join(place, ", ") + ", CASE WHEN " + problemName + " IS NOT NULL THEN " + problemName +
		" ELSE " + firstReason(s.tests(true)) + " END AS " + reasonName + ", " + fail + " AS " + failName +
		" FROM (" + s.computed(s.values(texts, place...)) + ")"
}

// fails is the condition that a row breaks a check ON VIOLATION FAIL.
func (s *Source) fails() string {
	var fails []string
	for _, c := range s.spec.Checks {
		if c.Fail {
			fails = append(fails, "NOT coalesce(("+c.SQL+"), true)")
		}
	}
	if len(fails) == 0 {
		return "false"
	}
	return "(" + strings.Join(fails, " OR ") + ")"
}

// load copies a query over the records of a file to a table.
func (s *Source) load(ctx context.Context, f file, l layout, table string, query func(texts string) string) error {
	var next func() (arrow.RecordBatch, error)
	if s.settings.format == formatJSON {
		r := s.readJSON(ctx, []file{f}, true)
		defer r.close()
		next = r.next
	} else {
		read, done, err := s.readCSVFile(ctx, f, l)
		if err != nil {
			return err
		}
		defer done()
		next = read
	}
	rows := newBatchReader(ctx, s.recordSchema(true), next)
	defer rows.Release()
	err := s.eng.LoadAs(ctx, table, rows, query)
	switch {
	case rows.err != nil:
		return rows.err
	case err != nil && blamesInput(ctx, err):
		return s.explainComputed(ctx, []file{f}, l, err)
	}
	return err
}

// unexplained is the error of a file that DuckDB's reader cannot read, when there is no row to blame.
func (s *Source) unexplained(sus suspect, err error) error {
	if s.computes() && !strings.Contains(err.Error(), sus.path) {
		return err
	}
	if strings.Contains(err.Error(), "invalid state") {
		return s.dataError(sus.path, "cannot be split into rows", "it may mix kinds of line ends, or its quotes do not follow the rules of CSV: write it again in a plain form")
	}
	return s.dataError(sus.path, "cannot be read: "+plainReason(err, sus.path), "")
}

// blamesInput tells the errors of DuckDB that a row may have caused.
func blamesInput(ctx context.Context, err error) bool { return ctx.Err() == nil && duck.ByRow(err) }

// explainComputed finds the computed column or the check that made a statement fail: nothing else in
// it can. Each is evaluated alone, over the records of the files.
func (s *Source) explainComputed(ctx context.Context, files []file, l layout, failed error) error {
	if !s.computes() {
		return failed
	}
	const table = "_files_values"
	defer func() { _ = s.eng.Exec(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS temp."+table) }() // failed is what matters
	for _, f := range files {
		whole := *s
		whole.spec.Checks = nil
		whole.spec.Columns = nil
		for _, c := range s.spec.Columns {
			if c.Computed == "" {
				whole.spec.Columns = append(whole.spec.Columns, c)
			}
		}
		// The columns keep their order, but not their places: texts are named by place.
		err := whole.load(ctx, f, s.withoutComputed(l), table, func(texts string) string {
			return whole.values(texts, splitName, rowName)
		})
		if err != nil {
			return err
		}
		if err := s.blame(ctx, f.path, "temp."+table); err != nil {
			return err
		}
	}
	return failed
}

// withoutComputed is a layout for the columns that are not computed.
func (s *Source) withoutComputed(l layout) layout {
	out := layout{names: l.names}
	for i, at := range l.at {
		if s.spec.Columns[i].Computed == "" {
			out.at = append(out.at, at)
		}
	}
	return out
}

func (s *Source) computes() bool {
	for _, c := range s.spec.Columns {
		if c.Computed != "" {
			return true
		}
	}
	return len(s.spec.Checks) > 0
}

// blame evaluates each computed column and check over a relation of values. It returns a DataError for
// the first that fails.
func (s *Source) blame(ctx context.Context, path, values string) error {
	try := func(what, expr, relation string) error {
		var ignore any
		err := s.eng.QueryRow(ctx, "SELECT bit_xor(hash("+expr+")) FROM "+relation, nil, &ignore)
		if err == nil || !blamesInput(ctx, err) {
			return err
		}
		return &connectors.DataError{Source: s.spec.Name, Where: s.shown(path), Err: fmt.Errorf("%s: %s", what, plainReason(err, path)),
			Hint: "nothing was committed: let the expression give NULL for such rows, as try_cast and try_strptime do"}
	}
	for _, c := range s.spec.Columns {
		if c.Computed == "" {
			continue
		}
		if err := try(fmt.Sprintf("computed column %q", c.Name), "CAST(("+c.Computed+") AS "+c.Type+")", values); err != nil {
			return err
		}
	}
	for _, c := range s.spec.Checks {
		if err := try("CHECK ("+checkText(c)+")", "("+c.SQL+")", "("+s.computed("FROM "+values)+")"); err != nil {
			return err
		}
	}
	return nil
}

// lax lists bad rows of a file that DuckDB is told to read although it does not follow the rules of
// CSV: only DuckDB knows its rows, and it does not know their places.
func (s *Source) lax(ctx context.Context, sus suspect) error {
	if sus.failed != nil {
		return s.unexplained(sus, sus.failed)
	}
	var reason string
	texts := s.csvTexts(sheet{sus.layout, nil}, []file{sus.file})
	query := "SELECT min(reason) FROM (SELECT " + firstReason(s.tests(true)) + " AS reason FROM (" + s.computed(s.values(texts, s.kept()...)) + "))"
	if err := s.eng.QueryRow(ctx, query, nil, &reason); err != nil {
		return err
	}
	return s.dataError(sus.path, reason, "nothing was committed; with strict_mode = false the line is not known")
}
