package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/sql"
)

// wiring is what a pipeline file names outside of itself: its destination, its sources and what it
// sets for the run. Nothing of it is opened yet.
type wiring struct {
	script  *sql.Script
	secrets *secrets
	dir     string // of the pipeline file, absolute: all paths are relative to it

	alias    string // the author's name for the destination
	path     string // of the destination file, absolute; "" after a fault, or when it is no file
	dsn      string // of the destination on a Postgres server
	hidePath bool   // it came from getenv
	shown    string // how messages name it
	specs    map[string]connectors.SourceSpec
	memory   string
	threads  int
	limit    connectors.Limit
	limited  struct{ rows, bytes bool } // set by the file

	faults sql.Errors
}

// findWiring resolves everything and collects all faults. A link to a pipeline file counts as the
// file at the link's own place: what is run is what was named.
func findWiring(script *sql.Script, g *given) (*wiring, error) {
	dir, err := filepath.Abs(filepath.Dir(script.File))
	if err != nil {
		return nil, err
	}
	w := &wiring{script: script, secrets: newSecrets(dir, g.lookup), dir: dir, specs: map[string]connectors.SourceSpec{}}
	var attached []string
	for _, a := range script.Attaches {
		attached = append(attached, a.Name.Text)
	}
	if err := g.covers(script.File, attached); err != nil {
		return nil, err
	}
	w.options()
	if err := w.destination(g); err != nil {
		return nil, err
	}
	for _, decl := range script.Sources {
		w.source(decl)
	}
	return w, nil
}

func (w *wiring) fault(span sql.Span, hint, format string, args ...any) {
	w.faults = append(w.faults, w.script.Errorf(span, hint, format, args...))
}

// resolve is the value of a text; not ok after a fault.
func (w *wiring) resolve(t sql.Text) (string, bool) {
	value, err := t.Resolve(w.secrets.lookup)
	if err != nil {
		w.fault(t.Span, "set it, or write getenv('NAME', 'default')", "%v", err)
	}
	return value, err == nil
}

// destination finds the file that the sinks' database is. The parser has made sure that there is one.
func (w *wiring) destination(g *given) error {
	for _, a := range w.script.Attaches {
		// Without a sink the file is faulty; commands that need only the destination take the one there is.
		if sinks := w.script.Sinks; len(sinks) == 0 && len(w.script.Attaches) > 1 || len(sinks) > 0 && !strings.EqualFold(a.Name.Text, sinks[0].Name.Parts[0].Text) {
			w.fault(a.Name.Span, "remove the ATTACH; reading from attached databases is not supported by this version",
				"no sink is in database %s", a.Name.Text)
			continue
		}
		if shown, path, ok := g.attached(a.Name.Text); ok {
			if notFile(shown) || strings.Contains(path, "?") {
				return &usageError{"--attach " + a.Name.Text + ": the destination must be a file: progress is kept in it", "name a file, such as dev.duckdb"}
			}
			w.alias, w.path, w.shown = a.Name.Text, path, shown
			continue
		}
		target, ok := w.resolve(a.Target)
		if !ok {
			continue
		}
		if a.Type == "postgres" {
			if target == "" {
				w.fault(a.Target.Span, "write postgres://user@host/database, or getenv('MART_DSN')", "the address of the database is empty")
				continue
			}
			// An address may hold a password, so messages name the database as the author does.
			w.alias, w.dsn, w.shown = a.Name.Text, target, "database "+a.Name.Text
			continue
		}
		if notFile(target) {
			w.fault(a.Target.Span, "name a file, such as 'mart.duckdb'", "the destination must be a file: progress is kept in it")
			continue
		}
		w.alias, w.path, w.shown = a.Name.Text, target, target
		if !filepath.IsAbs(target) {
			w.path = filepath.Join(w.dir, target)
		}
		if strings.Contains(w.path, "?") {
			w.fault(a.Target.Span, "rename the folder or the file", "DuckDB cannot keep a database under a path with a question mark")
		}
		if a.Target.HasEnv() {
			w.shown, w.hidePath = a.Target.String(), true
		}
	}
	return nil
}

// notFile tells what is no path of a file, but another kind of database to DuckDB.
func notFile(target string) bool {
	return target == "" || strings.HasPrefix(target, ":") || strings.HasPrefix(target, "md:") || strings.Contains(target, "://")
}

func (w *wiring) source(decl *sql.Source) {
	if decl.FromTable != nil {
		return // for a later version, as the planner says
	}
	spec := connectors.SourceSpec{Name: decl.Name.Text, Base: w.dir, Options: map[string]connectors.Option{}}
	from, ok := w.resolve(decl.From)
	spec.From = w.glob(from)
	for _, o := range decl.With {
		option := connectors.Option{Raw: o.Value.Raw, Text: o.Value.Raw}
		if o.Value.Kind == sql.StringValue {
			text, resolved := w.resolve(o.Value.Text)
			option, ok = connectors.Option{Raw: duck.Literal(text), Text: text}, ok && resolved
		}
		name := strings.ToLower(o.Name.Text)
		if name == "format" {
			spec.Format = option.Text
		}
		spec.Options[name] = option
	}
	if ok {
		w.specs[spec.Name] = spec
	}
}

// glob makes a path absolute. In the folder of the pipeline file no character is a wildcard.
func (w *wiring) glob(from string) string {
	if from == "" || filepath.IsAbs(from) || strings.Contains(from, "://") {
		return from
	}
	full := filepath.Join(literalGlob.Replace(w.dir), from)
	if strings.HasSuffix(from, "/") {
		full += "/" // says that a folder was named
	}
	return full
}

var literalGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

var memoryLimit = regexp.MustCompile(`(?i)^\d+(\.\d+)? *(KB|MB|GB|TB|KiB|MiB|GiB|TiB)$`)

// options reads WITH of CREATE PIPELINE: how a run works, not what it computes.
func (w *wiring) options() {
	if w.script.Pipeline == nil {
		return
	}
	names := []string{"memory_limit", "threads", "max_batch_rows", "max_batch_bytes"}
	for _, o := range w.script.Pipeline.With {
		switch strings.ToLower(o.Name.Text) {
		case "memory_limit":
			w.memory, _ = w.resolve(o.Value.Text)
			if !memoryLimit.MatchString(w.memory) {
				w.fault(o.Value.Span, "write it like '4GB'", "memory_limit takes a number and a unit")
			}
		case "threads":
			w.threads = int(w.whole(o, 1, 1024))
		case "max_batch_rows":
			w.limit.Rows, w.limited.rows = w.whole(o, 0, 1<<62), true
		case "max_batch_bytes":
			w.limit.Bytes, w.limited.bytes = w.whole(o, 0, 1<<62), true
		default:
			hint := "there are " + strings.Join(names, ", ")
			if near := sql.Suggest(o.Name.Text, names); near != "" {
				hint = "did you mean " + near + "?"
			}
			w.fault(o.Name.Span, hint, "%s is not an option of a pipeline", o.Name.Text)
		}
	}
}

func (w *wiring) whole(o sql.Option, least, most int64) int64 {
	n, err := strconv.ParseInt(o.Value.Raw, 10, 64)
	if o.Value.Kind != sql.NumberValue || err != nil || n < least || n > most {
		w.fault(o.Value.Span, "", "%s takes a whole number from %d", strings.ToLower(o.Name.Text), least)
	}
	return n
}
