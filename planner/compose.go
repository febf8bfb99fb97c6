package planner

import (
	"strings"

	"lockstep/engine/duck"
	"lockstep/sql"
)

// composed is a SELECT with the views it may read in front of it, and where each part stands in the
// pipeline file.
type composed struct {
	text   string
	pieces []piece
}

type piece struct{ start, end, file int }

// macroMargin is white space before a composed text. DuckDB gives what comes from the body of one of
// its macros (nullif, split_part) a position in that body; behind a margin longer than any body, no
// such position can be taken for one of ours.
const macroMargin = 4096

// compose puts views before a SELECT as common table expressions, so that DuckDB's positions inside
// them can be found in the file. The line breaks keep a trailing comment from swallowing what
// follows.
func compose(views []*sql.View, query sql.Expr) composed {
	var q composed
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", macroMargin))
	add := func(e sql.Expr) {
		q.pieces = append(q.pieces, piece{start: b.Len(), end: b.Len() + len(e.Text), file: e.Span.Start})
		b.WriteString(e.Text)
	}
	for i, v := range views {
		if i == 0 {
			b.WriteString("WITH ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(duck.Quote(v.Name.Text) + " AS (")
		add(v.Select)
		b.WriteString("\n)")
	}
	if len(views) > 0 {
		b.WriteString(" FROM (")
		add(query)
		b.WriteString("\n)")
	} else {
		add(query)
	}
	q.text = b.String()
	return q
}

// inMacro is the place of what stands in the body of a DuckDB macro.
const inMacro = -2

// file maps an offset of the composed text to one of the pipeline file; it is negative when the text
// there is not the author's. The end of a piece counts: there DuckDB says that something is missing.
func (q composed) file(pos int) int {
	if pos < macroMargin && len(q.pieces) > 0 && q.pieces[0].start >= macroMargin {
		return inMacro
	}
	for _, p := range q.pieces {
		if pos >= p.start && pos <= p.end {
			return p.file + pos - p.start
		}
	}
	return -1
}

// wordAt is the name, number or sign that starts at an offset.
func wordAt(text string, pos int) sql.Span {
	end := pos
	switch {
	case pos < len(text) && (text[pos] == '\'' || text[pos] == '"'):
		if n := strings.IndexByte(text[pos+1:], text[pos]); n >= 0 {
			return sql.Span{Start: pos, End: pos + n + 2}
		}
	case pos < len(text) && isWord(text[pos]):
		for end < len(text) && isWord(text[end]) {
			end++
		}
		return sql.Span{Start: pos, End: end}
	}
	return sql.Span{Start: pos, End: min(pos+1, len(text))}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
