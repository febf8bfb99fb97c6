package sql

import (
	"fmt"
	"strings"
)

// structure writes a script down without positions, comments and white space: two texts with equal
// structure say the same.
func structure(s *Script) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if s.Pipeline != nil {
		line("pipeline %s%s", s.Pipeline.Name.Text, options(s.Pipeline.With))
	}
	for _, a := range s.Attaches {
		line("attach %s %s %s", a.Name.Text, a.Type, a.Target)
	}
	for _, v := range s.Variables {
		line("variable %s = %s", v.Name.Text, bare(v.Value.Text))
	}
	for _, src := range s.Sources {
		from := src.From.String()
		if src.FromTable != nil {
			from = src.FromTable.String()
		}
		line("source %s %s from %s", src.Name.Text, src.Envelope, from)
		for _, c := range src.Columns {
			value := strings.TrimRight(" "+bare(c.Expr.Text)+c.Metadata, " ")
			line(" column %s %s %d %v%s", c.Name.Text, bare(c.Type.Text), c.Kind, c.NotNull, value)
		}
		for _, k := range src.Key {
			line(" key %s", k.Text)
		}
		if w := src.Watermark; w != nil {
			line(" watermark %s %s", w.Column.Text, bare(w.Expr.Text))
		}
		for _, c := range src.Checks {
			line(" check %s %s %v", c.Name.Text, bare(c.Expr.Text), c.Fail)
		}
		for _, e := range src.Sequence {
			line(" sequence %s", bare(e.Text))
		}
		if src.Delete != nil {
			line(" delete %s", bare(src.Delete.Text))
		}
		if len(src.With) > 0 {
			line("%s", options(src.With))
		}
	}
	for _, v := range s.Views {
		line("view %s %s", v.Name.Text, bare(v.Select.Text))
	}
	for _, n := range s.Sinks {
		key := ""
		for _, k := range n.Key {
			key += " " + k.Text
		}
		line("sink %s%s %v %s%s", n.Name, key, n.EmitFinal, bare(n.Select.Text), options(n.With))
	}
	for _, l := range append(s.Tests, s.Audits...) {
		line("%s %s", l.Kind, l.Name.Text)
	}
	return b.String()
}

// bare is SQL with one space between tokens and nothing else.
func bare(text string) string {
	var parts []string
	for _, t := range lex(text, &faults{script: &Script{Text: text}}) {
		parts = append(parts, t.text)
	}
	return strings.Join(parts, " ")
}

func options(list []Option) string {
	var b strings.Builder
	for _, o := range list {
		value := bare(o.Value.Raw)
		if o.Value.Kind == StringValue {
			value = o.Value.Text.String()
		}
		b.WriteString(" " + o.Name.Text + "=" + value)
	}
	return b.String()
}

// spans is every span of a script.
func spans(s *Script) []Span {
	var list []Span
	add := func(spans ...Span) { list = append(list, spans...) }
	name := func(n Name) { add(n.Span) }
	text := func(t Text) {
		add(t.Span)
		for _, p := range t.Parts {
			add(p.Span)
		}
	}
	with := func(list []Option) {
		for _, o := range list {
			add(o.Span, o.Name.Span, o.Value.Span)
			text(o.Value.Text)
		}
	}
	if s.Pipeline != nil {
		add(s.Pipeline.Span, s.Pipeline.Name.Span)
		with(s.Pipeline.With)
	}
	for _, a := range s.Attaches {
		add(a.Span, a.Name.Span, a.typeSpan)
		text(a.Target)
	}
	for _, v := range s.Variables {
		add(v.Span, v.Name.Span)
	}
	for _, src := range s.Sources {
		add(src.Span, src.Head, src.EnvSpan, src.Name.Span)
		text(src.From)
		if q := src.FromTable; q != nil {
			add(q.Span)
		}
		for _, c := range src.Columns {
			add(c.Span, c.Name.Span, c.metadataSpan)
		}
		for _, k := range src.Key {
			name(k)
		}
		if w := src.Watermark; w != nil {
			add(w.Span, w.Column.Span)
		}
		for _, c := range src.Checks {
			add(c.Span, c.Name.Span)
		}
		with(src.With)
	}
	for _, v := range s.Views {
		add(v.Span, v.Name.Span)
	}
	for _, n := range s.Sinks {
		add(n.Span, n.Head, n.EmitSpan, n.Name.Span)
		for _, k := range n.Key {
			name(k)
		}
		with(n.With)
	}
	for _, l := range append(s.Tests, s.Audits...) {
		add(l.Span, l.Name.Span)
	}
	for _, e := range exprs(s) {
		add(e.Span)
	}
	return list
}

// exprs is every untouched piece of SQL of a script.
func exprs(s *Script) []Expr {
	var list []Expr
	for _, v := range s.Variables {
		list = append(list, v.Value)
	}
	for _, src := range s.Sources {
		for _, c := range src.Columns {
			list = append(list, c.Type)
			if c.Kind == Computed {
				list = append(list, c.Expr)
			}
		}
		if src.Watermark != nil {
			list = append(list, src.Watermark.Expr)
		}
		for _, c := range src.Checks {
			list = append(list, c.Expr)
		}
		list = append(list, src.Sequence...)
		if src.Delete != nil {
			list = append(list, *src.Delete)
		}
	}
	for _, v := range s.Views {
		list = append(list, v.Select)
	}
	for _, n := range s.Sinks {
		list = append(list, n.Select)
	}
	return list
}
