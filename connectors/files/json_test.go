package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lockstep/connectors"
)

func TestJSONLines(t *testing.T) {
	w := newWorld(t, "in/*.jsonl", "id BIGINT NOT NULL", "Note VARCHAR", "amount DECIMAL(38,2)", "big HUGEINT", "at TIMESTAMP", "ok BOOLEAN", "x DOUBLE", "tags JSON")
	w.write("in/a.jsonl", "\xef\xbb\xbf"+`{"id":9007199254740993,"Note":"a\u00e4\n\ud83d\ude00\"\\","amount":1234567890123456789012345678.12,"big":123456789012345678901234567890,"at":"2026-01-31T10:00:00","ok":true,"x":1e3,"tags":[1.10, {"a":"b"}]}`+"\n"+
		"  \r\n"+
		`{"more":{"deep":[[],{}]},"NOTE":"fold","Note":"exact","id":"2","amount":"1.5","ok":"false","x":"2.5","tags":"t"}`+"\r\n"+
		` { "id" : 3 , "note":null,"amount":7} `)
	w.take("9007199254740993|aä\n😀\"\\|1234567890123456789012345678.12|123456789012345678901234567890|2026-01-31 10:00:00 +0000 UTC|true|1000|[1.1 map[a:b]]",
		"2|exact|1.5|NULL|NULL|false|2.5|t", "3|NULL|7|NULL|NULL|NULL|NULL|NULL")
	if s := w.seen["a.jsonl"]; s.Rows != 3 || s.Next != s.Size {
		t.Errorf("%+v", s)
	}
}

func TestJSONKeepsTheTextOfJSON(t *testing.T) {
	w := newWorld(t, "in/*.json", "a JSON")
	w.write("in/a.json", `{"a": {"n": 1.10, "big": 12345678901234567890.123}}`)
	rows, err := w.sift(connectors.Limit{})
	w.must(err)
	if len(rows.rows) != 1 {
		t.Fatal(rows)
	}
	b, _ := w.plan(connectors.Limit{})
	_ = b
	texts, err := rowsOf(t.Context(), w.eng, "SELECT a::VARCHAR FROM copied")
	w.must(err)
	same(t, texts, []string{`{"n": 1.10, "big": 12345678901234567890.123}`})
}

func TestJSONBadLines(t *testing.T) {
	w := newWorld(t, "in/*.json", "id BIGINT", "note VARCHAR", "ok BOOLEAN", "day DATE").with("max_rejects", "100").with("maximum_object_size", "200")
	lines := []struct{ line, reason string }{
		{`{"id":1.5}`, `column "id": "1.5" is not written as a whole number, as BIGINT needs`},
		{`{"id":1e3}`, `column "id": "1e3" is not written as a whole number, as BIGINT needs`},
		{`{"id":true}`, `column "id": is a boolean, but BIGINT needs a number`},
		{`{"id":[1]}`, `column "id": is a list, but BIGINT needs a number`},
		{`{"note":1}`, `column "note": is a number, but VARCHAR needs a string`},
		{`{"note":{}}`, `column "note": is an object, but VARCHAR needs a string`},
		{`{"ok":1}`, `column "ok": is a number, but BOOLEAN needs true or false`},
		{`{"day":"2026-01-31T10:00:00"}`, `column "day": "2026-01-31T10:00:00" has a time of day, which DATE does not keep (declare TIMESTAMP)`},
		{`{"day":20260131}`, `column "day": is a number, but DATE needs a string`},
		{`{"id":1,"id":2}`, `column "id": the key is there more than once`},
		{`{"ID":1,"Id":2}`, `column "id": the key is there more than once`},
		{`[1]`, `is not an object but another kind of JSON; each line must be an object`},
		{`"x"`, `is not an object but another kind of JSON; each line must be an object`},
		{`[`, `is not a JSON object`},
		{`{"id":1`, `is not a JSON object: unexpected end at character 8`},
		{`{"id":1,}`, `is not a JSON object: unexpected '}' at character 9`},
		{`{"id":01}`, `is not a JSON object: unexpected '1' at character 8`},
		{`{"id":NaN}`, `is not a JSON object: unexpected 'N' at character 7`},
		{`{"id":1} x`, `is not a JSON object: unexpected 'x' at character 10`},
		{`{'id':1}`, `is not a JSON object: unexpected '\'' at character 2`},
		{`{"note":"\ud800"}`, `is not a JSON object: unexpected '\\' at character 10`},
		{"{\"note\":\"\xff\"}", `is not valid utf-8`},
		{"{\"note\":\"\t\"}", `is not a JSON object: unexpected '\t' at character 10`},
		{`{"note":"` + strings.Repeat("x", 200) + `"}`, `is longer than maximum_object_size, 200 bytes`},
	}
	var text strings.Builder
	var want []string
	for i, l := range lines {
		fmt.Fprintf(&text, "{\"id\":%d}\n\n%s\n", i, l.line)
		raw := strings.ToValidUTF8(l.line, "\uFFFD")
		want = append(want, fmt.Sprintf("orders|a.json|%d|%d|%s|%s", 2*i+1, 3*i+3, l.reason, raw))
	}
	w.write("in/a.json", text.String())
	got, err := w.sift(connectors.Limit{})
	w.must(err)
	same(t, got.rejects, want)
	if len(got.rows) != len(lines) || got.ranges[0].Rows != int64(2*len(lines)) {
		t.Errorf("%d rows, %+v", len(got.rows), got.ranges)
	}
}

func TestJSONTooManyRejects(t *testing.T) {
	w := newWorld(t, "in/*.json", "id BIGINT")
	w.write("in/a.json", "[\n{\"id\":1}\n]\n")
	_, err := w.sift(connectors.Limit{})
	failed[dataError](t, err, `in/a.json:1: is not a JSON object: [
in/a.json:3: is not a JSON object: ]
in/a.json: 2 of 3 rows are bad; max_rejects allows 0
  nothing was committed: correct the rows, declare the columns so that they fit, or let max_rejects allow some per file; etl preview shows all`)
}

// Many blocks, in order, with a line over a block's end and one longer than a block.
func TestJSONBlocks(t *testing.T) {
	w := newWorld(t, "in/*.json", "id BIGINT", "n BIGINT", "note VARCHAR")
	w.spec.Columns[1].Metadata = "file_row_number"
	var text strings.Builder
	for i := range 100000 {
		fmt.Fprintf(&text, "{\"id\":%d,\"note\":%q}\n", i, strings.Repeat("x", i%97))
		if i == 50000 {
			fmt.Fprintf(&text, "{\"id\":-1,\"note\":%q}\n", strings.Repeat("y", 3*blockBytes))
		}
	}
	w.write("in/a.json", text.String())
	w.write("in/b.json", "{\"id\":7}")
	got, err := w.sift(connectors.Limit{})
	w.must(err)
	if len(got.rows) != 100002 {
		t.Fatal(len(got.rows))
	}
	for i, row := range got.rows[:100001] {
		id := i
		if i == 50001 {
			id = -1
		} else if i > 50001 {
			id--
		}
		if !strings.HasPrefix(row, fmt.Sprintf("%d|%d|", id, i)) {
			t.Fatalf("row %d is %s", i, row)
		}
	}
}

func TestJSONUndecodableTypes(t *testing.T) {
	spec := connectors.SourceSpec{From: "x.json", Columns: declare("a STRUCT(b BIGINT)", "c BIGINT[]", "d JSON")}
	var got []string
	for _, f := range Validate(spec) {
		got = append(got, f.Error())
	}
	same(t, got, []string{"column a: json files cannot be read as STRUCT(b BIGINT)\n  declare it as JSON and convert it in the SELECT",
		"column c: json files cannot be read as BIGINT[]\n  declare it as JSON and convert it in the SELECT"})
}

// Whatever the line: it is taken as JSON when encoding/json takes it and every string is text, and the
// values are those that encoding/json finds.
func FuzzJSONLine(f *testing.F) {
	for _, s := range []string{`{"id":1,"note":"a"}`, `{"a":[1,-0.5e+3,{"b":null}],"note":"\u00e4\ud83d\ude00\n"}`, `[]`, `{"id":1}}`, ` {"id" : "x"} `, `{"note":"\ud800"}`, `{"a":tru}`, "{\"id\":1,\n\"note\":\"\xff\"}", `{"ID":2,"id":3}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		columns := declare("id JSON", "note VARCHAR")
		l := newJSONLine(columns)
		problem := l.parse([]byte(line))
		if again := newJSONLine(columns); again.parse([]byte(line)) != problem {
			t.Errorf("not the same twice")
		}
		valid := json.Valid([]byte(line)) && bytes.HasPrefix(bytes.TrimLeft([]byte(line), " \t\r\n"), []byte("{"))
		if !valid {
			if problem == "" {
				t.Errorf("taken: %q", line)
			}
			return
		}
		if problem != "" {
			return // half a surrogate pair, a key twice, another kind, a deep one
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		if raw, ok := want["id"]; ok && string(raw) != "null" && string(raw) != string(l.text(0)) {
			t.Errorf("id of %q: %q", line, l.text(0))
		}
		if raw, ok := want["note"]; ok && string(raw) != "null" {
			var text string
			if err := json.Unmarshal(raw, &text); err != nil || text != string(l.text(1)) {
				t.Errorf("note of %q: %q, want %q", line, l.text(1), text)
			}
		}
	})
}
