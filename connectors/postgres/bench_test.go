package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
)

// large is a table of a million rows, once as a pipeline's and once by hand.
type large struct {
	*testing.B
	dest  *Destination
	lease connectors.Lease
	head  connectors.Head
	shell *pgx.Conn
	keys  int // there are
}

var largeSink = connectors.SinkSpec{Name: "mart.sales", Table: "sales", Key: []string{"k"}, Columns: []connectors.SinkColumn{
	{Name: "k", Type: "BIGINT"}, {Name: "store", Type: "VARCHAR"}, {Name: "n", Type: "BIGINT"}, {Name: "revenue", Type: "DECIMAL(18,2)"}, {Name: "mean", Type: "DOUBLE"}, {Name: "newest", Type: "TIMESTAMP"}}}

const largeRows = `range AS k, 'store ' || (range % 1000) AS store, range * 3 AS n, (range * 1.25)::DECIMAL(18,2) AS revenue, range / 7 AS mean, TIMESTAMP '2026-01-01' + to_seconds(range) AS newest`

func startLarge(b *testing.B) *large {
	ctx := context.Background()
	dsn := pgtest.Start(b).Database(b)
	l := &large{B: b}
	_, l.dest = open(b, dsn)
	var err error
	l.lease, l.head, err = l.dest.Take(ctx, "p")
	must(b, err)
	l.shell, err = pgx.Connect(ctx, dsn)
	must(b, err)
	b.Cleanup(func() { _ = l.shell.Close(ctx) })
	l.stage(1_000_000)
	l.ours()
	for _, stmt := range []string{
		"CREATE TABLE public.by_hand (LIKE public.sales INCLUDING ALL)", "INSERT INTO public.by_hand SELECT * FROM public.sales",
		"VACUUM ANALYZE public.sales", "VACUUM ANALYZE public.by_hand", "CHECKPOINT",
	} {
		_, err := l.shell.Exec(ctx, stmt)
		must(b, err)
	}
	return l
}

// stage makes so many changes: half of them new keys, but all at first.
func (l *large) stage(n int) {
	l.Helper()
	rows := fmt.Sprintf("SELECT %s, 'I' AS _op FROM range(%d, %d)", largeRows, l.keys, l.keys+n)
	if l.keys > 0 {
		rows = fmt.Sprintf("SELECT %[1]s, 'I' AS _op FROM range(%[2]d, %[3]d) UNION ALL SELECT * REPLACE (n + 1 AS n), 'U' FROM (SELECT %[1]s FROM (SELECT (range * 7919 + %[2]d) %% %[2]d AS range FROM range(%[4]d)))",
			largeRows, l.keys, l.keys+n/2, n/2)
	}
	must(l, l.dest.eng.Exec(context.Background(), "CREATE OR REPLACE TEMP TABLE staged AS "+rows))
}

// ours commits what is staged.
func (l *large) ours() time.Duration {
	l.Helper()
	ctx := context.Background()
	var c checkpoints.SinkCount
	must(l, l.dest.eng.QueryRow(ctx, "SELECT count(*) FILTER (_op = 'I'), count(*) FILTER (_op = 'U') FROM staged", nil, &c.Inserted, &c.Updated))
	c.Rows, c.Digest = l.head.Manifest.Sinks["mart.sales"].Rows+c.Inserted, checkpoints.Digest{}.String()
	tx, err := l.dest.eng.Begin(ctx)
	must(l, err)
	plan := connectors.PlanRecord{ID: "plan", Canon: 1, SQL: "SELECT", Canonical: "{}"}
	m := checkpoints.Manifest{Pipeline: "p", Seq: l.head.Manifest.Seq + 1, Incarnation: 1, Batch: l.head.LastBatch + 1, Attempt: uuid.NewString(), Kind: checkpoints.KindBatch,
		ParentSeq: l.head.Manifest.Seq, PlanID: plan.ID, BatchTime: checkpoints.Time(time.Now()), Env: checkpoints.Env{Engine: "1", DuckDB: "1", TimeZone: "UTC"},
		Position: map[string]checkpoints.PositionSum{}, Sinks: map[string]checkpoints.SinkCount{"mart.sales": c}, RangesSHA: checkpoints.RangesSHA(nil), Live: l.head.Manifest.Live.After(nil, nil)}
	if m.Seq > 1 {
		m.ParentSHA = l.head.Manifest.Checksum()
	}
	change := &connectors.Change{Manifest: m, Plan: plan, Before: l.head.Manifest.Live, Local: tx, Sinks: []connectors.SinkChange{{Sink: largeSink, Table: "staged", Counts: c}}}
	start := time.Now()
	must(l, l.dest.Commit(ctx, l.lease, change))
	took := time.Since(start)
	l.head.Fresh, l.head.Manifest, l.head.LastBatch = false, m, m.Batch
	l.keys += int(c.Inserted)
	return took
}

// encoded are the staged rows as the bytes of a COPY, and how many there are.
func (l *large) encoded() (data []byte, rows int64, took time.Duration) {
	l.Helper()
	arrow, err := l.dest.eng.Arrow(context.Background(), "SELECT * FROM staged")
	must(l, err)
	defer arrow.Release()
	start := time.Now()
	e := newEncoder(arrow, largeSink)
	data, err = io.ReadAll(e)
	must(l, err)
	return data, e.count, time.Since(start)
}

// byHand is what somebody would write: COPY into a temp table, MERGE, COMMIT. The rows are encoded already.
func (l *large) byHand(data []byte) time.Duration {
	l.Helper()
	ctx := context.Background()
	start := time.Now()
	exec := func(stmt string) { must(l, l.shell.PgConn().Exec(ctx, stmt).Close()) }
	exec("BEGIN")
	exec("CREATE TEMP TABLE changes (k bigint, store text, n bigint, revenue numeric(18,2), mean float8, newest timestamp, op text) ON COMMIT DROP")
	_, err := l.shell.PgConn().CopyFrom(ctx, bytes.NewReader(data), "COPY changes FROM STDIN (FORMAT binary)")
	must(l, err)
	exec("MERGE INTO public.by_hand t USING changes s ON t.k = s.k WHEN MATCHED AND s.op = 'D' THEN DELETE " +
		"WHEN MATCHED THEN UPDATE SET store = s.store, n = s.n, revenue = s.revenue, mean = s.mean, newest = s.newest, _etl_seq = 1 " +
		"WHEN NOT MATCHED THEN INSERT (k, store, n, revenue, mean, newest, _etl_seq) VALUES (s.k, s.store, s.n, s.revenue, s.mean, s.newest, 1)")
	exec("COMMIT")
	return time.Since(start)
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkCommit: a commit of so many changed keys, half of them new, into a table of a million rows, against COPY and
// MERGE written by hand in the same run, in pairs.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%dk-keys", n/1000), func(b *testing.B) {
			l := startLarge(b)
			for b.Loop() {
				var ratios, ours []float64
				for pair := range 9 {
					l.stage(n)
					data, _, _ := l.encoded()
					var us, them time.Duration
					if pair%2 == 0 {
						us, them = l.ours(), l.byHand(data)
					} else {
						them = l.byHand(data)
						us = l.ours()
					}
					ratios, ours = append(ratios, float64(us)/float64(them)), append(ours, us.Seconds())
					_, err := l.shell.Exec(context.Background(), "CHECKPOINT")
					must(b, err)
				}
				b.Log(strings.Trim(fmt.Sprintf("%.2f", ratios), "[]"))
				b.ReportMetric(middle(ratios), "x-of-copy-and-merge")
				b.ReportMetric(1000*middle(ours), "ms/commit")
			}
			var differ int
			must(b, l.shell.QueryRow(context.Background(), "SELECT count(*) FROM (SELECT k, store, n, revenue, mean, newest FROM sales EXCEPT SELECT k, store, n, revenue, mean, newest FROM by_hand) d").Scan(&differ))
			if differ != 0 {
				b.Fatalf("%d rows differ", differ)
			}
		})
	}
}

// BenchmarkCopy: rows a second that the encoder makes and the server takes, against bytes that were encoded before.
func BenchmarkCopy(b *testing.B) {
	ctx := context.Background()
	dsn := pgtest.Start(b).Database(b)
	l := &large{B: b}
	_, l.dest = open(b, dsn)
	var err error
	l.shell, err = pgx.Connect(ctx, dsn)
	must(b, err)
	b.Cleanup(func() { _ = l.shell.Close(ctx) })
	_, err = l.shell.Exec(ctx, "CREATE TEMP TABLE changes (k bigint, store text, n bigint, revenue numeric(18,2), mean float8, newest timestamp, op text)")
	must(b, err)
	l.stage(500_000)
	send := func(from io.Reader) float64 {
		start := time.Now()
		tag, err := l.shell.PgConn().CopyFrom(ctx, from, "COPY changes FROM STDIN (FORMAT binary)")
		must(b, err)
		rate := float64(tag.RowsAffected()) / time.Since(start).Seconds()
		_, err = l.shell.Exec(ctx, "TRUNCATE changes")
		must(b, err)
		return rate
	}
	for b.Loop() {
		var ratios, ours, encoding []float64
		for range 7 {
			data, rows, took := l.encoded()
			encoding = append(encoding, float64(rows)/took.Seconds())
			them := send(bytes.NewReader(data))
			arrow, err := l.dest.eng.Arrow(ctx, "SELECT * FROM staged")
			must(b, err)
			us := send(newEncoder(arrow, largeSink))
			arrow.Release()
			ratios, ours = append(ratios, us/them), append(ours, us)
		}
		b.ReportMetric(middle(ratios), "x-of-encoded-before")
		b.ReportMetric(middle(ours), "rows/s")
		b.ReportMetric(middle(encoding), "rows/s-encoded-alone")
	}
}
