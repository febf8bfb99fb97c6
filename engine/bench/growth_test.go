package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkGrowth: 1,000 batches of 5,000 keys on 1M keys of state, in one process. Time per batch,
// memory and file size must not grow with the number of batches. The state begins with five rows of
// random values per key: sums of one constant row would take a third of the room, so that the file would
// grow by what is in it.
func BenchmarkGrowth(b *testing.B) {
	dir, bin := b.TempDir(), etl(b)
	const keys, batch, batches, warm = 1_000_000, 5000, 1000, 50
	rows := func(n int) string {
		return fmt.Sprintf(`SELECT (hash(i) %% %d)::INTEGER AS k, (random() * 1000)::BIGINT AS a, (random() * 1000)::DECIMAL(12,2) AS b, TIMESTAMP '2026-01-01' AS ts FROM range(%d) r(i)`, keys, n)
	}
	generate(b, fmt.Sprintf(`COPY (SELECT (i %% %d)::INTEGER AS k, (random() * 1000)::BIGINT AS a, (random() * 1000)::DECIMAL(12,2) AS b, TIMESTAMP '2026-01-01' AS ts FROM range(%d) r(i)) TO '%s/in0.parquet' (FORMAT parquet)`, keys, 5*keys, dir))
	write(b, filepath.Join(dir, "p.sql"), `ATTACH 'm.duckdb' AS m; CREATE SOURCE t FROM 'in*.parquet';
		CREATE SINK m.out PRIMARY KEY (k) AS `+grouped+";")
	for b.Loop() {
		os.Remove(filepath.Join(dir, "m.duckdb"))
		os.Remove(filepath.Join(dir, "in1.parquet"))
		run(b, dir, nil, bin, "run", "p.sql")
		generate(b, fmt.Sprintf(`COPY (%s) TO '%s/in1.parquet' (FORMAT parquet, ROW_GROUP_SIZE 20480)`, rows(batch*batches), dir))
		took, samples := watch(b, dir, bin, "run", "p.sql", "--max-batch-rows", strconv.Itoa(batch), "--json")
		if len(took) != batches {
			b.Fatalf("%d batches, not %d", len(took), batches)
		}
		first, last := took[warm:warm+50], took[len(took)-50:]
		b.ReportMetric(median(last)/median(first), "x-time-last-50-of-first-50")
		b.ReportMetric(median(first)*1000, "ms/batch")
		tenth := len(samples) / 10
		rss := func(s []sample) float64 {
			var out []float64
			for _, x := range s {
				out = append(out, float64(x.rss))
			}
			return median(out)
		}
		b.ReportMetric(rss(samples[len(samples)-tenth:])/rss(samples[tenth:2*tenth]), "x-memory-last-tenth-of-second")
		b.ReportMetric(rss(samples[len(samples)-tenth:])/(1<<20), "MiB")
		b.ReportMetric(float64(samples[len(samples)-1].file)/float64(samples[tenth].file), "x-file-end-of-batch-100")
		b.ReportMetric(float64(samples[len(samples)-1].file)/(1<<20), "file-MiB")
	}
}

type sample struct{ rss, file int64 }

// watch runs etl and samples its memory and the size of its database file with the log beside it.
func watch(b *testing.B, dir, bin string, args ...string) (seconds []float64, samples []sample) {
	b.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Dir = dir
	out, err := os.Create(filepath.Join(dir, "out.json"))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				b.Fatal(err)
			}
			return durations(b, filepath.Join(dir, "out.json")), samples
		case <-tick.C:
			s := sample{rss: residentBytes(cmd.Process.Pid)}
			for _, name := range []string{"m.duckdb", "m.duckdb.wal"} {
				if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
					s.file += info.Size()
				}
			}
			if s.rss > 0 {
				samples = append(samples, s)
			}
		}
	}
}

func durations(b *testing.B, path string) []float64 {
	b.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	var result struct {
		Batches []struct {
			Took time.Duration `json:"took_ns"`
		} `json:"batches"`
	}
	if err := json.Unmarshal(text, &result); err != nil {
		b.Fatal(err)
	}
	var out []float64
	for _, x := range result.Batches {
		out = append(out, x.Took.Seconds())
	}
	return out
}

func residentBytes(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
