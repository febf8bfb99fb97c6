package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine"
	"lockstep/engine/duck"
)

// arrowSource yields the rows of rowsOfT as Arrow, as a log with two splits would: even and odd ids,
// each with offsets from 0. It stands for all row sources.
type arrowSource struct {
	eng  *duck.Engine
	rows int64
}

func newArrowSource(t testing.TB, rows int) *arrowSource {
	t.Helper()
	eng, err := duck.Open(context.Background(), duck.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := eng.Exec(context.Background(), "CREATE TABLE rows AS SELECT *, (id - 1) // 2 AS off FROM ("+fmt.Sprintf(rowsOfT, rows)+")"); err != nil {
		t.Fatal(err)
	}
	return &arrowSource{eng: eng, rows: int64(rows)}
}

// size is how many rows a split has: the odd ids 1, 3, … are split "0".
func (s *arrowSource) size(split int) int64 { return (s.rows + 1 - int64(split)) / 2 }

func (s *arrowSource) Plan(_ context.Context, seen checkpoints.Splits, limit connectors.Limit) (connectors.Batch, error) {
	var b connectors.Batch
	for split := range 2 {
		id := fmt.Sprint(split)
		from, to := seen[id].Next, s.size(split)
		if from >= to {
			continue
		}
		b.Waiting++
		if limit.Rows > 0 {
			to = min(to, from+limit.Rows)
		}
		b.Ranges = append(b.Ranges, connectors.Range{Split: id, From: from, To: to, Rows: to - from, Next: checkpoints.Split{Next: to, Rows: to}})
	}
	return b, nil
}

func (s *arrowSource) Survey(context.Context, checkpoints.Splits, func(connectors.Standing) bool) ([]connectors.Standing, error) {
	return nil, nil
}

func (s *arrowSource) Losses(context.Context, checkpoints.Splits) ([]connectors.Loss, error) {
	return nil, nil
}

func (s *arrowSource) Recorded(_ context.Context, ranges []checkpoints.Range, _ bool) ([]connectors.Range, error) {
	var out []connectors.Range
	for _, r := range ranges {
		out = append(out, connectors.Range{Split: r.Split, From: r.From, To: r.To, Rows: r.Rows, Next: checkpoints.Split{Next: r.To, Rows: r.To}})
	}
	return out, nil
}

func (s *arrowSource) Read(ctx context.Context, ranges []connectors.Range) (connectors.Scan, error) {
	where := "false"
	for _, r := range ranges {
		where += fmt.Sprintf(" OR (id %% 2 = %s AND off >= %d AND off < %d)", map[string]string{"0": "1", "1": "0"}[r.Split], r.From, r.To)
	}
	rows, err := s.eng.Arrow(ctx, "SELECT * EXCLUDE (off) FROM rows WHERE "+where+" ORDER BY id % 2 DESC, id")
	return &arrowScan{rows: rows, ranges: ranges}, err
}

func (s *arrowSource) Close() error { return nil }

type arrowScan struct {
	rows   array.RecordReader
	ranges []connectors.Range
}

func (s *arrowScan) Relation() (string, bool)                   { return "", false }
func (s *arrowScan) Records() array.RecordReader                { return s.rows }
func (s *arrowScan) Copy(context.Context, string) error         { return nil } // never: there are Records
func (s *arrowScan) Rejects() string                            { return "" }
func (s *arrowScan) Close() error                               { return nil }
func (s *arrowScan) Explain(_ context.Context, err error) error { return err }
func (s *arrowScan) Finish(context.Context, string) ([]connectors.Range, error) {
	return s.ranges, nil
}

// Row sources pass the same test: after every batch, and after restarts, the table equals the SELECT
// over the rows of both splits read so far. With -short one query in all ways, and the others in one each.
func TestArrowEquivalence(t *testing.T) {
	const rows = 80
	for i, q := range queries(t) {
		for k, split := range []string{"1", "7", "random", "all"} {
			if testing.Short() && i > 0 && (i+k)%4 != 0 {
				continue
			}
			t.Run(q.name+"/"+split, func(t *testing.T) {
				t.Parallel()
				n := rows
				if split == "1" {
					n = 16
				}
				p := &project{t: t, dir: t.TempDir(), text: pipelineText("arrow", q), source: newArrowSource(t, n)}
				read := map[string]int64{}
				total := int64(0)
				for {
					o := p.open()
					o.reference(t, n)
					o.Limit = connectors.Limit{Rows: int64(batchSize(split, n))}
					r, err := o.oneBatch()
					if err != nil {
						t.Fatal(err)
					}
					if r != nil {
						total += r.Read
						for id, c := range map[string]int64{"0": (int64(n) + 1) / 2, "1": int64(n) / 2} {
							read[id] = min(c, read[id]+o.Limit.Rows)
						}
						o.expectSink(t, 0, fmt.Sprintf("(id %% 2 = 1 AND (id - 1) // 2 < %d) OR (id %% 2 = 0 AND (id - 1) // 2 < %d)", read["0"], read["1"]), q.text)
					}
					o.close()
					if r == nil {
						break
					}
				}
				if total != int64(n) {
					t.Fatalf("read %d of %d rows", total, n)
				}
			})
		}
	}
}

// A source that says it read more rows than arrive must not commit.
func TestRowsThatDisappear(t *testing.T) {
	q := queries(t)[0]
	src := newArrowSource(t, 10)
	p := &project{t: t, dir: t.TempDir(), text: pipelineText("arrow", q), source: lossy{src}}
	o := p.open()
	defer o.close()
	_, err := o.Run(t.Context(), nil)
	if err == nil {
		t.Fatal("committed a batch with missing rows")
	}
	if head, headErr := o.Destination.Head(t.Context(), "p"); headErr != nil || head.Manifest.Seq != 0 {
		t.Fatalf("after %v: head at %d, %v", err, head.Manifest.Seq, headErr)
	}
}

// lossy reads less than it says.
type lossy struct{ *arrowSource }

func (s lossy) Read(ctx context.Context, ranges []connectors.Range) (connectors.Scan, error) {
	fewer := []connectors.Range{ranges[0]}
	scan, err := s.arrowSource.Read(ctx, fewer)
	if err != nil {
		return nil, err
	}
	as, ok := scan.(*arrowScan)
	if !ok {
		return nil, errors.New("not an Arrow scan")
	}
	as.ranges = ranges
	return as, nil
}

// Two sinks of one pipeline move together.
func TestTwoSinksOneSource(t *testing.T) {
	q := queries(t)[0]
	text := pipelineText("parquet", q) + "CREATE SINK m.second PRIMARY KEY (c) AS SELECT c, sum(e) AS s FROM t WHERE a > 0 GROUP BY c;\n"
	p := &project{t: t, dir: t.TempDir(), text: text}
	writeFiles(t, p.dir, "parquet", []int{rand.IntN(20) + 10, 15})
	o := p.open()
	defer o.close()
	o.reference(t, 60)
	o.Limit = connectors.Limit{Rows: 4}
	read := int64(0)
	_, err := o.Run(t.Context(), func(r engine.Report) {
		read += r.Read
		o.expectEqual(t, read, q.text)
		o.expectSink(t, 1, fmt.Sprintf("id <= %d", read), "SELECT c, sum(e) AS s FROM t WHERE a > 0 GROUP BY c")
	})
	if err != nil {
		t.Fatal(err)
	}
}
