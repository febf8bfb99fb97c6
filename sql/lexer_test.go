package sql

import (
	"strings"
	"testing"
)

func TestLex(t *testing.T) {
	for _, c := range []struct{ text, want string }{ // tokens between bars
		{"a b", "a|b"},
		{"a.b", "a|.|b"},
		{"größe_2$x", "größe_2$x"},
		{`"a b"".c"x`, `"a b"".c"|x`},
		{"'it''s'", "'it''s'"},
		{"'a\\'b", "'a\\'|b"},
		{`E'it\'s'x`, `E'it\'s'|x`},
		{`e'\\'x`, `e'\\'|x`},
		{"$$a;'$$;", "$$a;'$$|;"},
		{"$t1$a$$b$t1$c", "$t1$a$$b$t1$|c"},
		{"$1 $a b$", "$|1|$|a|b$"},
		{"x$$b$$", "x$$b$$"}, // a dollar goes on with the word before it
		{"1_000 1.5 .5 1. 1e-9 2E5 1ex", "1_000|1.5|.5|1.|1e-9|2E5|1|ex"},
		{"a||b", "a|" + "||" + "|b"},
		{"x::INT[1:2]", "x|:|:|INT|[|1|:|2|]"},
		{"1 --a ; 'x\n2", "1|2"},
		{"1 --a\r2", "1|2"},
		{"5--1", "5"},
		{"1/*a/*b*/;*/2", "1|2"},
		{"1*/*x*/2", "1|*|2"},
		{"a\u00a0b\u3000c", "a|b|c"},
		{bom + "a", "a"},
	} {
		f := &faults{script: &Script{Text: c.text}}
		var got []string
		for _, tok := range lex(c.text, f) {
			got = append(got, tok.text)
			equal(t, "span of "+tok.text, c.text[tok.span.Start:tok.span.End], tok.text)
		}
		equal(t, c.text, strings.Join(got, "|"), c.want)
		equal(t, "faults in "+c.text, len(f.list), 0)
	}
}

func TestUnterminated(t *testing.T) {
	for _, c := range []struct{ text, message string }{
		{"a 'b;", "1:3: unterminated string"},
		{"a 'b''", "1:3: unterminated string"},
		{`a E'b\'`, "1:3: unterminated string"},
		{"a \n\"b", "2:1: unterminated quoted name"},
		{"a $x$ $$ $x", "1:3: unterminated string"},
		{"a /* /* */", "1:3: unterminated comment"},
		{"a /*/", "1:3: unterminated comment"},
	} {
		_, err := Parse("", "; ;"+c.text)
		first, _, _ := strings.Cut(err.Error(), "\n")
		if strings.HasPrefix(c.message, "1:") {
			c.message = strings.Replace(c.message, "1:3", "1:6", 1) // behind the two semicolons
		}
		equal(t, c.text, first, c.message)
	}
}

func TestEncoding(t *testing.T) {
	for text, want := range map[string]string{
		"CREATE -- \xe4\n;\xff": "f.sql:1:11: the file is not UTF-8: byte 0xe4",
		"\xff\xfeC\x00":         "f.sql:1:1: the file is not UTF-8: byte 0xff",
		"a\nb\x00;\x00":         "f.sql:2:2: the file contains a NUL byte",
	} {
		_, err := Parse("f.sql", text)
		equal(t, text, err.Error(), want)
	}
}
