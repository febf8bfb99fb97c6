package planner

import (
	"fmt"
	"strings"
	"testing"
)

// scalarTypes gives, per type a source may have, values that have been wrong somewhere: extremes, equal
// values that look different, order that is not that of the text.
var scalarTypes = []struct {
	typ    string
	values string
	keys   bool // may be a group
}{
	{"BOOLEAN", "true; false", true},
	{"TINYINT", "-128; 127; 0", true},
	{"SMALLINT", "-32768; 32767", true},
	{"INTEGER", "-2147483648; 2147483647; 0", true},
	{"BIGINT", "-9223372036854775808; 9223372036854775807", true},
	{"HUGEINT", "-170141183460469231731687303715884105728; 170141183460469231731687303715884105727; 1", true},
	{"UTINYINT", "255; 0", true},
	{"USMALLINT", "65535; 0", true},
	{"UINTEGER", "4294967295; 0", true},
	{"UBIGINT", "18446744073709551615; 0; 9223372036854775808", true},
	{"UHUGEINT", "340282366920938463463374607431768211455; 0", true},
	{"FLOAT", "'nan'; 'inf'; '-inf'; '-0.0'; '0.0'; '3.4e38'; '1e-45'", true},
	{"DOUBLE", "'nan'; 'inf'; '-inf'; '-0.0'; '0.0'; '1.7e308'; '5e-324'", true},
	{"DECIMAL(4,1)", "-999.9; 999.9", true},
	{"DECIMAL(9,2)", "-9999999.99; 0", true},
	{"DECIMAL(18,3)", "999999999999999.999; 0.001", true},
	{"DECIMAL(38,10)", "-9999999999999999999999999999.9999999999; 9999999999999999999999999999.9999999999; 0.0000000001", true},
	{"VARCHAR", "''; 'a'; 'B'; 'é'; 'e'; 'a '; '10'; '9'; '☃'; 'a\x01b'", true},
	{"BLOB", "'\\x00'; ''; '\\xFF'; '\\x00\\x01'", true},
	{"BIT", "'0'; '1'; '01'; '0010'", true},
	{"DATE", "'infinity'; '-infinity'; '0044-03-15 (BC)'; '2024-02-29'; '9999-12-31'", true},
	{"TIME", "'00:00:00'; '23:59:59.999999'; '24:00:00'", true},
	{"TIMESTAMP", "'infinity'; '-infinity'; '1969-12-31 23:59:59.999999'; '2024-02-29 12:00:00'", true},
	{"TIMESTAMP_S", "'1969-12-31 23:59:59'; '2024-02-29 12:00:00'", true},
	{"TIMESTAMP_MS", "'1969-12-31 23:59:59.999'; '2024-02-29 12:00:00'", true},
	{"TIMESTAMP_NS", "'1969-12-31 23:59:59.999999999'; '2024-02-29 12:00:00.000000001'", true},
	{"TIMESTAMP WITH TIME ZONE", "'2024-02-29 12:00:00+02'; '2024-02-29 10:00:00+00'; 'infinity'", true},
	{"UUID", "'00000000-0000-0000-0000-000000000000'; 'ffffffff-ffff-ffff-ffff-ffffffffffff'; '7fffffff-0000-0000-0000-000000000000'; '80000000-0000-0000-0000-000000000000'", true},
	{"ENUM('b', 'a', 'c')", "'a'; 'b'; 'c'", true},
	{"INTERVAL", "'30 days'; '1 month'; '720 hours'", false},
	{"TIME WITH TIME ZONE", "'12:00:00+00'; '13:00:00+01'", false},
}

func TestEveryScalarType(t *testing.T) {
	eng := openEngine(t, 1)
	for _, tc := range scalarTypes {
		t.Run(strings.ReplaceAll(tc.typ, " ", "_"), func(t *testing.T) {
			var values []string
			for _, v := range append(strings.Split(tc.values, "; "), "NULL") {
				values = append(values, "CAST("+v+" AS "+tc.typ+")")
			}
			mustExec(t, eng, fmt.Sprintf(`CREATE OR REPLACE TABLE all_t AS SELECT i AS id, (i * 7 %% 4)::INTEGER AS k,
				[%s][(i * 5 %% %d + 1)::INTEGER] AS v FROM range(1, 41) r(i)`, strings.Join(values, ", "), len(values)))
			head := "ATTACH 'm.duckdb' AS m; CREATE SOURCE t (id BIGINT, k INTEGER, v " + tc.typ + ") FROM 't.parquet';"
			minmax := "CREATE SINK m.a PRIMARY KEY (k) AS SELECT k, count(v) AS n, min(v) AS lo, max(v) AS hi FROM t GROUP BY k;"
			group := `CREATE SINK m.b PRIMARY KEY (v) AS SELECT v, count(*) AS n, sum(k) AS s FROM t GROUP BY v;
				CREATE SINK m.c PRIMARY KEY (v) AS SELECT v, sum(n) AS n FROM (SELECT v, k, count(*) AS n FROM t GROUP BY v, k) GROUP BY v;`
			if !tc.keys {
				for _, sink := range strings.SplitAfter(minmax+group, ";")[:2] {
					if plan, err := compileText(t.Context(), head+sink); err == nil {
						t.Errorf("accepted: %s", plan.Sinks[0].Decl.Select.Text)
					}
				}
				return
			}
			plan := mustCompile(t, head+minmax+group)
			mustEqual(t, eng, plan, 1, 1, 7, 31)
			mustEqual(t, eng, plan, 40)
		})
	}
}
