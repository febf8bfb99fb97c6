package sql

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Error is a fault of a pipeline file at a place in it.
type Error struct {
	File    string `json:"file"`           // as the user named it; may be empty
	Line    int    `json:"line"`           // 1-based
	Col     int    `json:"column"`         // 1-based, in characters
	Message string `json:"message"`        // one line: what is wrong
	Hint    string `json:"hint,omitempty"` // what to do about it
	Span    Span   `json:"-"`              // the text it is about; may be empty

	text string // of the whole file, for Render
}

// NewError returns an error about span in text, the content of file.
func NewError(file, text string, span Span, hint, format string, args ...any) *Error {
	e := newError(file, text, span, hint, format, args...)
	locate([]*Error{e})
	return e
}

// Errorf returns an error about span in the file. Hint may be empty.
func (s *Script) Errorf(span Span, hint, format string, args ...any) *Error {
	return NewError(s.File, s.Text, span, hint, format, args...)
}

// Error is one line: file:line:column: message.
func (e *Error) Error() string {
	place := fmt.Sprintf("%d:%d: ", e.Line, e.Col)
	if e.File != "" {
		place = e.File + ":" + place
	}
	return place + e.Message
}

// Errors are the faults of one file.
type Errors []*Error

// Error is one line per fault.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Render shows every fault as Error.Render does, with an empty line between them.
func (e Errors) Render() string {
	parts := make([]string, len(e))
	for i, err := range e {
		parts[i] = err.Render()
	}
	return strings.Join(parts, "\n")
}

// Sort orders the faults of one file by their position in it.
func (e Errors) Sort() {
	slices.SortStableFunc(e, func(a, b *Error) int { return a.Span.Start - b.Span.Start })
}

// newError makes an error without its line and column.
func newError(file, text string, span Span, hint, format string, args ...any) *Error {
	span.Start = min(max(span.Start, 0), len(text))
	span.End = min(max(span.End, span.Start), len(text))
	return &Error{
		File: file, Span: span, text: text,
		Message: strings.Map(visible, fmt.Sprintf(format, args...)),
		Hint:    strings.Map(visible, hint),
	}
}

// visible replaces what a terminal would obey instead of show.
func visible(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	if unicode.IsSpace(r) {
		return ' '
	}
	return unicode.ReplacementChar
}

// locate sets line and column of errors that belong to one text and are sorted. One pass over the
// text for all of them keeps a file of nothing but faults from taking quadratic time.
func locate(errs []*Error) {
	if len(errs) == 0 {
		return
	}
	text := errs[0].text
	skip := bomLen(text)
	line, col := 1, 1
	next := 0
	for i, r := range text[skip:] {
		for next < len(errs) && errs[next].Span.Start <= skip+i {
			errs[next].Line, errs[next].Col = line, col
			next++
		}
		if next == len(errs) {
			return
		}
		if r == '\n' {
			line, col = line+1, 1
		} else {
			col++
		}
	}
	for ; next < len(errs); next++ {
		errs[next].Line, errs[next].Col = line, col
	}
}

// faults collects what is wrong with one file.
type faults struct {
	script *Script
	list   Errors

	// A statement that could not be read was one of these, so it cannot be told whether the file
	// lacks one.
	lostAttach, lostSink bool
}

// lose notes what kind of statement toks was meant to be.
func (f *faults) lose(toks []token) {
	for _, t := range toks[:min(2, len(toks))] {
		switch Suggest(t.text, []string{"ATTACH", "SINK"}) {
		case "ATTACH":
			f.lostAttach = true
		case "SINK":
			f.lostSink = true
		}
	}
	if len(toks) > 0 && toks[len(toks)-1].kind == broken { // the rest of the file is in it
		f.lostAttach, f.lostSink = true, true
	}
}

func (f *faults) add(span Span, hint, format string, args ...any) {
	f.list = append(f.list, newError(f.script.File, f.script.Text, span, hint, format, args...))
}

// errors returns the faults sorted and located, or nil.
func (f *faults) errors() Errors {
	f.list.Sort()
	locate(f.list)
	return f.list
}
