package main

import (
	"fmt"
	"strings"

	"lockstep/planner"
)

// explain is the plan as a screen: what is read, what is kept, what is written.
func explain(p *planner.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  plan %s\n", p.Name, short(p.Hash.ID))
	for _, s := range p.Sources {
		fmt.Fprintf(&b, "source   %s: %s from %s\n", s.Name, plural(int64(len(s.Columns)), "column"), s.Decl.From)
	}
	for _, s := range p.Steps {
		keyed := "one row"
		if s.State.Key > 0 {
			keyed = "one row per key of " + plural(int64(s.State.Key), "column")
		}
		fmt.Fprintf(&b, "step     %s: keeps %s\n", s.Kind, keyed)
	}
	for _, s := range p.Sinks {
		fmt.Fprintf(&b, "sink     %s PRIMARY KEY (%s)\n", s.Name, strings.Join(s.Key, ", "))
	}
	return b.String()
}
