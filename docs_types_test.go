package lockstep_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/connectors"
	"lockstep/connectors/postgres"
	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine/duck"
	"lockstep/planner"
	"lockstep/sql"
)

// docType is a type with three values as text, which DuckDB casts to it.
type docType struct {
	name   string
	values [3]string
}

var docTypes = []docType{
	{"BOOLEAN", [3]string{"true", "false", "true"}},
	{"TINYINT", [3]string{"-128", "5", "127"}},
	{"SMALLINT", [3]string{"-32768", "5", "32767"}},
	{"INTEGER", [3]string{"-2147483648", "5", "2147483647"}},
	{"BIGINT", [3]string{"-9223372036854775808", "5", "9223372036854775807"}},
	{"HUGEINT", [3]string{"-99999999999999999999999999999999999999", "5", "99999999999999999999999999999999999999"}},
	{"UTINYINT", [3]string{"0", "5", "255"}},
	{"USMALLINT", [3]string{"0", "5", "65535"}},
	{"UINTEGER", [3]string{"0", "5", "4294967295"}},
	{"UBIGINT", [3]string{"0", "5", "18446744073709551615"}},
	{"UHUGEINT", [3]string{"0", "5", "340282366920938463463374607431768211455"}},
	{"BIGNUM", [3]string{"-1", "5", "340282366920938463463374607431768211456"}},
	{"FLOAT", [3]string{"-1.5", "0.1", "2.5"}},
	{"DOUBLE", [3]string{"-1.5", "0.1", "2.5"}},
	{"DECIMAL(12,2)", [3]string{"-1.50", "0.10", "9999999999.99"}},
	{"DECIMAL(38,10)", [3]string{"-1.5000000000", "0.1000000000", "1234567890123456789012345678.0123456789"}},
	{"VARCHAR", [3]string{"ab", "ünï", "c d"}},
	{"ENUM('red', 'green')", [3]string{"red", "green", "red"}},
	{"BLOB", [3]string{`a\xFF`, "b", `c\x00`}},
	{"BIT", [3]string{"101", "0", "111"}},
	{"UUID", [3]string{"01234567-89ab-4def-8123-456789abcdef", "11234567-89ab-4def-8123-456789abcdef", "f1234567-89ab-4def-8123-456789abcdef"}},
	{"DATE", [3]string{"1969-12-31", "2024-02-29", "9999-12-31"}},
	{"TIME", [3]string{"00:00:00", "12:30:00.000001", "23:59:59"}},
	{"TIME WITH TIME ZONE", [3]string{"00:00:00+00", "12:30:00+02", "23:59:59-05"}},
	{"TIMESTAMP", [3]string{"1969-12-31 23:59:59.999999", "2024-02-29 12:00:00", "9999-12-31 00:00:00"}},
	{"TIMESTAMP_S", [3]string{"1969-12-31 23:59:59", "2024-02-29 12:00:00", "9999-12-31 00:00:00"}},
	{"TIMESTAMP_MS", [3]string{"1969-12-31 23:59:59.999", "2024-02-29 12:00:00", "9999-12-31 00:00:00"}},
	{"TIMESTAMP_NS", [3]string{"1969-12-31 23:59:59.999999999", "2024-02-29 12:00:00", "2200-12-31 00:00:00"}},
	{"TIMESTAMP WITH TIME ZONE", [3]string{"1969-12-31 23:59:59.999999+00", "2024-02-29 12:00:00+02", "9999-12-31 00:00:00-05"}},
	{"INTERVAL", [3]string{"1 month", "30 days", "1 day"}},
	{"JSON", [3]string{`{"a": 1}`, "[1]", "2"}},
	{"INTEGER[]", [3]string{"[1, 2]", "[]", "[NULL, 3]"}},
	{"INTEGER[2]", [3]string{"[1, 2]", "[3, 4]", "[5, 6]"}},
	{"STRUCT(a INTEGER, b VARCHAR)", [3]string{"{'a': 1, 'b': x}", "{'a': 2, 'b': y}", "{'a': 3, 'b': z}"}},
	{"MAP(VARCHAR, INTEGER)", [3]string{"{x=1}", "{y=2}", "{z=3}"}},
	{"UNION(n INTEGER, s VARCHAR)", [3]string{"1", "x", "3"}},
}

// docUses are the places of a value in a pipeline: columns of a SELECT grouped by k, or a whole one. TYPE is the
// type, SOURCE the source.
var docUses = []string{
	"count(v) AS n",
	"PRIMARY KEY (v) AS SELECT v, count(*) AS n FROM SOURCE GROUP BY v",
	"min(v) AS least, max(v) AS most",
	"sum(v) AS total",
	"avg(v) AS mean",
	"CAST(max(t) AS TYPE) AS x",
	"count(DISTINCT v) AS different",
	"PRIMARY KEY (k) AS SELECT k, v FROM SOURCE QUALIFY row_number() OVER (PARTITION BY k ORDER BY t DESC) = 1",
}

func typeSource(i int) string { return fmt.Sprintf("s%d", i) }

// docSinks are the tables of some uses of a type; the columns share one.
func docSinks(i int, uses []string) string {
	var columns, tables []string
	for _, use := range uses {
		if strings.HasPrefix(use, "PRIMARY KEY") {
			tables = append(tables, use)
		} else {
			columns = append(columns, use)
		}
	}
	if len(columns) > 0 {
		tables = append(tables, "PRIMARY KEY (k) AS SELECT k, "+strings.Join(columns, ", ")+" FROM SOURCE GROUP BY k")
	}
	text := ""
	for n, table := range tables {
		text += fmt.Sprintf("CREATE SINK m.t%d_%d %s;\n", i, n, table)
	}
	return strings.NewReplacer("TYPE", docTypes[i].name, "SOURCE", typeSource(i)).Replace(text)
}

// testTypes plans every type in every place. What the planner takes is then run, over CSV and over
// Parquet files: in two runs, so that state and rows go through the database, and reconciled.
func testTypes(t *testing.T) {
	dir := t.TempDir()
	eng, err := duck.Open(t.Context(), duck.Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	var table strings.Builder
	table.WriteString("| type | read, count | stored in Parquet as | group, key | min, max | sum | avg | DISTINCT | latest row | column of a table |\n|---|---|---|---|---|---|---|---|---|---|\n")
	csv, parquet := "ATTACH 'csv.duckdb' AS m;\n", "ATTACH 'parquet.duckdb' AS m;\n"
	refusals := map[string][]string{} // message → types
	server := ""
	if pgtest.Available() {
		server = "ATTACH '" + pgtest.Start(t).Database(t) + "' AS m (TYPE postgres);\n"
	}
	write := func(i, file int, format string) error {
		typ := docTypes[i]
		return eng.Exec(t.Context(), fmt.Sprintf("COPY (SELECT 1::INTEGER AS k, %[1]s AS t, %[1]s::%[2]s AS v UNION ALL SELECT 1, NULL, NULL) TO '%[3]s/%[5]s/%[4]d/%[6]d.%[5]s'",
			duck.Literal(typ.values[file]), typ.name, dir, i, format, file))
	}
	both := func(i, file int) {
		for _, format := range []string{"csv", "parquet"} {
			if err := write(i, file, format); err != nil {
				t.Fatal(docTypes[i].name, err)
			}
		}
	}
	for i, typ := range docTypes {
		for _, format := range []string{"csv", "parquet"} {
			if err := os.MkdirAll(filepath.Join(dir, format, fmt.Sprint(i)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		both(i, 0)
		both(i, 1)
		var stored string
		err := eng.QueryRow(t.Context(), fmt.Sprintf("SELECT column_type FROM (DESCRIBE FROM '%s/parquet/%d/0.parquet') WHERE column_name = 'v'", dir, i), nil, &stored)
		if err != nil {
			t.Fatal(err)
		}
		declare := func(format string) string {
			return fmt.Sprintf("CREATE SOURCE %s (k INTEGER, t VARCHAR, v %s) FROM '%s/%d/*.%s';\n", typeSource(i), typ.name, format, i, format)
		}
		var cells []string
		var uses, inPostgres []string
		for u, use := range docUses {
			result, ok := planned(t, "ATTACH 'm.duckdb' AS m;\n"+declare("csv")+docSinks(i, []string{use}))
			if !ok {
				short, _, _ := strings.Cut(typ.name, "(")
				why := strings.ReplaceAll(strings.ReplaceAll(result, typ.name, "…"), " "+short+" ", " … ")
				refusals[why] = append(refusals[why], typ.name)
				result = "no"
			}
			cells = append(cells, result)
			if ok {
				uses = append(uses, use)
			}
			counts := u == 0 || u == 3 || u == 4 // nothing of the values themselves
			if ok && (counts || postgres.TypeName(typ.name) != "" && typ.name != "TIMESTAMP_NS") && postgres.TypeName(result) != "" {
				inPostgres = append(inPostgres, use)
			}
		}
		if len(uses) > 0 {
			csv += declare("csv") + docSinks(i, uses)
			if stored == typ.name {
				parquet += declare("parquet") + docSinks(i, uses)
			}
		}
		if len(inPostgres) > 0 && server != "" {
			server += declare("csv") + docSinks(i, inPostgres)
		}
		yes := func(cell string) string {
			if cell == "no" {
				return "no"
			}
			return "yes"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", typ.name, yes(cells[0]), stored, yes(cells[1]), yes(cells[2]), cells[3], cells[4],
			yes(cells[6]), yes(cells[7]), yes(cells[5]))
	}
	generated(t, "docs/types.md", "types", table.String())
	var reasons strings.Builder
	reasons.WriteString("| refused with | for |\n|---|---|\n")
	for _, message := range slices.Sorted(maps.Keys(refusals)) {
		fmt.Fprintf(&reasons, "| %s | %s |\n", message, strings.Join(slices.Compact(refusals[message]), ", "))
	}
	generated(t, "docs/types.md", "types refused", reasons.String())
	generated(t, "docs/types.md", "postgres types", postgresTypes())
	names := []string{"csv.sql", "parquet.sql"}
	if server != "" {
		names = append(names, "server.sql")
	}
	for name, text := range map[string]string{"csv.sql": csv, "parquet.sql": parquet, "server.sql": server} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) {
		t.Helper()
		cmd := exec.Command("etl", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("etl %v: %v\n%s", args, err, out)
		}
	}
	for _, name := range names {
		command("run", name)
	}
	for i := range docTypes {
		both(i, 2)
	}
	for _, name := range names {
		command("run", name)
		command("reconcile", name)
	}
}

// docLost is what a Postgres type does not have of a DuckDB type's values.
var docLost = map[string]string{
	"VARCHAR": "text with a zero byte (0x00)", "ENUM('red', 'green')": "text with a zero byte (0x00)",
	"DATE": "days before 24 November 4714 BC or after the year 5874897", "TIMESTAMP": "times before 24 November 4714 BC",
	"TIMESTAMP_S": "the same, and after the year 294276", "TIMESTAMP_MS": "the same, and after the year 294276", "TIMESTAMP_NS": "times with a part below a microsecond",
	"TIMESTAMP WITH TIME ZONE": "times before 24 November 4714 BC",
}

// postgresTypes is the table of what becomes of every type.
func postgresTypes() string {
	var b strings.Builder
	b.WriteString("| type | in Postgres | values that stop the run |\n|---|---|---|\n")
	for _, typ := range docTypes {
		name, lost := postgres.TypeName(typ.name), docLost[typ.name]
		if name == "" {
			_, hint := postgres.Refusal(connectors.SinkColumn{Name: "x", Type: typ.name})
			name, lost = "no", strings.ReplaceAll(strings.Replace(hint, "write in the SELECT: ", "write `", 1), " AS x", "`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", typ.name, name, lost)
	}
	return b.String()
}

// planned compiles a pipeline with one sink and tells the type of its last column, or why it is refused.
func planned(t *testing.T, text string) (result string, ok bool) {
	t.Helper()
	script, err := sql.Parse("p.sql", text)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planner.Compile(t.Context(), script, nil)
	var faults sql.Errors
	switch {
	case errors.As(err, &faults):
		return faults[0].Message, false
	case err != nil:
		t.Fatal(err)
	}
	columns := plan.Sinks[0].Columns
	return columns[len(columns)-1].Type, true
}
