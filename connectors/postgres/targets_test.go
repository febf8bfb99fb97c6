package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
)

// TestTablesOfPostgres: what is only found in Postgres, of tables made by hand and of a pipeline's own.
func TestTablesOfPostgres(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	texts(t, shell, "SET search_path = public; SELECT 1") // the user is named like the schema etl
	sink := connectors.SinkSpec{Name: "mart.t", Table: "t", Key: []string{"k"},
		Columns: []connectors.SinkColumn{{Name: "k", Type: "VARCHAR"}, {Name: "n", Type: "DECIMAL(12,2)"}}}
	head := freshHead("p")
	for _, c := range []struct{ do, say string }{ // "": it can be taken over
		{"CREATE TABLE t (k varchar, n numeric)", ""},
		{"CREATE TABLE t (k text, n numeric(12,2), id bigint GENERATED ALWAYS AS IDENTITY, twice numeric GENERATED ALWAYS AS (n * 2) STORED, at timestamptz NOT NULL DEFAULT now())", ""},
		{"CREATE TABLE t (k text PRIMARY KEY, n numeric(12,2)); CREATE INDEX ON t (n); CREATE TABLE u (k text REFERENCES t)", ""},
		{"CREATE TABLE t (k varchar(10), n numeric(12,2))", "its column k is character varying(10), the pipeline writes text"},
		{"CREATE TABLE t (k text, n numeric(10,2))", "its column n is numeric(10,2), the pipeline writes numeric(12,2)"},
		{"CREATE TABLE t (k text, n numeric(12,2) GENERATED ALWAYS AS (1) STORED)", "its column n is generated"},
		{`CREATE TABLE t ("K" text, n numeric(12,2))`, "it has no column k (but K;"},
		{"CREATE TABLE t (k text, n numeric(12,2)); CREATE UNIQUE INDEX ON t (lower(k))", "a unique index that is no constraint"},
		{"CREATE TABLE t (k text, n numeric(12,2), EXCLUDE USING btree (n WITH =))", "is on other columns than the sink's key"},
		{"CREATE TABLE t (k text, n numeric(12,2)) PARTITION BY LIST (k)", "a partitioned table of that name exists already"},
		{`CREATE TABLE "T" (k text, n numeric(12,2))`, "its name differs only in letter case"},
		{"CREATE SEQUENCE t", "something else of that name exists already"},
		{"CREATE MATERIALIZED VIEW t AS SELECT 1", "a view of that name exists already"},
	} {
		texts(t, shell, c.do+"; SELECT 1")
		err := dest.CheckTargets(ctx, head, []connectors.SinkSpec{sink})
		var target *connectors.TargetError
		switch {
		case c.say == "" && err != nil:
			t.Errorf("%s: %v", c.do, err)
		case c.say != "" && (!errors.As(err, &target) || !strings.Contains(err.Error(), c.say)):
			t.Errorf("%s: the error is %v, want a TargetError with %q", c.do, err, c.say)
		}
		if c.say == "" {
			must(t, dest.inTx(ctx, "adopt", func(tx *tx) error { return createTargetTx(ctx, tx, "p", sink) }))
		}
		texts(t, shell, `DROP SCHEMA public CASCADE; CREATE SCHEMA public; DELETE FROM etl.targets; SELECT 1`)
	}
	for name, change := range map[string]func(*connectors.SinkSpec){
		"has more than the 63 bytes": func(s *connectors.SinkSpec) { s.Table = strings.Repeat("ä", 32) },
		"which a Postgres table": func(s *connectors.SinkSpec) {
			s.Columns = append(s.Columns, connectors.SinkColumn{Name: "l", Type: "INTEGER[]"})
		},
		"the schema etl is the engine's": func(s *connectors.SinkSpec) { s.Schema = "etl" },
		"the column name _etl_seq is the ": func(s *connectors.SinkSpec) {
			s.Columns = append(s.Columns, connectors.SinkColumn{Name: "_etl_seq", Type: "BIGINT"})
		},
	} {
		wrong := sink
		wrong.Columns = append([]connectors.SinkColumn(nil), sink.Columns...)
		change(&wrong)
		if err := dest.CheckTargets(ctx, head, []connectors.SinkSpec{wrong}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error is %v, want %q", err, name)
		}
	}
}

// TestRefusedRows: what the table does not take is a fault of the data.
func TestRefusedRows(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	change := wireChange(t, dest, head, 1)
	must(t, dest.Commit(ctx, lease, change))
	head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	for _, c := range []struct{ do, undo, say string }{
		{"ALTER TABLE wire ADD CHECK (k < 2)", "ALTER TABLE wire DROP CONSTRAINT wire_k_check", "CHECK wire_k_check"},
		{"CREATE TABLE u (k int PRIMARY KEY); INSERT INTO u VALUES (1); ALTER TABLE wire ADD CONSTRAINT f FOREIGN KEY (k) REFERENCES u DEFERRABLE INITIALLY DEFERRED", "ALTER TABLE wire DROP CONSTRAINT f", "FOREIGN KEY f"},
		{"CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not on my watch'; END $$; CREATE TRIGGER t BEFORE INSERT ON wire FOR EACH ROW EXECUTE FUNCTION no()",
			"DROP TRIGGER t ON wire", "not on my watch"},
	} {
		texts(t, shell, c.do+"; SELECT 1")
		err := dest.Commit(ctx, lease, wireChange(t, dest, head, 2))
		var data *connectors.DataError
		if !errors.As(err, &data) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: the error is %v, want a DataError with %q", c.do, err, c.say)
		}
		texts(t, shell, c.undo+"; SELECT 1")
	}
	// A trigger that drops rows is found by their number.
	texts(t, shell, "CREATE FUNCTION drop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; CREATE TRIGGER t BEFORE INSERT ON wire FOR EACH ROW EXECUTE FUNCTION drop(); SELECT 1")
	if err := dest.Commit(ctx, lease, wireChange(t, dest, head, 2)); err == nil || !strings.Contains(err.Error(), "Nothing was written") {
		t.Errorf("of a trigger that drops rows the error is %v", err)
	}
	texts(t, shell, "DROP TRIGGER t ON wire; SELECT 1")
	must(t, dest.Commit(ctx, lease, wireChange(t, dest, head, 2)))
}

func TestOldServers(t *testing.T) {
	for version, old := range map[string]bool{"14.11": true, "9.6.24": true, "15.0": false, "15.18 (Debian 15.18-0+deb12u1)": false, "19beta1": false, "": false, "unknown": false} {
		if tooOld(version) != old {
			t.Errorf("version %q", version)
		}
	}
}

// TestStatements: all fixed SQL is known to the server, and used.
func TestStatements(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	open(t, dsn)
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	for name, stmt := range statements {
		if _, err := shell.Prepare(ctx, name, stmt); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
