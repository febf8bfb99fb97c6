package planner

import "slices"

// Origin is what something is made from: sources, and steps by their IDs, however far below.
type Origin struct {
	Sources []string
	Steps   []string
}

func (o Origin) with(other Origin) Origin {
	return Origin{Sources: both(o.Sources, other.Sources), Steps: both(o.Steps, other.Steps)}
}

func both(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
