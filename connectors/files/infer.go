package files

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

const (
	inferFiles = 8      // files looked at, spread over all
	inferRows  = 100000 // rows looked at in each
	inferBytes = 1 << 20
)

// Infer looks at some of the files and writes the CREATE SOURCE statement that reads them. Guessing
// happens here and only here: what it guessed stands in the statement, where the author can see and
// correct it. The glob is relative to the working directory; eng must allow reading its Prefix.
func Infer(ctx context.Context, eng *duck.Engine, glob string) (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	in := &inference{eng: eng, spec: connectors.SourceSpec{Name: sourceName(glob), From: glob, Base: cwd, Options: map[string]connectors.Option{}}}
	for _, f := range append(pathFaults(glob), formatFaults(in.spec)...) {
		return "", f
	}
	if in.src, err = open(eng, withoutColumns(in.spec)); err != nil {
		return "", err
	}
	found, err := in.src.list(nil)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", &connectors.DataError{Where: glob, Err: errors.New("no file matches"), Hint: "check the pattern; names that start with . or _ or end in .tmp are left out"}
	}
	in.files = spread(found)
	switch in.src.settings.format {
	case formatParquet:
		if _, err = in.src.rowsOf(ctx, in.files[:1]); err == nil {
			in.columns, err = in.src.describe(ctx, in.files[0])
		}
	case formatJSON:
		err = in.json(ctx)
	default:
		err = in.csv(ctx)
	}
	if err != nil {
		return "", err
	}
	return in.statement(ctx)
}

// inference collects what the statement will say.
type inference struct {
	eng     *duck.Engine
	spec    connectors.SourceSpec
	src     *Source
	files   []file
	columns []connectors.SourceColumn
	options []string // WITH items, in order
	notes   []string // comments before the statement
}

func formatFaults(spec connectors.SourceSpec) []Fault {
	if _, f := formatOf(spec); f != nil {
		return []Fault{*f}
	}
	return nil
}

// withoutColumns passes the check that a CSV source declares columns.
func withoutColumns(spec connectors.SourceSpec) connectors.SourceSpec {
	spec.Columns = []connectors.SourceColumn{{Name: "a", Type: "VARCHAR"}}
	return spec
}

// spread picks files from the first to the last.
func spread(found []file) []file {
	if len(found) <= inferFiles {
		return found
	}
	out := make([]file, inferFiles)
	for i := range out {
		out[i] = found[i*(len(found)-1)/(inferFiles-1)]
	}
	return out
}

// set gives an option a value, for reading on and for the statement.
func (in *inference) set(name, text string, bare bool) {
	raw := text
	if !bare {
		raw = duck.Literal(text)
	}
	in.spec.Options[name] = connectors.Option{Raw: raw, Text: text}
	in.options = append(in.options, name+" = "+raw)
}

// dialect sniffs how the first file is written.
func (in *inference) dialect(ctx context.Context) (dateFormat, timeFormat string, err error) {
	first := in.files[0]
	head, err := readHead(first.path)
	if err != nil {
		return "", "", in.src.unreadable(ctx, first, err)
	}
	args := ""
	if !utf8.ValidString(head) {
		in.set("encoding", "latin-1", false)
		args = ", encoding = 'latin-1'"
	}
	var delim, quote, escape, comment string
	var date, timestamp sql.NullString
	var skip int
	var header bool
	err = in.eng.QueryRow(ctx, "SELECT Delimiter, Quote, Escape, Comment, SkipRows, HasHeader, DateFormat::VARCHAR, TimestampFormat::VARCHAR FROM sniff_csv("+
		literal(first)+", compression = '"+compression(first.path)+"', sample_size = "+fmt.Sprint(inferRows)+args+")", nil, &delim, &quote, &escape, &comment, &skip, &header, &date, &timestamp)
	if err != nil {
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		if problem := in.src.openable(first); problem != nil {
			return "", "", problem
		}
		return "", "", in.src.dataError(first.path, "cannot be made out as CSV: "+plainReason(err, first.path), "declare the source by hand, with its options in WITH")
	}
	usual := in.src.settings.text
	for _, o := range []struct{ name, text string }{{"delim", delim}, {"quote", quote}, {"escape", escape}, {"comment", comment}} {
		if o.text != notDetected && o.text != usual[o.name] {
			in.set(o.name, o.text, false)
		}
	}
	if skip > 0 {
		in.set("skip", fmt.Sprint(skip), true)
	}
	if !header {
		in.set("header", "false", true)
	}
	return date.String, timestamp.String, nil
}

const notDetected = "(empty)" // how sniff_csv writes that a file uses no such character

// readHead returns the beginning of a file, without a character that is cut at its end.
func readHead(path string) (string, error) {
	f, err := openText(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, inferBytes))
	if len(b) == inferBytes {
		for range utf8.UTFMax - 1 {
			if b[len(b)-1] >= utf8.RuneSelf {
				b = b[:len(b)-1]
			}
		}
	}
	return string(b), err
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	notInName = regexp.MustCompile(`[^a-z0-9_]+`)
)

// sourceName makes a name from the last part of a glob that has letters of its own.
func sourceName(glob string) string {
	parts := strings.Split(filepath.ToSlash(glob), "/")
	for i := len(parts) - 1; i >= 0; i-- {
		part := parts[i]
		if i == len(parts)-1 {
			part = uncompressed(part)
			part = strings.TrimSuffix(part, filepath.Ext(part))
		}
		name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(part), "_"), "_")
		if name != "" && !strings.ContainsAny(part, "*?[") && (name[0] < '0' || name[0] > '9') {
			return name
		}
	}
	return "input"
}

func (in *inference) statement(ctx context.Context) (string, error) {
	reserved := map[string]bool{}
	err := in.eng.Each(ctx, "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')", nil, func(r *sql.Rows) error {
		var k string
		err := r.Scan(&k)
		reserved[k] = true
		return err
	})
	if err != nil {
		return "", err
	}
	name := func(n string) string {
		if plainName.MatchString(n) && !reserved[strings.ToLower(n)] {
			return n
		}
		return duck.Quote(n)
	}
	var b strings.Builder
	for _, n := range in.notes {
		b.WriteString("-- " + cut(n) + "\n")
	}
	b.WriteString("CREATE SOURCE " + name(in.spec.Name) + " (\n")
	for i, c := range in.columns {
		b.WriteString("  " + name(c.Name) + " " + c.Type)
		if i < len(in.columns)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString(") FROM " + duck.Literal(in.spec.From))
	if len(in.options) > 0 {
		b.WriteString(" WITH (" + strings.Join(in.options, ", ") + ")")
	}
	b.WriteString(";\n")
	return b.String(), nil
}
