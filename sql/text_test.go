package sql

import (
	"strings"
	"testing"
)

func parseText(t *testing.T, sql string) Text {
	t.Helper()
	return mustParse(t, "ATTACH "+sql+" AS mart; CREATE SINK mart.t PRIMARY KEY () AS SELECT 1").Attaches[0].Target
}

func TestText(t *testing.T) {
	env := map[string]string{"A": "$B ${B} %s getenv('B')", "B": "never", "EMPTY": ""}
	lookup := func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
	for _, c := range []struct{ sql, shown, value string }{
		{"'a''b'", "'a''b'", "a'b"},
		{`E'a\tb\'\\\x41\101\q'`, "'a\tb''\\AAq'", "a\tb'\\AAq"},
		{"$x$a'b$x$", "'a''b'", "a'b"},
		{"getenv('A')", "getenv('A')", env["A"]},
		{"GETENV ( 'A' , 'x' ) || '/b'", "getenv('A', 'x') || '/b'", env["A"] + "/b"},
		{"getenv('NONE', 'it''s')", "getenv('NONE', 'it''s')", "it's"},
		{"getenv('NONE', '')", "getenv('NONE', '')", ""},
		{"getenv('EMPTY', 'x')", "getenv('EMPTY', 'x')", ""},
		{"'$A' || '${A}'", "'$A' || '${A}'", "$A${A}"},
	} {
		text := parseText(t, c.sql)
		equal(t, c.sql, text.String(), c.shown)
		equal(t, c.sql+" depends on the environment", text.HasEnv(), strings.Contains(c.shown, "getenv("))
		value, err := text.Resolve(lookup)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
		}
		equal(t, c.sql, value, c.value)
	}
}

func TestResolveNotSet(t *testing.T) {
	text := parseText(t, "getenv('SECRET') || getenv('MART_DSN')")
	_, err := text.Resolve(func(name string) (string, bool) { return "hunter2", name == "SECRET" })
	if err == nil || !strings.Contains(err.Error(), "MART_DSN") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
