package planner

import (
	"fmt"
	"regexp"
	"strings"

	"lockstep/sql"
)

// refusal is why a piece of SQL has no place in a pipeline: what, where, and what to write instead.
type refusal struct {
	pos  int // byte offset in the pipeline file, -1 unknown
	msg  string
	hint string

	names []string // what DuckDB's message quotes; it finds the place when pos is unknown
	about string   // what names[0] is: a missing "column", "function" or "type", or an "ungrouped" column
}

func (r *refusal) Error() string { return r.msg }

func refuse(pos int, hint, format string, args ...any) *refusal {
	return &refusal{pos: pos, msg: fmt.Sprintf(format, args...), hint: hint}
}

const notOneSelect = "what stands after AS is not one SELECT"

const castHint = "cast the argument, as in x::BIGINT or x::TIMESTAMP"

var (
	noOverload    = regexp.MustCompile(`^No function matches the given name and argument types '(.*)\((.*)\)'`)
	mustAppear    = regexp.MustCompile(`^column "?([^"]*?)"? must appear in the GROUP BY clause`)
	noColumn      = regexp.MustCompile(`^Table "(.*)" does not have a column named "(.*)"`)
	quotedOrParts = regexp.MustCompile(`"([^"]+)"`)
)

// refusalOf turns DuckDB's message into ours: its first sentence in our words where they are better,
// and none of its lists of overloads and candidates.
func refusalOf(tree object, file func(int) int) *refusal {
	r := &refusal{pos: -1}
	var pos int
	if _, err := fmt.Sscan(text(tree, "position"), &pos); err == nil {
		r.pos = file(pos)
	}
	full := text(tree, "error_message")
	line, _, _ := strings.Cut(full, "\n")
	for _, m := range quotedOrParts.FindAllStringSubmatch(line, -1) {
		r.names = append(r.names, m[1])
	}
	line = strings.NewReplacer("STRING_LITERAL", "VARCHAR", "INTEGER_LITERAL", "INTEGER").Replace(line)
	r.msg = lowerFirst(strings.TrimRight(line, "!. "))
	name := text(tree, "name")
	switch {
	case text(tree, "error_type") == "internal":
		r.msg = "DuckDB cannot plan this SELECT"
	case strings.HasPrefix(line, "Only SELECT statements can be serialized"), strings.HasPrefix(line, "Cannot plan statement"):
		r.msg = notOneSelect
	case text(tree, "error_subtype") == "COLUMN_NOT_FOUND":
		r.about, r.names = "column", []string{name}
		r.msg = fmt.Sprintf("there is no column %q", name)
	case text(tree, "error_subtype") == "MISSING_ENTRY" && strings.HasSuffix(text(tree, "type"), "Function"):
		r.about, r.names = "function", []string{name}
		r.msg = fmt.Sprintf("there is no function %s", name)
	case text(tree, "error_subtype") == "MISSING_ENTRY" && text(tree, "type") == "Type":
		r.about, r.names = "type", []string{name}
		r.msg = fmt.Sprintf("there is no type %s", name)
	case noColumn.MatchString(line):
		m := noColumn.FindStringSubmatch(line)
		r.about, r.names = "column", []string{m[2]}
		r.msg = fmt.Sprintf("%s has no column %q", m[1], m[2])
	case noOverload.MatchString(line):
		m := noOverload.FindStringSubmatch(line)
		r.msg, r.hint, r.names = fmt.Sprintf("there is no %s(%s)", m[1], m[2]), castHint, []string{m[1]}
	case mustAppear.MatchString(line):
		column := mustAppear.FindStringSubmatch(line)[1]
		r.about, r.names = "ungrouped", []string{column}
		r.msg = fmt.Sprintf("column %s is neither grouped nor aggregated", column)
		r.hint = fmt.Sprintf("add %[1]s to the GROUP BY, or say which of its values: min(%[1]s)", column)
	case len(r.names) == 0:
		r.names = append(r.names, plainNames(line)...)
	}
	return r
}

// plainNames are the words of a message that could be a function or a constant of the author's, as in
// "strptime format must be a constant" and "missing ): (".
func plainNames(line string) []string {
	names := strings.Fields(strings.TrimRight(line, "!."))
	if _, pattern, ok := strings.Cut(line, ": "); ok {
		names = append([]string{pattern}, names...)
	}
	return names
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'a' && s[1] <= 'z' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// firstSentence is a DuckDB error's message without its kind, its SQL and its lists.
func firstSentence(err error) string {
	msg, _, _ := strings.Cut(err.Error(), "\n")
	if _, rest, ok := strings.Cut(msg, " Error: "); ok {
		msg = rest
	}
	return lowerFirst(strings.TrimRight(msg, "!. "))
}

func didYouMean(name string, candidates []string) string {
	if near := sql.Suggest(name, candidates); near != "" && !strings.EqualFold(near, name) {
		return "did you mean \"" + near + "\"?"
	}
	return ""
}
