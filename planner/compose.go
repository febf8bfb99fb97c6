package planner

import (
	"errors"
	"strings"

	"lockstep/engine/duck"
	"lockstep/sql"
)

// composed is a sink's SELECT with the views it may read in front of it, and where each part stands
// in the pipeline file.
type composed struct {
	text   string
	pieces []piece
}

type piece struct{ start, end, file int }

// compose puts the views before the SELECT as common table expressions, so that DuckDB's positions
// inside them can be found in the file. The line breaks keep a trailing comment from swallowing what
// follows.
func compose(script *sql.Script, sink *sql.Sink) composed {
	var q composed
	var b strings.Builder
	add := func(e sql.Expr) {
		q.pieces = append(q.pieces, piece{start: b.Len(), end: b.Len() + len(e.Text), file: e.Span.Start})
		b.WriteString(e.Text)
	}
	for i, v := range script.Views {
		if i == 0 {
			b.WriteString("WITH ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(duck.Quote(v.Name.Text) + " AS (")
		add(v.Select)
		b.WriteString("\n)")
	}
	if len(script.Views) > 0 {
		b.WriteString(" FROM (")
		add(sink.Select)
		b.WriteString("\n)")
	} else {
		add(sink.Select)
	}
	q.text = b.String()
	return q
}

// file maps an offset of the composed text to one of the pipeline file, -1 when it is not in it.
func (q composed) file(pos int) int {
	for _, p := range q.pieces {
		if pos >= p.start && pos < p.end {
			return p.file + pos - p.start
		}
	}
	return -1
}

// refused records a refusal at its place; another error is returned.
func (p *planning) refused(q composed, s *sql.Sink, err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	p.faultsOf(q, s, r)
	return nil
}

func (p *planning) faultsOf(q composed, s *sql.Sink, r *refusal) {
	span := s.Head
	if pos := q.file(r.pos); pos >= 0 {
		span = wordAt(p.script.Text, pos)
	}
	p.fault(span, r.hint, "%s", r.msg)
}

// faultAt records what DuckDB said about a piece of the file.
func (p *planning) faultAt(span sql.Span, err error) {
	var r *refusal
	if errors.As(err, &r) {
		p.fault(span, r.hint, "%s", r.msg)
		return
	}
	p.fault(span, "", "%s", firstSentence(err))
}

// firstSentence is DuckDB's message without its kind, its SQL and its lists.
func firstSentence(err error) string {
	msg, _, _ := strings.Cut(err.Error(), "\n")
	if _, rest, ok := strings.Cut(msg, " Error: "); ok {
		msg = rest
	}
	return lowerFirst(strings.TrimRight(msg, "!. "))
}

// wordAt is the name, number or sign that starts at an offset.
func wordAt(text string, pos int) sql.Span {
	end := pos
	for end < len(text) && isWord(text[end]) {
		end++
	}
	if end == pos && pos < len(text) {
		end++
	}
	return sql.Span{Start: pos, End: end}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
