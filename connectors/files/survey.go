package files

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Survey tells for every file whether it is what was read.
func (s *Source) Survey(ctx context.Context, seen checkpoints.Splits, named func(connectors.Standing) bool) ([]connectors.Standing, error) {
	found, err := s.list(seen)
	if err != nil {
		return nil, err
	}
	var out []connectors.Standing
	var fresh []file
	var whole []unread // to be read from their beginning
	add := func(id, state string, was checkpoints.Split) *connectors.Standing {
		out = append(out, connectors.Standing{Split: id, State: state, Shown: s.shown(s.pattern.abs(id)), Was: was})
		return &out[len(out)-1]
	}
	vanished := maps.Clone(seen)
	for _, f := range found {
		was, ok := seen[f.id]
		if !ok {
			fresh = append(fresh, f)
			continue
		}
		delete(vanished, f.id)
		if named != nil && named(connectors.Standing{Split: f.id, Shown: s.shown(f.path)}) {
			was.ModTime = f.mtime - 1 // so that its bytes tell
		}
		var changed *connectors.InputError
		switch err := s.confirm(ctx, f, &was); {
		case errors.As(err, &changed):
			add(f.id, connectors.StandsChanged, was)
			whole = append(whole, unread{file: f})
		case err != nil:
			return nil, err
		case was.Lost: // what was read of it was something else
			add(f.id, connectors.StandsChanged, was)
			whole = append(whole, unread{file: f})
		default:
			add(f.id, connectors.StandsSame, was)
		}
	}
	renamed := findings{moved: checkpoints.Splits{}}
	if err := s.findRenamed(ctx, fresh, vanished, &renamed); err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(renamed.moved)) {
		st := add(id, connectors.StandsSame, renamed.moved[id])
		for _, old := range renamed.gone {
			if seen[old].Content == st.Was.Content && !slices.ContainsFunc(out, func(o connectors.Standing) bool { return o.Moved == old }) {
				st.Moved, st.Once = old, s.shown(s.pattern.abs(old))
				break
			}
		}
	}
	for _, u := range renamed.unread {
		if _, partly := renamed.moved[u.id]; !partly {
			add(u.id, connectors.StandsNew, checkpoints.Split{})
			whole = append(whole, u)
		}
	}
	for id, was := range vanished {
		add(id, connectors.StandsGone, was)
	}
	if err := s.wholly(ctx, whole, out); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b connectors.Standing) int { return strings.Compare(a.Split, b.Split) })
	return out, nil
}

// wholly fills in what there is to read of files. An empty one has nothing, and is refused when it is read.
func (s *Source) wholly(ctx context.Context, whole []unread, into []connectors.Standing) error {
	ranges, err := s.ranges(ctx, slices.DeleteFunc(slices.Clone(whole), func(u unread) bool { return u.size == 0 }), connectors.Limit{})
	if err != nil {
		return err
	}
	for _, r := range ranges {
		at := slices.IndexFunc(into, func(st connectors.Standing) bool { return st.Split == r.Split })
		into[at].Now = r
	}
	return nil
}
