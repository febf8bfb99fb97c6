package sql

import "strings"

// Unsupported returns what the file says that this version cannot do yet, in order of position.
// It is kept apart from Parse so that the grammar is whole, and each of these is one line to
// remove on the day the engine can do it.
func (s *Script) Unsupported() []*Error {
	f := &faults{script: s}
	later := func(span Span, what, instead string) {
		f.add(span, instead, "%s not supported by this version", what)
	}
	for _, t := range s.Tests {
		later(t.Name.Span, "CREATE TEST is", "remove it, and run the pipeline on a folder with a small input")
	}
	for _, a := range s.Audits {
		later(a.Name.Span, "CREATE AUDIT is", "remove it, and query the table after the run")
	}
	for _, src := range s.Sources {
		unsupportedSource(src, later)
		unsupportedFiles(src.With, later)
	}
	for _, n := range s.Sinks {
		if n.EmitFinal {
			later(n.EmitSpan, "EMIT FINAL is", "remove it: a window is then updated for as long as rows for it arrive")
		}
	}
	return f.errors()
}

func unsupportedSource(s *Source, later func(Span, string, string)) {
	if len(s.Key) > 0 {
		span := Span{s.Key[0].Span.Start, s.Key[len(s.Key)-1].Span.End}
		later(span, "PRIMARY KEY of a source is", "remove it: every row of the input is a new row")
	}
	if s.FromTable != nil {
		later(s.FromTable.Span, "FROM a table is", "write the table's rows to Parquet or CSV files, and name them: FROM 'path/*.parquet'")
	}
	if s.Envelope != "NONE" {
		later(s.EnvSpan, "ENVELOPE "+s.Envelope+" is", "read files whose rows are all new, without ENVELOPE")
	}
}

func unsupportedFiles(with []Option, later func(Span, string, string)) {
	for _, o := range with {
		if !strings.EqualFold(o.Name.Text, "files") {
			continue
		}
		if mode, known := o.filesMode(); known && mode != "append" && mode != "replace" {
			later(o.Span, "files = '"+mode+"' is", "write each change to a new file: files = 'append'; or write changed files anew: files = 'replace'")
		}
	}
}
