package planner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/sql"
)

// Each testdata/compare/*.new.sql is a change of nested.old.sql, when it is named so, or of
// daily.old.sql; the .golden file is what Compare says about it.
func TestCompareGolden(t *testing.T) {
	for _, file := range goldenFiles(t, "testdata/compare/*.new.sql") {
		name := strings.TrimSuffix(filepath.Base(file), ".new.sql")
		t.Run(name, func(t *testing.T) {
			before := "testdata/compare/daily.old.sql"
			if strings.HasPrefix(name, "nested") {
				before = "testdata/compare/nested.old.sql"
			}
			c := Compare(compileFile(t, before), compileFile(t, file))
			var b strings.Builder
			fmt.Fprintf(&b, "class %s: %s\n", c.Class, c.Why)
			for _, d := range c.Differences {
				fmt.Fprintf(&b, "%s:%d:%d  %s\n", d.File, d.Line, d.Col, d.Name)
				if d.Old != "" {
					fmt.Fprintf(&b, "  - %s\n", d.Old)
				}
				if d.New != "" {
					fmt.Fprintf(&b, "  + %s\n", d.New)
				}
			}
			compareGolden(t, "testdata/compare/"+name+".golden", b.String())
		})
	}
}

func compileFile(t *testing.T, file string) *Plan {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	script, err := sql.Parse(filepath.Base(file), string(text))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Compile(t.Context(), script, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
