package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"lockstep/sql"
)

// Hash identifies what a pipeline means, in four parts that decide what a change costs. Comments,
// formatting, letter case, inner aliases, limits and what getenv supplies are not in it.
type Hash struct {
	ID        string // over the four parts
	Input     string // sources: name, format, columns, reader options, literal path
	State     string // groups, accumulated functions and arguments, filters below them
	Output    string // expressions above the state, HAVING, sink table, columns, key
	Env       string // time zone, DuckDB, version of the canonical form
	Canonical string // what was hashed, as JSON
	DuckDB    string // the version that bound it, part of Env
}

// CanonVersion is the version of the canonical form that Hash is computed over.
const CanonVersion = canonVersion

type canonical struct {
	Sources []canonicalSource `json:"sources"`
	State   []canonicalState  `json:"state"`
	Sinks   []canonicalSink   `json:"sinks"`
	Env     []string          `json:"env"`
	// Pinned are all columns of the sources that declare none, as they were taken from the input. They
	// are stored with the plan and not hashed: those that are read count as part of the source.
	Pinned map[string][]pinnedColumn `json:"pinned,omitempty"`
}

type pinnedColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Pinned reads from a stored canonical form which columns its plan took from the input, by source.
// Later runs go on with these, whatever files are there then.
func Pinned(canonicalForm string) map[string][]Column {
	var c canonical
	if json.Unmarshal([]byte(canonicalForm), &c) != nil {
		return nil // of a version that pinned nothing
	}
	out := map[string][]Column{}
	for source, columns := range c.Pinned {
		for _, col := range columns {
			out[source] = append(out[source], Column{Name: col.Name, Type: col.Type})
		}
	}
	return out
}

type canonicalSource struct {
	Name      string   `json:"name"`
	From      string   `json:"from"`
	Columns   []string `json:"columns"`
	Checks    []string `json:"checks,omitempty"`
	Options   []string `json:"options"`
	Watermark string   `json:"watermark,omitempty"`
}

type canonicalState struct {
	Step  string   `json:"step"`
	Rows  string   `json:"rows"`
	Keeps []string `json:"keeps"` // accumulators, singly: function, argument, filter
}

type canonicalSink struct {
	Table   string   `json:"table"`
	Key     []string `json:"key"`
	Columns []string `json:"columns"`
	Rows    string   `json:"rows"`
}

// notMeaning lists WITH options that change how a pipeline runs and not what it computes.
var notMeaning = words("max_batch_rows max_batch_bytes max_rejects repeats")

func hashOf(p *Plan, duckdbVersion string) (Hash, error) {
	c := canonical{Env: []string{"UTC", duckdbVersion, fmt.Sprint(canonVersion)}}
	used := usedColumns(p)
	for _, s := range p.Sources {
		c.Sources = append(c.Sources, canonSource(s, used[s.Name]))
	}
	slices.SortFunc(c.Sources, func(a, b canonicalSource) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range p.Sinks {
		c.Sinks = append(c.Sinks, canonSink(s))
	}
	c.State = append(c.State, p.state...)
	slices.SortFunc(c.Sinks, func(a, b canonicalSink) int { return strings.Compare(a.Table, b.Table) })
	slices.SortFunc(c.State, func(a, b canonicalState) int { return strings.Compare(a.Step, b.Step) })
	for _, s := range p.Sources {
		if len(s.Decl.Columns) > 0 {
			continue
		}
		if c.Pinned == nil {
			c.Pinned = map[string][]pinnedColumn{}
		}
		for _, col := range s.Shown() {
			c.Pinned[s.Name] = append(c.Pinned[s.Name], pinnedColumn{col.Name, col.Type})
		}
	}
	doc, err := json.Marshal(c)
	if err != nil {
		return Hash{}, err
	}
	h := Hash{Canonical: string(doc), Input: digest(c.Sources), State: digest(c.State), Output: digest(c.Sinks), Env: digest(c.Env), DuckDB: duckdbVersion}
	h.ID = digest([]string{h.Input, h.State, h.Output, h.Env})
	return h, nil
}

func digest(v any) string {
	doc, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and slices of them always marshal
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}

// usedColumns lists, per source, the columns that the plan reads.
func usedColumns(p *Plan) map[string]map[string]bool {
	used := map[string]map[string]bool{}
	for _, s := range p.Sinks {
		walkNodes(s.root, func(n Node) {
			scan, ok := n.(*Scan)
			if !ok {
				return
			}
			if used[scan.Source] == nil {
				used[scan.Source] = map[string]bool{}
			}
			for _, c := range scan.Cols {
				used[scan.Source][c] = true
			}
		})
	}
	return used
}

// canonSource: of a source that declares its columns all count, since every one is decoded and can
// make a row bad; of one that takes them from the input, those that are read.
func canonSource(s Source, used map[string]bool) canonicalSource {
	c := canonicalSource{Name: lower(s.Name), From: s.Decl.From.String(), Columns: []string{}, Options: []string{}}
	if s.Decl.FromTable != nil {
		c.From = nameOf(*s.Decl.FromTable)
	}
	for _, col := range s.Columns {
		if col.Hidden || len(s.Decl.Columns) == 0 && !used[col.Name] {
			continue
		}
		c.Columns = append(c.Columns, canonColumn(col))
	}
	sort.Strings(c.Columns)
	for _, check := range s.Checks {
		c.Checks = append(c.Checks, check.canon)
	}
	sort.Strings(c.Checks)
	for _, o := range s.Decl.With {
		if canon := canonOption(o); canon != "" {
			c.Options = append(c.Options, canon)
		}
	}
	sort.Strings(c.Options)
	c.Watermark = s.watermark
	return c
}

// canonOption is "" for an option that does not change what is computed.
func canonOption(o sql.Option) string {
	name := lower(o.Name.Text)
	if notMeaning[name] {
		return ""
	}
	return name + "=" + optionText(o.Value)
}

func canonColumn(c Column) string {
	s := canonName(c.Name) + " " + c.Type
	if c.NotNull {
		s += " not null"
	}
	if c.Metadata != "" {
		s += " metadata " + c.Metadata
	}
	if c.Computed != "" {
		s += " as " + c.canon
	}
	return s
}

func optionText(v sql.Value) string {
	if v.Kind == sql.StringValue {
		return v.Text.String()
	}
	return lower(v.Raw)
}

func canonicalFold(step string, a *Aggregate, accs []accumulator) canonicalState {
	s := canonicalState{Step: step, Rows: describe(a).rows}
	for _, acc := range accs {
		s.Keeps = append(s.Keeps, acc.canon)
	}
	return s
}

func canonSink(s Sink) canonicalSink {
	d := describe(s.root)
	c := canonicalSink{Table: canonName(s.Schema) + "." + canonName(s.Table), Key: []string{}, Rows: d.rows}
	for _, k := range s.Key {
		c.Key = append(c.Key, canonName(k))
	}
	sort.Strings(c.Key)
	for i, col := range s.Columns {
		c.Columns = append(c.Columns, canonName(col.Name)+" "+col.Type+" = "+d.cols[i])
	}
	sort.Strings(c.Columns)
	return c
}
