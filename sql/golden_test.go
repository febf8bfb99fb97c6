package sql

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the .golden files of testdata/errors anew")

// Each testdata/errors/*.sql is wrong on purpose; the .golden file beside it is what its author is
// told: the faults Parse finds and what Unsupported adds.
func TestErrorsGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := findings(t, filepath.Base(file), string(text)).Render()
			golden := strings.TrimSuffix(file, ".sql") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got == "" {
				t.Fatal("no fault found")
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// findings is all that can be said about a file without a database.
func findings(t testing.TB, file, text string) Errors {
	t.Helper()
	s, err := Parse(file, text)
	var all Errors
	if err != nil && !errors.As(err, &all) {
		t.Fatalf("Parse returned %T", err)
	}
	all = append(all, s.Unsupported()...)
	all.Sort()
	return all
}
