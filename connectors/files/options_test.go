package files

import (
	"strings"
	"testing"

	"lockstep/connectors"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		from, option, value string
		want                string // "" = fine
	}{
		{"in/*.csv", "", "", ""},
		{"in/*.CSV", "DELIM", ";", ""},
		{"in/*", "format", "csv", ""},
		{"in/*.csv", "files", "append", ""},
		{"in/*.csv", "files", "replace", ""},
		{"in/*.csv", "files", "growing", "option files: takes 'append', where a file that was read never changes, or 'replace'"},
		{"in/*.csv", "delin", ";", "option delin: is not an option of csv files\n  did you mean delim?"},
		{"in/*.csv", "sep", ";", "option sep: is not an option\n  write delim"},
		{"in/*.csv", "whatever", "1", "option whatever: is not an option of csv files\n  there are allow_quoted_nulls, comment, dateformat, decimal_separator, delim, encoding, escape, files, format, header, max_line_size, max_rejects, null_padding, nullstr, quote, repeats, skip, strict_mode, thousands, timestampformat"},
		{"in/*.csv", "ignore_errors", "true", "option ignore_errors: is not allowed: a bad row must stop the run or be kept as a reject; it never just disappears (see max_rejects)"},
		{"in/*.csv", "sample_size", "-1", "option sample_size: is not allowed: nothing is detected when a file is read"},
		{"in/*.csv", "compression", "gzip", "option compression: is not allowed: it is told by the file's suffix, .gz or .zst"},
		{"in/*.csv", "header", "yes", "option header: must be true or false"},
		{"in/*.csv", "skip", "-1", "option skip: must be a whole number of at least 0"},
		{"in/*.csv", "quote", "''", "option quote: must be at most 1 byte(s) long and no line end"},
		{"in/*.csv", "quote", ",", "option quote: is the same as delim"},
		{"in/*.csv", "encoding", "utf-16", "option encoding: must be one of 'utf-8', 'latin-1'"},
		{"in/*.csv", "timestampformat", "%Y", "option timestampformat: has no %z, but column at is a TIMESTAMP WITH TIME ZONE, which needs the offset of its text\n  declare the column as TIMESTAMP and write at AT TIME ZONE 'Europe/Berlin' in the SELECT"},
		{"in/*.parquet", "delim", ";", "option delim: is not an option of parquet files\n  there are binary_as_string, files, format, max_rejects, repeats"},
		{"in/*.parquet", "union_by_name", "true", "option union_by_name: is not allowed: columns are matched by name already, and a declared column must be in every file"},
		{"in/*.csv.gz", "", "", ""},
		{"in/*.tsv.zst", "", "", ""},
		{"in/*.parquet.gz", "", "", "a Parquet file is compressed inside, not by gzip\n  unpack the files first"},
		{"in/*.json", "", "", ""},
		{"in/*.jsonl.gz", "", "", ""},
		{"in/*.ndjson", "delim", ";", "option delim: is not an option of json files\n  there are dateformat, files, format, max_rejects, maximum_object_size, repeats, timestampformat"},
		{"in/*.json", "records", "false", "option records: is not allowed: each line must be an object"},
		{"in/*.csv", "max_rejects", "10", ""},
		{"in/*.csv", "max_rejects", "0.1%", ""},
		{"in/*.csv", "max_rejects", "-1", "option max_rejects: must be a number of rows, like 10, or a share of a file's rows, like '0.1%'"},
		{"in/*.csv", "max_rejects", "101%", "option max_rejects: must be a share between 0% and 100%"},
		{"in/*.xlsx", "", "", "the format of \"in/*.xlsx\" cannot be told from its suffix\n  add WITH (format = 'csv'), 'json' or 'parquet'"},
		{"in/*.x", "format", "xlsx", "option format: \"xlsx\" is not a format\n  there are csv, json (one object per line) and parquet"},
		{"s3://bucket/*.parquet", "", "", "reading from s3:// is not built in\n  sync to a folder before each run and name that folder: aws s3 sync s3://BUCKET/FOLDER landing/"},
		{"https://x/y.csv", "", "", "reading from https:// is not built in\n  sync to a folder before each run and name that folder: curl --remote-time -o landing/NAME.tmp ADDRESS && mv landing/NAME.tmp landing/NAME"},
		{"in/*/_x.csv", "", "", "names that start with . or _ or end in .tmp are never read, so _x.csv matches nothing\n  rename the files, or move them to a folder of another name"},
		{"in/_x.csv", "", "", ""},
	} {
		spec := connectors.SourceSpec{From: c.from, Base: "/", Columns: declare("at TIMESTAMP WITH TIME ZONE")}
		if c.option != "" {
			spec.Options = map[string]connectors.Option{c.option: {Text: c.value}}
		}
		var got []string
		for _, f := range Validate(spec) {
			got = append(got, f.Error())
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s %s %s:\n%s", c.from, c.option, c.value, strings.Join(got, "\n"))
		}
	}
}

func TestValidateReportsAllFaults(t *testing.T) {
	spec := connectors.SourceSpec{From: "in/*.csv", Options: map[string]connectors.Option{"skip": {Text: "x"}, "header": {Text: "x"}}}
	if got := Validate(spec); len(got) != 3 {
		t.Error(got)
	}
}

// Every option that may be set, and every default, must be one that DuckDB takes.
func TestOptionsAreDuckDBs(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT").with("thousands", ".").with("decimal_separator", ",").
		with("dateformat", "%d.%m.%Y").with("timestampformat", "%d.%m.%Y %H")
	w.write("in/a.csv", "id\n1\n")
	w.take("1")
	p := newWorld(t, "in/*.parquet", "id VARCHAR").with("binary_as_string", "true")
	p.parquet("in/a.parquet", "SELECT 'x'::BLOB AS id")
	p.take("x")
}

// Before a plan is made types are spelled as the author did; then only what is plainly wrong is one.
func TestTypesAsWritten(t *testing.T) {
	spec := connectors.SourceSpec{Name: "s", From: "in/*.csv", Base: "/", Columns: declare("a int", "b TIMESTAMPTZ", "c decimal(12, 2)", "d text", "e STRUCT(a INT)[]", "f UNION(a INT)")}
	var got []string
	for _, f := range Validate(spec) {
		got = append(got, f.Error())
	}
	same(t, got, []string{"column f: csv files cannot be read as UNION(a INT)\n  declare it as VARCHAR and convert it in the SELECT"})
	spec.Columns = declare("a int", "b TIMESTAMPTZ", "c decimal(12, 2)", "d text", "e STRUCT(a INT)[]", "f BIGNUM")
	_, err := Open(t.Context(), newEngine(t), spec)
	failed[dataError](t, err, "source s: column f: csv files cannot be read as BIGNUM\n  declare it as VARCHAR and convert it in the SELECT")
}
