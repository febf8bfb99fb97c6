package files

import (
	"math"
	"testing"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// The position has the earliest and the latest event time of every file, of the rows that were accepted.
func TestEventTimes(t *testing.T) {
	const day = 24 * 3600 * 1_000_000
	for _, c := range []struct{ typ, low, high, infinite string }{
		{"DATE", "1970-01-03", "1970-01-11", "infinity"},
		{"TIMESTAMP", "1970-01-03 00:00:00", "1970-01-11 00:00:00", "-infinity"},
		{"TIMESTAMP_S", "1970-01-03 00:00:00", "1970-01-11 00:00:00", ""},
		{"TIMESTAMP_MS", "1970-01-03 00:00:00", "1970-01-11 00:00:00", ""},
		{"TIMESTAMP_NS", "1970-01-03 00:00:00.000000999", "1970-01-11 00:00:00", ""},
		{"TIMESTAMP WITH TIME ZONE", "1970-01-03 02:00:00+02", "1970-01-10 23:00:00-01", ""},
	} {
		t.Run(c.typ, func(t *testing.T) {
			w := newWorld(t, "in/*.csv", "id BIGINT", "moment "+c.typ).with("max_rejects", "1")
			w.spec.EventTime = "moment"
			w.write("in/a.csv", "id,moment\n1,"+c.high+"\n2,"+c.low+"\n3,\n4,"+c.infinite+"\nx,1999-01-01\n")
			w.write("in/b.csv", "id,moment\n1,\n")
			_, err := w.batch(connectors.Limit{})
			w.must(err)
			want := checkpoints.Times{Some: true, Min: 2 * day, Max: 10 * day}
			switch c.infinite {
			case "infinity":
				want.Max = math.MaxInt64
			case "-infinity":
				want.Min = math.MinInt64
			}
			if got := w.seen["a.csv"].Times; got != want {
				t.Errorf("a.csv: %+v", got)
			}
			if got := w.seen["b.csv"].Times; got != (checkpoints.Times{}) {
				t.Errorf("b.csv, without a time: %+v", got)
			}
		})
	}
}

// A file that is read in several batches has the times of all that was read so far.
func TestEventTimesOfRanges(t *testing.T) {
	w := newWorld(t, "in/*.parquet", "id BIGINT", "moment TIMESTAMP")
	w.spec.EventTime = "moment"
	w.parquet("in/a.parquet", "SELECT i AS id, TIMESTAMP '1970-01-01' + to_seconds((7 * i) % 10) AS moment FROM range(10) t(i)")
	for i, want := range []checkpoints.Times{{Some: true, Min: 0, Max: 7_000_000}, {Some: true, Min: 0, Max: 9_000_000}, {Some: true, Min: 0, Max: 9_000_000}} {
		_, err := w.batch(connectors.Limit{Rows: 4}) // of seconds 0 7 4 1, 8 5 2 9, 6 3
		w.must(err)
		if got := w.seen["a.parquet"].Times; got != want {
			t.Errorf("after batch %d: %+v, want %+v", i, got, want)
		}
	}
}
