package planner

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lockstep/sql"
)

// scope is what a SELECT may name: the sources, and the views above it in the file.
type scope struct {
	names     []string            // as declared
	columns   map[string][]string // by lower-case name
	broken    map[string]bool     // lower case: has faults itself, so what reads it is not bound
	guessed   map[string]bool     // lower case: sources of which a column got a type in the place of a faulty one
	later     map[string]bool     // lower case: views further down
	variables []string
	functions []string // for suggestions
}

func newScope() *scope {
	return &scope{columns: map[string][]string{}, broken: map[string]bool{}, guessed: map[string]bool{}, later: map[string]bool{}}
}

func (s *scope) add(name string, columns []string) {
	if _, again := s.columns[strings.ToLower(name)]; !again {
		s.names = append(s.names, name)
	}
	s.columns[strings.ToLower(name)] = columns
}

// table checks what stands in a FROM.
func (g *gate) table(o object, pos int) {
	name := text(o, "table_name")
	lower := strings.ToLower(name)
	if schema := text(o, "catalog_name"); schema != "" || text(o, "schema_name") != "" {
		full := strings.Trim(schema+"."+text(o, "schema_name")+"."+name, ".")
		g.refuse(pos, "declare what is read with CREATE SOURCE", "a pipeline reads its sources only, not the table %s", strings.ReplaceAll(full, "..", "."))
		return
	}
	if slices.ContainsFunc(g.ctes, func(c string) bool { return strings.EqualFold(c, name) }) {
		return
	}
	if _, ok := g.scope.columns[lower]; ok {
		g.reads[lower] = true
		return
	}
	candidates := append(slices.Clone(g.scope.names), g.ctes...)
	hint := didYouMean(name, candidates)
	switch {
	case g.scope.later[lower]:
		g.refuse(pos, "move it up: a view can be read below it only", "view %s is declared further down", name)
		return
	case hint != "":
	case strings.ContainsAny(name, "./*"):
		hint = "declare it: CREATE SOURCE name FROM '" + name + "', and read the name"
	case len(g.scope.names) > 0:
		hint = "there is " + shortList(g.scope.names)
	}
	g.refuse(pos, hint, "there is no source or view %s", name)
}

func (g *gate) tableFunction(o object) {
	fn := child(o, "function")
	pos := g.at(o)
	if pos < 0 {
		pos = g.at(fn)
	}
	name := strings.ToLower(text(fn, "function_name"))
	switch name {
	case "tumble", "hop", "session":
		g.refuse(pos, "group by date_trunc('hour', ts) or time_bucket(INTERVAL '1 hour', ts)", "window table function %s is not supported by this version", name)
	default:
		g.refuse(pos, "declare what is read with CREATE SOURCE", "table function %s is not a source", name)
	}
}

// improve gives a refusal of DuckDB's a hint from what the query reads, and a place when it has none.
func (g *gate) improve(r *refusal) {
	switch {
	case strings.HasPrefix(r.msg, "GROUP BY term out of range"):
		r.pos = g.ordinal()
	case strings.HasPrefix(r.msg, "set operations can only apply"):
		r.pos, r.msg = g.setOp, "the SELECTs of a set operation have different numbers of columns"
	case r.pos < 0:
		r.pos = g.find(r.names)
	}
	if r.pos < 0 && len(g.macros) > 0 {
		r.pos, r.msg = g.macros[0].pos, "in "+g.macros[0].name+": "+r.msg
	}
	if len(r.names) == 0 {
		return
	}
	name := r.names[0]
	if r.about == "ungrouped" && !slices.ContainsFunc(g.columns, func(c string) bool { return strings.EqualFold(c, name) }) {
		r.about, r.hint, r.msg = "column", "", fmt.Sprintf("there is no column %q", name)
	}
	if r.hint != "" {
		return
	}
	switch r.about {
	case "column":
		if r.hint = didYouMean(name, g.columns); r.hint == "" {
			r.hint = g.columnList()
		}
	case "function":
		r.hint = didYouMean(name, g.scope.functions)
	case "type":
		r.hint = didYouMean(name, typeNames)
	}
}

// ordinal is the place of the first number in a GROUP BY that no column has.
func (g *gate) ordinal() int {
	for _, it := range g.items {
		if n, err := strconv.Atoi(g.snippet(it)); it.kind == groupItem && err == nil && (n < 1 || n > g.width(it.sel)) {
			return it.start
		}
	}
	return -1
}

// width is the number of columns of a SELECT.
func (g *gate) width(sel int) int {
	n := 0
	for _, it := range g.items {
		if it.kind == selectItem && it.sel == sel {
			n++
		}
	}
	return n
}

// columnList tells the columns when the query reads a single relation.
func (g *gate) columnList() string {
	if len(g.reads) != 1 {
		return ""
	}
	for _, n := range g.scope.names {
		if columns := g.scope.columns[strings.ToLower(n)]; g.reads[strings.ToLower(n)] && len(columns) > 0 {
			return n + " has " + shortList(columns)
		}
	}
	return ""
}

func shortList(names []string) string {
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

var typeNames = strings.Fields(`BIGINT BLOB BOOLEAN DATE DECIMAL DOUBLE FLOAT HUGEINT INTEGER INTERVAL SMALLINT TEXT
TIME TIMESTAMP TIMESTAMPTZ TINYINT UBIGINT UINTEGER USMALLINT UTINYINT UUID VARCHAR JSON STRUCT NUMERIC REAL STRING`)

// find looks for the first of the names that the author wrote, as a column, a constant or a function.
func (g *gate) find(names []string) int {
	for _, name := range names {
		if len(name) == 0 {
			continue
		}
		for _, w := range g.named {
			if strings.EqualFold(w.name, name) {
				return w.pos
			}
		}
		// In an EXCLUDE list DuckDB's tree has no position.
		whole := regexp.MustCompile(`(?i)(?:^|\W)(` + regexp.QuoteMeta(name) + `)(?:\W|$)`)
		for _, it := range g.items {
			if len(name) < 2 && isWord(name[0]) {
				continue
			}
			if m := whole.FindStringSubmatchIndex(g.text[it.start:it.end]); m != nil {
				return it.start + m[2]
			}
		}
	}
	return -1
}

// faultOf points a refusal at the author's text.
func (p *planning) faultOf(head sql.Span, r *refusal) {
	span := head
	if r.pos >= 0 {
		span = wordAt(p.script.Text, r.pos)
	}
	p.fault(span, r.hint, "%s", r.msg)
}
