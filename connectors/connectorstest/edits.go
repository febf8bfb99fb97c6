package connectorstest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

var (
	rowA = row{"'2024-05-03'", "'a'", "1.00", "I"}
	rowB = row{"'2024-05-03'", "'b'", "2.00", "I"}
	rowC = row{"'2024-05-03'", "'c'", "3.00", "I"}
)

func (r row) with(op string) row { r.op = op; return r }

// testWrongChange: a change that contradicts itself is a mistake of the engine and is never written.
func testWrongChange(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA, rowC)
	for name, spoil := range map[string]func(c *connectors.Change){
		"rows read are not accounted for": func(c *connectors.Change) {
			c.Manifest.Sources["orders"] = checkpoints.SourceCount{Splits: 1, Read: 10, Accepted: 10, Rejected: 1}
		},
		"a reject is missing":  func(c *connectors.Change) { c.Rejects = nil },
		"a reject is doubled":  func(c *connectors.Change) { c.Rejects = append(c.Rejects, c.Rejects[0]) },
		"a range is missing":   func(c *connectors.Change) { c.Ranges = nil },
		"a range is doubled":   func(c *connectors.Change) { c.Ranges = append(c.Ranges, c.Ranges[0]) },
		"a segment is missing": func(c *connectors.Change) { c.Segments = nil },
		"a segment is of another seq": func(c *connectors.Change) {
			c.Segments[0].SeqHi++
			c.Manifest.Live = c.Before.After(c.Segments, nil)
		},
		"another plan":                 func(c *connectors.Change) { c.Plan.ID = "plan 2" },
		"another pipeline":             func(c *connectors.Change) { c.Manifest.Pipeline = "other" },
		"another parent":               func(c *connectors.Change) { c.Manifest.ParentSHA = "00" },
		"seq is skipped":               func(c *connectors.Change) { c.Manifest.Seq++; c.Manifest.ParentSeq++ },
		"sink counts differ":           func(c *connectors.Change) { c.Sinks[0].Counts.Inserted++ },
		"sink counts without a change": func(c *connectors.Change) { c.Sinks = nil },
		"rows after it do not add up": func(c *connectors.Change) {
			c.Sinks[0].Counts.Rows++
			c.Manifest.Sinks[salesSink.Name] = c.Sinks[0].Counts
		},
		"an insert counts as an update": func(c *connectors.Change) {
			c.Sinks[0].Counts.Inserted, c.Sinks[0].Counts.Updated = 0, 1
			c.Manifest.Sinks[salesSink.Name] = c.Sinks[0].Counts
		},
		"a column has another type": func(c *connectors.Change) {
			must(t, r.Engine.Exec(background, `ALTER TABLE temp."staged rows" ALTER revenue TYPE DOUBLE`))
		},
		"an unknown op": func(c *connectors.Change) {
			must(t, r.Engine.Exec(background, `UPDATE temp."staged rows" SET _op = 'X'`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.commit() // a destination that has just written the sink looks as closely
			before := r.everything()
			change := r.change(rowB)
			spoil(change)
			if err := r.Destination.Commit(background, r.lease, change); err == nil {
				t.Error("it was committed")
			}
			r.unchanged(before)
		})
	}
	t.Run("a key is doubled", func(t *testing.T) {
		if err := r.refused(rowA.with("U"), rowA.with("U"), rowB); !strings.Contains(err.Error(), "more than one row") {
			t.Errorf("the error is %v", err)
		}
		if err := r.refused(row{"NULL", "NULL", "1", "I"}, row{"NULL", "NULL", "2", "I"}); !strings.Contains(err.Error(), "more than one row") {
			t.Errorf("the error is %v", err)
		}
	})
	r.commit(rowB)
	r.again(db)
}

// testEditedRows: rows that somebody edited between commits of one run.
func testEditedRows(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA, rowB)
	table := r.Table(salesSink.Schema, salesSink.Table)
	const into = " (day, store, revenue, _etl_seq)"
	for _, edit := range []struct {
		name, do, undo string
		staged         row
		say            string
	}{
		{"inserted under a new key", "INSERT INTO " + table + into + " VALUES (DATE '2024-05-03', 'c', 0, 1)", "DELETE FROM " + table + " WHERE store = 'c'",
			rowC, "rows with keys that are new to the pipeline, or doubled, are in it already (1)"},
		{"inserted under an old key", "INSERT INTO " + table + into + " VALUES (DATE '2024-05-03', 'a', 0, 1)", "DELETE FROM " + table + " WHERE revenue = 0",
			rowA.with("U"), "rows with keys that are new to the pipeline, or doubled, are in it already (1)"},
		{"inserted elsewhere", "INSERT INTO " + table + into + " VALUES (DATE '2024-05-03', 'x', 0, 1)", "DELETE FROM " + table + " WHERE store = 'x'",
			rowA.with("U"), "after this change it should have 2 rows, but would have 3"},
		{"deleted", "DELETE FROM " + table + " WHERE store = 'a'", "INSERT INTO " + table + into + " VALUES (DATE '2024-05-03', 'a', 1, 1)",
			rowA.with("U"), "rows that the pipeline wrote are gone, or their keys were changed (1)"},
		{"deleted, to be deleted", "DELETE FROM " + table + " WHERE store = 'a'", "INSERT INTO " + table + into + " VALUES (DATE '2024-05-03', 'a', 1, 1)",
			rowA.with("D"), "rows that the pipeline wrote are gone, or their keys were changed (1)"},
		{"moved to another key", "UPDATE " + table + " SET store = 'z' WHERE store = 'a'", "UPDATE " + table + " SET store = 'a' WHERE store = 'z'",
			rowA.with("U"), "their keys were changed"},
		{"written by a newer change", "UPDATE " + table + " SET _etl_seq = 99 WHERE store = 'a'", "UPDATE " + table + " SET _etl_seq = 1 WHERE store = 'a'",
			rowA.with("U"), "rows to be changed carry a newer _etl_seq than 2 (1)"},
	} {
		t.Run(edit.name, func(t *testing.T) {
			if r.Keyed && edit.name == "inserted under an old key" {
				return // the constraint keeps the row out
			}
			r.Exec(t, edit.do)
			err := r.refused(edit.staged)
			var target *connectors.TargetError
			if !errors.As(err, &target) || !strings.Contains(err.Error(), edit.say) || !strings.Contains(err.Error(), "Nothing was written") {
				t.Errorf("the error is %v, want a TargetError with %q", err, edit.say)
			}
			if strings.Contains(err.Error(), "MERGE") {
				t.Errorf("the error shows generated SQL: %v", err)
			}
			r.Exec(t, edit.undo)
		})
	}
	r.commit(rowA.with("U"), rowB.with("D"), rowC)
	r.again(db)
}

// testEditedTables: what is seen before a run does anything.
func testEditedTables(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA, rowB)
	r.again(db)
	table := r.Table(salesSink.Schema, salesSink.Table)
	sinks := []connectors.SinkSpec{salesSink}
	differs := func(t *testing.T, sink connectors.SinkSpec, say string) {
		t.Helper()
		err := r.Destination.CheckTargets(background, r.head, []connectors.SinkSpec{sink})
		var target *connectors.TargetError
		if !errors.As(err, &target) || !strings.Contains(err.Error(), say) {
			t.Errorf("the error is %v, want a TargetError with %q", err, say)
		}
	}
	const into = " (day, store, revenue, _etl_seq)"
	for _, edit := range []struct{ do, undo, say string }{
		{"INSERT INTO " + table + into + " VALUES (DATE '2024-05-03', 'x', 0, 1)", "DELETE FROM " + table + " WHERE store = 'x'", "it should have 2 rows, but has 3"},
		{"ALTER TABLE " + table + " ADD COLUMN note INTEGER DEFAULT 1; ALTER TABLE " + table + " ALTER note SET NOT NULL; ALTER TABLE " + table + " ALTER note DROP DEFAULT",
			"ALTER TABLE " + table + " DROP COLUMN note", "its column note is NOT NULL without a default"},
		{"CREATE INDEX by_store ON " + table + " (store)", "DROP INDEX " + r.Table("", "by_store"), "it has an index, by_store"},
		{"ALTER TABLE " + table + " RENAME COLUMN store TO shop", "ALTER TABLE " + table + " RENAME COLUMN shop TO store", "its column store is gone"},
		{"ALTER TABLE " + table + " ALTER revenue TYPE DECIMAL(14,2)", "ALTER TABLE " + table + " ALTER revenue TYPE DECIMAL(12,2)", "revenue is {DECIMAL(14,2)}, the pipeline writes {DECIMAL(12,2)}"},
	} {
		if r.Keyed && strings.HasPrefix(edit.do, "CREATE INDEX") {
			continue
		}
		r.Exec(t, edit.do)
		differs(t, salesSink, r.inTypes(edit.say))
		r.Exec(t, edit.undo)
		must(t, r.Destination.CheckTargets(background, r.head, sinks))
	}
	rekeyed := salesSink
	rekeyed.Key = []string{"store"}
	differs(t, rekeyed, "its key is (day, store), the pipeline now says (store)")

	r.Exec(t, "ALTER TABLE "+table+` RENAME TO "moved away"`)
	differs(t, salesSink, "it was renamed to")
	err := r.Destination.CheckTargets(background, r.head, sinks)
	_, statement, _ := strings.Cut(err.Error(), ":\n")
	r.Mend(t, statement)
	must(t, r.Destination.CheckTargets(background, r.head, sinks))

	r.Exec(t, "CREATE TABLE "+r.Table("", "copy")+" AS SELECT * FROM "+table)
	r.Exec(t, "DELETE FROM "+table)
	differs(t, salesSink, "it should have 2 rows, but has 0")
	r.Exec(t, "DROP TABLE "+table)
	differs(t, salesSink, "it is gone, with the 2 rows")
	r.Exec(t, "CREATE TABLE "+table+" AS SELECT * FROM "+r.Table("", "copy"))
	differs(t, salesSink, "it was replaced by another table")
	if r.Keyed {
		_, err = r.registry().Adopt(background, r.head, sinks)
		if err == nil || !strings.Contains(err.Error(), "put it back:\n") {
			t.Fatalf("a table without its key was adopted: %v", err)
		}
		_, statement, _ := strings.Cut(err.Error(), ":\n")
		differs(t, salesSink, "it was replaced by another table")
		r.Mend(t, statement)
	}
	adopted, err := r.registry().Adopt(background, r.head, sinks)
	if err != nil || len(adopted) != 1 {
		t.Fatalf("adopted %v: %v", adopted, err)
	}
	must(t, r.Destination.CheckTargets(background, r.head, sinks))
	if adopted, err := r.registry().Adopt(background, r.head, sinks); err != nil || len(adopted) != 0 {
		t.Fatalf("adopted again %v: %v", adopted, err)
	}
	r.Exec(t, "COMMENT ON TABLE "+table+" IS 'of sales'")
	_, err = r.registry().Adopt(background, r.head, sinks)
	must(t, err)
	r.again(db)
	r.commit(rowA.with("U"))
	r.Exec(t, "DELETE FROM "+table)
	r.Exec(t, "COMMENT ON TABLE "+table+" IS 'of sales'")
	if _, err := r.registry().Adopt(background, r.head, sinks); err == nil || !strings.Contains(err.Error(), "it should have 2 rows, but has 0") {
		t.Fatalf("a table without its rows was adopted: %v", err)
	}
}

func testOwners(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA)
	lease, head, err := r.Destination.Take(background, "other")
	must(t, err)
	r.Exec(t, "CREATE TABLE "+r.Table("", "theirs")+" (x INTEGER)")
	r.Exec(t, "CREATE TABLE "+r.Table("", "left over")+" (day DATE, store VARCHAR, revenue DECIMAL(12,2), _etl_seq BIGINT)")
	r.Exec(t, "INSERT INTO "+r.Table("", "left over")+" VALUES (NULL, 'x', 1, 7)")
	r.Exec(t, "CREATE VIEW "+r.Table("", "a view")+" AS SELECT 1 AS x")
	upper := strings.ToUpper(salesSink.Table)
	for _, c := range []struct{ schema, table, say string }{
		{"", salesSink.Table, "belongs to pipeline daily_sales"},
		{"", upper, "belongs to pipeline daily_sales"},
		{"", "theirs", "it exists already, but does not fit"},
		{"", "left over", "was kept by a pipeline"},
		{"", "a view", "a view of that name exists already"},
		{"etl", "mine", "the schema etl is the engine's own"},
	} {
		sink := salesSink
		sink.Schema, sink.Table, sink.Name = c.schema, c.table, c.table
		want := func(err error) {
			t.Helper()
			var target *connectors.TargetError
			if !errors.As(err, &target) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%s: the error is %v, want a TargetError with %q", c.table, err, c.say)
			}
		}
		want(r.Destination.CheckTargets(background, head, []connectors.SinkSpec{sink}))
		other := &run{Session: r.Session, t: t, lease: lease, head: head, sink: sink, table: map[string]row{}}
		change := other.change(rowA)
		change.Manifest.Pipeline = "other"
		want(r.Destination.Commit(background, lease, change))
	}
	sink := salesSink
	sink.Name, sink.Table = "mine", "mine"
	sink.Columns = append([]connectors.SinkColumn{{Name: "_ETL_SEQ", Type: "BIGINT"}}, sink.Columns...)
	if err := r.Destination.CheckTargets(background, head, []connectors.SinkSpec{sink}); err == nil {
		t.Error("a column may be named _ETL_SEQ")
	}
	r.sameTable()
}

// testDamage edits what is stored about a pipeline, one thing at a time.
func testDamage(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA)
	r.commit(rowB)
	manifests, pipelines := r.Table("etl", "manifests"), r.Table("etl", "pipelines")
	for column, value := range map[string]string{
		"counts": `'{"sources":{},"sinks":{}}'`, "position": "'{}'", "env": "'nonsense'", "batch": "0", "incarnation": "7", "kind": "'repair'",
		"attempt": "'01234567-0123-4123-8123-0123456789ab'", "parent_sha": "'00'", "plan_id": "'plan 2'", "batch_time": "TIMESTAMPTZ '2020-01-01 00:00:00+00'",
		"ranges_sha": "'00'", "live": "'{}'", "checksum": "'00'", "parent_seq": "0",
	} {
		t.Run("manifest "+column, func(t *testing.T) { damaged(t, r, manifests, column, value) })
	}
	for column, value := range map[string]string{
		"position": "'{}'", "position_sha": "'00'", "manifest_sha": "'00'", "last_batch": "7", "incarnation": "7", "plan_id": "'plan 2'",
	} {
		t.Run("pipeline "+column, func(t *testing.T) { damaged(t, r, pipelines, column, value) })
	}
	t.Run("manifest lost", func(t *testing.T) {
		r.Exec(t, "DELETE FROM "+manifests+" WHERE seq = 2")
		isDamaged(t, r)
	})
}

// damaged sets a column of the newest row of a table, looks at the head, and sets it back.
func damaged(t *testing.T, r *run, table, column, value string) {
	old := r.Rows(t, fmt.Sprintf("SELECT %s FROM %s WHERE seq = 2", column, table))[0][0]
	r.Exec(t, fmt.Sprintf("UPDATE %s SET %s = %s WHERE seq = 2", table, column, value))
	isDamaged(t, r)
	r.Exec(t, fmt.Sprintf("UPDATE %s SET %s = '%s' WHERE seq = 2", table, column, old))
	if _, err := r.Destination.Head(background, pipeline); err != nil {
		t.Fatalf("after setting it back: %v", err)
	}
}

func isDamaged(t *testing.T, r *run) {
	t.Helper()
	var damage *connectors.DamagedError
	if _, err := r.Destination.Head(background, pipeline); !errors.As(err, &damage) {
		t.Errorf("the head gives %v, want a DamagedError", err)
	}
	if _, _, err := r.Destination.Take(background, pipeline); !errors.As(err, &damage) {
		t.Errorf("a lease gives %v, want a DamagedError", err)
	}
}

func testDamagedSegments(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	r.commit(rowA)
	r.commit(rowB)
	parts, segments, use := r.Table("etl", "segment_parts"), r.Table("etl", "segments"), r.Table("etl", "segment_use")
	for _, damage := range []struct{ do, undo string }{
		{"UPDATE " + segments + " SET rows = rows + 1", "UPDATE " + segments + " SET rows = rows - 1"},
		{"UPDATE " + segments + " SET step_id = 'other'", "UPDATE " + segments + " SET step_id = 'position/orders'"},
		{"UPDATE " + use + " SET added_seq = 2", "UPDATE " + use + " SET added_seq = (SELECT seq_lo FROM " + segments + " s WHERE s.segment_id = segment_use.segment_id)"},
		{"UPDATE " + use + " SET removed_seq = 2 WHERE added_seq = 1", "UPDATE " + use + " SET removed_seq = NULL"},
		{"UPDATE " + segments + " SET seq_lo = 0 WHERE seq_lo = 1", "UPDATE " + segments + " SET seq_lo = 1 WHERE seq_lo = 0"},
	} {
		r.Exec(t, damage.do)
		var damaged *connectors.DamagedError
		_, before := r.Destination.Segments(background, pipeline, 1, 1)
		_, now := r.Destination.Segments(background, pipeline, 1, 2)
		if !errors.As(errors.Join(before, now), &damaged) {
			t.Errorf("after %q: %v and %v, want a DamagedError", damage.do, before, now)
		}
		r.Exec(t, damage.undo)
	}
	listed, err := r.Destination.Segments(background, pipeline, 1, 2)
	must(t, err)

	r.Exec(t, "UPDATE "+parts+" SET data = 'nonsense'::"+r.inTypes("{BLOB}"))
	must(t, r.Destination.Load(background, &listed[0]))
	if _, err := listed[0].Records(); err == nil {
		t.Error("other bytes are read as the segment")
	}
	r.Exec(t, "UPDATE "+parts+" SET part = 1")
	var damaged *connectors.DamagedError
	if err := r.Destination.Load(background, &listed[0]); !errors.As(err, &damaged) {
		t.Errorf("without part 0: %v, want a DamagedError", err)
	}
	r.Exec(t, "DELETE FROM "+parts)
	if err := r.Destination.Load(background, &listed[0]); err == nil && listed[0].Verify() == nil {
		t.Error("a segment without data is good")
	}
	r.Exec(t, "DELETE FROM "+segments+" WHERE seq_lo = 1")
	if _, err := r.Destination.Segments(background, pipeline, 1, 2); !errors.As(err, &damaged) {
		t.Errorf("with a lost segment: %v, want a DamagedError", err)
	}
}
