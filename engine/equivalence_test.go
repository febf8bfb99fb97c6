package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine"
)

// After every batch the table equals the SELECT run once over all rows consumed so far: for both
// file formats, any batch size, in one process and with a restart after every batch. With -short one
// query in all ways, and the others in one each, in another one.
func TestEquivalence(t *testing.T) {
	for i, q := range queries(t) {
		for j, format := range []string{"parquet", "csv"} {
			for k, split := range []string{"1", "7", "random", "all"} {
				if testing.Short() && i > 0 && (i+4*j+k)%8 != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", q.name, format, split), func(t *testing.T) {
					t.Parallel()
					testEquivalence(t, q, format, split, "")
				})
			}
		}
	}
}

// TestEquivalenceOnPostgres is the same with the tables in Postgres, read back after every batch.
func TestEquivalenceOnPostgres(t *testing.T) {
	cluster := pgtest.Start(t)
	for i, q := range queries(t) {
		for k, split := range []string{"7", "random", "all"} {
			if testing.Short() && i > 0 && (i+k)%3 != 0 {
				continue
			}
			t.Run(q.name+"/"+split, func(t *testing.T) {
				t.Parallel()
				testEquivalence(t, q, "parquet", split, cluster.Database(t))
			})
		}
	}
}

func testEquivalence(t *testing.T, q namedQuery, format, split, dsn string) {
	rows := 90
	if split == "1" {
		rows = 20
	}
	p := &project{t: t, dir: t.TempDir(), text: pipelineText(format, q), dsn: dsn}
	// CSV files are read whole, so their sizes are the batch sizes; Parquet files are cut into ranges.
	sizes := []int{rows/2 + 1, rows - rows/2 - 1}
	if format == "csv" {
		sizes = nil
		for left := rows; left > 0; {
			n := min(left, batchSize(split, rows))
			sizes, left = append(sizes, n), left-n
		}
	}
	writeFiles(t, p.dir, format, sizes)
	limit := func() connectors.Limit {
		switch {
		case split == "all":
			return connectors.Limit{}
		case format == "csv":
			return connectors.Limit{Bytes: 1} // one file
		}
		return connectors.Limit{Rows: int64(batchSize(split, rows))}
	}
	var read int64
	check := func(o *opened, r engine.Report) {
		read += r.Read
		o.expectEqual(t, read, q.text)
		o.Limit = limit()
	}
	for restart := true; restart; {
		o := p.open()
		o.reference(t, rows)
		o.Limit = limit()
		if split == "random" { // a process per batch: the state comes back from its segments
			r, err := o.oneBatch()
			if err != nil {
				t.Fatal(err)
			}
			if restart = r != nil; restart {
				check(o, *r)
			}
		} else {
			if _, err := o.Run(t.Context(), func(r engine.Report) { check(o, r) }); err != nil {
				t.Fatal(err)
			}
			restart = false
		}
		o.close()
	}
	if read != int64(rows) {
		t.Fatalf("read %d of %d rows", read, rows)
	}
}

func batchSize(split string, rows int) int {
	switch split {
	case "1":
		return 1
	case "7":
		return 7
	case "random":
		return 1 + rand.IntN(rows/3)
	}
	return rows
}
