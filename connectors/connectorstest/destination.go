// Package connectorstest holds the suites that every connector of a kind must pass.
package connectorstest

import (
	"context"
	"strings"
	"testing"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// Database is one empty database of the kind under test.
type Database interface {
	// Open opens it as a new run does, with an engine of its own. A session opened before has been closed, or rests.
	Open(t *testing.T) *Session
}

// Session is an open destination, and what somebody with a SQL shell can do beside it.
type Session struct {
	Engine      *duck.Engine
	Destination connectors.Destination
	// Table writes the full name of a table, given its schema ("" = the default) and name.
	Table func(schema, name string) string
	// Exec runs a statement on the database itself.
	Exec func(t *testing.T, stmt string)
	// Mend runs statements out of an error's hint, which name tables as somebody does who has opened
	// nothing but this database.
	Mend func(t *testing.T, statements string)
	// Rows returns a query's rows as texts, NULL as "NULL".
	Rows func(t *testing.T, query string) [][]string
	// Type is how the database writes a DuckDB type; nil: as DuckDB does.
	Type func(duck string) string
	// Keyed: a constraint on the key keeps its tables from having doubled rows, and indexes beside it are
	// no harm.
	Keyed bool
	// Close closes destination and engine.
	Close func(t *testing.T)
}

// TestDestination runs the whole suite, each test on a database of its own.
func TestDestination(t *testing.T, empty func(t *testing.T) Database) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Database)
	}{
		{"lifecycle", testLifecycle},
		{"keys with NULL", testNullKeys},
		{"key without columns", testEmptyKey},
		{"empty change", testEmptyChange},
		{"fence", testFence},
		{"lost record", testLostRecord},
		{"wrong change", testWrongChange},
		{"edited rows", testEditedRows},
		{"edited tables", testEditedTables},
		{"owners", testOwners},
		{"damage", testDamage},
		{"damaged segments", testDamagedSegments},
		{"compaction", testCompaction},
		{"recovery", testRecovery},
		{"drop", testDrop},
		{"rename", testRename},
		{"loss", testLoss},
		{"corrections", testCorrections},
		{"jobs", testJobs},
		{"rest", testRest},
		{"cancel anywhere", testCancelAnywhere},
		{"random changes", testRandomChanges},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, empty(t)) })
	}
	t.Run("adopted tables", func(t *testing.T) { testAdopted(t, empty) })
}

// inTypes writes {DATE} as the database does.
func (s *Session) inTypes(text string) string {
	for {
		before, rest, ok := strings.Cut(text, "{")
		if !ok {
			return text
		}
		name, after, _ := strings.Cut(rest, "}")
		if s.Type != nil {
			name = s.Type(name)
		}
		text = before + name + after
	}
}

var background = context.Background()
