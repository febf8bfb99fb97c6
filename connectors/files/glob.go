package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"lockstep/connectors"
)

// pattern is a glob in two parts: the folder without wildcards, which split ids are relative to,
// and what is matched below it.
type pattern struct {
	prefix string   // absolute
	rest   []string // path components; at least one
	plain  bool     // no wildcard: names one file
}

// file is a file that matches the pattern, as it looks now.
type file struct {
	id    string // path below the prefix, with forward slashes
	path  string
	size  int64
	mtime int64 // nanoseconds since 1970
}

// Prefix is the folder that all files of the source lie in: the part of its glob without wildcards.
// An engine that reads the source must be opened with this folder allowed.
func Prefix(spec connectors.SourceSpec) string { return newPattern(spec).prefix }

func newPattern(spec connectors.SourceSpec) pattern {
	full := spec.From
	if !filepath.IsAbs(full) {
		full = filepath.Join(spec.Base, full)
	}
	parts := strings.Split(filepath.ToSlash(filepath.Clean(full)), "/")
	n := slices.IndexFunc(parts, func(c string) bool { return strings.ContainsAny(c, `*?[\`) })
	plain := n < 0
	if plain {
		n = len(parts) - 1
	}
	prefix := filepath.FromSlash(strings.Join(parts[:n], "/"))
	if prefix == "" {
		prefix = string(filepath.Separator)
	}
	return pattern{prefix: prefix, rest: parts[n:], plain: plain}
}

// ignored tells the names that never are input: hidden ones, and those that writers give to files
// that are not complete yet.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || strings.HasSuffix(name, ".tmp")
}

// list finds the files that match, sorted by id.
func (p pattern) list() ([]file, error) {
	info, err := os.Stat(p.prefix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &badPath{path: p.prefix, reason: "there is no such folder", hint: "check the path; a folder without files is fine, a missing one is not"}
	case err != nil:
		return nil, &badPath{path: p.prefix, reason: reasonOf(err), hint: "check the path and its permissions"}
	case !info.IsDir():
		return nil, &badPath{path: p.prefix, reason: "is not a folder", hint: "check the path"}
	}
	if p.plain {
		f, err := p.stat(p.rest[0])
		if err != nil || f == nil {
			return nil, err
		}
		return []file{*f}, nil
	}
	var found, links []file
	if err := p.walk("", 0, false, &found, &links); err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b file) int { return strings.Compare(a.id, b.id) })
	return found, p.once(found, links)
}

// once refuses a link to a file that matches itself, such as latest.csv: its rows would count twice.
func (p pattern) once(found, links []file) error {
	if len(links) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, f := range found {
		names[f.path] = true
	}
	prefix, err := filepath.EvalSymlinks(p.prefix)
	if err != nil {
		return nil // said when the files are opened
	}
	for _, f := range links {
		target, err := filepath.EvalSymlinks(f.path)
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(prefix, target)
		if own := filepath.Join(p.prefix, rel); err == nil && own != f.path && names[own] {
			return &badPath{path: f.path, reason: "is a link to " + filepath.ToSlash(rel) + ", which the pattern matches too: its rows would count twice",
				hint: "remove the link, or give it a name that the pattern does not match"}
		}
	}
	return nil
}

// walk lists a folder and those below; linked: it was reached through a link.
func (p pattern) walk(rel string, depth int, linked bool, found, links *[]file) error {
	entries, err := os.ReadDir(filepath.Join(p.prefix, filepath.FromSlash(rel)))
	if err != nil {
		return &badPath{path: p.abs(rel), reason: "cannot be listed: " + reasonOf(err), hint: "check its permissions"}
	}
	for _, e := range entries {
		if ignored(e.Name()) {
			continue
		}
		id := path.Join(rel, e.Name())
		isDir, isLink := e.IsDir(), e.Type()&fs.ModeSymlink != 0
		if isLink {
			info, err := os.Stat(p.abs(id))
			isDir = err == nil && info.IsDir()
		}
		if isDir && p.enters(e.Name(), depth, isLink) {
			if err := p.walk(id, depth+1, linked || isLink, found, links); err != nil {
				return err
			}
		}
		if !p.matches(id) || isDir && p.anyName() {
			continue
		}
		f, err := p.stat(id)
		if err != nil {
			return err
		}
		if f != nil {
			*found = append(*found, *f)
			if linked || isLink {
				*links = append(*links, *f)
			}
		}
	}
	return nil
}

// enters tells whether files below a folder may match. ** does not follow links to folders, which
// may lead back up.
func (p pattern) enters(name string, depth int, isLink bool) bool {
	if deep := slices.Index(p.rest, "**"); deep >= 0 && deep <= depth {
		return !isLink
	}
	return depth < len(p.rest)-1 && match(p.rest[depth], name)
}

func (p pattern) matches(id string) bool { return match(strings.Join(p.rest, "/"), id) }

// anyName tells a pattern that folders match as well as files, without anybody meaning them.
func (p pattern) anyName() bool {
	last := p.rest[len(p.rest)-1]
	return last == "*" || last == "**"
}

// stat looks at one file; nil when it is not there.
func (p pattern) stat(id string) (*file, error) {
	full := p.abs(id)
	info, err := os.Stat(full)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(full); err == nil {
			return nil, &badPath{path: full, reason: "is a link to a file that does not exist", hint: "remove the link or restore its file"}
		}
		return nil, nil // removed since its folder was listed
	}
	switch {
	case err != nil:
		return nil, &badPath{path: full, reason: reasonOf(err), hint: "check its permissions"}
	case info.IsDir():
		hint := "to read the files in it, let the pattern end in /* and their suffix"
		if !p.plain {
			hint = "the pattern matches its name: move it away, or give it another one; " + hint
		}
		return nil, &badPath{path: full, reason: "is a folder, but a file is expected", folder: id, hint: hint}
	case !info.Mode().IsRegular():
		return nil, &badPath{path: full, reason: "is not a regular file", hint: "write the data to a file first"}
	case !utf8.ValidString(id):
		return nil, &badPath{path: full, reason: "has a name that is not UTF-8", hint: "rename it"}
	}
	return &file{id: id, path: full, size: info.Size(), mtime: info.ModTime().UnixNano()}, nil
}

func (p pattern) abs(id string) string { return filepath.Join(p.prefix, filepath.FromSlash(id)) }

// Matches tells whether a path is of a pattern, which is read as the glob of a source is, or is itself the path.
func Matches(pattern, path string) bool {
	return pattern == path || match(filepath.ToSlash(pattern), filepath.ToSlash(path))
}

// match knows *, **, ? and [..]; braces are ordinary characters, as they are for DuckDB.
func match(glob, name string) bool {
	return doublestar.MatchUnvalidated(bracesQuoted.Replace(glob), name)
}

var bracesQuoted = strings.NewReplacer("{", `\{`, "}", `\}`)

// badPath is a fault of a path, before it is known which source it belongs to.
type badPath struct {
	path, reason, hint string
	folder             string // the id of a file in whose place a folder is
}

func (e *badPath) Error() string { return e.path + ": " + e.reason }

// reasonOf is the reason of a file system error without the operation and the path.
func reasonOf(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
