package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkBackfillDay: one day of three years, a Parquet file of 50,000 rows for each, is replaced and
// backfilled. Only its file may be read. The baseline is the SELECT over that day alone.
func BenchmarkBackfillDay(b *testing.B) {
	const days, stores = 1096, 100
	dir, bin := b.TempDir(), etl(b)
	day := func(n int, seed int) string {
		at := time.Date(2023, 1, 1+n, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		return fmt.Sprintf(`COPY (SELECT (hash(i + %[4]d) %% %[1]d)::INTEGER AS store, (hash(i * 7 + %[4]d) %% 1000)::DECIMAL(12,2) AS amount,
			TIMESTAMP '%[2]s' + to_milliseconds(1700 * i) AS sold_at FROM range(50000) r(i)) TO '%[3]s/%[2]s.parquet' (FORMAT parquet)`, stores, at, dir, seed)
	}
	var all []string
	for n := range days {
		all = append(all, day(n, n))
	}
	generate(b, strings.Join(all, ";"))
	const daily = "SELECT sold_at::DATE AS day, store, count(*) AS n, sum(amount) AS revenue, max(sold_at) AS newest FROM t GROUP BY ALL"
	write(b, filepath.Join(dir, "p.sql"), `ATTACH 'm.duckdb' AS m;
		CREATE SOURCE t (store INTEGER, amount DECIMAL(12,2), sold_at TIMESTAMP NOT NULL, WATERMARK FOR sold_at AS sold_at - INTERVAL '1 day') FROM '*.parquet';
		CREATE SINK m.out PRIMARY KEY (day, store) AS `+daily+";")
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	first := run(b, dir, nil, bin, "run", "p.sql")
	b.Logf("the first run of %d files: %.1f s", days, first.wall.Seconds())
	const at = "2024-05-03"
	file := filepath.Join(dir, at+".parquet")
	baseline := []string{oneShotEnv + "=CREATE TABLE out AS WITH t AS (FROM read_parquet('" + at + ".parquet')) " + daily}
	for b.Loop() {
		var beyond, ours []float64
		var read struct {
			Splits int   `json:"files"`
			Of     int   `json:"files_of"`
			Bytes  int64 `json:"bytes"`
			Seq    int64 `json:"seq"`
		}
		for i := range 7 {
			generate(b, day(488, days+i))
			os.Remove(filepath.Join(dir, "one.duckdb"))
			one := run(b, dir, baseline, self, "one.duckdb")
			cmd := exec.Command(bin, "backfill", "p.sql", "--where", "day = '"+at+"'", "--yes", "--json")
			cmd.Dir = dir
			start := time.Now()
			out, err := cmd.Output()
			took := time.Since(start)
			if err == nil {
				err = json.Unmarshal(out, &read)
			}
			info, statErr := os.Stat(file)
			if err != nil || statErr != nil || read.Splits != 1 || read.Bytes != info.Size() || read.Seq == 0 {
				b.Fatalf("%v: %s", err, out)
			}
			ours = append(ours, took.Seconds())
			beyond = append(beyond, took.Seconds()-2*one.wall.Seconds())
		}
		b.Logf("%d of %d files read, %d bytes", read.Splits, read.Of, read.Bytes)
		b.ReportMetric(median(beyond), "s-beyond-2x-one-shot")
		b.ReportMetric(median(ours), "s/backfill")
	}
}
