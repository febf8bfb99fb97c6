package planner

import (
	"slices"
)

// Needs is what it takes to go on with a new plan from the state of an old one.
type Needs struct {
	Fold    []string // IDs of steps whose state is made anew, from input that was read before
	Sources []string // of that input
	Sinks   []string // tables whose rows are computed again; others mean the same
	New     []string // of them, those that the old plan has not
	Gone    []Sink   // of the old plan; the new one has them no more
}

// Reads tells whether input must be read again.
func (n Needs) Reads() bool { return len(n.Fold) > 0 }

// Classes names, per sink, what it takes.
func (n Needs) Class(s Sink) Class {
	switch {
	case !slices.Contains(n.Sinks, s.Name):
		return None
	case slices.ContainsFunc(s.Of.Steps, func(id string) bool { return slices.Contains(n.Fold, id) }):
		return Rebuild
	}
	return Refinalise
}

// Between finds what it takes. A nil old plan keeps nothing.
func Between(old, now *Plan) Needs {
	var n Needs
	if old == nil {
		old = &Plan{}
	}
	missing := map[string]bool{}
	for _, step := range now.Steps {
		if !keeps(old, now, step) {
			missing[step.ID] = true
		}
	}
	for _, step := range now.Steps {
		if missing[step.ID] {
			n.Sources = both(n.Sources, step.Of.Sources)
			n.Fold = both(n.Fold, append([]string{step.ID}, step.Of.Steps...))
		}
	}
	for _, s := range now.Sinks {
		i := slices.IndexFunc(old.Sinks, func(o Sink) bool { return o.Name == s.Name })
		if i < 0 {
			n.New = append(n.New, s.Name)
		}
		if i < 0 || slices.ContainsFunc(s.Of.Steps, func(id string) bool { return missing[id] }) || digest(canonSink(old.Sinks[i])) != digest(canonSink(s)) {
			n.Sinks = append(n.Sinks, s.Name)
		}
	}
	for _, s := range old.Sinks {
		if !slices.ContainsFunc(now.Sinks, func(o Sink) bool { return o.Name == s.Name }) {
			n.Gone = append(n.Gone, s)
		}
	}
	return n
}

// keeps: the old plan keeps all that a step does, from sources that mean the same.
func keeps(old, now *Plan, step Step) bool {
	if !slices.ContainsFunc(now.state, func(s canonicalState) bool { return s.Step == step.ID && kept(old, s) }) {
		return false
	}
	for _, name := range step.Of.Sources {
		was, is := sourceOf(old, name), sourceOf(now, name)
		if was == nil || is == nil || digest(canonSource(*was, usedColumns(old)[was.Name])) != digest(canonSource(*is, usedColumns(now)[is.Name])) {
			return false
		}
	}
	return true
}

func sourceOf(p *Plan, name string) *Source {
	for i := range p.Sources {
		if p.Sources[i].Name == name {
			return &p.Sources[i]
		}
	}
	return nil
}
