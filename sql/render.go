package sql

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A longer line is cut around the caret.
const (
	maxExcerpt = 120 // characters shown
	maxLead    = 60  // of them before the caret, when the line is cut
)

// Render shows the error with its line, a caret under the place, and the hint:
//
//	daily.sql:7:7: no column "amout" in source orders
//	  7 |   sum(amout)
//	    |       ^^^^^
//	  did you mean "amount"?
//
// It ends with a newline.
func (e *Error) Render() string {
	var b strings.Builder
	b.WriteString(e.Error())
	b.WriteByte('\n')
	if lead, marked, tail := e.excerpt(); lead != "" || marked != "" || tail != "" {
		number := fmt.Sprint(e.Line)
		fmt.Fprintf(&b, "  %s | %s%s%s\n", number, lead, marked, tail)
		carets := strings.Repeat("^", max(1, cells(marked)))
		fmt.Fprintf(&b, "  %s | %s%s\n", strings.Repeat(" ", len(number)), blank(lead), carets)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(e.Hint, "\n", "\n  "))
	}
	return b.String()
}

// excerpt returns the line of the error, cut when it is long: what is before the marked part, the
// marked part, what is after it.
func (e *Error) excerpt() (lead, marked, tail string) {
	text := e.text[bomLen(e.text):]
	start := max(0, e.Span.Start-bomLen(e.text))
	before := lastRunes(text[:start], maxExcerpt+1)
	after := firstRunes(text[start:], maxExcerpt+1)
	cutLeft, cutRight := false, false
	if len(before)+len(after) > maxExcerpt {
		if n := len(before) - maxLead; n > 0 {
			before, cutLeft = before[n:], true
		}
		if n := maxExcerpt - len(before); len(after) > n {
			after, cutRight = after[:n], true
		}
	}
	n := min(len(after), utf8.RuneCountInString(e.text[e.Span.Start:e.Span.End]))
	lead, marked, tail = shown(before), shown(after[:n]), shown(after[n:])
	if cutLeft {
		lead = "…" + lead
	}
	if cutRight {
		tail += "…"
	}
	return lead, marked, tail
}

// lastRunes returns up to n characters of the last line of s. It looks no further back than it
// must: the line may be a megabyte long.
func lastRunes(s string, n int) []rune {
	i := len(s)
	for ; n > 0 && i > 0 && s[i-1] != '\n'; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return []rune(s[i:])
}

// firstRunes returns up to n characters of the first line of s, without its line end.
func firstRunes(s string, n int) []rune {
	i := 0
	for ; n > 0 && i < len(s) && s[i] != '\n' && !strings.HasPrefix(s[i:], "\r\n"); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return []rune(s[:i])
}

func shown(runes []rune) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return visible(r)
	}, string(runes))
}

// blank returns white space as wide as s on a terminal. Tabs stay tabs.
func blank(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteString(strings.Repeat(" ", width(r)))
		}
	}
	return b.String()
}

func cells(s string) int {
	n := 0
	for _, r := range s {
		n += width(r)
	}
	return n
}

// width is the number of terminal cells r takes: 0 for combining marks, 2 for East Asian wide
// characters and emoji (the blocks of Unicode's East Asian Width W and F, coarsely), else 1.
func width(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f,
		r >= 0x2e80 && r <= 0xa4cf,
		r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f,
		r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
