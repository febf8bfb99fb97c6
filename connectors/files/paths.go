package files

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"lockstep/engine/duck"
)

// list writes files as a SQL list for DuckDB's readers, which take every name for a pattern.
func list(files []file) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, f := range files {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(literal(f))
	}
	b.WriteByte(']')
	return b.String()
}

// literal is one file, for the same readers.
func literal(f file) string { return duck.Literal(noPattern.Replace(f.path)) }

var noPattern = strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]")

// openable tells why a file cannot be opened at all; nil when it can.
func (s *Source) openable(f file) error {
	in, err := os.Open(f.path)
	if err != nil {
		return s.dataError(f.path, "cannot be read: "+reasonOf(err), "check the file and its permissions")
	}
	_ = in.Close()
	return s.inside(f)
}

// inside refuses links that lead out of the source's folder, before anything of them is read.
func (s *Source) inside(f file) error {
	target, err := filepath.EvalSymlinks(f.path)
	folder, err2 := filepath.EvalSymlinks(s.pattern.prefix)
	if err != nil || err2 != nil {
		return nil
	}
	rel, err := filepath.Rel(folder, target)
	if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return nil
	}
	return s.dataError(f.path, "is a link to "+target+", which is outside of "+s.shown(s.pattern.prefix),
		"only files inside the source's folder are read: move the file there, or name the folder it is in")
}

var (
	errorKind = regexp.MustCompile(`^[A-Z][A-Za-z ]* Error: `)
	fileNamed = regexp.MustCompile(`(?i) ?(?:in|of|for|reading)? ?file "?'?$`)
)

// plainReason is the reason in an error of DuckDB, without its kind, the file's name, its advice for
// SQL authors and the SQL itself.
func plainReason(err error, path string) string {
	msg := errorKind.ReplaceAllString(err.Error(), "")
	for _, end := range []string{"\n", "LINE 1:", "Possible fixes", "Possible solutions"} {
		msg, _, _ = strings.Cut(msg, end)
	}
	for _, quoted := range []string{"'" + path + "'", `"` + path + `"`, path} {
		if before, after, found := strings.Cut(msg, quoted); found {
			msg = fileNamed.ReplaceAllString(before, "") + after
		}
	}
	return cut(strings.Trim(msg, " :.,"))
}
