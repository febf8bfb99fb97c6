package connectorstest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// SourceUnderTest is one source with input of its own. The input must stay as it is but for Grow.
type SourceUnderTest struct {
	Engine *duck.Engine
	Open   func(ctx context.Context) (connectors.Source, error)
	// Rows is how many rows there are now.
	Rows int64
	// Limit makes Plan return several batches for them.
	Limit connectors.Limit
	// Grow adds input and returns how many rows; nil when the source cannot grow.
	Grow func() int64
	// Touch changes how a split looks but not its rows; nil when nothing of the kind exists.
	Touch func()
}

// TestSource runs the suite. start makes a new source with new input for each test.
func TestSource(t *testing.T, start func(t *testing.T) SourceUnderTest) {
	for name, test := range map[string]func(*testing.T, *reading){
		"ranges cover all rows":             coverAll,
		"reading is repeatable":             repeatable,
		"planning is repeatable":            planTwice,
		"a restart goes on":                 restart,
		"recorded ranges are read again":    recorded,
		"nothing is planned when caught up": caughtUp,
		"new input is found":                grow,
		"a moved split enters the position": moved,
		"no ranges are no rows":             noRanges,
		"a cancelled read ends":             cancelled,
		"Close may be called twice":         closeTwice,
	} {
		t.Run(name, func(t *testing.T) {
			r := &reading{SourceUnderTest: start(t), t: t, seen: checkpoints.Splits{}}
			r.open()
			test(t, r)
		})
	}
}

func coverAll(t *testing.T, r *reading) {
	next := map[string]int64{}
	var total int64
	batches := 0
	for {
		b := r.plan(r.Limit)
		if len(b.Ranges) == 0 {
			break
		}
		batches++
		rows, done := r.read(b.Ranges)
		var counted int64
		for i, g := range done {
			if g.Split != b.Ranges[i].Split || g.From != b.Ranges[i].From || g.To != b.Ranges[i].To {
				t.Errorf("Finish changed a range: %+v to %+v", b.Ranges[i], g)
			}
			if g.From != next[g.Split] || g.To < g.From {
				t.Errorf("range [%d, %d) of %s does not follow %d", g.From, g.To, g.Split, next[g.Split])
			}
			if g.Rows < 0 {
				t.Errorf("the rows of %s are not known after Finish", g.Split)
			}
			if g.Next.Next != g.To {
				t.Errorf("%s goes on at %d after [%d, %d)", g.Split, g.Next.Next, g.From, g.To)
			}
			next[g.Split] = g.To
			counted += g.Rows
		}
		if counted != int64(len(rows)) {
			t.Errorf("%d rows were read, Finish counts %d", len(rows), counted)
		}
		total += counted
		r.commit(b, done)
	}
	if total != r.Rows {
		t.Errorf("read %d of %d rows", total, r.Rows)
	}
	if batches < 2 {
		t.Errorf("%d batch(es): the limit of this test must make several", batches)
	}
	var sum int64
	for _, s := range r.seen {
		sum += s.Rows
	}
	if sum != r.Rows {
		t.Errorf("the position counts %d of %d rows", sum, r.Rows)
	}
}

func repeatable(t *testing.T, r *reading) {
	for range 2 {
		b := r.plan(r.Limit)
		first, done := r.read(b.Ranges)
		for _, ranges := range [][]connectors.Range{b.Ranges, done} {
			again, doneAgain := r.read(ranges)
			if !slices.Equal(first, again) {
				t.Fatalf("the same ranges gave other rows:\n%s\nthen\n%s", strings.Join(first, "\n"), strings.Join(again, "\n"))
			}
			if !slices.Equal(done, doneAgain) {
				t.Fatalf("the same ranges ended as\n%+v\nthen as\n%+v", done, doneAgain)
			}
		}
		r.commit(b, done)
	}
}

// recorded reads the ranges of two batches again, later and after a restart, out of what is kept of them.
func recorded(t *testing.T, r *reading) {
	type batch struct {
		rows   []string
		ranges []checkpoints.Range
	}
	var batches []batch
	for range 2 {
		b := r.plan(r.Limit)
		rows, done := r.read(b.Ranges)
		kept := batch{rows: rows}
		for _, g := range done {
			kept.ranges = append(kept.ranges, checkpoints.Range{Source: "s", Split: g.Split, From: g.From, To: g.To, Rows: g.Rows, Content: g.Next.Content})
		}
		batches = append(batches, kept)
		r.commit(b, done)
	}
	r.drain()
	if r.Touch != nil {
		r.Touch()
	}
	r.open()
	for _, kept := range batches {
		ranges, err := r.src.Recorded(t.Context(), kept.ranges, false)
		r.must(err)
		rows, done := r.read(ranges)
		if !slices.Equal(rows, kept.rows) {
			t.Fatalf("the recorded ranges gave\n%s\nthey gave\n%s before", strings.Join(rows, "\n"), strings.Join(kept.rows, "\n"))
		}
		for i, g := range done {
			want := kept.ranges[i]
			if g.Split != want.Split || g.From != want.From || g.To != want.To || g.Rows != want.Rows || g.Next.Content != want.Content || g.Next.Next != want.To {
				t.Errorf("recorded was %+v, read again it is %+v", want, g)
			}
		}
	}
}

func planTwice(t *testing.T, r *reading) {
	a, b := r.plan(r.Limit), r.plan(r.Limit)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("planned\n%+v\nthen\n%+v", a, b)
	}
	if a.Waiting < len(a.Ranges) {
		t.Errorf("%d splits wait, %d are planned", a.Waiting, len(a.Ranges))
	}
}

func restart(t *testing.T, r *reading) {
	total := 0
	for {
		b := r.plan(r.Limit)
		if len(b.Ranges) == 0 {
			break
		}
		rows, done := r.read(b.Ranges)
		total += len(rows)
		r.commit(b, done)
		r.open()
	}
	if int64(total) != r.Rows {
		t.Errorf("read %d of %d rows", total, r.Rows)
	}
}

func caughtUp(t *testing.T, r *reading) {
	r.drain()
	for range 2 {
		if b := r.plan(connectors.Limit{}); len(b.Ranges) != 0 || b.Waiting != 0 || len(b.Moved) != 0 || len(b.Gone) != 0 {
			t.Errorf("planned %+v", b)
		}
		r.open()
	}
}

func grow(t *testing.T, r *reading) {
	if r.Grow == nil {
		t.Skip("this source does not grow")
	}
	before := r.drain()
	want := r.Grow()
	if got := r.drain(); got != want {
		t.Errorf("found %d of %d new rows (there were %d)", got, want, before)
	}
}

func moved(t *testing.T, r *reading) {
	if r.Touch == nil {
		t.Skip("nothing can be touched")
	}
	r.drain()
	r.Touch()
	b := r.plan(connectors.Limit{})
	if len(b.Ranges) != 0 || len(b.Moved)+len(b.Gone) == 0 {
		t.Fatalf("planned %+v", b)
	}
	r.commit(b, nil)
	if b = r.plan(connectors.Limit{}); len(b.Ranges) != 0 || len(b.Moved)+len(b.Gone) != 0 {
		t.Errorf("planned again %+v", b)
	}
}

func noRanges(t *testing.T, r *reading) {
	rows, done := r.read(nil)
	if len(rows) != 0 || len(done) != 0 {
		t.Errorf("%v %v", rows, done)
	}
}

func cancelled(t *testing.T, r *reading) {
	b := r.plan(connectors.Limit{})
	ctx, cancel := context.WithCancel(r.t.Context())
	sc, err := r.src.Read(ctx, b.Ranges)
	r.must(err)
	cancel()
	if _, err := sc.Finish(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Finish: %v", err)
	}
	if err := sc.Explain(ctx, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("Explain: %v", err)
	}
	r.must(sc.Close())
}

func closeTwice(t *testing.T, r *reading) {
	b := r.plan(r.Limit)
	sc, err := r.src.Read(t.Context(), b.Ranges)
	r.must(err)
	r.must(sc.Close())
	r.must(sc.Close())
	r.must(r.src.Close())
	r.must(r.src.Close())
}

// reading is a source and a position.
type reading struct {
	SourceUnderTest
	t    *testing.T
	src  connectors.Source
	seen checkpoints.Splits
	seq  int64
	n    int
}

func (r *reading) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// open opens the source, again if need be.
func (r *reading) open() {
	r.t.Helper()
	if r.src != nil {
		r.must(r.src.Close())
	}
	src, err := r.Open(r.t.Context())
	r.must(err)
	r.src = src
	r.t.Cleanup(func() { _ = src.Close() })
}

func (r *reading) plan(limit connectors.Limit) connectors.Batch {
	r.t.Helper()
	b, err := r.src.Plan(r.t.Context(), maps.Clone(r.seen), limit)
	r.must(err)
	return b
}

// read gives the rows as text and the finished ranges.
func (r *reading) read(ranges []connectors.Range) (rows []string, done []connectors.Range) {
	r.t.Helper()
	ctx := r.t.Context()
	sc, err := r.src.Read(ctx, ranges)
	r.must(err)
	defer func() { r.must(sc.Close()) }()
	rel, fused := sc.Relation()
	copied := ""
	if !fused {
		r.n++
		copied = fmt.Sprintf("conformance_%d", r.n)
		if records := sc.Records(); records != nil {
			err := r.Engine.Load(ctx, copied, records)
			records.Release()
			r.must(err)
		} else {
			r.must(sc.Copy(ctx, copied))
		}
		rel = copied
	}
	r.must(r.Engine.Each(ctx, "SELECT t::VARCHAR FROM "+rel+" t", nil, func(s *sql.Rows) error {
		var row string
		err := s.Scan(&row)
		rows = append(rows, row)
		return err
	}))
	done, err = sc.Finish(ctx, copied)
	r.must(err)
	if len(done) != len(ranges) {
		r.t.Fatalf("%d ranges became %d", len(ranges), len(done))
	}
	return rows, done
}

func (r *reading) commit(b connectors.Batch, done []connectors.Range) {
	r.seq++
	maps.Copy(r.seen, b.Moved)
	for _, id := range b.Gone {
		delete(r.seen, id)
	}
	for _, g := range done {
		g.Next.Seq = r.seq
		r.seen[g.Split] = g.Next
	}
}

// drain reads all that waits and returns how many rows that were.
func (r *reading) drain() (n int64) {
	r.t.Helper()
	for {
		b := r.plan(r.Limit)
		if len(b.Ranges) == 0 {
			return n
		}
		rows, done := r.read(b.Ranges)
		n += int64(len(rows))
		r.commit(b, done)
	}
}
