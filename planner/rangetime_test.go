package planner

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"lockstep/engine/duck"
)

// What is told of rows by their earliest and latest time is true of each: random times around the hours in
// which local time jumps, random predicates over keys that follow from them.
func TestRangesOfTimes(t *testing.T) {
	eng := openEngine(t, 1)
	random := rand.New(rand.NewPCG(1, 2))
	zones := []string{"Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "UTC"}
	edges := []string{"2024-03-31 01:00:00", "2024-10-27 01:00:00", "2024-11-03 06:00:00", "2011-12-30 10:00:00", "2024-05-03 00:00:00", "1969-12-31 23:59:59.999999"}
	skipped, settled := 0, 0
	for _, typ := range []string{"TIMESTAMP", "TIMESTAMPTZ", "DATE", "TIMESTAMP_NS"} {
		zone := zones[random.IntN(len(zones))]
		keys := []string{"ts::DATE", "date_trunc('month', ts)::DATE", "ts::TIMESTAMP", "time_bucket(INTERVAL '6 hours', ts::TIMESTAMP)", "date_trunc('hour', ts::TIMESTAMP)"}
		if typ == "TIMESTAMPTZ" {
			keys = []string{"ts::DATE", fmt.Sprintf("(ts AT TIME ZONE '%s')::DATE", zone), fmt.Sprintf("date_trunc('hour', ts AT TIME ZONE '%s')", zone),
				fmt.Sprintf("timezone('%s', ts)", zone), fmt.Sprintf("date_trunc('day', ts AT TIME ZONE '%[1]s') AT TIME ZONE '%[1]s'", zone), "time_bucket(INTERVAL '1 day', ts)"}
		}
		for _, key := range keys {
			plan := mustCompile(t, `ATTACH 'm.duckdb' AS m; CREATE SOURCE t (ts `+typ+` NOT NULL, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '1 day') FROM 't.parquet';
				CREATE SINK m.out PRIMARY KEY (slot, k) AS SELECT `+key+` AS slot, k, count(*) AS n FROM t WHERE k IS NULL OR k < 5 GROUP BY ALL;`)
			sink := plan.Sinks[0]
			value := func() string {
				return duck.Literal(mustQuery(t, eng, fmt.Sprintf("SELECT (%s)::VARCHAR FROM (SELECT (TIMESTAMP '%s' + to_microseconds(%d))::%s AS ts)",
					key, edges[random.IntN(len(edges))], random.Int64N(200*3600*1e6)-100*3600*1e6, typ)))
			}
			for range 3 {
				one := func() string {
					return "slot " + []string{"=", "<", "<=", ">", ">=", "<>"}[random.IntN(6)] + " " + value()
				}
				text := []string{one(), one() + " AND " + one(), one() + " OR " + one(), "slot BETWEEN " + value() + " AND " + value(),
					"slot IN (" + value() + ", " + value() + ")", one() + " AND k = 1", "slot = " + value() + " OR k = 1"}[random.IntN(7)]
				r, err := plan.Within(t.Context(), sink, "--where", text)
				if err != nil || r.Whole != "" {
					t.Fatal(text, err, r)
				}
				possible, certain := r.Files("t")
				for range 6 {
					var rows []string
					from, width := random.Int64N(200*3600*1e6)-100*3600*1e6, 1+random.Int64N(60*3600*1e6)
					edge := edges[random.IntN(len(edges))]
					for range 40 {
						rows = append(rows, fmt.Sprintf("((TIMESTAMP '%s' + to_microseconds(%d))::%s, %d)", edge, from+random.Int64N(width), typ, random.IntN(6)))
					}
					if random.IntN(10) == 0 && typ != "TIMESTAMP_NS" {
						rows = append(rows, fmt.Sprintf("('%sinfinity'::%s, 1)", []string{"", "-"}[random.IntN(2)], typ))
					}
					mustExec(t, eng, "CREATE OR REPLACE TABLE t (ts "+typ+", k INTEGER)", "INSERT INTO t VALUES "+strings.Join(rows, ", "))
					got := mustQuery(t, eng, fmt.Sprintf(`SELECT concat_ws(' ', (SELECT %s FROM (SELECT min(ts) AS lo, max(ts) AS hi FROM t)), (SELECT %s FROM (SELECT min(ts) AS lo, max(ts) AS hi FROM t)),
						(SELECT bool_or(%s) FROM t), (SELECT bool_and(%s) FROM t))`, possible, certain, r.Needed["t"], r.Inside["t"]))
					is := strings.Fields(got)
					if is[0] == "false" && is[2] == "true" || is[1] == "true" && is[3] == "false" {
						t.Fatalf("%s, key %s, %s: possible, certain, needed, inside are %s\n%s\n%s\n%s", typ, key, text, got, possible, certain, strings.Join(rows, "\n"))
					}
					if is[0] == "false" {
						skipped++
					}
					if is[1] == "true" {
						settled++
					}
				}
			}
		}
	}
	t.Logf("%d files need not be read, %d are inside as a whole", skipped, settled)
	if skipped < 60 || settled < 15 {
		t.Error("too few: the times tell nothing")
	}
}

// A range of event time is that of the keys its rows have.
func TestDuring(t *testing.T) {
	const source = `ATTACH 'm.duckdb' AS m; CREATE SOURCE t (ts TIMESTAMPTZ NOT NULL, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '1 day') FROM 't.parquet';`
	day := "(ts AT TIME ZONE 'Europe/Berlin')::DATE"
	for _, c := range []struct{ key, from, to, zone, want, keys, whole string }{
		{day, "2024-05-03", "2024-05-04", "Europe/Berlin", `coalesce((("slot" >= CAST('2024-05-03' AS DATE)) AND ("slot" <= CAST('2024-05-03' AS DATE))), false)`, "", ""},
		{day, "2024-03-31", "2024-04-01", "Europe/Berlin", `coalesce((("slot" >= CAST('2024-03-31' AS DATE)) AND ("slot" <= CAST('2024-03-31' AS DATE))), false)`, "", ""},
		{day, "2024-05-03", "2024-05-04", "UTC", `coalesce((("slot" >= CAST('2024-05-03' AS DATE)) AND ("slot" <= CAST('2024-05-04' AS DATE))), false)`, "slot 2024-05-03 to 2024-05-04", ""},
		{"date_trunc('hour', ts AT TIME ZONE 'Europe/Berlin')", "2024-10-27 02:30", "2024-10-27 04:00", "Europe/Berlin",
			`coalesce((("slot" >= CAST('2024-10-27 02:00:00' AS TIMESTAMP)) AND ("slot" <= CAST('2024-10-27 03:00:00' AS TIMESTAMP))), false)`, "slot 2024-10-27 02:00:00 to 2024-10-27 03:00:00", ""},
		{"k", "2024-05-03", "2024-05-04", "UTC", "", "", "no column of the key of m.out follows from ts"},
	} {
		plan := mustCompile(t, source+"CREATE SINK m.out PRIMARY KEY (slot) AS SELECT "+c.key+" AS slot, count(*) AS n FROM t GROUP BY slot;")
		lo, hi, err := Times(t.Context(), "TIMESTAMP WITH TIME ZONE", c.from, c.to, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		r, err := plan.During(t.Context(), plan.Sinks[0], lo, hi)
		if err != nil {
			t.Fatal(err)
		}
		if r.Sinks["m.out"] != c.want || r.Widened != (c.keys != "") || r.Widened && r.Keys != c.keys || r.Whole != c.whole {
			t.Errorf("%s from %s to %s in %s: %q keys %q whole %q", c.key, c.from, c.to, c.zone, r.Sinks["m.out"], r.Keys, r.Whole)
		}
	}
	for _, c := range [][3]string{{"2024-05-03", "tomorrow", "UTC"}, {"2024-05-03", "2024-05-04", "Berlin"}} {
		if _, _, err := Times(t.Context(), "TIMESTAMP", c[0], c[1], c[2]); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
}

// What is wrong with a predicate is said at its place.
func TestWithinRefuses(t *testing.T) {
	plan := mustCompile(t, `ATTACH 'm.duckdb' AS m; CREATE SOURCE t (ts TIMESTAMP, k INTEGER) FROM 't.parquet';
		CREATE SINK m.out PRIMARY KEY (day, k) AS SELECT ts::DATE AS day, k, count(*) AS n FROM t GROUP BY ALL;`)
	for text, want := range map[string]string{
		"day = DATE '2024-05-03' AND n > 3": "--where:1:29: n is no key column of m.out: a range is one of keys",
		"dya = DATE '2024-05-03'":           `--where:1:1: there is no column "dya"`,
		"day = current_date":                "--where:1:7: current_date reads the clock, so the same rows would give another result at the next run",
		"day":                               "--where:1:1: --where takes a condition, not a value of type DATE",
		"count(*) > 3":                      "--where:1:1: --where takes a condition on the key of m.out, which looks at one row",
		"k IN (SELECT 1)":                   "",
		"k = ":                              "",
	} {
		_, err := plan.Within(t.Context(), plan.Sinks[0], "--where", text)
		if err == nil || want != "" && err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A file of a local day is inside the range of that day, and no other is needed for it, also on the days on
// which the clocks change.
func TestFilesOfLocalDays(t *testing.T) {
	eng := openEngine(t, 1)
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "UTC"} {
		plan := mustCompile(t, `ATTACH 'm.duckdb' AS m; CREATE SOURCE t (ts TIMESTAMPTZ NOT NULL, WATERMARK FOR ts AS ts - INTERVAL '1 day') FROM 't.parquet';
			CREATE SINK m.out PRIMARY KEY (day) AS SELECT (ts AT TIME ZONE '`+zone+`')::DATE AS day, count(*) AS n FROM t GROUP BY day;`)
		mustExec(t, eng, "CREATE OR REPLACE TEMP TABLE files AS SELECT d::DATE AS day, timezone('"+zone+"', d) AS lo, timezone('"+zone+"', d + INTERVAL '1 day') - INTERVAL '1 microsecond' AS hi"+
			" FROM range(TIMESTAMP '2022-01-01', TIMESTAMP '2025-01-01', INTERVAL '1 day') r(d)")
		for _, day := range []string{"2024-03-31", "2024-10-27", "2024-10-28", "2024-03-10", "2024-11-03", "2024-05-03"} {
			r, err := plan.Within(t.Context(), plan.Sinks[0], "--where", "day = '"+day+"'")
			if err != nil {
				t.Fatal(err)
			}
			possible, certain := r.Files("t")
			if got := mustQuery(t, eng, "SELECT string_agg(concat_ws(' ', day, "+certain+")) FROM files WHERE "+possible); got != day+" true" {
				t.Errorf("%s: the files of %s", zone, got)
			}
		}
	}
}
