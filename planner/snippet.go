package planner

import "strings"

// callText is a function call that starts at an offset, with its FILTER clause.
func callText(text string, pos int) string {
	if pos < 0 {
		return ""
	}
	end := pos
	for end < len(text) && (isWord(text[end]) || text[end] == '"' || text[end] == '.') {
		end++
	}
	end = closing(text, end)
	rest := strings.TrimLeft(text[end:], " \t\r\n")
	if len(rest) >= 6 && strings.EqualFold(rest[:6], "filter") {
		end = closing(text, len(text)-len(rest)+6)
	}
	return text[pos:end]
}

// closing is the offset behind a bracketed list that starts, after white space, at an offset; the
// offset itself when there is none.
func closing(text string, at int) int {
	open := len(text) - len(strings.TrimLeft(text[at:], " \t\r\n"))
	if open >= len(text) || text[open] != '(' {
		return at
	}
	end := open + 1 + len(rawSnippet(text, open+1, false))
	for end < len(text) && text[end] != ')' { // a clause word inside the brackets: extract(hour FROM ts)
		end += 1 + len(rawSnippet(text, end+1, false))
	}
	return min(end+1, len(text))
}

// rawSnippet is the text of an expression that starts at an offset: up to the closing bracket or the
// clause that ends it, and up to a comma when commas end it too.
func rawSnippet(text string, start int, commas bool) string {
	depth := 0
	i := start
	for i < len(text) {
		c := text[i]
		switch {
		case c == '\'' || c == '"':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				return text[start:]
			}
			i += end + 2
			continue
		case strings.HasPrefix(text[i:], "--"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return text[start:i]
			}
			i += end
			continue
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i:], "*/")
			if end < 0 {
				return text[start:i]
			}
			i += end + 2
			continue
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			if depth == 0 {
				return text[start:i]
			}
			depth--
		case c == ';' || c == ',' && commas && depth == 0:
			return text[start:i]
		case isWord(c):
			end := wordAt(text, i).End
			if depth == 0 && i > start && endsExpression[strings.ToUpper(text[i:end])] && !afterDistinct(text[start:i]) {
				return text[start:i]
			}
			i = end
			continue
		}
		i++
	}
	return text[start:]
}

// afterDistinct: the FROM to come is that of IS DISTINCT FROM.
func afterDistinct(before string) bool {
	return strings.HasSuffix(strings.ToUpper(strings.TrimRight(before, " \t\r\n")), "DISTINCT")
}

var endsExpression = words("AS FROM WHERE GROUP HAVING ORDER UNION QUALIFY LIMIT WINDOW SELECT EXCEPT INTERSECT")

// oneLine is a piece of SQL without its comments and line breaks.
func oneLine(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexAny(s, "'\"-/")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		n := 1
		switch {
		case s[0] == '\'' || s[0] == '"':
			n = len(s)
			if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
				n = end + 2
			}
			b.WriteString(strings.ReplaceAll(s[:n], " ", "\x00")) // spaces in a text stay
		case strings.HasPrefix(s, "--"):
			n = len(s)
			if end := strings.IndexByte(s, '\n'); end >= 0 {
				n = end
			}
		case strings.HasPrefix(s, "/*"):
			n = len(s)
			if end := strings.Index(s, "*/"); end >= 0 {
				n = end + 2
			}
		default:
			b.WriteByte(s[0])
		}
		s = s[n:]
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(b.String()), " "), "\x00", " ")
}
