package planner

import (
	"strings"
	"testing"
)

func TestExplainGolden(t *testing.T) {
	for _, file := range goldenFiles(t, "testdata/explain/*.sql") {
		t.Run(file, func(t *testing.T) {
			compareGolden(t, strings.TrimSuffix(file, ".sql")+".golden", compileFile(t, file).Explain())
		})
	}
}
