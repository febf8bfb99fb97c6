package lockstep_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine/duck"
)

// job is a pipeline over CSV and Parquet files that come a few at a time.
type job struct {
	t     *testing.T
	etl   string
	dir   string
	dsn   string // of a Postgres database; "": m.duckdb
	files int    // that came
	read  int    // of them
	// stores are the SELECTs that the table of stores may be the result of; nil: storesSelect.
	stores []string
}

// destinations are what the tests of whole runs are run on.
var destinations = map[string]func(t *testing.T, etl string) *job{"duckdb": newJob, "postgres": newPostgresJob}

func newJob(t *testing.T, etl string) *job { return newJobIn(t, etl, "'m.duckdb' AS m", "") }

func newPostgresJob(t *testing.T, etl string) *job {
	dsn := pgtest.Start(t).Database(t)
	return newJobIn(t, etl, "'"+dsn+"' AS m (TYPE postgres)", dsn)
}

func newJobIn(t *testing.T, etl, attach, dsn string) *job {
	j := &job{t: t, etl: etl, dir: t.TempDir(), dsn: dsn}
	pipeline := `
ATTACH ` + attach + `;
CREATE SOURCE orders (id BIGINT NOT NULL, store VARCHAR, amount DECIMAL(12,2), sold_at TIMESTAMP) FROM 'in/*.csv';
CREATE SINK m.stores PRIMARY KEY (store) AS
SELECT store, count(*) AS n, sum(amount) AS revenue, avg(amount) AS mean, max(sold_at) AS newest FROM orders GROUP BY store;
CREATE SINK m.sizes PRIMARY KEY (n) AS
SELECT n, count(*) AS stores FROM (SELECT store, count(*) AS n FROM orders WHERE amount > 5 GROUP BY store) GROUP BY n HAVING count(*) < 4;
`
	j.check(os.WriteFile(filepath.Join(j.dir, "p.sql"), []byte(pipeline), 0o644))
	j.check(os.Mkdir(filepath.Join(j.dir, "in"), 0o755))
	newDatabase(j)
	return j
}

// newDatabase makes the second table by hand, to be taken over, with a key and a column of its own.
func newDatabase(j *job) {
	if j.dsn != "" {
		j.postgres("CREATE TABLE sizes (n BIGINT, note TEXT DEFAULT 'by hand', stores BIGINT, PRIMARY KEY (n))")
		return
	}
	j.open(filepath.Join(j.dir, "m.duckdb"), func(db *duck.Engine) {
		j.check(db.Exec(j.t.Context(), "CREATE TABLE m.sizes (n BIGINT, note VARCHAR DEFAULT 'by hand', stores BIGINT, PRIMARY KEY (n))"))
	})
}

func (j *job) check(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// land writes new files as a loader should: under another name first.
func (j *job) land(files int) {
	for range files {
		name := filepath.Join(j.dir, "in", fmt.Sprintf("%06d.csv", j.files))
		j.check(os.WriteFile(name+".tmp", []byte(someOrders(j.files)), 0o644))
		j.check(os.Rename(name+".tmp", name))
		j.files++
	}
}

// someOrders is a file that nobody wrote before.
func someOrders(file int) string {
	var b strings.Builder
	b.WriteString("id,store,amount,sold_at\n")
	for i := range 5 + rand.IntN(30) {
		fmt.Fprintf(&b, "%d,s%d,%d.%02d,2026-01-%02d 10:00:00\n", file*1000+i, rand.IntN(12), rand.IntN(20), rand.IntN(100), 1+rand.IntN(28))
	}
	return b.String()
}

// run starts etl; true when it was killed.
func (j *job) run() bool {
	return j.killed(exec.Command(j.etl, "run", "p.sql", "--max-batch-bytes", "1"))
}

// killedAt starts etl to be killed when it comes to a failpoint for the nth time.
func (j *job) killedAt(failpoint string, nth int) bool {
	cmd := exec.Command(j.etl, "run", "p.sql", "--max-batch-bytes", "1")
	if failpoint == "after-wake" {
		cmd.Args = append(cmd.Args, "--follow")
	}
	cmd.Env = append(os.Environ(), fmt.Sprintf("LOCKSTEP_FAILPOINT=%s:%d", failpoint, nth))
	return j.killed(cmd)
}

func (j *job) runContext(ctx context.Context) bool {
	// CommandContext kills with SIGKILL at the deadline.
	return j.killed(exec.CommandContext(ctx, j.etl, "run", "p.sql", "--max-batch-bytes", "1"))
}

func (j *job) killed(cmd *exec.Cmd) bool {
	j.t.Helper()
	cmd.Dir = j.dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
			return true
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && (cmd.ProcessState == nil || cmd.ProcessState.Success()) {
		return false // it came to its end as the time was up, or was not even started
	}
	if err != nil && cmd.ProcessState != nil {
		j.t.Fatalf("etl run: %v\n%s", err, out)
	}
	return false
}

// expectRight runs to the end, reconciles, and looks at everything itself.
func (j *job) expectRight() {
	j.t.Helper()
	if j.run() {
		j.t.Fatal("killed without being asked to")
	}
	cmd := exec.Command(j.etl, "reconcile", "p.sql")
	cmd.Dir = j.dir
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), " 0 differ") != 2 {
		j.t.Fatalf("reconcile: %v\n%s", err, out)
	}
	j.expectConsumed()
	if n := j.waiting(); n != 0 {
		j.t.Fatalf("%d files were not read", n)
	}
}

// builds are the binaries of this run of the tests, by their tags: each is linked once.
var builds struct {
	sync.Mutex
	dirs map[string]string
}

func buildETL(t *testing.T, tags string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if dir, ok := builds.dirs[tags]; ok {
		return filepath.Join(dir, "etl")
	}
	dir, err := os.MkdirTemp("", "etl-build")
	if err != nil {
		t.Fatal(err)
	}
	if builds.dirs == nil {
		builds.dirs = map[string]string{}
	}
	builds.dirs[tags] = dir
	bin := filepath.Join(dir, "etl")
	cmd := exec.Command("go", "build", "-tags", tags, "-ldflags=-w", "-o", bin, "./cmd/etl")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func envInt(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// storesSelect and sizesSelect are the SELECTs of the pipeline over a relation of the orders. The last bit of a
// mean may be another one: it is rounded, away from the halves that a sum of cents over 64 rows comes to.
const (
	storesSelect = "SELECT store, count(*) AS n, sum(amount) AS revenue, round(avg(amount) + 3e-8, 6) AS mean, max(sold_at) AS newest FROM orders GROUP BY store"
	sizesSelect  = "SELECT n, count(*) AS stores FROM (SELECT store, count(*) AS n FROM orders WHERE amount > 5 GROUP BY store) GROUP BY n HAVING count(*) < 4"
)

// waiting is how many files were not read yet when expectConsumed looked.
func (j *job) waiting() int { return j.files - j.read }

// expectConsumed compares the tables with the SELECTs over the files that were read, as they stand.
func (j *job) expectConsumed() {
	j.t.Helper()
	j.read = 0
	j.look(func(db *duck.Engine) {
		if j.count(db, "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'm' AND table_name = 'stores'") == 0 {
			return // before batch 0
		}
		var files []string
		j.check(db.Each(j.t.Context(), "SELECT DISTINCT split_id FROM m.etl.ranges", nil, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			files = append(files, duck.Literal(filepath.Join(j.dir, "in", id)))
			return err
		}))
		j.read = len(files)
		orders := "SELECT NULL::BIGINT AS id, ''::VARCHAR AS store, 0::DECIMAL(12,2) AS amount, NULL::TIMESTAMP AS sold_at WHERE false"
		if len(files) > 0 {
			orders = "SELECT * FROM read_csv([" + strings.Join(files, ", ") + "], header = true, columns = {id: 'BIGINT', store: 'VARCHAR', amount: 'DECIMAL(12,2)', sold_at: 'TIMESTAMP'})"
		}
		j.check(db.Exec(j.t.Context(), "CREATE OR REPLACE TEMP TABLE orders AS "+orders))
		stores := j.stores
		if stores == nil {
			stores = []string{storesSelect}
		}
		for table, wanted := range map[string][]string{
			"SELECT store, n, revenue, round(mean + 3e-8, 6) AS mean, newest FROM m.stores": stores,
			"SELECT n, stores FROM m.sizes WHERE note = 'by hand'":                          {sizesSelect},
		} {
			var differ []int64
			for _, want := range wanted {
				differ = append(differ, j.count(db, fmt.Sprintf("SELECT count(*) FROM ((FROM (%[1]s) EXCEPT ALL FROM (%[2]s)) UNION ALL (FROM (%[2]s) EXCEPT ALL FROM (%[1]s)))", table, want)))
			}
			if !slices.Contains(differ, 0) {
				j.t.Fatalf("%d rows differ between %s and the SELECTs over %d files", differ, table, len(files))
			}
		}
		for what, query := range map[string]string{
			"manifests without a gap": "SELECT count(*) FILTER (seq <> n OR parent_seq <> seq - 1) FROM (SELECT *, row_number() OVER (ORDER BY seq) AS n FROM m.etl.manifests)",
			"batches without a gap":   "SELECT count(*) FILTER (batch <> n - 1) FROM (SELECT *, row_number() OVER (ORDER BY seq) AS n FROM m.etl.manifests WHERE kind = 'batch')",
			"files read once":         "SELECT count(*) - count(DISTINCT split_id) FROM m.etl.ranges WHERE seq IN (SELECT seq FROM m.etl.manifests WHERE kind = 'batch')",
		} {
			if n := j.count(db, query); n != 0 {
				j.t.Fatalf("%s: %d", what, n)
			}
		}
	})
}

// look lets fn look at a copy of the database, so that what a killed process left is recovered by the next
// run and not here.
func (j *job) look(fn func(*duck.Engine)) {
	j.t.Helper()
	copied := filepath.Join(j.dir, "look.duckdb")
	if j.dsn != "" {
		j.lookAtPostgres(copied, fn)
		return
	}
	for _, end := range []string{"", ".wal"} {
		data, err := os.ReadFile(filepath.Join(j.dir, "m.duckdb") + end)
		if errors.Is(err, os.ErrNotExist) {
			err = os.RemoveAll(copied + end)
		} else if err == nil {
			err = os.WriteFile(copied+end, data, 0o644)
		}
		j.check(err)
	}
	j.open(copied, fn)
}

func (j *job) open(path string, fn func(*duck.Engine)) {
	j.t.Helper()
	db, err := duck.Open(j.t.Context(), duck.Options{Dirs: []string{j.dir}, Threads: 1})
	j.check(err)
	defer func() { j.check(db.Close()) }()
	j.check(db.Attach(j.t.Context(), path, "m", false))
	fn(db)
}

func (j *job) count(db *duck.Engine, query string) (n int64) {
	j.t.Helper()
	j.check(db.QueryRow(j.t.Context(), query, nil, &n))
	return n
}

// damageState flips bytes in the state that the newest change added.
func (j *job) damageState() {
	j.t.Helper()
	j.run() // there must be some, and this is no run to be killed
	j.land(2)
	if j.dsn != "" {
		j.postgres(`UPDATE etl.segment_parts SET data = '\xff'::bytea || substr(data, 2)
			WHERE segment_id IN (SELECT segment_id FROM etl.segment_use WHERE added_seq = (SELECT max(added_seq) FROM etl.segment_use))`)
		return
	}
	j.open(filepath.Join(j.dir, "m.duckdb"), func(db *duck.Engine) {
		j.check(db.Exec(j.t.Context(), `UPDATE m.etl.segment_parts SET data = '\xFF'::BLOB || data[2:]
			WHERE segment_id IN (SELECT segment_id FROM m.etl.segment_use WHERE added_seq = (SELECT max(added_seq) FROM m.etl.segment_use))`))
	})
}

// postgres runs a statement in the job's database.
func (j *job) postgres(stmt string) {
	j.t.Helper()
	conn, err := pgx.Connect(j.t.Context(), j.dsn)
	j.check(err)
	defer conn.Close(j.t.Context())
	_, err = conn.Exec(j.t.Context(), stmt)
	j.check(err)
}

// looked are the tables of a Postgres database that tests look at, with the types of DuckDB.
var looked = map[string]string{
	"etl.ranges":    "split_id VARCHAR, seq BIGINT",
	"etl.manifests": "seq BIGINT, parent_seq BIGINT, batch BIGINT, kind VARCHAR",
	"public.stores": "store VARCHAR, n BIGINT, revenue DECIMAL(38,2), mean DOUBLE, newest TIMESTAMP",
	"public.sizes":  "n BIGINT, note VARCHAR, stores BIGINT",
	"public.daily":  "day DATE, store VARCHAR, n BIGINT, revenue DECIMAL(38,2)",
	"public.days":   "day DATE, stores BIGINT, most DECIMAL(12,2)",
}

// lookAtPostgres copies the tables, as of one moment, to a DuckDB file, where fn looks at them.
func (j *job) lookAtPostgres(copied string, fn func(*duck.Engine)) {
	j.t.Helper()
	ctx := j.t.Context()
	j.check(os.RemoveAll(copied))
	conn, err := pgx.Connect(ctx, j.dsn)
	j.check(err)
	defer conn.Close(ctx)
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	j.check(err)
	defer func() { _ = tx.Rollback(ctx) }()
	j.open(copied, func(db *duck.Engine) {
		j.check(db.Exec(ctx, "CREATE SCHEMA m.etl"))
		for table, columns := range looked {
			var there bool
			j.check(tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&there))
			if !there {
				continue
			}
			var names, texts []string
			for _, c := range strings.Split(columns, ", ") {
				name, _, _ := strings.Cut(c, " ")
				names, texts = append(names, name), append(texts, name+"::text")
			}
			to := "m." + strings.Replace(table, "public.", "main.", 1)
			j.check(db.Exec(ctx, "CREATE TABLE "+to+" ("+columns+")"))
			rows, err := tx.Query(ctx, "SELECT "+strings.Join(texts, ", ")+" FROM "+table)
			j.check(err)
			var values []string
			for rows.Next() {
				row, into := make([]*string, len(names)), make([]any, len(names))
				for i := range row {
					into[i] = &row[i]
				}
				j.check(rows.Scan(into...))
				literals := make([]string, len(row))
				for i, v := range row {
					if literals[i] = "NULL"; v != nil {
						literals[i] = duck.Literal(*v)
					}
				}
				values = append(values, "("+strings.Join(literals, ", ")+")")
			}
			j.check(rows.Err())
			if len(values) > 0 {
				j.check(db.Exec(ctx, "INSERT INTO "+to+" VALUES "+strings.Join(values, ", ")))
			}
		}
		fn(db)
	})
}
