package main

import (
	"fmt"
	"strings"
	"time"
)

// Numbers and times as the screens show them.

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// ago says how long something is past, in the largest unit that fits twice.
func ago(d time.Duration) string {
	switch {
	case d < 2*time.Second:
		return "just now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

func size(bytes int64) string {
	n, units := float64(bytes), []string{"kB", "MB", "GB", "TB"}
	if bytes < 1000 {
		return fmt.Sprintf("%d B", bytes)
	}
	i := -1
	for n >= 1000 && i < len(units)-1 {
		n, i = n/1000, i+1
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}

// short is the part of a plan's hash that screens show.
func short(id string) string { return id[:min(4, len(id))] }

// oneLine shows a text in a cell: what a terminal would obey is written as an escape.
func oneLine(s string) string {
	clean := func(r rune) bool { return r >= ' ' && r != 0x7f && (r < 0x80 || r >= 0xa0) }
	if strings.IndexFunc(s, func(r rune) bool { return !clean(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case clean(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		default:
			fmt.Fprintf(&b, `\x%02x`, r)
		}
	}
	return b.String()
}
