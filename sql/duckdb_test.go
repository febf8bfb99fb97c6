package sql

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
)

// DuckDB reads what stands after AS. Where its scanner and ours could disagree, it is asked.

func openDuckDB(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestReservedWordsAreDuckDBs(t *testing.T) {
	rows, err := openDuckDB(t).Query(`SELECT upper(keyword_name) FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for ; rows.Next(); n++ {
		var w string
		if err := rows.Scan(&w); err != nil {
			t.Fatal(err)
		}
		if !reserved[w] {
			t.Errorf("%s is reserved in DuckDB", w)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	equal(t, "number of reserved words", len(reserved), n)
}

func TestStringsMeanWhatDuckDBSays(t *testing.T) {
	db := openDuckDB(t)
	for _, literal := range []string{
		"''", "'it''s'", `'a\'`, `'\n'`, "'a;--b'",
		`E''`, `e'it''s'`, `E'it\'s'`, `E'\\'`, `E'\b\f\n\r\t\qä'`, `E'\x41\x4\xZ'`, `E'\101\1\8'`,
		"$$$$", "$$a'b$$", "$x1$a$$b$x1$", "$é$x$é$", "$$$a$$",
		"'/* not a comment'", "/* a /* b */ ' */ 'x'", "-- '\r'x'", "'x' -- '",
	} {
		var want string
		if err := db.QueryRow("SELECT " + literal).Scan(&want); err != nil {
			t.Fatalf("%s: %v", literal, err)
		}
		toks := lex(literal, &faults{script: &Script{}})
		if len(toks) != 1 || toks[0].kind != str {
			t.Errorf("%s is %d tokens", literal, len(toks))
			continue
		}
		got, _, err := unquoteString(toks[0].text)
		if err != nil {
			t.Errorf("%s: %v", literal, err)
		}
		equal(t, literal, got, want)
	}
	for _, literal := range []string{`E'\u0041'`, `E'\U00000041'`, `E'\xff'`, `E'\377'`, `E'\400'`, `E'\x00'`, `E'\0'`, `E'\ä'`} {
		var v string
		if err := db.QueryRow("SELECT " + literal).Scan(&v); err == nil {
			t.Errorf("DuckDB takes %s: %q", literal, v)
		}
		if _, _, err := unquoteString(literal); err == nil {
			t.Errorf("%s is taken", literal)
		}
	}
}

func TestBlanksAreDuckDBs(t *testing.T) {
	db := openDuckDB(t)
	for r := rune(1); r < 0x10000; r++ {
		if r == 0x80 {
			r = 0xa0 // the C1 controls are letters to DuckDB, and to us
		}
		if r == 0x3100 {
			r = 0xf000 // letters, and surrogates
		}
		if strings.ContainsRune("+-'\"$/~@!", r) {
			continue
		}
		var n int
		err := db.QueryRow("SELECT 1" + string(r) + "+" + string(r) + "1").Scan(&n)
		got := err == nil && n == 2
		if want := blankLen(string(r)) > 0; got != want {
			t.Errorf("%U: DuckDB %v, here %v", r, got, want)
		}
	}
}
