package lockstep

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Imports go down only. A package may import those listed for it, and below what they may.
var mayImport = map[string][]string{
	"lockstep":                            {},
	"lockstep/engine/duck":                {},
	"lockstep/checkpoints":                {},
	"lockstep/sql":                        {"lockstep/engine/duck"},
	"lockstep/planner":                    {"lockstep/sql", "lockstep/engine/duck"},
	"lockstep/planner/plannertest":        {},
	"lockstep/connectors":                 {"lockstep/checkpoints"},
	"lockstep/connectors/files":           {"lockstep/connectors", "lockstep/checkpoints", "lockstep/engine/duck"},
	"lockstep/connectors/targets":         {"lockstep/connectors", "lockstep/checkpoints", "lockstep/engine/duck"},
	"lockstep/connectors/duckdb":          {"lockstep/connectors/targets", "lockstep/connectors", "lockstep/connectors/staged", "lockstep/checkpoints", "lockstep/engine/duck"},
	"lockstep/connectors/postgres":        {"lockstep/connectors/protocol", "lockstep/connectors/targets", "lockstep/connectors", "lockstep/connectors/staged", "lockstep/checkpoints", "lockstep/engine/duck"},
	"lockstep/connectors/postgres/pgtest": {},
	"lockstep/connectors/protocol":        {"lockstep/connectors"},
	"lockstep/connectors/staged":          {"lockstep/connectors", "lockstep/engine/duck"},
	"lockstep/connectors/connectorstest":  {"lockstep/connectors", "lockstep/checkpoints", "lockstep/engine/duck"},
	"lockstep/engine":                     {"lockstep/planner", "lockstep/connectors", "lockstep/checkpoints", "lockstep/engine/duck"},
	"lockstep/engine/bench":               {},
	"lockstep/cmd/etl":                    {"lockstep/engine", "lockstep/planner", "lockstep/sql", "lockstep/connectors", "lockstep/connectors/files", "lockstep/connectors/duckdb", "lockstep/connectors/postgres", "lockstep/checkpoints", "lockstep/engine/duck"},
}

func TestImportsGoDownOnly(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		allowed, known := mayImport[fields[0]]
		if !known {
			t.Errorf("package %s is not in the list of imports: say what it may import", fields[0])
		}
		for _, imported := range fields[1:] {
			if strings.HasPrefix(imported, "lockstep") && !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s, which is not below it", fields[0], imported)
			}
		}
	}
}
