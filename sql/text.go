package sql

import (
	"fmt"
	"strings"
)

// Resolve joins the parts, with getenv calls replaced by what lookup (os.LookupEnv) returns, or by
// their default. The values are opaque: nothing in them is expanded again. The error of a variable
// that is not set names it, and never shows a value.
func (t Text) Resolve(lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for _, p := range t.Parts {
		value := p.Literal
		if p.Env != "" {
			v, ok := lookup(p.Env)
			switch {
			case ok:
				value = v
			case p.HasDefault:
				value = p.Default
			default:
				return "", fmt.Errorf("environment variable %s is not set, and getenv gives it no default", p.Env)
			}
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

// HasEnv reports whether the text depends on the environment. Such a text is shown with String and
// never resolved into anything that is logged or stored.
func (t Text) HasEnv() bool {
	for _, p := range t.Parts {
		if p.Env != "" {
			return true
		}
	}
	return false
}

// String is the text as SQL, with getenv calls unevaluated: getenv('LANDING') || '/orders/*.csv'.
func (t Text) String() string {
	parts := make([]string, len(t.Parts))
	for i, p := range t.Parts {
		switch {
		case p.Env == "":
			parts[i] = quoteString(p.Literal)
		case p.HasDefault:
			parts[i] = "getenv(" + quoteString(p.Env) + ", " + quoteString(p.Default) + ")"
		default:
			parts[i] = "getenv(" + quoteString(p.Env) + ")"
		}
	}
	return strings.Join(parts, " || ")
}

// literal is the text when it does not depend on the environment.
func (t Text) literal() (string, bool) {
	var b strings.Builder
	for _, p := range t.Parts {
		b.WriteString(p.Literal)
	}
	return b.String(), !t.HasEnv()
}

func quoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
