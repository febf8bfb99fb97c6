package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
)

// kept values of every type: as DuckDB writes them, and what Postgres then prints.
var keptValues = []struct{ typ, value, printed string }{
	{"BOOLEAN", "true", "t"}, {"BOOLEAN", "false", "f"},
	{"TINYINT", "-128", "-128"}, {"TINYINT", "127", "127"},
	{"SMALLINT", "-32768", "-32768"}, {"SMALLINT", "32767", "32767"},
	{"INTEGER", "-2147483648", "-2147483648"}, {"INTEGER", "2147483647", "2147483647"},
	{"BIGINT", "-9223372036854775808", "-9223372036854775808"}, {"BIGINT", "9223372036854775807", "9223372036854775807"},
	{"UTINYINT", "255", "255"}, {"USMALLINT", "65535", "65535"}, {"UINTEGER", "4294967295", "4294967295"},
	{"UBIGINT", "18446744073709551615", "18446744073709551615"}, {"UBIGINT", "0", "0"},
	{"HUGEINT", "-170141183460469231731687303715884105728", "-170141183460469231731687303715884105728"},
	{"HUGEINT", "170141183460469231731687303715884105727", "170141183460469231731687303715884105727"}, {"HUGEINT", "10000", "10000"},
	{"UHUGEINT", "340282366920938463463374607431768211455", "340282366920938463463374607431768211455"},
	{"FLOAT", "'nan'", "NaN"}, {"FLOAT", "'-inf'", "-Infinity"}, {"FLOAT", "0.1", "0.1"}, {"FLOAT", "3.4028235e38", "3.4028235e+38"},
	{"DOUBLE", "'nan'", "NaN"}, {"DOUBLE", "'inf'", "Infinity"}, {"DOUBLE", "0.1", "0.1"}, {"DOUBLE", "5e-324", "5e-324"},
	{"DOUBLE", "1.7976931348623157e308", "1.7976931348623157e+308"}, {"DOUBLE", "'-0.0'", "-0"},
	{"DECIMAL(4,1)", "-999.9", "-999.9"}, {"DECIMAL(4,0)", "9999", "9999"}, {"DECIMAL(9,4)", "12345.6789", "12345.6789"}, {"DECIMAL(9,9)", "0.000000001", "0.000000001"},
	{"DECIMAL(12,2)", "0", "0.00"}, {"DECIMAL(12,2)", "-0.01", "-0.01"}, {"DECIMAL(12,2)", "1000000.00", "1000000.00"}, {"DECIMAL(18,3)", "999999999999999.999", "999999999999999.999"},
	{"DECIMAL(38,0)", "-99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"},
	{"DECIMAL(38,10)", "9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999"},
	{"DECIMAL(38,38)", "0.00000000000000000000000000000000000001", "0.00000000000000000000000000000000000001"},
	{"DECIMAL(38,37)", "-9.9999999999999999999999999999999999999", "-9.9999999999999999999999999999999999999"},
	{"DECIMAL(20,5)", "90071992547.40993", "90071992547.40993"}, {"DECIMAL(20,5)", "90071992547.40991", "90071992547.40991"},
	{"VARCHAR", "''", ""}, {"VARCHAR", "'ü😀 \"''\\ \t'", "ü😀 \"'\\ \t"}, {"VARCHAR", "repeat('x', 100000)", strings.Repeat("x", 100000)},
	{"ENUM('red', 'green')", "'green'", "green"},
	{"BLOB", "'\\x00\\xFF\\x80'::BLOB", `\x00ff80`}, {"BLOB", "''::BLOB", `\x`},
	{"BIT", "'0101011'", "0101011"}, {"BIT", "'11111111000000001'", "11111111000000001"},
	{"UUID", "'00000000-0000-0000-0000-000000000001'", "00000000-0000-0000-0000-000000000001"}, {"UUID", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
	{"DATE", "'1970-01-01'", "1970-01-01"}, {"DATE", "'2000-02-29'", "2000-02-29"}, {"DATE", "'0001-01-01'", "0001-01-01"}, {"DATE", "'4714-11-24 (BC)'", "4714-11-24 BC"},
	{"DATE", "'5874897-12-31'", "5874897-12-31"}, {"DATE", "'infinity'", "infinity"}, {"DATE", "'-infinity'", "-infinity"},
	{"TIME", "'00:00:00'", "00:00:00"}, {"TIME", "'23:59:59.999999'", "23:59:59.999999"}, {"TIME", "'24:00:00'", "24:00:00"},
	{"TIME WITH TIME ZONE", "'12:34:56.000007+05:30'", "12:34:56.000007+05:30"}, {"TIME WITH TIME ZONE", "'00:00:00-15:59:59'", "00:00:00-15:59:59"},
	{"TIMESTAMP", "'1969-12-31 23:59:59.999999'", "1969-12-31 23:59:59.999999"}, {"TIMESTAMP", "'4714-11-24 (BC) 00:00:00'", "4714-11-24 00:00:00 BC"},
	{"TIMESTAMP", "'294247-01-10 04:00:54.775806'", "294247-01-10 04:00:54.775806"}, {"TIMESTAMP", "'infinity'", "infinity"}, {"TIMESTAMP", "'-infinity'", "-infinity"},
	{"TIMESTAMP_S", "'2024-05-31 10:00:01'", "2024-05-31 10:00:01"}, {"TIMESTAMP_S", "'infinity'", "infinity"},
	{"TIMESTAMP_MS", "'2024-05-31 10:00:01.123'", "2024-05-31 10:00:01.123"}, {"TIMESTAMP_MS", "'-infinity'", "-infinity"},
	{"TIMESTAMP_NS", "'2024-05-31 10:00:01.123456'", "2024-05-31 10:00:01.123456"}, {"TIMESTAMP_NS", "'infinity'", "infinity"}, {"TIMESTAMP_NS", "'1677-09-22 00:00:00.000001'", "1677-09-22 00:00:00.000001"},
	{"TIMESTAMP WITH TIME ZONE", "'2024-05-31 10:00:00.000001+02'", "2024-05-31 08:00:00.000001+00"}, {"TIMESTAMP WITH TIME ZONE", "'infinity'", "infinity"},
	{"INTERVAL", "'0 days'", "00:00:00"}, {"INTERVAL", "to_months(-2147483647) + to_days(2147483647)", "-178956970 years -7 mons +2147483647 days"},
	{"INTERVAL", "to_microseconds(9223372036854775807)", "2562047788:00:54.775807"}, {"INTERVAL", "to_months(14) + to_days(-3) + to_microseconds(-1)", "1 year 2 mons -3 days -00:00:00.000001"},
}

// lostValues are those that Postgres does not have.
var lostValues = []struct{ typ, value, say string }{
	{"VARCHAR", "'a' || chr(0) || 'b'", "column v has text with a zero byte (0x00), which Postgres cannot hold in text"},
	{"DATE", "'4714-11-23 (BC)'", "a time before 24 November 4714 BC"}, {"DATE", "'5874898-01-01'", "a time that is too late"},
	{"TIMESTAMP", "'4714-11-23 (BC) 23:59:59'", "a time before 24 November 4714 BC"},
	{"TIMESTAMP_NS", "'2024-05-31 10:00:01.123456789'", "a time with nanoseconds"},
	{"TIMESTAMP WITH TIME ZONE", "'4714-11-23 (BC) 23:59:59+00'", "a time before 24 November 4714 BC"},
}

func valueSink(typ string) connectors.SinkSpec {
	return connectors.SinkSpec{Name: "mart.v", Table: "v", Key: []string{"k"},
		Columns: []connectors.SinkColumn{{Name: "k", Type: "INTEGER"}, {Name: "v", Type: typ}, {Name: "n", Type: typ}}}
}

// write brings values of a type to a new table, as a commit does.
func write(ctx context.Context, d *Destination, sink connectors.SinkSpec, values []string) error {
	rows := make([]string, len(values))
	for i, v := range values {
		rows[i] = fmt.Sprintf("SELECT %d AS k, CAST(%s AS %s) AS v, CAST(NULL AS %s) AS n, 'I' AS _op", i, v, sink.Columns[1].Type, sink.Columns[1].Type)
	}
	if err := d.eng.Exec(ctx, "CREATE OR REPLACE TEMP TABLE staged AS "+strings.Join(rows, " UNION ALL ")); err != nil {
		return err
	}
	n := int64(len(values))
	return d.inTx(ctx, "write", func(tx *tx) error {
		if err := createTargetTx(ctx, tx, "p", sink); err != nil {
			return err
		}
		return d.applyTx(ctx, tx, 1, 0, connectors.SinkChange{Sink: sink, Table: "staged", Counts: checkpoints.SinkCount{Inserted: n, Rows: n}})
	})
}

// TestValues: extreme values of every type are in Postgres what they were, and come back as they were.
func TestValues(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	eng, dest := open(t, dsn)
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	byType, order := map[string][]int{}, []string{}
	for i, v := range keptValues {
		if byType[v.typ] == nil {
			order = append(order, v.typ)
		}
		byType[v.typ] = append(byType[v.typ], i)
	}
	for n, typ := range order {
		sink := valueSink(typ)
		sink.Table = fmt.Sprintf("v%d", n)
		sink.Name = "mart." + sink.Table
		var values []string
		for _, i := range byType[typ] {
			values = append(values, keptValues[i].value)
		}
		if err := write(ctx, dest, sink, values); err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		must(t, dest.read(ctx, "print", func(tx *tx) error {
			rows, k := texts(t, dest.conn, "SELECT v::text, n::text FROM public."+sink.Table+" ORDER BY k"), 0
			for _, i := range byType[typ] {
				want := keptValues[i].printed
				if typ == "BOOLEAN" {
					want = map[string]string{"t": "true", "f": "false"}[want]
				}
				if rows[k][0] != want || rows[k][1] != "NULL" {
					t.Errorf("%s %s is printed as %.100q and %s, want %.100q", typ, keptValues[i].value, rows[k][0], rows[k][1], want)
				}
				k++
			}
			return nil
		}))
		relation, err := dest.Relation(ctx, sink)
		if err != nil {
			t.Errorf("%s comes back with %v", typ, err)
			continue
		}
		var different, all int64
		must(t, eng.QueryRow(ctx, "SELECT count(*), count(*) FILTER (WHERE a.v IS DISTINCT FROM b.v OR a.v::VARCHAR <> b.v::VARCHAR OR typeof(a.v) <> typeof(b.v) OR b.n IS NOT NULL) FROM staged a FULL JOIN "+relation+" b ON a.k = b.k", nil, &all, &different))
		if different > 0 || all != int64(len(values)) {
			t.Errorf("%s: %d of %d values came back different", typ, different, all)
		}
	}
}

func TestValuesThatPostgresLacks(t *testing.T) {
	ctx := context.Background()
	_, dest := open(t, pgtest.Start(t).Database(t))
	for _, v := range lostValues {
		err := write(ctx, dest, valueSink(v.typ), []string{"NULL", v.value})
		var data *connectors.DataError
		if !errors.As(err, &data) || !strings.Contains(err.Error(), v.say) || !strings.Contains(err.Error(), `the row with k = "1"`) {
			t.Errorf("%s %s: the error is %v, want a DataError with %q", v.typ, v.value, err, v.say)
		}
	}
	for _, typ := range []string{"INTEGER[]", "INTEGER[2]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "TIME_NS", "JSON", "DECIMAL(12,2)[]", "UNION(a INTEGER)", "BIGNUM"} {
		err := write(ctx, dest, valueSink(typ), []string{"NULL"})
		var target *connectors.TargetError
		if !errors.As(err, &target) || !strings.Contains(target.Reason, "which a Postgres table of a pipeline cannot hold") || !strings.Contains(target.Hint, "v") {
			t.Errorf("%s: the error is %v", typ, err)
		}
		// What the hint says to write has a type that can be held.
		_, instead, _ := strings.Cut(target.Hint, ": ")
		var becomes string
		must(t, dest.eng.QueryRow(ctx, "SELECT typeof("+strings.TrimSuffix(instead, " AS v")+") FROM (SELECT CAST(NULL AS "+typ+") AS v)", nil, &becomes))
		if typeOf(becomes).form == refused {
			t.Errorf("%s: the hint gives %s", typ, becomes)
		}
	}
}

// TestKeysBecomeTheSame: two keys of DuckDB that are one in Postgres are noticed, not merged.
func TestKeysBecomeTheSame(t *testing.T) {
	ctx := context.Background()
	_, dest := open(t, pgtest.Start(t).Database(t))
	must(t, dest.eng.Exec(ctx, "CREATE OR REPLACE TEMP TABLE staged AS SELECT * FROM (VALUES ('0.0'::DOUBLE, 'I'), ('-0.0'::DOUBLE, 'I')) v(k, _op)"))
	sink := connectors.SinkSpec{Name: "mart.v", Table: "v", Key: []string{"k"}, Columns: []connectors.SinkColumn{{Name: "k", Type: "DOUBLE"}}}
	err := dest.inTx(ctx, "write", func(tx *tx) error {
		if err := createTargetTx(ctx, tx, "p", sink); err != nil {
			return err
		}
		return dest.applyTx(ctx, tx, 1, 0, connectors.SinkChange{Sink: sink, Table: "staged", Counts: checkpoints.SinkCount{Inserted: 2, Rows: 2}})
	})
	if err == nil || !strings.Contains(err.Error(), "already exists") && !strings.Contains(err.Error(), "the same key") {
		t.Errorf("the error is %v", err)
	}
}
