package lockstep_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The documentation is tested: pipelines in it compile, consoles in it are run with the real binary,
// links and files exist, and tables equal what they describe. A fenced block has one of these tags:
//
//	sql pipeline   a whole pipeline file; `etl check` finds no fault in it
//	console        lines "$ command" with their output; <!-- fixture: … --> stands before it
//	text           neither: grammars, crontabs, layouts
//
// <!-- file: NAME --> before a pipeline also puts it into the folder that the page's consoles start with.
// <!-- generated: NAME --> … <!-- end --> is written by the tests with -update.

var updateDocs = flag.Bool("update", false, "write the generated parts of the documentation and the output of its consoles")

// docPages are the README and everything in docs.
func docPages(t *testing.T) []*docPage {
	t.Helper()
	paths, err := filepath.Glob("docs/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatal("no pages in docs", err)
	}
	var pages []*docPage
	for _, path := range append([]string{"README.md"}, paths...) {
		pages = append(pages, readPage(t, path))
	}
	return pages
}

type docPage struct {
	path   string
	lines  []string
	blocks []docBlock
}

type docBlock struct {
	tag     string
	comment map[string]string // fixture, file
	first   int               // line of its first line, from 0
	lines   []string
}

var docComment = regexp.MustCompile(`^<!-- (\w+): (.+) -->$`)

func readPage(t *testing.T, path string) *docPage {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &docPage{path: path, lines: strings.Split(string(text), "\n")}
	comment := map[string]string{}
	for i := 0; i < len(p.lines); i++ {
		line := p.lines[i]
		if m := docComment.FindStringSubmatch(line); m != nil {
			comment[m[1]] = m[2]
			continue
		}
		if tag, ok := strings.CutPrefix(line, "```"); ok {
			end := slices.Index(p.lines[i+1:], "```")
			if end < 0 {
				t.Fatalf("%s:%d: a block is never closed", path, i+1)
			}
			p.blocks = append(p.blocks, docBlock{tag: tag, comment: comment, first: i + 1, lines: p.lines[i+1 : i+1+end]})
			i += end + 1
		}
		if strings.TrimSpace(line) != "" {
			comment = map[string]string{}
		}
	}
	return p
}

// section is the text from a heading to the next of its level or above.
func (p *docPage) section(t *testing.T, heading string) string {
	t.Helper()
	start := slices.Index(p.lines, heading)
	if start < 0 {
		t.Fatalf("%s has no heading %q", p.path, heading)
	}
	level := strings.IndexByte(heading, ' ')
	for i := start + 1; i < len(p.lines); i++ {
		if n := strings.IndexByte(p.lines[i], ' '); n > 0 && n <= level && strings.Trim(p.lines[i][:n], "#") == "" {
			return strings.Join(p.lines[start:i], "\n")
		}
	}
	return strings.Join(p.lines[start:], "\n")
}

// TestDocs is what needs the real binary.
func TestDocs(t *testing.T) {
	bin := filepath.Dir(buildETL(t, "duckdb_arrow"))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	putDuckDB(t, bin)
	t.Run("blocks", testBlocks)
	t.Run("commands", testCommands)
	t.Run("refused", testRefused)
	t.Run("types", testTypes)
	t.Run("changes", testChanges)
	t.Run("examples", testExamples)
}

// testBlocks checks every pipeline and runs every console.
func testBlocks(t *testing.T) {
	for _, p := range docPages(t) {
		t.Run(p.path, func(t *testing.T) {
			files := map[string]string{}
			dir := ""
			for _, b := range p.blocks {
				where := fmt.Sprintf("%s:%d", p.path, b.first)
				switch b.tag {
				case "text":
				case "sql pipeline":
					name := b.comment["file"]
					text := strings.Join(b.lines, "\n") + "\n"
					if name == "" {
						name = "pipeline.sql"
					} else {
						files[name] = text
					}
					checkPipeline(t, where, name, text)
				case "console":
					dir = fixture(t, where, b.comment["fixture"], dir, files)
					runConsole(t, where, p, b, dir)
				default:
					t.Errorf("%s: a block has no known tag: %q", where, b.tag)
				}
			}
			p.update(t)
		})
	}
}

func checkPipeline(t *testing.T, where, name, text string) {
	t.Helper()
	dir := fixture(t, where, "flights", "", map[string]string{name: text})
	cmd := exec.Command("etl", "check", name)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", where, err, out)
	}
}

// fixture prepares the folder a console runs in:
//
//	empty    nothing
//	flights  daily_flights.sql, three days in landing/flights, the fourth beside them, and the files
//	         that the page shows
//	same     what the console before left
func fixture(t *testing.T, where, name, before string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	switch name {
	case "same":
		if before == "" {
			t.Fatalf("%s: there is no console before", where)
		}
		return before
	case "empty":
		return dir
	case "flights":
	default:
		t.Fatalf("%s: no fixture %q", where, name)
	}
	copyFile := func(from, to string) {
		text, err := os.ReadFile(filepath.Join("examples/pipelines", from))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyFile("daily_flights.sql", "daily_flights.sql")
	for _, day := range []string{"1", "2", "3"} {
		copyFile("landing/flights/2001-01-0"+day+".csv", "landing/flights/2001-01-0"+day+".csv")
	}
	copyFile("landing/flights/2001-01-04.csv", "2001-01-04.csv")
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// docMasks take out of an output what is another at every run.
var docMasks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d+\.\d s\b`), "T s"},
	{regexp.MustCompile(`just now|\d+ (s|min) ago`), "AGO"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d`), "WHEN"},
	{regexp.MustCompile(`\bplan [0-9a-f]{4}\b`), "plan HASH"},
	{regexp.MustCompile(`((?:batch|file) {2,})[0-9a-f]{4}\b`), "${1}HASH"},
	{regexp.MustCompile(`\d+(\.\d)? k?B (in|of state)`), "SIZE $2"},
	{regexp.MustCompile(`\betl [^ ]+ \(DuckDB`), "etl VERSION (DuckDB"},
	{regexp.MustCompile(`go1\.\d+(\.\d+)?, \w+/\w+`), "GO"},
}

func masked(lines []string) string {
	text := strings.Join(lines, "\n")
	for _, m := range docMasks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return text
}

const docPrompt = "$ "

// runConsole runs the commands of a block in one shell and compares what they print. A command that
// fails must be followed by "$ echo $?".
func runConsole(t *testing.T, where string, p *docPage, b docBlock, dir string) {
	t.Helper()
	var commands []string
	for _, line := range b.lines {
		if c, ok := strings.CutPrefix(line, docPrompt); ok {
			commands = append(commands, c)
		}
	}
	if len(commands) == 0 || !strings.HasPrefix(b.lines[0], docPrompt) {
		t.Errorf("%s: a console begins with a line %q", where, docPrompt)
		return
	}
	const mark = "\x01"
	var script strings.Builder
	script.WriteString("exec 2>&1\nrc=0\n")
	for i, c := range commands {
		fmt.Fprintf(&script, "printf '%s%d %%s\\n' $rc\n(exit $rc)\n%s\nrc=$?\n", mark, i, c)
	}
	fmt.Fprintf(&script, "printf '%s%d %%s\\n' $rc\n", mark, len(commands))
	cmd := exec.Command("sh", "-c", script.String())
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", where, err, out)
		return
	}
	var got []string
	failed := false
	for i, part := range bytes.Split(out, []byte(mark))[1:] {
		head, body, _ := strings.Cut(string(part), "\n")
		_, rc, _ := strings.Cut(head, " ")
		if i > 0 && rc != "0" && (i == len(commands) || commands[i] != "echo $?") {
			failed = true
			t.Errorf("%s: %q exits with %s", where, commands[i-1], rc)
		}
		if i == len(commands) {
			break
		}
		got = append(got, docPrompt+commands[i])
		for line := range strings.Lines(body) {
			got = append(got, strings.TrimRight(strings.ReplaceAll(line, dir+"/", ""), " \n"))
		}
	}
	if masked(got) == masked(b.lines) {
		return
	}
	if *updateDocs && !failed {
		p.replace(b, got)
		return
	}
	t.Errorf("%s: the console prints\n%s", where, strings.Join(got, "\n"))
}

// replace notes new lines for a block; update writes them.
func (p *docPage) replace(b docBlock, lines []string) {
	for i := range p.blocks {
		if p.blocks[i].first == b.first {
			p.blocks[i].lines = lines
		}
	}
}

func (p *docPage) update(t *testing.T) {
	if !*updateDocs {
		return
	}
	var out []string
	next := 0
	for _, b := range p.blocks {
		out = append(out, p.lines[next:b.first]...)
		out = append(out, b.lines...)
		next = b.first + slices.Index(p.lines[b.first:], "```")
	}
	out = append(out, p.lines[next:]...)
	if err := os.WriteFile(p.path, []byte(strings.Join(out, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// generated compares the part of a page between <!-- generated: name --> and <!-- end --> with text.
func generated(t *testing.T, path, name, text string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin := "<!-- generated: " + name + " -->\n"
	before, rest, found := strings.Cut(string(page), begin)
	was, after, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !ended {
		t.Fatalf("%s has no part %q", path, name)
	}
	if was == text {
		return
	}
	if !*updateDocs {
		t.Errorf("%s: the part %s is out of date: go test . -run Docs -update\n%s", path, name, text)
		return
	}
	if err := os.WriteFile(path, []byte(before+begin+text+"<!-- end -->"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
