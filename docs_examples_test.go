package lockstep_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testExamples runs every example as its user would: on all files but the last of each folder, again when
// that one has come, and once more with nothing new. Each table then is its SELECT. The README beside the
// examples lists them all.
func testExamples(t *testing.T) {
	const from = "examples/pipelines"
	listed := firstCells(strings.Join(readPage(t, from+"/README.md").lines, "\n"))
	pipelines, err := filepath.Glob(from + "/*.sql")
	if err != nil || len(pipelines) == 0 {
		t.Fatal(pipelines, err)
	}
	var names []string
	for _, path := range pipelines {
		names = append(names, filepath.Base(path))
	}
	same(t, from+"/README.md", listed, names)
	for _, path := range pipelines {
		t.Run(filepath.Base(path), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			command := func(args ...string) string {
				t.Helper()
				cmd := exec.Command("etl", args...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("etl %v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			late := map[string]string{}
			folders, err := filepath.Glob(dir + "/landing/*")
			if err != nil {
				t.Fatal(err)
			}
			for _, folder := range folders {
				files, err := filepath.Glob(folder + "/*")
				if err != nil || len(files) < 2 {
					t.Fatal(files, err)
				}
				late[files[len(files)-1]] = filepath.Join(dir, filepath.Base(folder)+" "+filepath.Base(files[len(files)-1]))
			}
			for file, aside := range late {
				if err := os.Rename(file, aside); err != nil {
					t.Fatal(err)
				}
			}
			name := filepath.Base(path)
			command("check", name)
			if out := command("run", name); !strings.Contains(out, "batch 0") {
				t.Errorf("first run: %s", out)
			}
			for file, aside := range late {
				if err := os.Rename(aside, file); err != nil {
					t.Fatal(err)
				}
			}
			if out := command("run", name); !strings.Contains(out, "batch 1 · 1 file") {
				t.Errorf("second run: %s", out)
			}
			if out := command("run", name); !strings.Contains(out, "up to date") {
				t.Errorf("third run: %s", out)
			}
			for line := range strings.Lines(command("reconcile", name)) {
				if !strings.Contains(line, "· 0 differ") {
					t.Errorf("reconcile: %s", line)
				}
			}
		})
	}
}
