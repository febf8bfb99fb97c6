package planner

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/sql"
)

var update = flag.Bool("update", false, "write the .golden files of testdata anew")

// Each testdata/errors/*.sql is wrong on purpose; the .golden file beside it is what its author is
// told by Compile.
func TestErrorsGolden(t *testing.T) {
	for _, file := range goldenFiles(t, "testdata/errors/*.sql") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, err := sql.Parse(filepath.Base(file), string(text))
			if err != nil {
				t.Fatal("not the planner's to refuse: ", err)
			}
			_, err = Compile(t.Context(), script, nil)
			var faults sql.Errors
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("no fault found: %v", err)
			}
			got := faults.Render()
			for _, leak := range []string{"Candidate", "LINE ", "json_serialize", "overload", `"_t"`, "LOGICAL_", "please report"} {
				if strings.Contains(got, leak) {
					t.Errorf("%q in\n%s", leak, got)
				}
			}
			compareGolden(t, strings.TrimSuffix(file, ".sql")+".golden", got)
		})
	}
}

func goldenFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no files ", err)
	}
	return files
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
