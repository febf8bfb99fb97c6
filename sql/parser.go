package sql

import (
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Parse reads the pipeline file whose content is text. The error is of type Errors and holds every
// fault of the file, in order of position. The Script is never nil: beside an error it holds what
// could be read, so that Unsupported can add to the list.
//
// What needs a database is checked later: types, columns and tables that a SELECT names, options
// of a connector.
func Parse(file, text string) (*Script, error) {
	s := &Script{File: file, Text: text, Name: strings.ToLower(pipelineName(file))}
	f := &faults{script: s}
	if checkEncoding(text, f) {
		statements := split(lex(text, f), f)
		for _, st := range statements {
			p := &parser{script: s, faults: f, toks: st.toks, end: st.end}
			p.statement()
		}
		if len(statements) == 0 && len(f.list) == 0 {
			f.add(Span{}, aboutFile, "the file has no statements")
		} else {
			check(s, f)
		}
	}
	if errs := f.errors(); len(errs) > 0 {
		return s, errs
	}
	return s, nil
}

// pipelineName is the name of a pipeline that does not give one itself.
func pipelineName(file string) string {
	base := filepath.Base(file)
	if ext := filepath.Ext(base); strings.EqualFold(ext, ".sql") {
		return strings.TrimSuffix(base, ext)
	}
	return base
}

// checkEncoding reports whether the text is UTF-8 without NUL. Otherwise nothing in it can be
// trusted, and one fault says so instead of thousands.
func checkEncoding(text string, f *faults) bool {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			f.add(Span{i, i + 1}, "save the file as UTF-8", "the file is not UTF-8: byte 0x%02x", text[i])
			return false
		case r == 0:
			f.add(Span{i, i + 1}, "save the file as UTF-8 text", "the file contains a NUL byte")
			return false
		}
		i += n
	}
	return true
}

// parser reads one statement.
//
// The first fault makes it silent: every token it then sees is the end of the statement, so loops
// stop, further faults are consequences and are dropped, and no caller has to look at an error
// after each step. In the list of CREATE SOURCE that lasts only until the next item.
type parser struct {
	script *Script
	faults *faults
	toks   []token
	end    token
	pos    int
	failed bool
	tried  []string // what would have been right at pos, for the message
}

// tok is the current token.
func (p *parser) tok() token { return p.ahead(0) }

// ahead is the token n after the current one.
func (p *parser) ahead(n int) token {
	if p.failed || p.pos+n >= len(p.toks) {
		return p.end
	}
	return p.toks[p.pos+n]
}

func (p *parser) advance() {
	if !p.failed {
		p.pos++
		p.tried = p.tried[:0]
	}
}

// accept takes the keyword if it is next.
func (p *parser) accept(keyword string) bool {
	if p.tok().is(keyword) {
		p.advance()
		return true
	}
	p.tried = append(p.tried, keyword)
	return false
}

// acceptPunct takes the punctuation if it is next.
func (p *parser) acceptPunct(s string) bool {
	if p.tok().isPunct(s) {
		p.advance()
		return true
	}
	p.tried = append(p.tried, s)
	return false
}

// keywords takes each of the keywords or fails.
func (p *parser) keywords(list ...string) {
	for _, k := range list {
		if !p.accept(k) {
			p.unexpected("")
		}
	}
}

// punct takes the punctuation or fails.
func (p *parser) punct(s string) {
	if !p.acceptPunct(s) {
		p.unexpected("")
	}
}

// done fails unless the statement ends here.
func (p *parser) done() bool {
	if p.tok().kind != end {
		p.tried = append(p.tried, ";")
		p.unexpected("")
	}
	return !p.failed
}

// fail reports a fault and gives the statement up.
func (p *parser) fail(span Span, hint, format string, args ...any) {
	if !p.failed {
		p.failed = true
		p.faults.add(span, hint, format, args...)
	}
}

// want fails because what is not there.
func (p *parser) want(what, hint string) {
	p.tried = append(p.tried, what)
	p.unexpected(hint)
}

// unexpected fails at the current token: it is none of what was tried. Without a hint, a near
// keyword becomes one.
func (p *parser) unexpected(hint string) {
	if p.failed {
		return
	}
	t := p.tok()
	if hint == "" && t.kind == word {
		hint = keywordHint(t.text, p.tried)
	}
	p.fail(t.span, hint, "expected %s, found %s", orList(p.tried), t.describe())
}

// describe names a token in a message.
func (t token) describe() string {
	const most = 40
	s, cut := t.text, ""
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s, cut = s[:i], "…"
	}
	if runes := firstRunes(s, most+1); len(runes) > most {
		s, cut = string(runes[:most]), "…"
	}
	return s + cut
}

// fuller is how a message says what was tried, where that is only its beginning.
var fuller = map[string]string{
	",":       "a comma",
	"NOT":     "NOT NULL",
	"PRIMARY": "PRIMARY KEY",
	"EMIT":    "EMIT FINAL",
}

// orList is "a", "a or b", "a, b or c".
func orList(list []string) string {
	var b strings.Builder
	for i, s := range list {
		switch {
		case i == 0:
		case i == len(list)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		if f, ok := fuller[s]; ok {
			s = f
		}
		b.WriteString(s)
	}
	return b.String()
}

// span is the place of the whole statement.
func (p *parser) span() Span {
	return Span{p.toks[0].span.Start, p.toks[len(p.toks)-1].span.End}
}

// since is the place from the token with index start to the last one taken.
func (p *parser) since(start int) Span {
	if start >= len(p.toks) {
		return p.end.span
	}
	return Span{p.toks[start].span.Start, p.toks[max(start, p.pos-1)].span.End}
}
