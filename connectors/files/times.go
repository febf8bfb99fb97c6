package files

import (
	"context"
	"database/sql"
	"math"

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
	// An infinite time has no microseconds; min and max of what is left say nothing of it.
	query := "SELECT " + splitName + ", epoch_us(min(" + at + ") FILTER (isfinite(" + at + "))), epoch_us(max(" + at + ") FILTER (isfinite(" + at + "))), " +
		"bool_or(NOT isfinite(" + at + ") AND " + at + " < '1970-01-01'), bool_or(NOT isfinite(" + at + ") AND " + at + " > '1970-01-01') FROM " + from +
		" WHERE " + at + " IS NOT NULL GROUP BY ALL"
	err := sc.s.eng.Each(ctx, query, nil, func(rows *sql.Rows) error {
		var split string
		var least, most sql.NullInt64
		var before, after bool
		err := rows.Scan(&split, &least, &most, &before, &after)
		t := checkpoints.Times{Some: true, Min: least.Int64, Max: most.Int64}
		if before || !least.Valid {
			t.Min = math.MinInt64
		}
		if after || !least.Valid {
			t.Max = math.MaxInt64
		}
		out[split] = t
		return err
	})
	return out, err
}
