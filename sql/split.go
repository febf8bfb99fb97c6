package sql

import "strings"

// statement is the tokens of one statement, without its semicolon.
type statement struct {
	toks []token
	end  token // of kind end, at the semicolon or after the last token; its text names it in messages
}

// created are the kinds of CREATE that a pipeline file knows.
var created = []string{"PIPELINE", "SOURCE", "VIEW", "SINK", "TEST", "AUDIT"}

// split cuts the tokens into statements and pairs their brackets. A statement that is not whole
// (a bracket without partner, an unterminated string) is reported and left out.
//
// It ends at a semicolon, whatever brackets are open: a semicolon inside brackets is never valid,
// and a forgotten bracket must not swallow the file. For the same reason a forgotten semicolon is
// noticed where the next statement plainly begins.
func split(toks []token, f *faults) []statement {
	var list []statement
	for len(toks) > 0 {
		n, whole := pair(toks, f)
		st := statement{toks: toks[:n]}
		toks = toks[n:]
		if len(toks) > 0 && toks[0].isPunct(";") {
			st.end = token{kind: end, span: toks[0].span, text: "the end of the statement"}
			toks = toks[1:]
		} else {
			at := st.toks[n-1].span.End
			st.end = token{kind: end, span: Span{at, at}, text: "the next statement"}
			if len(toks) == 0 {
				st.end.text = "the end of the file"
			}
		}
		switch {
		case !whole:
			f.lose(st.toks)
		case n > 0:
			list = append(list, st)
		}
	}
	return list
}

// pair returns the number of tokens in the first statement of toks and whether it is whole,
// and sets close in its brackets.
func pair(toks []token, f *faults) (n int, whole bool) {
	var open []int
	whole = true
	fault := func(t token, format string, args ...any) {
		if whole { // the next would be a consequence
			f.add(t.span, "", format, args...)
		}
		whole = false
	}
	for n = 0; n < len(toks) && !toks[n].isPunct(";"); n++ {
		t := &toks[n]
		if n > 0 && begins(toks[n:], len(open)) {
			at := toks[n-1].span.End
			f.add(Span{at, at}, "", "expected ; before the next statement: %s", strings.Join(strings.Fields(t.text+" "+toks[n+1].text), " "))
			break
		}
		if t.kind == broken {
			return n + 1, false // the lexer has said so
		}
		if t.kind != punct {
			continue
		}
		switch t.text {
		case "(", "[", "{":
			open = append(open, n)
		case ")", "]", "}":
			if len(open) == 0 {
				fault(*t, "%s closes nothing", t.text)
				continue
			}
			last := open[len(open)-1]
			if toks[last].text != partner[t.text] {
				fault(*t, "%s does not close the %s before it", t.text, toks[last].text)
			}
			toks[last].close = n
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t := toks[open[len(open)-1]]
		fault(t, "%s is never closed", t.text)
	}
	return n, whole
}

var partner = map[string]string{")": "(", "]": "[", "}": "{"}

// begins reports whether a statement begins at toks, that no SELECT could contain. CREATE is a
// reserved word, so it counts even inside open brackets.
func begins(toks []token, depth int) bool {
	if len(toks) < 2 || toks[0].kind != word {
		return false
	}
	first, next := toks[0], toks[1]
	switch {
	case first.is("CREATE"):
		for _, kind := range created {
			if next.is(kind) {
				return true
			}
		}
	case depth > 0:
	case first.is("SET"):
		return next.is("VARIABLE")
	case first.is("ATTACH"):
		return next.kind == str || next.is("getenv")
	}
	return false
}
