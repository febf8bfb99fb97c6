package files

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// The grammar of RFC 8259, over l.b from l.at on. On an error l.at is where the text goes wrong.

func (l *jsonLine) space() {
	for l.at < len(l.b) {
		switch l.b[l.at] {
		case ' ', '\t', '\r', '\n':
			l.at++
		default:
			return
		}
	}
}

func (l *jsonLine) is(c byte) bool { return l.at < len(l.b) && l.b[l.at] == c }

func (l *jsonLine) take(c byte) error {
	if !l.is(c) {
		return errNotJSON
	}
	l.at++
	return nil
}

// end tells that nothing but blanks follows.
func (l *jsonLine) end() bool {
	l.space()
	return l.at == len(l.b)
}

func (l *jsonLine) value(depth int) (span, error) {
	if l.at >= len(l.b) || depth > maxDepth {
		return span{}, errNotJSON
	}
	v := span{from: l.at}
	var err error
	switch c := l.b[l.at]; {
	case c == '"':
		return l.str()
	case c == '{':
		v.kind, err = isObject, l.members(depth)
	case c == '[':
		v.kind, err = isList, l.elements(depth)
	case c == 't':
		v.kind, err = isBoolean, l.word("true")
	case c == 'f':
		v.kind, err = isBoolean, l.word("false")
	case c == 'n':
		v.kind, err = isNull, l.word("null")
	default:
		v.kind, err = isNumber, l.number()
	}
	v.to = l.at
	return v, err
}

func (l *jsonLine) word(w string) error {
	if !bytes.HasPrefix(l.b[l.at:], []byte(w)) {
		return errNotJSON
	}
	l.at += len(w)
	return nil
}

func (l *jsonLine) members(depth int) error {
	for first := true; ; first = false {
		_, more, err := l.key(first)
		if err != nil || !more {
			return err
		}
		if _, err := l.value(depth + 1); err != nil {
			return err
		}
	}
}

func (l *jsonLine) elements(depth int) error {
	l.at++
	l.space()
	if l.is(']') {
		l.at++
		return nil
	}
	for {
		if _, err := l.value(depth + 1); err != nil {
			return err
		}
		l.space()
		if l.is(']') {
			l.at++
			return nil
		}
		if err := l.take(','); err != nil {
			return err
		}
		l.space()
	}
}

func (l *jsonLine) digits() bool {
	from := l.at
	for l.at < len(l.b) && l.b[l.at]-'0' <= 9 {
		l.at++
	}
	return l.at > from
}

func (l *jsonLine) number() error {
	if l.is('-') {
		l.at++
	}
	if l.is('0') {
		l.at++
	} else if !l.digits() {
		return errNotJSON
	}
	if l.is('.') {
		l.at++
		if !l.digits() {
			return errNotJSON
		}
	}
	if l.is('e') || l.is('E') {
		l.at++
		if l.is('+') || l.is('-') {
			l.at++
		}
		if !l.digits() {
			return errNotJSON
		}
	}
	return nil
}

// str reads a string; the span is what is between its quotes.
func (l *jsonLine) str() (span, error) {
	if err := l.take('"'); err != nil {
		return span{}, err
	}
	v := span{kind: isText, from: l.at}
	for l.at < len(l.b) {
		switch c := l.b[l.at]; {
		case c == '"':
			v.to = l.at
			l.at++
			return v, nil
		case c < ' ':
			return v, errNotJSON
		case c == '\\':
			if err := l.escape(); err != nil {
				return v, err
			}
		default:
			l.at++
		}
	}
	return v, errNotJSON
}

// escape reads one escape. Half of a surrogate pair is no character, so no text can hold it.
func (l *jsonLine) escape() error {
	if l.at+1 >= len(l.b) {
		return errNotJSON
	}
	if bytes.IndexByte([]byte(`"\/bfnrt`), l.b[l.at+1]) >= 0 {
		l.at += 2
		return nil
	}
	r, size := unicodeEscape(l.b[l.at:])
	if size == 0 || r == utf8.RuneError && utf16.IsSurrogate(hex4(l.b[l.at+2:])) {
		return errNotJSON
	}
	l.at += size
	return nil
}

// unicodeEscape decodes \u0041, or two of them that are a surrogate pair; size 0 when it is neither.
func unicodeEscape(b []byte) (r rune, size int) {
	if len(b) < 6 || b[1] != 'u' {
		return 0, 0
	}
	r = hex4(b[2:])
	switch {
	case r < 0:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, 6
	case len(b) >= 12 && b[6] == '\\' && b[7] == 'u':
		return utf16.DecodeRune(r, hex4(b[8:])), 12
	}
	return utf8.RuneError, 6
}

// hex4 is the number of four hexadecimal digits, -1 when they are none.
func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// content is a string's text without escapes. It is valid until the next call.
func (l *jsonLine) content(v span) []byte {
	b := l.b[v.from:v.to]
	next := bytes.IndexByte(b, '\\')
	if next < 0 {
		return b
	}
	l.scratch = l.scratch[:0]
	for next >= 0 {
		l.scratch = append(l.scratch, b[:next]...)
		b = b[next:]
		if i := bytes.IndexByte([]byte(`"\/bfnrt`), b[1]); i >= 0 {
			l.scratch = append(l.scratch, "\"\\/\b\f\n\r\t"[i])
			b = b[2:]
		} else {
			r, size := unicodeEscape(b)
			l.scratch = utf8.AppendRune(l.scratch, r)
			b = b[size:]
		}
		next = bytes.IndexByte(b, '\\')
	}
	return append(l.scratch, b...)
}
