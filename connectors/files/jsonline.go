package files

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"lockstep/connectors"
)

// DuckDB's JSON functions pass every number with a point through a DOUBLE, take {"a":1,} for JSON, and
// round 1.5 to a BIGINT of 2. So lines are taken apart here, strictly as RFC 8259 says, into the text
// of each declared column; from then on they are decoded as CSV is, with all digits there.

// kind is what a JSON value is.
type kind byte

const (
	isAbsent kind = iota
	isNull
	isText
	isNumber
	isBoolean
	isList
	isObject
	kinds
)

func (k kind) String() string {
	return [...]string{"absent", "null", "a string", "a number", "a boolean", "a list", "an object"}[k]
}

// jsonColumn is a declared column and which values it takes.
type jsonColumn struct {
	name  string
	typ   string
	takes [kinds]bool
	raw   bool // takes the JSON itself
}

func jsonColumnOf(c connectors.SourceColumn) jsonColumn {
	j := jsonColumn{name: c.Name, typ: c.Type}
	_, isDecimal := decimalOf(c.Type)
	switch {
	case c.Type == "JSON":
		j.raw = true
		for k := range j.takes {
			j.takes[k] = true
		}
	case isInteger(c.Type) || isDecimal || c.Type == "DOUBLE" || c.Type == "FLOAT":
		j.takes[isNumber] = true
	case c.Type == "BOOLEAN":
		j.takes[isBoolean] = true
	}
	j.takes[isText] = true // decoded by the rules of the type
	return j
}

// wrong says why a column does not take a value.
func (j jsonColumn) wrong(k kind) string {
	needs := "a string"
	switch {
	case j.takes[isNumber]:
		needs = "a number"
	case j.takes[isBoolean]:
		needs = "true or false"
	}
	return fmt.Sprintf("column %q: is %s, but %s needs %s", j.name, k, j.typ, needs)
}

// span is where a value stands in a line.
type span struct {
	kind     kind
	from, to int
	exact    bool // the key is written as the column is
}

// jsonLine takes lines apart. It is not safe for use by several goroutines.
type jsonLine struct {
	columns []jsonColumn
	exact   map[string]int // columns by name
	folded  map[string]int // by name in lower case; -1 when several have it
	values  []span         // of the line, per column
	b       []byte
	at      int
	scratch []byte
	// Lines of a file mostly have the same keys in the same order: what the nth key of the line before
	// was is looked at first.
	keys  [][]byte
	found []keyMatch
}

type keyMatch struct {
	column int // -1: none
	exact  bool
}

func newJSONLine(columns []connectors.SourceColumn) *jsonLine {
	l := &jsonLine{exact: map[string]int{}, folded: map[string]int{}}
	for i, c := range columns {
		l.columns = append(l.columns, jsonColumnOf(c))
		l.exact[c.Name] = i
		lower := strings.ToLower(c.Name)
		if _, several := l.folded[lower]; several {
			l.folded[lower] = -1
		} else {
			l.folded[lower] = i
		}
	}
	l.values = make([]span, len(columns))
	return l
}

const maxDepth = 1000 // of lists and objects in each other

var errNotJSON = errors.New("is not JSON")

// parse fills in values, or says what is wrong with the line.
func (l *jsonLine) parse(line []byte) (problem string) {
	clear(l.values)
	l.b, l.at = line, 0
	if !utf8.Valid(line) {
		return "is not valid utf-8"
	}
	l.space()
	if l.at < len(l.b) && l.b[l.at] != '{' {
		if _, err := l.value(0); err == nil && l.end() {
			return "is not an object but another kind of JSON; each line must be an object"
		}
		return "is not a JSON object"
	}
	problem, err := l.object()
	switch {
	case err != nil || !l.end():
		return fmt.Sprintf("is not a JSON object: unexpected %s at character %d", l.unexpected(), utf8.RuneCount(l.b[:l.at])+1)
	case problem != "":
		return problem
	}
	for i, v := range l.values {
		if v.kind > isNull && !l.columns[i].takes[v.kind] {
			return l.columns[i].wrong(v.kind)
		}
	}
	return ""
}

func (l *jsonLine) unexpected() string {
	if l.at >= len(l.b) {
		return "end"
	}
	r, _ := utf8.DecodeRune(l.b[l.at:])
	return fmt.Sprintf("%q", r)
}

// object reads the line's object. A problem is one of columns; the text is JSON all the same.
func (l *jsonLine) object() (problem string, err error) {
	for n := 0; ; n++ {
		key, more, err := l.key(n == 0)
		if err != nil || !more {
			return problem, err
		}
		m := l.lookup(n, key)
		v, err := l.value(1)
		if err != nil {
			return problem, err
		}
		if m.column < 0 {
			continue
		}
		v.exact = m.exact
		switch have := &l.values[m.column]; {
		case have.kind == isAbsent || m.exact && !have.exact:
			*have = v
		case m.exact == have.exact:
			problem = fmt.Sprintf("column %q: the key is there more than once", l.columns[m.column].name)
		}
	}
}

// key reads what comes before a value of an object: its opening or a comma, the key, the colon. At the
// closing there is no more.
func (l *jsonLine) key(first bool) (key span, more bool, err error) {
	if first {
		if err := l.take('{'); err != nil {
			return key, false, err
		}
	}
	l.space()
	if l.is('}') {
		l.at++
		return key, false, nil
	}
	if !first {
		if err := l.take(','); err != nil {
			return key, false, err
		}
		l.space()
	}
	if key, err = l.str(); err != nil {
		return key, false, err
	}
	l.space()
	if err := l.take(':'); err != nil {
		return key, false, err
	}
	l.space()
	return key, true, nil
}

// lookup finds the column of the nth key: one of that name, or else the only one that is the same but
// for letter case, as with the header of a CSV file.
func (l *jsonLine) lookup(n int, key span) keyMatch {
	name := l.b[key.from:key.to]
	if n < len(l.keys) && bytes.Equal(l.keys[n], name) {
		return l.found[n]
	}
	m := keyMatch{column: -1}
	decoded := l.content(key)
	if i, ok := l.exact[string(decoded)]; ok {
		m = keyMatch{i, true}
	} else if i, ok := l.folded[strings.ToLower(string(decoded))]; ok {
		m = keyMatch{column: i}
	}
	switch {
	case n < len(l.keys):
		l.keys[n], l.found[n] = append(l.keys[n][:0], name...), m
	case n == len(l.keys) && n < maxDepth:
		l.keys, l.found = append(l.keys, bytes.Clone(name)), append(l.found, m)
	}
	return m
}

// text returns the text of a column's value; nil for NULL. It is valid until the next call.
func (l *jsonLine) text(column int) []byte {
	v := &l.values[column]
	switch {
	case v.kind <= isNull:
		return nil
	case l.columns[column].raw || v.kind != isText:
		if v.kind == isText {
			return l.b[v.from-1 : v.to+1] // with its quotes
		}
		return l.b[v.from:v.to]
	}
	return l.content(*v)
}
