package files

import (
	"context"
	"database/sql"

	"lockstep/checkpoints"
	"lockstep/engine/duck"
)

// times are the earliest and the latest event time of the accepted rows, by file. They cost one more pass
// over one column, and only for a source that has event times.
func (sc *scan) times(ctx context.Context, copied string) (map[string]checkpoints.Times, error) {
	out := map[string]checkpoints.Times{}
	if sc.s.spec.EventTime == "" || len(sc.ranges) == 0 {
		return out, nil
	}
	from := "temp." + duck.Quote(copied)
	if copied == "" {
		from = "(" + sc.parquetSQL(true) + ")"
	}
	at := duck.Quote(sc.s.spec.EventTime)
	// Infinite times are in no range that could be asked for.
	query := "SELECT " + splitName + ", epoch_us(min(" + at + ")), epoch_us(max(" + at + ")) FROM " + from +
		" WHERE isfinite(" + at + ") GROUP BY ALL"
	err := sc.s.eng.Each(ctx, query, nil, func(rows *sql.Rows) error {
		var split string
		t := checkpoints.Times{Some: true}
		err := rows.Scan(&split, &t.Min, &t.Max)
		out[split] = t
		return err
	})
	return out, err
}
