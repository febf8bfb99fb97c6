package lockstep_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/checkpoints"
)

// These tests compare what the documentation lists with the code it lists it from.

var (
	docLink = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	docFile = regexp.MustCompile("`((?:[\\w.-]+/)+[\\w.-]+\\.\\w+)`")
	docMake = regexp.MustCompile("(?m)(?:^|`)make ([a-z]+)\\b")
)

func TestDocsLinks(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range docPages(t) {
		text := strings.Join(p.lines, "\n")
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			to, anchor := m[1], strings.TrimPrefix(m[2], "#")
			if strings.Contains(to, "://") {
				continue
			}
			path := p.path
			if to != "" {
				path = filepath.Join(filepath.Dir(p.path), to)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: link to %s: %v", p.path, to, err)
			} else if anchor != "" && !slices.Contains(anchors(t, path), anchor) {
				t.Errorf("%s: %s has no heading #%s", p.path, path, anchor)
			}
		}
		for _, m := range docFile.FindAllStringSubmatch(text, -1) {
			// A path is one of the repository when its first folder is.
			top, _, _ := strings.Cut(m[1], "/")
			if _, err := os.Stat(top); err != nil {
				continue
			}
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s: %v", p.path, err)
			}
		}
		for _, m := range docMake.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: there is no make %s", p.path, m[1])
			}
		}
	}
}

// anchors are the headings of a page as links name them.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	var out []string
	for _, line := range readPage(t, path).lines {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			plain := func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
					return r
				}
				return -1
			}
			out = append(out, strings.Map(plain, strings.ToLower(title)))
		}
	}
	return out
}

// firstCells are the first cells of the table rows in a text, without backticks.
func firstCells(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || cells[0] != "" || strings.HasPrefix(cells[1], "---") {
			continue
		}
		out = append(out, strings.ReplaceAll(strings.TrimSpace(cells[1]), "`", ""))
	}
	if len(out) > 0 {
		out = out[1:] // the head
	}
	return out
}

func same(t *testing.T, where string, documented, real []string) {
	t.Helper()
	for _, name := range real {
		if !slices.Contains(documented, name) {
			t.Errorf("%s lacks %s", where, name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(real, name) {
			t.Errorf("%s has %s, which does not exist", where, name)
		}
	}
}

func TestDocsExitCodes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "cmd/etl/exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || !strings.HasPrefix(spec.Names[0].Name, "exit") || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		if code, err := strconv.Atoi(lit.Value); err == nil && spec.Names[0].Name == "exitSignal" {
			codes = append(codes, strconv.Itoa(code+2), strconv.Itoa(code+15)) // SIGINT, SIGTERM
		} else {
			codes = append(codes, lit.Value)
		}
		return true
	})
	if len(codes) < 5 {
		t.Fatal("no exit codes found")
	}
	for path, heading := range map[string]string{"README.md": "## Exit codes", "docs/operations.md": "## Exit codes"} {
		var documented []string
		for _, cell := range firstCells(readPage(t, path).section(t, heading)) {
			documented = append(documented, strings.Split(cell, ", ")...)
		}
		same(t, path, documented, codes)
	}
}

func testCommands(t *testing.T) {
	out, err := exec.Command("etl", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(out), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var commands []string
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; name != "help" {
			commands = append(commands, name)
		}
	}
	page := readPage(t, "docs/operations.md")
	var documented []string
	for _, cell := range firstCells(page.section(t, "## Commands")) {
		documented = append(documented, strings.Fields(cell)[0])
	}
	same(t, page.path, documented, commands)
}

func TestDocsDependencies(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1) {
		direct = append(direct, m[1])
	}
	same(t, "README.md", firstCells(readPage(t, "README.md").section(t, "## Dependencies")), direct)
}

func TestDocsLayout(t *testing.T) {
	var folders []string
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("not a git checkout")
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && strings.Contains("\n"+string(out), "\n"+e.Name()+"/") {
			folders = append(folders, e.Name()+"/")
		}
	}
	var documented []string
	for _, cell := range firstCells(readPage(t, "README.md").section(t, "## Layout")) {
		if _, err := os.Stat(cell); err != nil {
			t.Error(err)
		}
		top, _, _ := strings.Cut(cell, "/")
		documented = append(documented, top+"/")
	}
	same(t, "README.md", documented, folders)
}

func TestDocsManifest(t *testing.T) {
	var fields []string
	m := reflect.TypeFor[checkpoints.Manifest]()
	for i := range m.NumField() {
		name, _, _ := strings.Cut(m.Field(i).Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	same(t, "docs/protocol.md", firstCells(readPage(t, "docs/protocol.md").section(t, "### The manifest")), fields)
}

func TestDocsFailpoints(t *testing.T) {
	call := regexp.MustCompile(`Failpoint\("([a-z-]+)"\)`)
	found := map[string]bool{}
	eachSource(t, func(path, text string) {
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			found[m[1]] = true
		}
	}, "engine", "connectors")
	same(t, "docs/protocol.md", firstCells(readPage(t, "docs/protocol.md").section(t, "## What a kill leaves")), slices.Collect(maps.Keys(found)))
}

// eachSource visits the Go files of folders that are not tests.
func eachSource(t *testing.T, visit func(path, text string), folders ...string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			visit(path, string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// wordsIn are the words of the raw string that follows a declaration in a file.
func wordsIn(t *testing.T, path, declaration string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), declaration+"`")
	list, _, closed := strings.Cut(rest, "`")
	if !found || !closed {
		t.Fatalf("%s has no %s", path, declaration)
	}
	return strings.Fields(list)
}

func TestDocsFunctions(t *testing.T) {
	names := wordsIn(t, "planner/functions.go", "var scalarFunctions = words(")
	slices.Sort(names)
	names = slices.Compact(names)
	var named, signs []string
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, "!__"):
			signs = append(signs, "! (factorial)")
		case n[0] >= 'a' && n[0] <= 'z':
			named = append(named, n)
		default:
			signs = append(signs, n)
		}
	}
	var b strings.Builder
	b.WriteString("```text\n")
	for _, list := range [][]string{signs, named} {
		line := ""
		for _, n := range list {
			if len(line)+1+len(n) > 120 {
				b.WriteString(line + "\n")
				line = ""
			}
			line = strings.TrimPrefix(line+" "+n, " ")
		}
		b.WriteString(line + "\n\n")
	}
	text := strings.TrimSuffix(b.String(), "\n") + "```\n"
	generated(t, "docs/pipeline-file.md", "functions", text)

	page := strings.Join(readPage(t, "docs/pipeline-file.md").lines, "\n")
	for _, n := range wordsIn(t, "planner/functions.go", "var aggregateFunctions = words(") {
		if n != "count_star" && !strings.Contains(page, "`"+n+"`") {
			t.Errorf("docs/pipeline-file.md lacks the aggregate %s", n)
		}
	}
}

func TestDocsOptions(t *testing.T) {
	text, err := os.ReadFile("connectors/files/options.go")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(readPage(t, "docs/pipeline-file.md").lines, "\n")
	for _, pattern := range []string{`\{name: "(\w+)"`, `(?m)^\t"(\w+)": `} {
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		if len(all) == 0 {
			t.Fatalf("no match for %s", pattern)
		}
		for _, m := range all {
			if !strings.Contains(page, "`"+m[1]+"`") {
				t.Errorf("docs/pipeline-file.md lacks the option %s", m[1])
			}
		}
	}
}

// docRefused are pieces of pipelines that this version refuses, in the order of the table that shows
// what it says to them. A SELECT is that of a sink over docSource.
var docRefused = []struct{ about, text string }{
	{"statements", "CREATE TEST a FOR out AS GIVEN t VALUES (1) EXPECT VALUES (1);"},
	{"", "CREATE AUDIT a FOR out AS SELECT 1;"},
	{"", "ATTACH 'other.duckdb' AS other;"},
	{"sources", "CREATE SOURCE u (k INTEGER, PRIMARY KEY (k)) FROM 'in/*.csv';"},
	{"", "CREATE SOURCE u (k INTEGER) FROM other.main.t;"},
	{"", "CREATE SOURCE u (k INTEGER) FROM 'in/*.csv' ENVELOPE UPSERT;"},
	{"", "CREATE SOURCE u (k INTEGER) FROM 'in/*.csv' ENVELOPE DEBEZIUM;"},
	{"", "CREATE SOURCE u (k INTEGER) FROM 'in/*.csv' WITH (files = 'growing');"},
	{"", "CREATE SOURCE u (k INTEGER) FROM 'in/*.csv' WITH (files = 'snapshot');"},
	{"", "CREATE SOURCE u (k INTEGER) FROM 's3://bucket/*.csv' WITH (format = 'csv');"},
	{"", "CREATE SOURCE u (k INTEGER) FROM 'in/*.csv' WITH (hive_partitioning = true);"},
	{"", "CREATE SOURCE u (k INTEGER) FROM 'in/*.csv' WITH (encryption_config = 'x');"},
	{"sinks", "CREATE SINK m.b PRIMARY KEY (k) EMIT FINAL AS SELECT k, count(*) AS n FROM t GROUP BY k;"},
	{"", "CREATE SINK m.b PRIMARY KEY (k) WITH (recompute = true) AS SELECT k, count(*) AS n FROM t GROUP BY k;"},
	{"queries", "SELECT t.k, count(*) AS n FROM t JOIN t AS u USING (k) GROUP BY ALL"},
	{"", "SELECT k FROM t EXCEPT ALL SELECT v FROM t"},
	{"", "SELECT k, count(*) AS n FROM t GROUP BY k LIMIT 3"},
	{"", "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY k LIMIT 5%"},
	{"", "SELECT k, count(*) AS n FROM t GROUP BY ROLLUP (k)"},
	{"", "SELECT k, grouping(k) AS g, count(*) AS n FROM t GROUP BY GROUPING SETS ((k), (k))"},
	{"", "SELECT 1 AS k"},
	{"", "SELECT k, row_number() OVER (ORDER BY ts) AS n FROM t"},
	{"", "SELECT k, rank() OVER (ORDER BY ts) AS n FROM t"},
	{"", "SELECT k, v FROM t QUALIFY row_number() OVER (PARTITION BY k) = 1"},
	{"", "SELECT k, v FROM (SELECT k, s, sum(v) AS v FROM t GROUP BY ALL) QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) = 1"},
	{"", "SELECT k, count(*) AS n FROM t WHERE k IN (SELECT v FROM t) GROUP BY k"},
	{"", "SELECT k, unnest([1, 2]) AS u FROM t"},
	{"", "SELECT window_start AS k FROM tumble(t, ts, INTERVAL '1 hour') GROUP BY ALL"},
	{"", "PIVOT t ON s USING count(*)"},
	{"", "SELECT k, list_filter([v], x -> x > 0) AS l FROM t GROUP BY ALL"},
	{"", "SELECT k, count(*) AS n FROM t WHERE s COLLATE nocase = 'a' GROUP BY k"},
	{"", "SELECT #1 AS k FROM t GROUP BY ALL"},
	{"groups", "SELECT [k] AS k FROM t GROUP BY ALL"},
	{"", "SELECT s::JSON AS k FROM t GROUP BY ALL"},
	{"", "SELECT DISTINCT ts - TIMESTAMP '2024-01-01' AS k FROM t"},
	{"aggregates", "SELECT k, count(DISTINCT (v, s)) AS n FROM t GROUP BY k"},
	{"", "SELECT k, count(DISTINCT [v]) AS n FROM t GROUP BY k"},
	{"", "SELECT k, arg_max(s, v) AS n FROM (SELECT k, s, sum(v) AS v FROM t GROUP BY ALL) GROUP BY k"},
	{"", "SELECT k, arg_max(v, ts, 3) AS n FROM t GROUP BY k"},
	{"", "SELECT k, arg_max(ts - TIMESTAMP '2024-01-01', v) AS n FROM t GROUP BY k"},
	{"", "SELECT k, median(v) AS n FROM t GROUP BY k"},
	{"", "SELECT k, string_agg(s, ',') AS n FROM t GROUP BY k"},
	{"", "SELECT k, try(v + 1) AS n FROM t GROUP BY ALL"},
	{"", "SELECT k, array_to_string([v], ',') AS n FROM t GROUP BY ALL"},
	{"", "SELECT k, any_value(v) AS n FROM t GROUP BY k"},
	{"", "SELECT k, sum(v ORDER BY ts) AS n FROM t GROUP BY k"},
	{"", "SELECT k, avg(ts) AS n FROM t GROUP BY k"},
	{"functions", "SELECT k, count(*) AS n FROM t WHERE ts > now() GROUP BY k"},
	{"", "SELECT k, random() AS n FROM t GROUP BY k"},
	{"", "SELECT k, current_setting('TimeZone') AS n FROM t GROUP BY k"},
	{"", "SELECT k, json_extract(max(s), '$.a') AS n FROM t GROUP BY k"},
}

const docSource = "ATTACH 'm.duckdb' AS m;\nCREATE SOURCE t (k INTEGER, v INTEGER, d DOUBLE, s VARCHAR, ts TIMESTAMP) FROM 'in/*.csv';\n"

// testRefused writes the table of what is refused, and looks for messages of that kind in the code
// that no row of it shows.
func testRefused(t *testing.T) {
	dir := t.TempDir()
	var table, said strings.Builder
	table.WriteString("| written | said |\n|---|---|\n")
	for _, r := range docRefused {
		text := docSource
		if strings.HasSuffix(r.text, ";") {
			text += r.text + "\nCREATE SINK m.out PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t GROUP BY k;\n"
		} else {
			text += "CREATE SINK m.out PRIMARY KEY (k) AS " + r.text + ";\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "p.sql"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("etl", "check", "p.sql")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("not refused: %s", r.text)
			continue
		}
		first, hint := firstFault(string(out))
		said.WriteString(first + " " + hint + "\n")
		if r.about != "" {
			table.WriteString("| **" + r.about + "** | |\n")
		}
		cell := first
		if hint != "" {
			cell += "; " + hint
		}
		fmt.Fprintf(&table, "| `%s` | %s |\n", r.text, strings.ReplaceAll(cell, "|", `\|`))
	}
	generated(t, "docs/pipeline-file.md", "refused", table.String())

	eachSource(t, func(path, text string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			message, err := strconv.Unquote(lit.Value)
			if err != nil || notShown[message] || !strings.Contains(message, "this version") && !strings.Contains(message, "not supported") {
				return true
			}
			pattern := regexp.QuoteMeta(message)
			for _, verb := range []string{"%s", "%d", "%v"} {
				pattern = strings.ReplaceAll(pattern, verb, ".+")
			}
			if !regexp.MustCompile(pattern).MatchString(said.String()) {
				t.Errorf("%s says %q; add a pipeline for it to docRefused", path, message)
			}
			return true
		})
	}, "sql", "planner", "connectors/files", "cmd/etl")
}

// notShown are messages that DuckDB's parser or binder, or our gate, is ahead of.
var notShown = map[string]bool{
	"%s with %d arguments has no incremental rule in this version": true,
	"%s is not supported":    true,
	"PIVOT is not supported": true,
	`\%c is not supported in a string: write the character itself`: true,
}

// firstFault is the message and the hint of the first fault that etl check prints.
func firstFault(out string) (message, hint string) {
	lines := strings.Split(out, "\n")
	parts := strings.SplitN(lines[0], ": ", 2)
	message = parts[len(parts)-1]
	if len(lines) > 3 && strings.HasPrefix(lines[3], "  ") {
		hint = strings.TrimSpace(lines[3])
	}
	return message, hint
}

// Every test that docs/failures.md names is one, so that the page cannot promise what nobody checks.
func TestDocsFailures(t *testing.T) {
	text, err := os.ReadFile("docs/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, ".txtar"):
			exists[filepath.Base(path)] = true
		case strings.HasSuffix(path, ".go"):
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range function.FindAllStringSubmatch(string(source), -1) {
				exists[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| what") {
			continue
		}
		rows++
		named := regexp.MustCompile("`((?:Test\\w+)|(?:\\w+\\.txtar))`").FindAllStringSubmatch(cells[2], -1)
		if len(named) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range named {
			if !exists[m[1]] {
				t.Errorf("there is no %s: %s", m[1], line)
			}
		}
	}
	if rows == 0 {
		t.Error("no rows found")
	}
}
