package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine"
	"lockstep/planner"
	"lockstep/planner/plannertest"
)

const backfillColumns = "id BIGINT NOT NULL, ts TIMESTAMP NOT NULL, k INTEGER, v INTEGER, c VARCHAR"

// backfillPipelines are sinks over t, by name: key and SELECT of each.
var backfillPipelines = map[string][][2]string{
	"days":       {{"day, k", "SELECT ts::DATE AS day, k, count(*) AS n, sum(v) AS s, max(v) AS hi, avg(v) AS a FROM t GROUP BY ALL"}},
	"filtered":   {{"day, k", "SELECT ts::DATE AS day, k, count(*) AS n, sum(v) AS s FROM t WHERE v > 3 AND c <> 'b' GROUP BY ALL"}},
	"local days": {{"day", "SELECT (ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin')::DATE AS day, count(*) AS n, min(c) AS c FROM t GROUP BY day"}},
	"windows":    {{"slot", "SELECT time_bucket(INTERVAL '6 hours', ts) AS slot, count(*) AS n, sum(v) AS s, count(DISTINCT k) AS ks FROM t GROUP BY slot"}},
	"months":     {{"month", "SELECT date_trunc('month', ts) AS month, count(*) AS n, sum(v) AS s FROM t GROUP BY month"}},
	"global":     {{"", "SELECT count(*) AS n, sum(v) AS s, count(DISTINCT k) AS ks FROM t"}},
	"distinct":   {{"day, k", "SELECT DISTINCT ts::DATE AS day, k FROM t"}},
	"having":     {{"day, k", "SELECT ts::DATE AS day, k, count(*) AS n FROM t GROUP BY ALL HAVING count(*) % 2 = 1"}},
	"latest":     {{"day, k", "SELECT ts::DATE AS day, k, v, c, id FROM t QUALIFY row_number() OVER (PARTITION BY ts::DATE, k ORDER BY ts DESC, id) = 1"}},
	"nested":     {{"day, n", "SELECT day, n, count(*) AS m, max(s) AS hi FROM (SELECT ts::DATE AS day, k, count(*) AS n, sum(v) AS s FROM t GROUP BY ALL) GROUP BY ALL"}},
	"union":      {{"day, part", "SELECT ts::DATE AS day, 'all' AS part, count(*) AS n FROM t GROUP BY day UNION ALL SELECT ts::DATE, 'some', count(*) FROM t WHERE v > 5 GROUP BY 1"}},
	"two sinks": {{"day, k", "SELECT ts::DATE AS day, k, count(*) AS n, sum(v) AS s FROM t GROUP BY ALL"},
		{"day", "SELECT ts::DATE AS day, count(DISTINCT c) AS cs, max(v) AS hi FROM t GROUP BY day"}},
	"replaced": {{"day, k", "SELECT ts::DATE AS day, k, count(*) AS n, sum(v) AS s, max(v) AS hi FROM t WHERE v > 2 GROUP BY ALL"}},
	"two keys": {{"day", "SELECT ts::DATE AS day, count(*) AS n FROM t GROUP BY day"}, {"k", "SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k"}},
}

type backfillRow struct {
	id   int
	at   time.Time
	k, v int // -1: NULL
	c    string
}

// backfilled is a pipeline with its files, and what its tables should be made from.
type backfilled struct {
	*project
	random *rand.Rand
	name   string
	format string
	ids    int
	now    map[string][]backfillRow // the files as they are
	read   map[string][]backfillRow // as they were read
	o      *opened
}

func newBackfilled(t *testing.T, random *rand.Rand, name, dsn string) *backfilled {
	format := []string{"csv", "csv", "parquet"}[random.IntN(3)]
	text := "ATTACH 'm.duckdb' AS m;\nCREATE SOURCE t (" + backfillColumns + ", WATERMARK FOR ts AS ts - INTERVAL '1 day') FROM '*." + format + "'" + map[bool]string{true: " WITH (files = 'replace')"}[name == "replaced"] + ";\n"
	for i, sink := range backfillPipelines[name] {
		text += fmt.Sprintf("CREATE SINK m.out%d PRIMARY KEY (%s) AS %s;\n", i, sink[0], sink[1])
	}
	b := &backfilled{project: &project{t: t, dir: t.TempDir(), text: text, dsn: dsn}, random: random, name: name, format: format,
		now: map[string][]backfillRow{}, read: map[string][]backfillRow{}}
	for i := range 3 + random.IntN(6) {
		b.write(fmt.Sprintf("%03d."+format, i), b.rows(b.day()))
	}
	b.o = b.open()
	return b
}

// day is one of some weeks, with a change of the clocks in it.
func (b *backfilled) day() time.Time {
	return time.Date(2024, 3, 20+b.random.IntN(25), 0, 0, 0, 0, time.UTC)
}

// rows are those of a day, and sometimes one or two of others.
func (b *backfilled) rows(day time.Time) []backfillRow {
	var out []backfillRow
	for range b.random.IntN(9) {
		at := day.Add(time.Duration(b.random.Int64N(24 * int64(time.Hour)))).Truncate(time.Microsecond)
		if b.random.IntN(25) == 0 {
			at = at.Add(time.Duration(b.random.IntN(9)-4) * 24 * time.Hour)
		}
		b.ids++
		out = append(out, backfillRow{id: b.ids, at: at, k: b.random.IntN(4) - 1, v: b.random.IntN(10) - 1, c: string(rune('a' + b.random.IntN(3)))})
	}
	return out
}

func (b *backfilled) write(name string, rows []backfillRow) {
	b.t.Helper()
	text := "id,ts,k,v,c\n"
	for _, r := range rows {
		text += strings.ReplaceAll(fmt.Sprintf("%d,%s,%d,%d,%s\n", r.id, r.at.Format("2006-01-02 15:04:05.999999"), r.k, r.v, r.c), ",-1", ",")
	}
	path := filepath.Join(b.dir, name)
	err := os.WriteFile(path+".tmp", []byte(text), 0o644)
	if err == nil && b.format == "parquet" {
		_, err = theWriter().Exec(fmt.Sprintf("COPY (SELECT * FROM read_csv('%[1]s.tmp', columns = {id: 'BIGINT', ts: 'TIMESTAMP', k: 'INTEGER', v: 'INTEGER', c: 'VARCHAR'})) TO '%[1]s.2.tmp' (FORMAT parquet)", path))
		if err == nil {
			err = errors.Join(os.Remove(path+".tmp"), os.Rename(path+".2.tmp", path+".tmp"))
		}
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.now[name] = rows
}

// theWriter is a DuckDB apart from all others, which writes Parquet files.
var theWriter = sync.OnceValue(func() *sql.DB {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		panic(err)
	}
	return db
})

func (b *backfilled) remove(name string) {
	b.t.Helper()
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
	delete(b.now, name)
}

// run folds what is new; changed files stop it.
func (b *backfilled) run(o *opened) error {
	b.t.Helper()
	_, err := o.Run(b.t.Context(), nil)
	if err == nil {
		for name, rows := range b.now {
			if _, ok := b.read[name]; !ok || b.name == "replaced" {
				b.read[name] = rows
			}
		}
	}
	return err
}

// expect compares the tables with the SELECTs over what was read.
func (b *backfilled) expect(doing string) {
	b.t.Helper()
	values := []string{}
	for _, name := range slices.Sorted(maps.Keys(b.read)) {
		for i, r := range b.read[name] {
			values = append(values, strings.ReplaceAll(fmt.Sprintf("(%d, '%s'::TIMESTAMP, %d, %d, '%s', '%s', %d)", r.id, r.at.Format("2006-01-02 15:04:05.999999"), r.k, r.v, r.c, name, i), ", -1", ", NULL"))
		}
	}
	must := func(err error) {
		if err != nil {
			b.t.Fatalf("%s, %s: %v", b.name, doing, err)
		}
	}
	must(b.o.Duck.Exec(b.t.Context(), "CREATE OR REPLACE TEMP TABLE _reference ("+backfillColumns+", _etl_file VARCHAR, _etl_row BIGINT)"))
	for from := 0; from < len(values); from += 500 {
		must(b.o.Duck.Exec(b.t.Context(), "INSERT INTO _reference VALUES "+strings.Join(values[from:min(from+500, len(values))], ", ")))
	}
	must(b.o.Duck.Exec(b.t.Context(), "CREATE OR REPLACE TEMP VIEW "+planner.PlacedRelation("t")+" AS FROM _reference"))
	must(b.o.Duck.Exec(b.t.Context(), "CREATE OR REPLACE TEMP VIEW t AS SELECT * EXCLUDE (_etl_file, _etl_row) FROM _reference"))
	diff, err := b.o.differs(b.t.(*testing.T))
	must(err)
	if diff != "" {
		b.t.Fatalf("%s, %s: %s\n%s", b.name, doing, diff, b.text)
	}
}

// written are all rows of the tables, with the change that wrote each.
func (b *backfilled) written() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	for i, sink := range b.o.Plan.Sinks {
		table := b.o.withSeq(b.t, sink)
		columns := make([]string, len(sink.Columns))
		for j, c := range sink.Columns {
			columns[j] = `coalesce(CAST("` + c.Name + `" AS VARCHAR), 'NULL')`
		}
		rows, err := b.o.Duck.Query(b.t.Context(), "SELECT concat_ws(' ', "+strings.Join(columns, ", ")+"), CAST(_etl_seq AS VARCHAR) FROM "+table)
		if err != nil {
			b.t.Fatal(err)
		}
		for rows.Next() {
			var row, seq string
			if err := rows.Scan(&row, &seq); err != nil {
				b.t.Fatal(err)
			}
			out[fmt.Sprint(i, " ", row)] = seq
		}
		rows.Close()
	}
	return out
}

// ask draws what to backfill: the files that were changed by name, or a range that may or may not hold them.
func (b *backfilled) ask(changed []string) (engine.BackfillSpec, string) {
	from := b.day()
	to := from.Add(time.Duration(1+b.random.IntN(12)) * 24 * time.Hour)
	a, z := from.Format(time.DateOnly), to.Format(time.DateOnly)
	key := backfillPipelines[b.name][0][0]
	switch n := b.random.IntN(10); {
	case n < 2 && strings.HasPrefix(key, "day"):
		where := []string{"day BETWEEN DATE '" + a + "' AND DATE '" + z + "'", "day = DATE '" + a + "'", "day >= '" + a + "'", "day IN ('" + a + "', '" + z + "')", "true"}[b.random.IntN(5)]
		return engine.BackfillSpec{Where: where}, "where " + where
	case n < 4:
		return engine.BackfillSpec{From: a, To: z, Zone: "UTC"}, "from " + a + " to " + z
	}
	names := slices.Clone(changed)
	for name := range b.now {
		if b.random.IntN(8) == 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = []string{slices.Sorted(maps.Keys(b.now))[0]}
	}
	return engine.BackfillSpec{Files: names, Named: func(s connectors.Standing) bool { return slices.Contains(names, s.Split) }}, "files " + strings.Join(names, " ")
}

// correct changes some files, and gives the names of those that were read before.
func (b *backfilled) correct() (changed []string) {
	names := slices.Sorted(maps.Keys(b.read))
	for range b.random.IntN(4) {
		name := names[b.random.IntN(len(names))]
		if _, ok := b.now[name]; !ok || slices.Contains(changed, name) {
			continue
		}
		rows := slices.Clone(b.now[name])
		switch n := b.random.IntN(6); {
		case n == 0 && len(b.now) > 2:
			b.remove(name)
		case n == 1:
			b.write(name, b.rows(b.day()))
		case len(rows) > 0:
			i := b.random.IntN(len(rows))
			more := b.rows(rows[i].at.Truncate(24 * time.Hour))
			rows = append(append(rows[:i:i], rows[i+1:]...), more...)
			b.write(name, rows)
		default:
			b.write(name, b.rows(b.day()))
		}
		changed = append(changed, name)
	}
	if b.random.IntN(3) == 0 { // an old file that was forgotten
		b.ids++
		name := fmt.Sprintf("old%d.%s", b.ids, b.format)
		b.write(name, b.rows(b.day()))
		if b.random.IntN(2) == 0 {
			changed = append(changed, name)
		}
	}
	return changed
}

// took notes what a backfill took over.
func (b *backfilled) took(r engine.Backfill) {
	for _, t := range r.Taken {
		if rows, ok := b.now[t.Split]; ok {
			b.read[t.Split] = rows
		} else {
			delete(b.read, t.Split)
		}
	}
}

// Whatever was changed in the input, a backfill makes the tables what the SELECT gives for it, or refuses and
// changes nothing; rows that stay as they are keep their change; runs before, meanwhile and after lose
// nothing.
func TestRandomBackfills(t *testing.T) {
	testRandomBackfills(t, max(30, 3*plannertest.Cases()/10), func() string { return "" })
}

func TestRandomBackfillsOnPostgres(t *testing.T) {
	cluster := pgtest.Start(t)
	testRandomBackfills(t, max(8, plannertest.Cases()/30), func() string { return cluster.Database(t) })
}

func testRandomBackfills(t *testing.T, cases int, dsn func() string) {
	if testing.Short() {
		cases = min(cases, 16)
	}
	random := rand.New(rand.NewPCG(plannertest.Seed(t), 7))
	names := slices.Sorted(maps.Keys(backfillPipelines))
	did := map[string]int{}
	for n, at := 0, 0; n < cases; at++ {
		b := newBackfilled(t, random, names[at%len(names)], dsn())
		if err := b.run(b.o); err != nil {
			t.Fatal(err)
		}
		b.expect("first run")
		for range 8 {
			n++
			b.one(did)
		}
		b.o.close()
	}
	t.Logf("%v", did)
}

// one changes the input, backfills, and goes on.
func (b *backfilled) one(did map[string]int) {
	t := b.t
	t.Helper()
	changed := b.correct()
	spec, what := b.ask(changed)
	spec.SaveEvery = 1
	b.o.Limit.Bytes = int64(1 + b.random.IntN(2000))
	before := b.written()
	meanwhile, more := false, false // there was a run, and files that nobody named were changed
	agree := func(engine.Backfill) error {
		if b.dsn == "" || b.random.IntN(2) == 0 {
			return nil
		}
		b.ids++
		b.write(fmt.Sprintf("new%d.%s", b.ids, b.format), b.rows(b.day()))
		other := b.open()
		defer other.close()
		var input *connectors.InputError
		if err := b.run(other); err != nil && !errors.As(err, &input) {
			return err
		} else if err == nil {
			meanwhile = true
			did["with a run meanwhile"]++
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := func(most int) time.Duration { return time.Duration(b.random.IntN(most)) * time.Millisecond }
	switch b.random.IntN(4) {
	case 0:
		stop := time.AfterFunc(wait(60), cancel)
		defer stop.Stop()
	case 1:
		pause := wait(10)
		spec.Saved = func() { time.AfterFunc(pause, cancel) }
	}
	r, err := b.o.Backfill(ctx, spec, 0, agree)
	if err != nil && ctx.Err() != nil {
		did["interrupted"]++
		b.reopen()
		if head, err := b.o.Destination.Head(t.Context(), "p"); err == nil && head.Manifest.Kind == "backfill" && head.Manifest.Seq == r.Seq {
			b.took(r)
		}
		b.expect(what + " interrupted")
		// It is run again, maybe after a run, or when another file was changed.
		var input *connectors.InputError
		if b.random.IntN(2) == 0 {
			if err := b.run(b.o); err != nil && !errors.As(err, &input) {
				t.Fatal(err)
			}
		}
		if b.random.IntN(3) == 0 {
			changed, more = append(changed, b.correct()...), true
		}
		before = b.written()
		b.o.Limit.Bytes = int64(1 + b.random.IntN(2000))
		spec.Saved = nil
		if r, err = b.o.Backfill(t.Context(), spec, 0, agree); r.Saved > 0 {
			did["gone on with"]++
		}
	}
	var input *connectors.InputError
	switch {
	case err == nil:
		b.took(r)
		did[strings.Fields(what)[0]]++
		if r.Whole != "" {
			did["of everything"]++
		} else if r.Splits < r.Of {
			did["without reading all files"]++
		}
	case errors.As(err, &input) && (spec.Named == nil || more || strings.Contains(err.Error(), " is gone, but ") || strings.Contains(err.Error(), "was written anew")):
		did["refused"]++
	default:
		t.Fatalf("%s, %s after %v: %v\n%s", b.name, what, changed, err, b.text)
	}
	b.expect(what + fmt.Sprintf(" after %v: %+v", changed, r))
	if err == nil && !meanwhile {
		for row, seq := range b.written() {
			if was, ok := before[row]; ok && was != seq || !ok && seq != fmt.Sprint(r.Seq) {
				t.Fatalf("%s, %s: row %s is of change %s, was %q; the backfill is %d", b.name, what, row, seq, was, r.Seq)
			}
		}
	}
	if rest := b.changedFiles(); len(rest) > 0 && b.name != "replaced" {
		for name := range b.read {
			if _, ok := b.now[name]; !ok { // everything may be needed
				rest = append(rest, name)
			}
		}
		spec := engine.BackfillSpec{Named: func(s connectors.Standing) bool { return slices.Contains(rest, s.Split) }}
		r, err := b.o.Backfill(t.Context(), spec, 0, func(engine.Backfill) error { return nil })
		if err != nil {
			t.Fatalf("%s, files %v: %v\n%s", b.name, rest, err, b.text)
		}
		b.took(r)
		b.expect(fmt.Sprintf("files %v: %+v", rest, r))
	}
	if err := b.run(b.o); err != nil {
		t.Fatalf("%s, the run after %s: %v", b.name, what, err)
	}
	for name := range b.read { // files that are gone stay read
		if _, ok := b.now[name]; !ok {
			did["gone and kept"]++
		}
	}
	b.expect("the run after " + what)
}

// changedFiles are those that a run would stop at.
func (b *backfilled) changedFiles() []string {
	var out []string
	for name, rows := range b.read {
		if now, ok := b.now[name]; ok && !slices.Equal(now, rows) {
			out = append(out, name)
		}
	}
	return out
}

// reopen is a new process.
func (b *backfilled) reopen() {
	b.o.close()
	b.o = b.open()
}

// State that is damaged after a backfill is mended from what was read, the taken over files among it.
func TestDamageAfterBackfill(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for i, name := range slices.Sorted(maps.Keys(backfillPipelines)) {
		if testing.Short() && i%4 > 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := newBackfilled(t, random, name, "")
			defer func() { b.o.close() }()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(b.run(b.o))
			changed := "000." + b.format
			if name != "replaced" {
				b.write(changed, b.rows(b.day()))
			}
			b.write("old."+b.format, b.rows(b.day()))
			named := func(s connectors.Standing) bool { return s.Split == changed || s.Split == "old."+b.format }
			r, err := b.o.Backfill(t.Context(), engine.BackfillSpec{Named: named, Yes: true}, 0, nil)
			must(err)
			b.took(r)
			b.expect("backfill")
			must(b.o.Duck.Exec(t.Context(), flipped("true")))
			b.write("new."+b.format, b.rows(b.day()))
			b.reopen()
			must(b.run(b.o))
			b.expect("the run after the damage")
			must(b.o.Duck.Exec(t.Context(), flipped("true")))
			b.reopen()
			r, err = b.o.Backfill(t.Context(), engine.BackfillSpec{Named: named, Yes: true}, 0, nil)
			must(err)
			if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "built again") {
				t.Errorf("nothing was mended: %+v", r)
			}
			b.expect("the backfill after the damage")
		})
	}
}

// Of several sources and tables, each is corrected as far as the range reaches it.
func TestBackfillOfSeveralSources(t *testing.T) {
	dir := t.TempDir()
	p := &project{t: t, dir: dir, text: `ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (ts TIMESTAMP NOT NULL, v INTEGER, WATERMARK FOR ts AS ts - INTERVAL '1 day') FROM 't/*.csv';
CREATE SOURCE u (ts TIMESTAMP NOT NULL, v INTEGER, WATERMARK FOR ts AS ts - INTERVAL '1 day') FROM 'u/*.csv';
CREATE SINK m.a PRIMARY KEY (day) AS SELECT ts::DATE AS day, sum(v) AS s FROM t GROUP BY day;
CREATE SINK m.b PRIMARY KEY (day) AS SELECT ts::DATE AS day, sum(v) AS s FROM u GROUP BY day;
CREATE SINK m.c PRIMARY KEY (day) AS SELECT day, sum(v) AS s FROM (SELECT ts::DATE AS day, v FROM t UNION ALL SELECT ts::DATE, v FROM u) GROUP BY day;
`}
	put := func(name string, v int) {
		t.Helper()
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, fmt.Appendf(nil, "ts,v\n2024-05-%s 10:00:00,%d\n", strings.TrimSuffix(filepath.Base(name), ".csv"), v), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, source := range []string{"t", "u"} {
		for day := range 5 {
			put(fmt.Sprintf("%s/0%d.csv", source, day+1), day)
		}
	}
	o := p.open()
	defer func() { o.close() }()
	if _, err := o.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, changed := range [][]string{{"t/02.csv"}, {"u/03.csv"}, {"t/04.csv", "u/04.csv"}, {"t/01.csv", "u/05.csv"}} {
		for _, name := range changed {
			put(name, 70)
		}
		named := func(s connectors.Standing) bool {
			return slices.ContainsFunc(changed, func(name string) bool {
				return strings.HasSuffix(filepath.Join(dir, s.Shown), name) || s.Shown == filepath.Join(dir, name)
			})
		}
		r, err := o.Backfill(t.Context(), engine.BackfillSpec{Named: named, Yes: true}, 0, nil)
		if err != nil || r.Whole != "" || len(r.Taken) != len(changed) {
			t.Fatalf("%v: %v %+v", changed, err, r)
		}
		if found, err := o.Reconcile(t.Context(), o.tables, nil); err != nil || found[0].Total()+found[1].Total()+found[2].Total() != 0 {
			t.Fatalf("%v: %v %+v", changed, err, found)
		}
		if len(changed) == 1 && r.Splits != 2 {
			t.Errorf("%v: %d files were read: %+v", changed, r.Splits, r)
		}
	}
}
