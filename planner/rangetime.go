package planner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lockstep/engine/duck"
)

// Where keys follow from the event time of a row, a range of keys is one of times, and tells which files can
// have rows in it. An expression follows from the event time when it never goes down while that goes up: a
// cast to DATE, date_trunc, time_bucket. Local time does, by an hour once a year and by a day where a date
// line was moved: it is looked at hour by hour, for as long as it may go back, a day and three hours.

// Files are two conditions over lo and hi, the earliest and the latest event time of some rows, of the type
// of the source's event time: that some of the rows may be needed, and that all are inside, whatever they
// are. Rows without a time, or with an infinite one, must be between them. "true" and "false" where nothing
// follows from times.
func (r *Range) Files(source string) (possible, certain string) {
	s, ok := r.source(source)
	if !ok || r.Whole != "" {
		return "true", "false"
	}
	at := s.eventTime() // -1 without one: constants are true or false all the same
	t := timeTest{at: at, nullable: at < 0 || !s.Columns[at].NotNull}
	var some, all []string
	for _, way := range r.paths[s.Name] {
		may, surely := []string{t.possible(way.in)}, t.certain(way.in)
		out := "false" // no row takes this way
		for _, g := range way.guards {
			passes := t.possible(g)
			may = append(may, passes)
			if passes != "true" {
				out += " OR NOT " + passes
			}
		}
		some = append(some, "("+strings.Join(may, " AND ")+")")
		all = append(all, "("+surely+" OR "+out+")")
	}
	if len(some) == 0 {
		return "false", "false"
	}
	certain = "(" + strings.Join(all, " AND ") + ")"
	return "(" + strings.Join(some, " OR ") + ")", certain
}

func (r *Range) source(name string) (Source, bool) {
	i := slices.IndexFunc(r.plan.Sources, func(s Source) bool { return s.Name == name })
	if i < 0 {
		return Source{}, false
	}
	return r.plan.Sources[i], true
}

// eventTime is the index of the column.
func (s Source) eventTime() int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == s.EventTime })
}

// timeTest writes what a condition on a row says of all rows between two times.
type timeTest struct {
	at       int  // the column
	nullable bool // rows without a time are between no times
}

// possible is true when some row between the times may fulfil the condition.
func (t timeTest) possible(e *Expr) string {
	return t.write(e, "true", func(c chain, op, value string) string {
		within := func(low, high string) string {
			return map[string]string{
				"=": low + " <= " + value + " AND " + high + " >= " + value,
				"<": low + " < " + value, "<=": low + " <= " + value, ">": high + " > " + value, ">=": high + " >= " + value,
			}[op]
		}
		exact := within(c.low("lo", "hi"), c.high("lo", "hi"))
		if !c.local || exact == "" {
			return exact
		}
		return "CASE WHEN coalesce(" + within(c.least("lo"), c.most("hi")) + ", true) THEN " + exact + " ELSE false END"
	}, t.possible)
}

// certain is true when every row between the times fulfils it.
func (t timeTest) certain(e *Expr) string {
	return t.write(e, "false", func(c chain, op, value string) string {
		if t.nullable {
			return ""
		}
		low, high := c.low("lo", "hi"), c.high("lo", "hi")
		return map[string]string{
			"=": low + " = " + value + " AND " + high + " = " + value,
			"<": high + " < " + value, "<=": high + " <= " + value, ">": low + " > " + value, ">=": low + " >= " + value,
		}[op]
	}, t.certain)
}

// write goes through AND, OR and comparisons with constants; unknown is for everything else.
func (t timeTest) write(e *Expr, unknown string, compare func(c chain, op, value string) string, again func(*Expr) string) string {
	known := func(s string) string { return "coalesce(TRY(" + s + "), " + unknown + ")" }
	each := func(args []*Expr, sep string) string {
		out := make([]string, len(args))
		for i, a := range args {
			out[i] = again(a)
		}
		return "(" + strings.Join(out, sep) + ")"
	}
	switch {
	case e.constant():
		return "coalesce(" + e.sql(cols("")) + ", false)"
	case e.Op == opAnd:
		return each(e.Args, " AND ")
	case e.Op == opOr:
		return each(e.Args, " OR ")
	case e.Op == opCompare:
		op, left, right := e.Name, e.Args[0], e.Args[1]
		if left.constant() {
			op, left, right = turned[op], right, left
		}
		if c, ok := t.chain(left); ok && right.constant() {
			if s := compare(c, op, right.sql(cols(""))); s != "" {
				return known(s)
			}
		}
	case e.Op == opIn:
		c, ok := t.chain(e.Args[0])
		if !ok || slices.ContainsFunc(e.Args[1:], func(a *Expr) bool { return !a.constant() }) {
			return unknown
		}
		var out []string
		for _, a := range e.Args[1:] {
			if s := compare(c, "=", a.sql(cols(""))); s != "" {
				out = append(out, known(s))
			}
		}
		if len(out) == 0 {
			return unknown
		}
		return "(" + strings.Join(out, " OR ") + ")"
	}
	return unknown
}

var turned = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// chain writes an expression that follows from the event time, for times from lo to hi: the least and the
// most that it can be, and what it is at one time.
type chain struct {
	low, high func(lo, hi string) string
	at        func(time string) string
	// least and most are other bounds of low and high for local time, which are quickly computed.
	least, most func(time string) string
	local       bool // it has a local time in it
}

// of wraps a function that never goes down around the chain.
func (c chain) of(write func(string) string) chain {
	return chain{
		low:   func(lo, hi string) string { return write(c.low(lo, hi)) },
		high:  func(lo, hi string) string { return write(c.high(lo, hi)) },
		at:    func(time string) string { return write(c.at(time)) },
		least: func(time string) string { return write(c.least(time)) },
		most:  func(time string) string { return write(c.most(time)) },
		local: c.local,
	}
}

// zoned wraps a shift between local time and UTC around the chain. Between two full hours it shifts by what
// it does at the one or at the other.
func (c chain) zoned(shift func(string) string) chain {
	hours := func(least, less, time, forth, back string) string {
		s := time + " " + forth + " to_hours(h)"
		return fmt.Sprintf("%s(list_transform(range(0, 28), lambda h: %s(%s, %s %s INTERVAL '1 hour')))", least, less, shift(s), shift(s+" "+forth+" INTERVAL '1 hour'"), back)
	}
	return chain{
		low:   func(lo, hi string) string { return hours("list_min", "least", c.low(lo, hi), "+", "-") },
		high:  func(lo, hi string) string { return hours("list_max", "greatest", c.high(lo, hi), "-", "+") },
		at:    func(time string) string { return shift(c.at(time)) },
		least: func(time string) string { return "(" + shift(c.least(time)) + " - INTERVAL '28 hours')" },
		most:  func(time string) string { return "(" + shift(c.most(time)) + " + INTERVAL '28 hours')" },
		local: true,
	}
}

var (
	timeTypes = map[string]bool{"DATE": true, "TIMESTAMP": true, "TIMESTAMP_S": true, "TIMESTAMP_MS": true, "TIMESTAMP_NS": true, "TIMESTAMP WITH TIME ZONE": true}
	truncates = words("date_trunc datetrunc")
)

func (t timeTest) chain(e *Expr) (chain, bool) {
	if e.Op == opRef && e.Ref == t.at {
		same := func(time string) string { return time }
		return chain{
			low: func(lo, _ string) string { return lo }, high: func(_, hi string) string { return hi },
			at: same, least: same, most: same,
		}, true
	}
	switch {
	case e.Op == opCast && timeTypes[e.Type] && timeTypes[e.Args[0].Type]:
		c, ok := t.chain(e.Args[0])
		return c.of(func(x string) string { return "CAST(" + x + " AS " + e.Type + ")" }), ok
	case e.Op != opFunc || len(e.Args) != 2 || !e.Args[0].constant():
	case timeTypes[e.Type] && (truncates[e.Name] || e.Name == "time_bucket"):
		c, ok := t.chain(e.Args[1])
		return c.of(func(x string) string {
			return fmt.Sprintf("%s(%s, %s)", duck.Quote(e.Name), e.Args[0].sql(cols("")), x)
		}), ok
	case e.Name == "timezone" && e.Args[0].Type == "VARCHAR":
		c, ok := t.chain(e.Args[1])
		return c.zoned(func(x string) string { return "timezone(" + e.Args[0].sql(cols("")) + ", " + x + ")" }), ok
	}
	return chain{}, false
}

// During is the range of all keys of a sink that rows with an event time from lo to hi can have, both in
// microseconds since 1970 and both included.
func (p *Plan) During(ctx context.Context, sink Sink, lo, hi int64) (*Range, error) {
	eng, err := duck.Open(ctx, duck.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	var (
		e       *Expr
		columns []string
		whole   [2]bool // a key begins at lo, ends at hi
	)
	for _, k := range sink.key {
		source, c, ok := p.follows(sink, k)
		if !ok {
			continue
		}
		b, err := bounds(ctx, eng, source, c, lo, hi)
		if err != nil {
			return nil, err
		}
		typ := sink.Columns[k].Type
		for _, side := range []struct{ op, value string }{{">=", b.first}, {"<=", b.last}} {
			limit := &Expr{Op: opConst, Name: "CAST(" + duck.Literal(side.value) + " AS " + typ + ")", Type: typ, Pos: -1}
			cond := &Expr{Op: opCompare, Name: side.op, Type: "BOOLEAN", Args: []*Expr{ref(k, typ), limit}, Pos: -1}
			if e == nil {
				e = cond
			} else {
				e = &Expr{Op: opAnd, Type: "BOOLEAN", Args: []*Expr{e, cond}, Pos: -1}
			}
		}
		whole[0], whole[1] = whole[0] || b.begins, whole[1] || b.ends
		columns = append(columns, fmt.Sprintf("%s %s to %s", sink.Columns[k].Name, b.first, b.last))
	}
	if e == nil {
		return p.Everything(p.untimed(sink)), nil
	}
	r := p.rangeOf(sink, e)
	r.Keys, r.Widened = strings.Join(columns, ", "), !whole[0] || !whole[1]
	return r, nil
}

// follows finds how a column of a sink's key follows from the event time of the sink's first source that
// has one.
func (p *Plan) follows(sink Sink, key int) (Source, chain, bool) {
	below := newPushing(p)
	if below.push(sink.root, ref(key, sink.Columns[key].Type), nil) != "" {
		return Source{}, chain{}, false
	}
	for _, s := range p.Sources {
		if s.EventTime == "" {
			continue
		}
		for _, way := range below.paths[s.Name] {
			if c, ok := (timeTest{at: s.eventTime()}).chain(way.in); ok {
				return s, c, true
			}
		}
	}
	return Source{}, chain{}, false
}

type keyBounds struct {
	first, last  string
	begins, ends bool
}

// bounds computes the first and the last key of some times. Within them local time may go back: it is asked
// for every half hour of up to four days, and beyond that a day cannot matter to where it ends.
func bounds(ctx context.Context, eng *duck.Engine, s Source, c chain, lo, hi int64) (keyBounds, error) {
	var b keyBounds
	at := func(us string) string { return c.at(EventTime(s.Columns[s.eventTime()].Type, us)) }
	first, last := at(fmt.Sprint(lo)), at(fmt.Sprint(hi))
	if c.local && hi-lo < 96*3600*1_000_000 {
		between := fmt.Sprintf("(SELECT %%s(%s) FROM range(%d::BIGINT, %d::BIGINT, 1800000000::BIGINT) t(u))", at("u"), lo, hi+1)
		first, last = "least("+first+", "+fmt.Sprintf(between, "min")+")", "greatest("+last+", "+fmt.Sprintf(between, "max")+")"
	}
	query := fmt.Sprintf("SELECT CAST(%s AS VARCHAR), CAST(%s AS VARCHAR), coalesce(%s < %s, true), coalesce(%s < %s, true)",
		first, last, at(fmt.Sprint(lo-1)), at(fmt.Sprint(lo)), at(fmt.Sprint(hi)), at(fmt.Sprint(hi+1)))
	err := eng.QueryRow(ctx, query, nil, &b.first, &b.last, &b.begins, &b.ends)
	return b, err
}

// EventTime writes microseconds since 1970 as an event time of a type.
func EventTime(typ, us string) string {
	switch typ {
	case "TIMESTAMP WITH TIME ZONE":
		return "timezone('UTC', make_timestamp(" + us + "))"
	case "TIMESTAMP":
		return "make_timestamp(" + us + ")"
	}
	return "CAST(make_timestamp(" + us + ") AS " + typ + ")"
}

// ErrTimes says that times or a zone are no range.
var ErrTimes = errors.New("not a range of time")

// written is a date or a time without a zone: DuckDB would leave out a zone without a word.
var written = regexp.MustCompile(`^\s*\d{1,6}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?)?\s*$`)

// Times reads the bounds of a half-open range of event times, written as a date or a time without zone, in
// a time zone. A column without zone is taken to be in that zone. The result is in microseconds since 1970,
// both included, of the column.
func Times(ctx context.Context, typ, from, to, zone string) (lo, hi int64, err error) {
	eng, err := duck.Open(ctx, duck.Options{Threads: 1})
	if err != nil {
		return 0, 0, err
	}
	defer eng.Close()
	read := func(what, query string, into any) error {
		if err := eng.QueryRow(ctx, query, nil, into); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%w: %s", ErrTimes, what)
		}
		return nil
	}
	var ignored any
	if err := read("time zone "+zone, "SELECT timezone("+duck.Literal(zone)+", TIMESTAMP '2024-01-01')", &ignored); err != nil {
		return 0, 0, err
	}
	for _, b := range []struct {
		text string
		into *int64
	}{{from, &lo}, {to, &hi}} {
		if !written.MatchString(b.text) {
			return 0, 0, fmt.Errorf("%w: %s is not written as a date, or a time without an offset", ErrTimes, b.text)
		}
		at := "CAST(" + duck.Literal(b.text) + " AS TIMESTAMP)"
		if typ == "TIMESTAMP WITH TIME ZONE" {
			at = "timezone(" + duck.Literal(zone) + ", " + at + ")"
		}
		if err := read(b.text, "SELECT epoch_us("+at+")", b.into); err != nil {
			return 0, 0, err
		}
	}
	if lo >= hi {
		return 0, 0, fmt.Errorf("%w: %s is not before %s", ErrTimes, from, to)
	}
	return lo, hi - 1, nil
}

// EventTime is the type of the event time that the key of a sink follows from, or why there is none.
func (p *Plan) EventTime(sink Sink) (typ, why string) {
	for _, k := range sink.key {
		if s, _, ok := p.follows(sink, k); ok {
			return s.Columns[s.eventTime()].Type, ""
		}
	}
	return "", p.untimed(sink)
}

// untimed says why no range of keys is one of times.
func (p *Plan) untimed(sink Sink) string {
	for _, s := range p.Sources {
		if s.EventTime != "" && sink.reads(map[string][]path{s.Name: {{}}}) {
			return fmt.Sprintf("no column of the key of %s follows from %s", sink.Name, s.EventTime)
		}
	}
	return fmt.Sprintf("no source of %s has WATERMARK FOR, which tells the event time of its rows", sink.Name)
}
