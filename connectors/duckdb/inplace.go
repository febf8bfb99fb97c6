package duckdb

import (
	"context"
	"fmt"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// updateTx is the other way to bring a table to what is staged: updates set the pipeline's own columns by
// name, and no key leaves and comes back. It is for tables with columns of somebody else's, and for those
// with a PRIMARY KEY, whose checks look after every statement.
func (a apply) updateTx(ctx context.Context, c checkpoints.SinkCount) error {
	if err := a.checkMatchesTx(ctx); err != nil {
		return err
	}
	matched := fmt.Sprintf("%s AND %s AND s.%s", a.match(), a.older(), duck.Quote(opColumn))
	n, err := a.d.eng.ExecCount(ctx, fmt.Sprintf("MERGE INTO %s AS t USING %s AS s ON %s = 'D' WHEN MATCHED THEN DELETE", a.target, a.staged, matched))
	if err := a.wrote(err, n, c.Deleted); err != nil {
		return err
	}
	connectors.Failpoint("after-delete")
	n, err = a.d.eng.ExecCount(ctx, fmt.Sprintf("UPDATE %s AS t SET %s FROM %s AS s WHERE %s = 'U'", a.target, a.sets(), a.staged, matched))
	if err := a.wrote(err, n, c.Updated); err != nil {
		return err
	}
	connectors.Failpoint("after-update")
	return a.insertTx(ctx, "_op = 'I'", c.Inserted)
}

// sets lists what an update changes. The key stays what it is, so that no index is touched.
func (a apply) sets() string {
	key := map[string]bool{}
	for _, k := range a.sink.Key {
		key[strings.ToLower(k)] = true
	}
	out := []string{fmt.Sprintf("%s = %d", duck.Quote(seqColumn), a.seq)}
	for _, name := range a.columns() {
		if !key[strings.ToLower(name)] {
			out = append(out, duck.Quote(name)+" = s."+duck.Quote(name))
		}
	}
	return strings.Join(out, ", ")
}

// checkMatchesTx compares the keys in the table with what is staged for them, each by itself: a row that
// is gone and one that is doubled would balance in the number of rows written.
func (a apply) checkMatchesTx(ctx context.Context) error {
	key := "true"
	if len(a.sink.Key) > 0 {
		key = "s." + strings.Join(quoted(a.sink.Key), ", s.")
	}
	var gone, there, newer int64
	query := fmt.Sprintf(`SELECT count(*) FILTER (n = 0 AND op <> 'I'), count(*) FILTER (n > CASE op WHEN 'I' THEN 0 ELSE 1 END), count(*) FILTER (newer)
		FROM (SELECT s.%[1]s AS op, count(t."_etl is") AS n, coalesce(bool_or(t."_etl is" AND coalesce(t.%[2]s > %[3]d, true)), false) AS newer
		      FROM %[4]s AS s LEFT JOIN (SELECT *, true AS "_etl is" FROM %[5]s) AS t ON %[6]s GROUP BY %[7]s, s.%[1]s)`,
		duck.Quote(opColumn), duck.Quote(seqColumn), a.seq, a.staged, a.target, a.match(), key)
	if err := a.d.eng.QueryRow(ctx, query, nil, &gone, &there, &newer); err != nil {
		return a.d.failed("write table "+a.sink.Name, err)
	}
	switch {
	case newer > 0 && !a.any:
		return a.edited(fmt.Sprintf(rowsNewer, seqColumn, a.seq, newer))
	case there > 0:
		return a.edited(fmt.Sprintf(rowsThere, there))
	case gone > 0:
		return a.edited(fmt.Sprintf(rowsGone, gone))
	}
	return nil
}
