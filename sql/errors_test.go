package sql

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestErrorPosition(t *testing.T) {
	text := bom + "é = 1\r\n\t東京 = amout\r\n"
	at := strings.Index(text, "amout")
	e := NewError("dir/a.sql", text, Span{at, at + 5}, `did you mean "amount"?`, "no column %q", "amout")
	equal(t, "message", e.Error(), `dir/a.sql:2:7: no column "amout"`)
	equal(t, "rendered", e.Render(), `dir/a.sql:2:7: no column "amout"
  2 | `+"\t東京 = amout"+`
    | `+"\t       ^^^^^"+`
  did you mean "amount"?
`)
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "json", string(data),
		`{"file":"dir/a.sql","line":2,"column":7,"message":"no column \"amout\"","hint":"did you mean \"amount\"?"}`)
	first := NewError("", text, Span{len(bom), len(bom) + 2}, "", "x")
	equal(t, "behind the byte order mark", first.Render(), "1:1: x\n  1 | é = 1\n    | ^\n")
}

func TestErrorSpanIsForgiving(t *testing.T) {
	for _, c := range []struct {
		text string
		span Span
		want string
	}{
		{"ab", Span{2, 2}, "1:3: x\n  1 | ab\n    |   ^\n"},
		{"ab", Span{5, 9}, "1:3: x\n  1 | ab\n    |   ^\n"},
		{"ab", Span{-1, -1}, "1:1: x\n  1 | ab\n    | ^\n"},
		{"ab", Span{1, 0}, "1:2: x\n  1 | ab\n    |  ^\n"},
		{"ab\ncd", Span{1, 5}, "1:2: x\n  1 | ab\n    |  ^\n"},
		{"ab\r\ncd", Span{0, 8}, "1:1: x\n  1 | ab\n    | ^^\n"},
		{"ab\n", Span{3, 3}, "2:1: x\n"},
		{"", Span{}, "1:1: x\n"},
	} {
		equal(t, c.text, NewError("", c.text, c.span, "", "x").Render(), c.want)
	}
}

func TestRenderHidesControlCharacters(t *testing.T) {
	e := NewError("", "a \x1b[31m b\u202e", Span{0, 1}, "x\x07", "bad %s", "\x1b[0m\u202e")
	if s := e.Render(); strings.ContainsAny(s, "\x1b\x07\u202e") {
		t.Errorf("%q", s)
	}
}

func TestRenderCutsLongLines(t *testing.T) {
	line := strings.Repeat("0123456789", 100)
	for _, at := range []int{0, 1, 59, 60, 61, 500, 940, 999, 1000} {
		e := NewError("", "x\n"+line+"\ny", Span{at + 2, at + 5}, "", "x")
		lines := strings.Split(e.Render(), "\n")
		shown, caret := []rune(lines[1]), []rune(lines[2])
		if len(shown) > maxExcerpt+len("  2 | ……") {
			t.Errorf("at %d: %d characters", at, len(shown))
		}
		if at < len(line) {
			mark := strings.IndexRune(lines[2], '^')
			equal(t, "under the caret", shown[mark], rune(line[at]))
		}
		equal(t, "margin", string(caret[:6]), "    | ")
	}
}

func TestErrorsList(t *testing.T) {
	_, err := Parse("a.sql", "CREATE VIEW;\nfoo;")
	var list Errors
	if !errors.As(err, &list) {
		t.Fatalf("%T", err)
	}
	equal(t, "one line each", err.Error(),
		"a.sql:1:12: expected a view name, found the end of the statement\n"+
			"a.sql:2:1: FOO is not a pipeline statement\n"+
			"a.sql:2:5: the pipeline has no sink")
	equal(t, "rendered with a line between", strings.Count(list.Render(), "\n\n"), 2)
}

func TestScriptErrorf(t *testing.T) {
	s := mustParse(t, dailySales)
	at := strings.Index(s.Text, "sum(amount)")
	e := s.Errorf(Span{at, at + 3}, "", "%s is wrong", "sum")
	equal(t, "message", e.Error(), "dir/test.SQL:16:91: sum is wrong")
}
