package sql

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// unquoteName returns the identifier that a "quoted name" token stands for.
func unquoteName(text string) string {
	return strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)
}

// unquoteString returns the string that a str token stands for. The int is the byte offset in
// text of an escape that has no meaning.
func unquoteString(text string) (string, int, error) {
	switch text[0] {
	case '$':
		tag := dollarTag(text)
		return text[len(tag) : len(text)-len(tag)], 0, nil
	case '\'':
		return strings.ReplaceAll(text[1:len(text)-1], "''", "'"), 0, nil
	}
	var b strings.Builder
	body := text[:len(text)-1]
	for i := len("E'"); i < len(body); {
		switch body[i] {
		case '\'': // doubled
			b.WriteByte('\'')
			i += 2
		case '\\':
			c, n, err := unescape(body[i:])
			if err != nil {
				return "", i, err
			}
			b.WriteString(c)
			i += n
		default:
			b.WriteByte(body[i])
			i++
		}
	}
	return b.String(), 0, nil
}

var controlEscapes = map[byte]string{'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t"}

// unescape reads the backslash escape s begins with and returns its meaning and length. The set is
// DuckDB's: \u and bytes beyond ASCII are errors there too.
func unescape(s string) (string, int, error) {
	c := s[1]
	if v, ok := controlEscapes[c]; ok {
		return v, 2, nil
	}
	value, n := 0, 1
	switch {
	case c == 'u', c == 'U':
		return "", 0, fmt.Errorf(`\%c is not supported in a string: write the character itself`, c)
	case c == 'x':
		value, n = digits(s, 2, 2, 16)
		if n == 2 {
			return "x", 2, nil
		}
	case '0' <= c && c <= '7':
		value, n = digits(s, 1, 3, 8)
	case c >= utf8.RuneSelf:
		_, size := utf8.DecodeRuneInString(s[1:])
		return "", 0, fmt.Errorf(`%s is not an escape: write the character without the backslash`, s[:1+size])
	default: // any other character stands for itself
		return string(c), 2, nil
	}
	if value == 0 || value >= utf8.RuneSelf {
		return "", 0, fmt.Errorf(`%s is not a character: a byte escape is between \x01 and \x7f`, s[:n])
	}
	return string(rune(value)), n, nil
}

// digits reads up to most digits of s from start on, and returns their value and where they end.
func digits(s string, start, most, base int) (value, next int) {
	for next = start; next < len(s) && next < start+most; next++ {
		d := strings.IndexByte("0123456789abcdef", lower(s[next]))
		if d < 0 || d >= base {
			break
		}
		value = value*base + d
	}
	return value, next
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
