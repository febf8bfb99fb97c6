package sql

import "strings"

// check reports what is wrong with the statements together. Where a statement could not be read,
// nothing is said about what the file lacks: it may well be there.
func check(s *Script, f *faults) {
	checkNames(s, f)
	for _, src := range s.Sources {
		checkSource(src, f)
	}
	if s.Pipeline != nil {
		checkOptions(s.Pipeline.With, f)
	}
	checkSinks(s, f)
}

// unique reports names that are there twice, letter case aside.
type unique struct {
	seen   map[string]string // lower case -> what has it
	faults *faults
}

func newUnique(f *faults) unique { return unique{map[string]string{}, f} }

// add reports whether what (as in: "source") may have the name.
func (u unique) add(what, name string, span Span) bool {
	key := strings.ToLower(name)
	prior, taken := u.seen[key]
	if !taken {
		u.seen[key] = what
		return true
	}
	hint := ""
	if prior != what {
		hint = "there is a " + prior + " of that name"
	}
	u.faults.add(span, hint, "%s %q is declared twice", what, name)
	return false
}

var (
	reservedDatabases = map[string]bool{"etl": true, "main": true, "temp": true, "system": true, "memory": true}
	reservedSchemas   = map[string]bool{"etl": true, "information_schema": true, "pg_catalog": true, "temp": true}
)

func checkNames(s *Script, f *faults) {
	databases, variables, later := newUnique(f), newUnique(f), newUnique(f)
	for _, n := range s.Attaches {
		databases.add("database", n.Name.Text, n.Name.Span)
		if reservedDatabases[strings.ToLower(n.Name.Text)] {
			f.add(n.Name.Span, "choose another name, such as mart", "the name %s is DuckDB's or the engine's own", n.Name.Text)
		}
		target, fixed := n.Target.literal()
		if fixed && n.Type == "duckdb" && (strings.HasPrefix(target, "postgres://") || strings.HasPrefix(target, "postgresql://")) {
			f.add(n.Target.Span, "add (TYPE postgres) after the name", "this is the address of a Postgres database")
		}
	}
	for _, n := range s.Variables {
		variables.add("variable", n.Name.Text, n.Name.Span)
	}
	for _, n := range s.Tests {
		later.add("test", n.Name.Text, n.Name.Span)
	}
	for _, n := range s.Audits {
		later.add("audit", n.Name.Text, n.Name.Span)
	}
	// Sources and views are what a SELECT can name: they share one set of names.
	relations := newUnique(f)
	for _, r := range inOrder(s) {
		relations.add(r.what, r.name.Text, r.name.Span)
	}
}

type relation struct {
	what string
	name Name
}

// inOrder is the sources and views as they stand in the file, so that a fault points at the later.
func inOrder(s *Script) []relation {
	var list []relation
	sources, views := s.Sources, s.Views
	for len(sources)+len(views) > 0 {
		if len(views) == 0 || len(sources) > 0 && sources[0].Span.Start < views[0].Span.Start {
			list = append(list, relation{"source", sources[0].Name})
			sources = sources[1:]
		} else {
			list = append(list, relation{"view", views[0].Name})
			views = views[1:]
		}
	}
	return list
}

// metadata are the names METADATA FROM can give: of files, then of Kafka.
var metadata = []string{"filename", "file_row_number", "key", "partition", "offset", "timestamp", "headers"}

func checkSource(s *Source, f *faults) {
	columns, constraints := newUnique(f), newUnique(f)
	var names []string
	input := false
	for _, c := range s.Columns {
		columns.add("column", c.Name.Text, c.Name.Span)
		names = append(names, c.Name.Text)
		switch c.Kind {
		case Input:
			input = true
		case Metadata:
			checkMetadata(c, f)
		}
	}
	for _, c := range s.Checks {
		if c.Name.Text != "" {
			constraints.add("constraint", c.Name.Text, c.Name.Span)
		}
	}
	// A source that declares no input column takes them from its file. One with an unreadable item
	// may have meant the column there.
	declared := func(n Name, what string) {
		if _, ok := columns.seen[strings.ToLower(n.Text)]; !ok && input && !s.partial {
			f.add(n.Span, didYouMean(n.Text, names), "%s names column %q, which source %s does not declare", what, n.Text, s.Name.Text)
		}
	}
	key := newUnique(f)
	for _, n := range s.Key {
		if key.add("key column", n.Text, n.Span) {
			declared(n, "PRIMARY KEY")
		}
	}
	if s.Watermark != nil {
		declared(s.Watermark.Column, "WATERMARK")
	}
	checkOptions(s.With, f)
	checkFiles(s.With, f)
}

func checkMetadata(c Column, f *faults) {
	for _, m := range metadata {
		if c.Metadata == m {
			return
		}
	}
	hint := didYouMean(c.Metadata, metadata)
	if hint == "" {
		hint = "there are " + strings.Join(metadata[:2], ", ") + " for files; " + strings.Join(metadata[2:], ", ") + " for Kafka"
	}
	f.add(c.metadataSpan, hint, "there is no metadata %q", c.Metadata)
}

func checkOptions(list []Option, f *faults) {
	names := newUnique(f)
	for _, o := range list {
		names.add("option", o.Name.Text, o.Name.Span)
	}
}

var filesModes = []string{"append", "growing", "replace", "snapshot"}

func checkFiles(list []Option, f *faults) {
	for _, o := range list {
		mode, known := o.filesMode()
		if known || !strings.EqualFold(o.Name.Text, "files") {
			continue
		}
		hint := didYouMean(mode, filesModes)
		if hint == "" {
			hint = "it is 'append', 'growing', 'replace' or 'snapshot'"
		}
		f.add(o.Value.Span, hint, "files has no such value")
	}
}

// FilesMode is what the option files of a source says, append when it is not given.
func (s *Source) FilesMode() string {
	for _, o := range s.With {
		if strings.EqualFold(o.Name.Text, "files") {
			if mode, known := o.filesMode(); known {
				return mode
			}
		}
	}
	return "append"
}

// filesMode is the value of the option files, and whether it is one of filesModes.
func (o Option) filesMode() (string, bool) {
	mode, fixed := o.Value.Text.literal()
	if !fixed {
		return "", false
	}
	for _, m := range filesModes {
		if mode == m {
			return mode, true
		}
	}
	return mode, false
}

func checkSinks(s *Script, f *faults) {
	if len(s.Sinks) == 0 && !f.lostSink {
		at := len(strings.TrimRight(s.Text, " \t\r\n"))
		f.add(Span{at, at}, "add CREATE SINK database.table PRIMARY KEY (…) AS SELECT …", "the pipeline has no sink")
	}
	if len(s.Sinks) > 0 && len(s.Attaches) == 0 && !f.lostAttach {
		f.add(s.Sinks[0].Name.Span, "add ATTACH 'mart.duckdb' AS mart;", "no database is attached for the sinks")
	}
	for _, n := range s.Sinks {
		checkOptions(n.With, f)
		key := newUnique(f)
		for _, c := range n.Key {
			key.add("key column", c.Text, c.Span)
		}
	}
	checkTables(s, f)
}

// checkTables reports sinks whose table is not one of its own in the one destination.
func checkTables(s *Script, f *faults) {
	attached := map[string]*Attach{}
	var names []string
	for _, a := range s.Attaches {
		attached[strings.ToLower(a.Name.Text)] = a
		names = append(names, a.Name.Text)
	}
	tables := map[string]bool{}
	destination := ""
	for _, n := range s.Sinks {
		if len(n.Name.Parts) == 1 {
			database := "database"
			if len(names) > 0 {
				database = names[0]
			}
			f.add(n.Name.Span, "write "+database+"."+n.Name.String(), "sink %s does not say in which database it is", n.Name)
			continue
		}
		db := n.Name.Parts[0]
		a := attached[strings.ToLower(db.Text)]
		switch {
		case a == nil && len(names) > 0 && !f.lostAttach:
			f.add(db.Span, didYouMean(db.Text, names), "no database %q is attached", db.Text)
		case destination == "":
			destination = db.Text
		case !strings.EqualFold(destination, db.Text):
			f.add(db.Span, "rows and positions commit in one transaction of one database: make it two pipelines",
				"sinks in two databases: %s and %s", destination, db.Text)
		}
		if schema := n.Name.Parts[1].Text; len(n.Name.Parts) == 3 && reservedSchemas[strings.ToLower(schema)] {
			f.add(n.Name.Parts[1].Span, "choose another schema", "the schema %s is not for tables of a pipeline", schema)
		}
		table := tableID(n.Name, a)
		if tables[table] {
			f.add(n.Name.Span, "", "sink %q is declared twice", n.Name)
		}
		tables[table] = true
	}
}

// tableID tells tables apart: letter case does not, and the schema is main, or public in a Postgres
// database, unless given.
func tableID(q QName, a *Attach) string {
	var parts []string
	for _, n := range q.Parts {
		parts = append(parts, quoteString(strings.ToLower(n.Text)))
	}
	if len(parts) == 2 && a != nil {
		parts = []string{parts[0], map[string]string{"duckdb": "'main'", "postgres": "'public'"}[a.Type], parts[1]}
	}
	return strings.Join(parts, ".")
}
