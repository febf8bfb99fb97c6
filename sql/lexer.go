package sql

import (
	"strings"
	"unicode/utf8"
)

// A token is one lexical element with its place in the text. Comments and white space are not
// tokens; what stands between two tokens is exactly those.
type token struct {
	kind  tokenKind
	span  Span
	text  string // as written, with quotes
	close int    // opening bracket: index of its partner in the statement (set by split)
}

type tokenKind uint8

const (
	end    tokenKind = iota // after the last token of a statement
	word                    // identifier or keyword
	quoted                  // "identifier"
	str                     // 'a', E'a', $$a$$
	number
	punct  // one operator or punctuation byte, or ||
	broken // unterminated: it runs to the end of the file
)

// is reports whether t is the unquoted word w. Keywords are case-insensitive.
func (t token) is(w string) bool { return t.kind == word && strings.EqualFold(t.text, w) }

func (t token) isPunct(s string) bool { return t.kind == punct && t.text == s }

const bom = "\ufeff"

// bomLen is where the text proper begins.
func bomLen(text string) int {
	if strings.HasPrefix(text, bom) {
		return len(bom)
	}
	return 0
}

// lexer splits a text the way DuckDB's own scanner does, so that a quote, a comment or a dollar
// string inside a SELECT hides the same semicolons from both.
type lexer struct {
	text   string
	pos    int
	toks   []token
	faults *faults
}

func lex(text string, f *faults) []token {
	l := &lexer{text: text, pos: bomLen(text), faults: f}
	for l.skipBlanks(); l.pos < len(text); l.skipBlanks() {
		l.next()
	}
	return l.toks
}

// next reads the token at pos, which is neither blank nor a comment.
func (l *lexer) next() {
	start, rest := l.pos, l.text[l.pos:]
	switch c := rest[0]; {
	case c == '\'':
		l.quoted(str, start, '\'', false, "string")
	case (c == 'e' || c == 'E') && strings.HasPrefix(rest[1:], "'"):
		l.pos++
		l.quoted(str, start, '\'', true, "string")
	case c == '"':
		l.quoted(quoted, start, '"', false, "quoted name")
	case c == '$' && dollarTag(rest) != "":
		l.dollar(start, dollarTag(rest))
	case isWordByte(c):
		l.pos += wordLen(rest)
		l.emit(word, start)
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		l.pos += numberLen(rest)
		l.emit(number, start)
	case strings.HasPrefix(rest, "||"):
		l.pos += 2
		l.emit(punct, start)
	default:
		l.pos++
		l.emit(punct, start)
	}
}

func (l *lexer) emit(k tokenKind, start int) {
	l.toks = append(l.toks, token{kind: k, span: Span{start, l.pos}, text: l.text[start:l.pos]})
}

// unterminated reports what began at start and never ends. The rest of the file belongs to it, so
// there is nothing left to read.
func (l *lexer) unterminated(start, opener int, what, hint string) {
	l.faults.add(Span{start, start + opener}, hint, "unterminated %s", what)
	l.pos = len(l.text)
	l.emit(broken, start)
}

// quoted reads to the closing quote q; pos is at the opening one. A doubled quote stands for
// itself, and so does whatever follows a backslash in an E string.
func (l *lexer) quoted(k tokenKind, start int, q byte, backslash bool, what string) {
	opener := l.pos + 1 - start
	for i := l.pos + 1; i < len(l.text); i++ {
		switch c := l.text[i]; {
		case c == '\\' && backslash:
			i++
		case c != q:
		case i+1 < len(l.text) && l.text[i+1] == q:
			i++
		default:
			l.pos = i + 1
			l.emit(k, start)
			return
		}
	}
	hint := "a " + string(q) + " inside it is written twice"
	l.unterminated(start, opener, what, hint)
}

func (l *lexer) dollar(start int, tag string) {
	n := strings.Index(l.text[start+len(tag):], tag)
	if n < 0 {
		l.unterminated(start, len(tag), "string", "it ends at the next "+tag)
		return
	}
	l.pos = start + len(tag) + n + len(tag)
	l.emit(str, start)
}

// dollarTag returns the $tag$ that s begins with, or "".
func dollarTag(s string) string {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '$':
			return s[:i+1]
		case !isWordByte(c) && (i == 1 || !isDigit(c)):
			return ""
		}
	}
	return ""
}

func (l *lexer) skipBlanks() {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.HasPrefix(rest, "--"):
			// A lone carriage return ends the line too, for DuckDB as well.
			n := strings.IndexAny(rest, "\r\n")
			if n < 0 {
				n = len(rest)
			}
			l.pos += n
		case strings.HasPrefix(rest, "/*"):
			l.blockComment()
		default:
			n := blankLen(rest)
			if n == 0 {
				return
			}
			l.pos += n
		}
	}
}

// blockComment skips a /* comment */; they nest, as in DuckDB and Postgres.
func (l *lexer) blockComment() {
	start, depth := l.pos, 0
	for i := start; i+1 < len(l.text); i++ {
		switch l.text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			l.pos = i + 1
			return
		}
	}
	l.unterminated(start, 2, "comment", "it ends at */, and comments nest")
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWordByte reports whether c can begin an identifier. Every byte of a non-ASCII letter can.
func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

func wordLen(s string) int {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			if blankLen(s[i:]) > 0 {
				return i
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
		case isWordByte(c), i > 0 && (isDigit(c) || c == '$'):
			i++
		default:
			return i
		}
	}
	return len(s)
}

// numberLen is the length of the number s begins with: 1, 1_000, 1.5, .5, 1e-9.
func numberLen(s string) int {
	digits := func(i int) int {
		for i < len(s) && (isDigit(s[i]) || s[i] == '_') {
			i++
		}
		return i
	}
	i := digits(0)
	if i < len(s) && s[i] == '.' {
		i = digits(i + 1)
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			return digits(j)
		}
	}
	return i
}

// blankLen is the length of the blank s begins with, or 0. The blanks beyond ASCII are those that
// DuckDB replaces by a space: they come with text pasted from a web page or a document.
func blankLen(s string) int {
	switch s[0] {
	case ' ', '\t', '\n', '\r', '\f':
		return 1
	}
	if s[0] < utf8.RuneSelf {
		return 0
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r >= 0x2000 && r <= 0x200b,
		r == 0xa0, r == 0x202f, r == 0x205f, r == 0x2060, r == 0x3000, r == 0xfeff:
		return n
	}
	return 0
}
