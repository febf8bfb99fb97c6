package sql

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

const megabyte = 1 << 20

// Large inputs, most of them wrong at every few bytes, take linear time.
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
			used := func(size int) time.Duration {
				before := processorTime(t)
				s, _ := Parse("big.sql", c.prefix+strings.Repeat(c.unit, size/len(c.unit)))
				s.Unsupported()
				return processorTime(t) - before
			}
			// Four times the text: linear is 4, quadratic 16.
			if small, large := used(megabyte/16), used(megabyte/4); large > 10*small+time.Second {
				t.Errorf("a quarter of a megabyte takes %v, a sixteenth %v", large, small)
			}
		})
	}
}

// processorTime is what this process used until now: other programs do not count.
func processorTime(t *testing.T) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func BenchmarkParse(b *testing.B) {
	view := "CREATE VIEW v AS SELECT a, sum(b) AS total FROM orders WHERE note <> 'it''s' -- why\nGROUP BY a;\n"
	text := strings.Repeat(view, megabyte/len(view))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, _ = Parse("big.sql", text)
	}
}
