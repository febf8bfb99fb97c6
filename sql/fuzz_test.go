package sql

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add(dailySales)
	f.Add(everything)
	files, _ := filepath.Glob("testdata/errors/*.sql")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("fuzz.sql", text)
		for _, span := range spans(s) {
			if span.Start < 0 || span.End < span.Start || span.End > len(text) {
				t.Fatalf("span %v of a text of %d bytes", span, len(text))
			}
		}
		for _, e := range exprs(s) {
			if e.Text == "" || e.Text != text[e.Span.Start:e.Span.End] {
				t.Fatalf("%v is %q, not %q", e.Span, text[e.Span.Start:e.Span.End], e.Text)
			}
			if blankLen(e.Text) > 0 {
				t.Fatalf("%q begins with a blank", e.Text)
			}
		}
		checkFindings(t, text, findings(t, "fuzz.sql", text))
		if err == nil {
			checkBlanks(t, s)
		}
	})
}

// checkFindings holds what is true of every list of faults.
func checkFindings(t *testing.T, text string, list Errors) {
	at := 0
	for _, e := range list {
		if e.Span.Start < at || e.Span.End < e.Span.Start || e.Span.End > len(text) {
			t.Fatalf("%v at %v, after %d", e, e.Span, at)
		}
		at = e.Span.Start
		if e.Line != 1+strings.Count(text[:at], "\n") || e.Col < 1 {
			t.Fatalf("%v is on another line", e)
		}
		if e.Message == "" || strings.ContainsAny(e.Message, "\r\n\x1b") {
			t.Fatalf("message %q", e.Message)
		}
		if shown := e.Render(); len(shown) > 8*maxExcerpt+len(e.Error())+len(e.Hint) {
			t.Fatalf("renders to %d bytes", len(shown))
		}
	}
}

// checkBlanks: comments and white space between tokens change nothing.
func checkBlanks(t *testing.T, s *Script) {
	const gap = " /* ; ' /* nested */ */\t-- ' ; (\r\n"
	var b strings.Builder
	for _, tok := range lex(s.Text, &faults{script: s}) {
		b.WriteString(gap + tok.text)
	}
	spaced, err := Parse("fuzz.sql", bom+b.String()+gap)
	if err != nil {
		t.Fatalf("with comments: %v", err)
	}
	if got, want := structure(spaced), structure(s); got != want {
		t.Fatalf("with comments:\n%s\nwithout:\n%s", got, want)
	}
}
