package connectorstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

const pipeline = "daily_sales"

var salesSink = connectors.SinkSpec{
	Name: "mart.daily sales", Table: "daily sales",
	Columns: []connectors.SinkColumn{{Name: "day", Type: "DATE"}, {Name: "store", Type: "VARCHAR"}, {Name: "revenue", Type: "DECIMAL(12,2)"}},
	Key:     []string{"day", "store"},
}

var plan = connectors.PlanRecord{ID: "plan 1", Canon: 1, Input: "i", State: "s", Output: "o", Env: "e", SQL: "SELECT 'ünï';", Canonical: "{}"}

// row is a staged row of salesSink, as SQL literals, and its op.
type row struct{ day, store, revenue, op string }

// unquote undoes the writing of a text as a SQL literal.
func unquote(literal string) string {
	return strings.ReplaceAll(strings.Trim(literal, "'"), "''", "'")
}

func (r row) key() string { return r.day + "|" + r.store }

// run is a pipeline in the middle of its life: a session, the lease, and the table it should have.
type run struct {
	*Session
	t     *testing.T
	lease connectors.Lease
	head  connectors.Head
	sink  connectors.SinkSpec
	table map[string]row
}

// start opens the database and takes the pipeline.
func start(t *testing.T, db Database, sink connectors.SinkSpec) *run {
	t.Helper()
	s := db.Open(t)
	t.Cleanup(func() { s.Close(t) })
	lease, head, err := s.Destination.Take(background, pipeline)
	must(t, err)
	return &run{Session: s, t: t, lease: lease, head: head, sink: sink, table: map[string]row{}}
}

// again closes and opens, as after an error or a restart, and checks that the table is what it
// should be.
func (r *run) again(db Database) {
	r.t.Helper()
	r.Close(r.t)
	s := db.Open(r.t)
	r.t.Cleanup(func() { s.Close(r.t) })
	r.Session = s
	var err error
	r.lease, r.head, err = s.Destination.Take(background, pipeline)
	must(r.t, err)
	must(r.t, s.Destination.CheckTargets(background, r.head, []connectors.SinkSpec{r.sink}))
	r.sameTable()
}

// change builds the next change out of staged rows, in an open transaction.
func (r *run) change(rows ...row) *connectors.Change {
	r.t.Helper()
	tx, err := r.Engine.Begin(background)
	must(r.t, err)
	seq := r.head.Manifest.Seq + 1
	const staged = "staged rows"
	const rejected = "rejected rows"
	must(r.t, r.Engine.Exec(background, stageSQL(staged, rows)))
	must(r.t, r.Engine.Exec(background, `CREATE OR REPLACE TEMP TABLE "`+rejected+`" AS
		SELECT 'orders' AS source, '2024/1.csv' AS split_id, 3::BIGINT AS off, 5::BIGINT AS line, 'bad amount' AS reason, 'x,y' AS raw`))

	counts := checkpoints.SinkCount{Rows: r.head.Manifest.Sinks[r.sink.Name].Rows, Digest: checkpoints.Digest{}.String()}
	for _, row := range rows {
		switch row.op {
		case connectors.OpInsert:
			counts.Inserted++
		case connectors.OpUpdate:
			counts.Updated++
		case connectors.OpDelete:
			counts.Deleted++
		}
	}
	counts.Rows += counts.Inserted - counts.Deleted

	split := checkpoints.Splits{fmt.Sprintf("2024/%d.csv", seq): {Next: 10, Rows: 10, Content: "c", Seq: seq}}
	segment, err := checkpoints.EncodePosition("orders", seq, split, nil)
	must(r.t, err)
	segments := []*checkpoints.Segment{segment}
	position := r.head.Manifest.Position["orders"].After(nil, split, nil)
	m := checkpoints.Manifest{
		Pipeline: pipeline, Seq: seq, Incarnation: r.head.Manifest.Incarnation, Batch: r.head.LastBatch + 1,
		Attempt: uuid.NewString(), Kind: checkpoints.KindBatch, ParentSeq: seq - 1, PlanID: plan.ID,
		Env:       checkpoints.Env{Engine: "0.1", DuckDB: "v1.5.6", TimeZone: "UTC"},
		BatchTime: checkpoints.Time(time.Now()),
		Position:  map[string]checkpoints.PositionSum{"orders": position},
		Sources:   map[string]checkpoints.SourceCount{"orders": {Splits: 1, Read: 10, Accepted: 9, Rejected: 1}},
		Sinks:     map[string]checkpoints.SinkCount{r.sink.Name: counts},
	}
	if !r.head.Fresh {
		m.ParentSHA = r.head.Manifest.Checksum()
	}
	ranges := []checkpoints.Range{{Source: "orders", Split: fmt.Sprintf("2024/%d.csv", seq), To: 10, Rows: 10, Content: "c"}}
	before := r.head.Manifest.Live
	m.RangesSHA, m.Live = checkpoints.RangesSHA(ranges), before.After(segments, nil)
	return &connectors.Change{
		Manifest: m, Plan: plan, Segments: segments, Before: before, Local: tx, Ranges: ranges,
		Sinks:   []connectors.SinkChange{{Sink: r.sink, Table: staged, Counts: counts}},
		Rejects: []connectors.Rejects{{Source: "orders", Table: rejected, Rows: 1}},
	}
}

func stageSQL(table string, rows []row) string {
	values := []string{"(NULL, NULL, NULL, NULL)"}
	for _, r := range rows {
		values = append(values, fmt.Sprintf("(%s, %s, %s, '%s')", r.day, r.store, r.revenue, r.op))
	}
	return fmt.Sprintf(`CREATE OR REPLACE TEMP TABLE "%s" AS SELECT day::DATE AS day, store::VARCHAR AS store, revenue::DECIMAL(12,2) AS revenue, _op::VARCHAR AS _op
		FROM (VALUES %s) v(day, store, revenue, _op) WHERE _op IS NOT NULL`, table, strings.Join(values, ", "))
}

// commit commits rows that must go through, and follows in the expected table.
func (r *run) commit(rows ...row) {
	r.t.Helper()
	change := r.change(rows...)
	must(r.t, r.Destination.Commit(background, r.lease, change))
	r.follow(change, rows)
	r.sameTable()
}

func (r *run) follow(change *connectors.Change, rows []row) {
	r.head.Fresh, r.head.Manifest, r.head.LastBatch, r.head.Plan = false, change.Manifest, change.Manifest.Batch, change.Plan
	for _, row := range rows {
		if row.op == connectors.OpDelete {
			delete(r.table, row.key())
		} else {
			r.table[row.key()] = row
		}
	}
}

// sameTable compares the table with the expected one.
func (r *run) sameTable() {
	r.t.Helper()
	if r.head.Fresh {
		return
	}
	want := []string{}
	for _, key := range slices.Sorted(maps.Keys(r.table)) {
		row := r.table[key]
		want = append(want, unquote(row.day)+" "+unquote(row.store)+" "+row.revenue)
	}
	slices.Sort(want)
	got := []string{}
	for _, columns := range r.Rows(r.t, "SELECT day, store, revenue FROM "+r.Table(r.sink.Schema, r.sink.Table)) {
		got = append(got, strings.Join(columns, " "))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		r.t.Fatalf("the table holds\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// refused commits rows that must not go through, and checks that nothing of them was written.
func (r *run) refused(rows ...row) error {
	r.t.Helper()
	before := r.everything()
	err := r.Destination.Commit(background, r.lease, r.change(rows...))
	if err == nil {
		r.t.Fatal("the change was committed")
	}
	r.unchanged(before)
	return err
}

var etlTables = []string{"pipelines", "targets", "manifests", "ranges", "segments", "segment_parts", "segment_use", "plans"}

// everything is the content of the target and of the tables of progress.
func (r *run) everything() string {
	r.t.Helper()
	var all strings.Builder
	for _, name := range etlTables {
		fmt.Fprintln(&all, name, r.Rows(r.t, "SELECT * FROM "+r.Table("etl", name)))
	}
	if !r.head.Fresh {
		fmt.Fprintln(&all, r.Rows(r.t, "SELECT * FROM "+r.Table(r.sink.Schema, r.sink.Table)))
	}
	return all.String()
}

func (r *run) unchanged(before string) {
	r.t.Helper()
	if after := r.everything(); after != before {
		r.t.Fatalf("something was written:\n%s\nbefore:\n%s", after, before)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
