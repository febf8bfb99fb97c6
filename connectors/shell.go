package connectors

import "strings"

// ShellWord writes a text as one word of a shell, for commands that messages show.
func ShellWord(text string) string {
	quoted := func(r rune) bool {
		plain := r > 0x7f || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._/-=", r)
		return !plain
	}
	if text != "" && strings.IndexFunc(text, quoted) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
