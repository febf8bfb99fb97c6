package files

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

const shownRows = 10 // bad rows in a message

// allowance is max_rejects: how many bad rows a file may have. Of a Parquet file that is read in
// several batches, it is what each batch may have, as a share of the rows it reads.
type allowance struct {
	rows  int64
	share *big.Rat // of the file's rows; nil: rows counts
	text  string   // as it was written
}

func parseAllowance(text string) (allowance, string) {
	a := allowance{text: text}
	percent, isShare := strings.CutSuffix(text, "%")
	if !isShare {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return a, "must be a number of rows, like 10, or a share of a file's rows, like '0.1%'"
		}
		a.rows = n
		return a, ""
	}
	share, ok := new(big.Rat).SetString(strings.TrimSpace(percent))
	if !ok || share.Sign() < 0 || share.Cmp(big.NewRat(100, 1)) > 0 || strings.ContainsAny(percent, "/eExX_") {
		return a, "must be a share between 0% and 100%"
	}
	a.share = share.Quo(share, big.NewRat(100, 1))
	return a, ""
}

// allows tells whether a file of so many rows may have so many bad ones.
func (a allowance) allows(rejected, rows int64) bool {
	if a.share == nil {
		return rejected <= a.rows
	}
	return new(big.Rat).SetInt64(rejected).Cmp(new(big.Rat).Mul(a.share, new(big.Rat).SetInt64(rows))) <= 0
}

func tooManyBad(rejected, rows int64, a allowance) string {
	return fmt.Sprintf("%d of %d rows are bad; max_rejects allows %s", rejected, rows, a.text)
}

// rejects are the bad rows of a scan, in a temp table once there are any.
type rejects struct {
	s     *Source
	table string // "" while there are none
}

// add inserts what a query gives: split, row, line, reason, raw.
func (r *rejects) add(ctx context.Context, query string) error {
	table := "_rejects_" + r.s.spec.Name
	if r.table == "" {
		err := r.s.eng.Exec(ctx, "CREATE OR REPLACE TEMP TABLE "+duck.Quote(table)+" (source VARCHAR, split_id VARCHAR, off BIGINT, line BIGINT, reason VARCHAR, raw VARCHAR)")
		if err != nil {
			return err
		}
		r.table = table
	}
	return r.s.eng.Exec(ctx, "INSERT INTO temp."+duck.Quote(table)+" SELECT "+duck.Literal(r.s.spec.Name)+", * FROM ("+query+")")
}

func (r *rejects) drop(ctx context.Context) error {
	if r.table == "" {
		return nil
	}
	table := r.table
	r.table = ""
	return r.s.eng.Exec(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS temp."+duck.Quote(table))
}

// tooMany is the error of bad rows that are not allowed: the first of them, and how many each file has.
func (r *rejects) tooMany(ctx context.Context, over []string, fatal bool) error {
	var first string
	var lines []string
	query := fmt.Sprintf("SELECT split_id, line, off, reason, raw FROM temp.%s ORDER BY split_id, off LIMIT %d", duck.Quote(r.table), shownRows+1)
	err := r.s.eng.Each(ctx, query, nil, func(rows *sql.Rows) error {
		var split, reason string
		var line sql.NullInt64
		var off int64
		var raw sql.NullString
		if err := rows.Scan(&split, &line, &off, &reason, &raw); err != nil {
			return err
		}
		where := r.s.shown(r.s.pattern.abs(split))
		if line.Valid {
			where = fmt.Sprintf("%s:%d", where, line.Int64)
		} else {
			where = fmt.Sprintf("%s row %d", where, off+1)
		}
		message := reason
		if raw.String != "" {
			message += ": " + cut(raw.String)
		}
		switch {
		case first == "":
			first = where
			lines = append(lines, message)
		case len(lines) == shownRows:
			lines = append(lines, "and more")
		default:
			lines = append(lines, where+": "+message)
		}
		return nil
	})
	if err != nil {
		return err
	}
	hint := "nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all"
	if fatal {
		hint = "nothing was committed: a check ON VIOLATION FAIL allows no such row"
	}
	return &connectors.DataError{Source: r.s.spec.Name, Where: first, Err: errors.New(strings.Join(append(lines, over...), "\n")), Hint: hint}
}
