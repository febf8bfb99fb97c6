package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"lockstep/connectors/postgres/pgtest"
)

// steady makes a table of so many BIGINT keys, then runs batches of some random rows in one process, and
// returns what each took in seconds, the first five left out, and what a batch took with everything
// between two of them, planning and compaction included.
func steady(b *testing.B, attach string, keys, rows, batches int) (batch, whole float64) {
	const warm = 5
	dir, bin := b.TempDir(), etl(b)
	input := func(n, first int) string {
		return fmt.Sprintf(`SELECT ((i * 7919) %% %d)::BIGINT AS k, (random() * 1000)::BIGINT AS a, (random() * 1000)::DECIMAL(12,2) AS b, TIMESTAMP '2026-01-01' AS ts FROM range(%d, %d) r(i)`, keys, first, first+n)
	}
	write(b, filepath.Join(dir, "p.sql"), `ATTACH `+attach+`; CREATE SOURCE t FROM 'in*.parquet';
		CREATE SINK m.out PRIMARY KEY (k) AS `+grouped+";")
	generate(b, fmt.Sprintf("COPY (%s) TO '%s/in0.parquet' (FORMAT parquet)", input(keys, 0), dir))
	run(b, dir, nil, bin, "run", "p.sql")
	add := func(file, n int) float64 {
		generate(b, fmt.Sprintf("COPY (%s) TO '%s/in%d.parquet' (FORMAT parquet)", input(n, 31*file), dir, file))
		return run(b, dir, nil, "sh", "-c", `"$0" run p.sql --json --max-batch-rows "$1" > out.json`, bin, strconv.Itoa(rows)).wall.Seconds()
	}
	alone := add(1, rows*warm)
	all := add(2, rows*(warm+batches))
	took := durations(b, filepath.Join(dir, "out.json"))
	if len(took) != warm+batches {
		b.Fatalf("%d batches, not %d", len(took), warm+batches)
	}
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
	return median(slices.Clone(took[warm:])), (all - alone) / float64(batches)
}

// BenchmarkOneRow: batches of one row in a running process.
func BenchmarkOneRow(b *testing.B) {
	for _, keys := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("%dM-keys", keys/1_000_000), func(b *testing.B) {
			for b.Loop() {
				batch, whole := steady(b, "'m.duckdb' AS m", keys, 1, 40)
				b.ReportMetric(batch*1000, "ms/batch")
				b.ReportMetric(whole*1000, "ms/batch-to-batch")
			}
		})
	}
}

// BenchmarkOneRowPostgres: the same, into a table of Postgres.
func BenchmarkOneRowPostgres(b *testing.B) {
	dsn := pgtest.Start(b).Database(b)
	for b.Loop() {
		batch, whole := steady(b, "'"+dsn+"' AS m (TYPE postgres)", 1_000_000, 1, 40)
		b.ReportMetric(batch*1000, "ms/batch")
		b.ReportMetric(whole*1000, "ms/batch-to-batch")
	}
}

// BenchmarkCurve: batches of 10,000 rows, each of another key, as the state grows. A batch costs what it
// touches and one pass over the keys of the state.
func BenchmarkCurve(b *testing.B) {
	for _, keys := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("%dk-keys", keys/1000), func(b *testing.B) {
			for b.Loop() {
				batch, whole := steady(b, "'m.duckdb' AS m", keys, 10_000, 20)
				b.ReportMetric(batch*1000, "ms/batch")
				b.ReportMetric(whole*1000, "ms/batch-to-batch")
			}
		})
	}
}
