package sql

import (
	"strings"
	"testing"
	"time"
)

const megabyte = 1 << 20

// Inputs of a megabyte, most of them wrong at every few bytes, take linear time.
func TestLargeInput(t *testing.T) {
	for _, c := range []struct{ name, prefix, unit string }{
		{"columns", "CREATE SOURCE s (", "c INT, "},
		{"items", "CREATE SOURCE s (", "a, "},
		{"watermarks", "CREATE SOURCE s (", "WATERMARK FOR a AS a, "},
		{"brackets", "CREATE VIEW v AS SELECT ", "("},
		{"closers", "CREATE VIEW v AS SELECT ", ")"},
		{"views", "", "CREATE VIEW v AS SELECT 1;"},
		{"no semicolons", "", "CREATE VIEW "},
		{"faults", "", "x;"},
		{"dollars", "", "$a "},
		{"quotes", "", "'a'"},
		{"comments", "", "/*"},
		{"one word", "", "a"},
		{"exponents", "", "1e"},
		{"getenv", "", "SET VARIABLE x = getenv(1);"},
		{"sinks", "", "CREATE SINK martt.tt PRIMARY KEY (id) AS SELECT 1;ATTACH 'a' AS marttt;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			s, _ := Parse("big.sql", c.prefix+strings.Repeat(c.unit, megabyte/len(c.unit)))
			s.Unsupported()
			// Quadratic would be minutes. The margin is for a busy machine and the race detector.
			if took := time.Since(start); took > 20*time.Second {
				t.Error(took)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	view := "CREATE VIEW v AS SELECT a, sum(b) AS total FROM orders WHERE note <> 'it''s' -- why\nGROUP BY a;\n"
	text := strings.Repeat(view, megabyte/len(view))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, _ = Parse("big.sql", text)
	}
}
