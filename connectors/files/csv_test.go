package files

import (
	"os"
	"strings"
	"testing"

	"lockstep/connectors"
)

type (
	dataError  = *connectors.DataError
	inputError = *connectors.InputError
)

func TestCSVHeadersMatchByName(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT", "amount DECIMAL(12,2)")
	w.write("in/a.csv", "id,amount\n1,1.50\n")
	w.write("in/b.csv", "note,AMOUNT,id\nhello,2.50,2\n")
	w.write("in/c.csv", "id,amount\r\n3,3.50\r\n")
	w.write("in/d.csv", "\xef\xbb\xbf\"id\",\"amount\"\n4,\n")
	w.take("1|1.5", "3|3.5", "4|NULL", "2|2.5")
	if got := w.seen["b.csv"]; got.Rows != 1 || got.Next != 28 || got.Size != 28 || len(got.Content) != 32 {
		t.Errorf("b.csv: %+v", got)
	}
	w.take()
}

func TestCSVMissingColumn(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT", "amount DECIMAL(12,2)")
	w.write("in/a.csv", "id,amuont,note\n1,1.50,x\n")
	fails[dataError](w, `in/a.csv: no column "amount" in its header (it has id, amuont, note)
  did you mean amuont?`)
}

func TestCSVBadRows(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT", "note VARCHAR")
	w.write("in/a.csv", "id,note\n1,fine\n2,\"two\nlines\"\nfoo,3\n4\n5,6,7\n8,\xff\n9,\"open\n")
	w.write("in/b.csv", "id,note\nbar,1\n"+strings.Repeat("x", 300)+",2\n")
	fails[dataError](w, `in/a.csv:5: column "id": "foo" is not a BIGINT: foo,3
in/a.csv:6: has 1 column(s) instead of 2: 4
in/a.csv:7: has 3 column(s) instead of 2: 5,6,7
in/a.csv:8: is not valid UTF-8: 8,`+"\uFFFD"+`
in/a.csv:9: has a quote that is never closed: 9,"open
in/b.csv:2: column "id": "bar" is not a BIGINT: bar,1
in/b.csv:3: column "id": "`+strings.Repeat("x", 200)+`…" is not a BIGINT: `+strings.Repeat("x", 200)+`…
in/a.csv: 5 of 7 rows are bad; max_rejects allows 0
in/b.csv: 2 of 2 rows are bad; max_rejects allows 0
  nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all`)
}

func TestCSVNotNull(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT NOT NULL", "note VARCHAR")
	w.write("in/a.csv", "id,note\n1,x\n")
	w.write("in/b.csv", "note,id\n\n\"two\nlines\",1\nx,\ny,\n")
	fails[dataError](w, `in/b.csv:5: column "id" is NULL, but declared NOT NULL: x,
in/b.csv:6: column "id" is NULL, but declared NOT NULL: y,
in/b.csv: 2 of 3 rows are bad; max_rejects allows 0
  nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all`)
}

func TestCSVTimeNeedsOffset(t *testing.T) {
	w := newWorld(t, "in/*.csv", "at TIMESTAMP WITH TIME ZONE", "n BIGINT")
	w.write("in/a.csv", "n,at\n1,2024-05-01 10:00:00+02\n2,2024-05-01T10:00:00Z\n3,\n4,2024-05-01 10:00:00.5 UTC\n5,2024-05-01 10:00:00-05:30\n")
	w.take("2024-05-01 08:00:00 +0000 UTC|1", "2024-05-01 10:00:00 +0000 UTC|2", "NULL|3",
		"2024-05-01 10:00:00.5 +0000 UTC|4", "2024-05-01 15:30:00 +0000 UTC|5")
	w.write("in/b.csv", "n,at\n1,2024-05-01 10:00:00Z\n2,2024-05-01 10:00:00\n3,2024-05-01\n4,nonsense\n")
	const need = ` is not a time with an offset, like "2024-05-31 10:00:00+02", as TIMESTAMP WITH TIME ZONE needs (for times without one declare TIMESTAMP and write AT TIME ZONE '…' in the SELECT)`
	fails[dataError](w, `in/b.csv:3: column "at": "2024-05-01 10:00:00"`+need+`: 2,2024-05-01 10:00:00
in/b.csv:4: column "at": "2024-05-01"`+need+`: 3,2024-05-01
in/b.csv:5: column "at": "nonsense"`+need+`: 4,nonsense
in/b.csv: 3 of 4 rows are bad; max_rejects allows 0
  nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all`)
}

func TestCSVTimestampFormatWithOffset(t *testing.T) {
	w := newWorld(t, "in/*.csv", "at TIMESTAMP WITH TIME ZONE").with("timestampformat", "%d.%m.%Y %H:%M %z")
	w.write("in/a.csv", "at\n01.05.2024 10:00 +0200\n")
	w.take("2024-05-01 08:00:00 +0000 UTC")
	w.write("in/b.csv", "at\n01.05.2024 10:00\n")
	_, err := w.batch(connectors.Limit{})
	if err == nil || !strings.HasPrefix(err.Error(), `in/b.csv:2: column "at": "01.05.2024 10:00" is not a time with an offset`) {
		t.Fatal(err)
	}
}

func TestCSVDialect(t *testing.T) {
	w := newWorld(t, "in/*.csv", "name VARCHAR", "day DATE", "amount DECIMAL(12,2)").
		with("delim", ";").with("quote", "'").with("escape", "'").with("skip", "1").with("comment", "#").
		with("nullstr", "-").with("dateformat", "%d.%m.%Y").with("decimal_separator", ",").with("encoding", "latin-1")
	w.write("in/a.csv", "exported today\n# note\nname;day;amount\n'M\xfcller; it''s';01.02.2024;1,50\n# note\n-;02.02.2024;2\n")
	w.take("Müller; it's|2024-02-01 00:00:00 +0000 UTC|1.5", "NULL|2024-02-02 00:00:00 +0000 UTC|2")
	w.write("in/b.csv", "exported today\nname;day;amount\n\xfc\xfc\xfc;1.1.2024;1\nx;2024-01-01;1\n")
	fails[dataError](w, `in/b.csv:4: column "day": "2024-01-01" is not a DATE written as dateformat says, '%d.%m.%Y': x;2024-01-01;1
in/b.csv: 1 of 2 rows are bad; max_rejects allows 0
  nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all`)
}

func TestCSVWithoutHeaderIsPositional(t *testing.T) {
	w := newWorld(t, "in/*.tsv", "id BIGINT", "note VARCHAR").with("header", "false")
	w.write("in/a.tsv", "1\tx\n2\ty\n")
	w.take("1|x", "2|y")
}

func TestCSVHeaderOnly(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n")
	w.write("in/b.csv", "id")
	w.take()
	if got := w.seen["a.csv"]; got.Next != 3 || got.Rows != 0 {
		t.Errorf("a.csv: %+v", got)
	}
	b, err := w.plan(connectors.Limit{})
	if err != nil || b.Waiting != 0 {
		t.Fatalf("planned again: %+v %v", b, err)
	}
}

func TestCSVEmptyFile(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "")
	fails[dataError](w, `in/a.csv: is empty (0 bytes): it lacks even a header
  it may be a failed or unfinished upload: write it again or remove it`)
}

// DuckDB takes the first line for the header even when it is empty, and would then read the header as data.
func TestCSVEmptyFirstLine(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "\nid\n1\n")
	fails[dataError](w, `in/a.csv: line 1 is empty, but must be the header; skip = 1 would pass over it`)
	w.src, _ = nil, w.with("skip", "1")
	w.take("1")
}

func TestCSVDuplicateHeader(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "x,x,id\n1,2,3\n")
	w.take("3")
	w.write("in/b.csv", "id,x,id\n1,2,3\n")
	fails[dataError](w, `in/b.csv: column "id" is 2 times in its header
  give the columns different names`)
}

// DuckDB reads key=value folders as columns unless it is told not to.
func TestFolderNamesAreNotColumns(t *testing.T) {
	w := newWorld(t, "in/**/*.csv", "id BIGINT", "day VARCHAR")
	w.write("in/day=2024-01-01/a.csv", "id,day\n1,x\n")
	w.take("1|x")
}

func TestNamesWithPatternCharacters(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a1.csv", "id\n1\n")
	w.write("in/a[1].csv", "id\n2\n")
	w.write("in/a?*{b}'\".csv", "id\n3\n")
	w.write("in/ä ö.csv", "id\n4\n")
	w.take("1", "3", "2", "4")
	if len(w.seen) != 4 || w.seen["a?*{b}'\".csv"].Rows != 1 || w.seen["ä ö.csv"].Rows != 1 {
		t.Errorf("%+v", w.seen)
	}
}

func TestCSVUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	w.must(os.Chmod(w.path("in/a.csv"), 0))
	fails[dataError](w, "in/a.csv: cannot be read: permission denied\n  check the file and its permissions")
}

func TestCSVMixedLineEnds(t *testing.T) {
	for _, text := range []string{"id,note\r\n1,x\n2,y\n", "id,note\n1,x\r\n2,y\n"} {
		w := newWorld(t, "in/*.csv", "id BIGINT", "note VARCHAR")
		w.write("in/a.csv", text)
		fails[dataError](w, `in/a.csv: cannot be split into rows
  it may mix kinds of line ends, or its quotes do not follow the rules of CSV: write it again in a plain form`)
	}
}

// Each of these makes DuckDB's reader return fewer rows than the file has, without an error.
func TestCSVRowsThatDuckDBLoses(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT").with("skip", "1").with("comment", "#")
	w.write("in/a.csv", "\"Report\" of May\nid\n1\n2\n")
	fails[dataError](w, `in/a.csv: line 1, which skip passes over, has "o" after a closing quote`)
	w.write("in/a.csv", "Report # of May\nid\n1\n2\n")
	fails[dataError](w, `in/a.csv: line 1, which skip passes over, ends in a comment`)
	w.write("in/a.csv", "\r\nid\n1\n2\n")
	fails[dataError](w, `in/a.csv: has 2 rows, but 0 were read; nothing was committed
  it may mix kinds of line ends or have unusual quotes or comments in its first lines: write it again in a plain form`)
}
