package files

import "strings"

// A nested value is just what its text says when DuckDB writes it as it writes the text's own parts:
// '[1.5, 2]' is ['1.5', '2'] as texts, but [2, 2] as BIGINT[].

// nestedShape is a nested type with VARCHAR in place of every type whose cast may change a value. ok
// is false for a type that is not nested, or has parts that no text can be decoded to.
func nestedShape(typ string) (shape string, ok bool) {
	if strings.HasSuffix(typ, "]") {
		at := strings.LastIndexByte(typ, '[')
		element, ok := partShape(typ[:at])
		return element + typ[at:], ok
	}
	kind, parts, ok := nestedParts(typ)
	if !ok {
		return "", false
	}
	for i, p := range parts {
		name := ""
		if kind == "STRUCT" {
			name, p = fieldOf(p)
		}
		shape, ok := partShape(p)
		if !ok {
			return "", false
		}
		parts[i] = name + shape
	}
	return kind + "(" + strings.Join(parts, ", ") + ")", true
}

func partShape(typ string) (string, bool) {
	if shape, ok := nestedShape(typ); ok {
		return shape, true
	}
	switch {
	case !decodable(typ):
		return "", false
	case typ == "BOOLEAN" || typ == "FLOAT" || typ == "DOUBLE" || typ == "UUID" || typ == "BLOB" || strings.HasPrefix(typ, "ENUM("):
		return typ, true
	}
	return "VARCHAR", true
}

// nestedParts splits STRUCT(a INTEGER, b MAP(…)) at the commas of its own.
func nestedParts(typ string) (kind string, parts []string, ok bool) {
	kind, rest, found := strings.Cut(typ, "(")
	if !found || kind != "STRUCT" && kind != "MAP" || !strings.HasSuffix(rest, ")") {
		return "", nil, false
	}
	rest = rest[:len(rest)-1]
	depth, from, quote := 0, 0, byte(0)
	for i := range len(rest) {
		switch c := rest[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(rest[from:i]))
			from = i + 1
		}
	}
	return kind, append(parts, strings.TrimSpace(rest[from:])), true
}

// fieldOf splits a field of a STRUCT into its name, with the blank after it, and its type.
func fieldOf(part string) (name, typ string) {
	end := strings.IndexByte(part, ' ')
	if strings.HasPrefix(part, `"`) {
		end = 1
		for end < len(part) {
			if part[end] == '"' {
				if end++; end == len(part) || part[end] != '"' {
					break
				}
			}
			end++
		}
	}
	if end < 0 || end >= len(part) {
		return "", part
	}
	return part[:end] + " ", strings.TrimSpace(part[end:])
}
