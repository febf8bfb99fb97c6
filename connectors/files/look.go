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

// Shown is how messages write the file that a split's id stands for.
func Shown(spec connectors.SourceSpec, id string) string {
	s := &Source{spec: spec, pattern: newPattern(spec)}
	return s.shown(s.pattern.abs(id))
}

// TooMany tells why a run would stop at a file with so many bad rows; "" when it would not.
func TooMany(spec connectors.SourceSpec, rejected, rows int64) string {
	allowed := allowance{text: "0"}
	if o, ok := spec.Options["max_rejects"]; ok {
		allowed, _ = parseAllowance(o.Text)
	}
	if allowed.allows(rejected, rows) {
		return ""
	}
	return tooManyBad(rejected, rows, allowed)
}

// Partly tells a range after which rows of its file are left.
func Partly(r connectors.Range) bool { return identityOf(r.Next.Content).rows > 0 }

// The states of a file.
const (
	StateRead    = "read"
	StatePartly  = "partly read" // a large Parquet file
	StateWaiting = "waiting"
	StateChanged = "changed"   // since it was read: a run stops there
	StateAnew    = "replaced"  // since it was read, which the source allows: it is read anew
	StateGone    = "gone"      // read to its end, and moved away: no matter
	StateLost    = "lost"      // gone, but its last rows were not read: a run stops there
	StateUnclear = "ambiguous" // a run stops there, and asks
	StateEmpty   = "empty"     // 0 bytes: a run stops there
	StateGivenUp = "given up"  // its loss was accepted: what was read of it stays in the tables
)

// Look is one file as it stands to what was read.
type Look struct {
	Split   string
	State   string
	Was     string            // the id it was read under, when it was renamed since
	Size    int64             // now; of a file that is gone, as it was
	Entry   checkpoints.Split // of the position; zero when nothing of it was read
	Problem string            // what a run would say
}

// Look holds every file against what was read, as Plan does, but goes on after what Plan stops at.
func (s *Source) Look(ctx context.Context, seen checkpoints.Splits) ([]Look, error) {
	found, err := s.list(seen)
	if err != nil {
		return nil, err
	}
	var out []Look
	var fresh []file
	vanished := maps.Clone(seen)
	for _, f := range found {
		entry, ok := seen[f.id]
		if !ok {
			fresh = append(fresh, f)
			continue
		}
		delete(vanished, f.id)
		l := Look{Split: f.id, State: readState(entry), Size: f.size, Entry: entry}
		if err := s.confirm(ctx, f, &entry); err != nil {
			if l.State, l.Problem, err = stopped(StateChanged, err); err != nil {
				return nil, err
			}
			if s.settings.replaced {
				l.State, l.Problem = StateAnew, ""
			}
		}
		out = append(out, l)
	}
	for _, f := range fresh {
		l, err := s.lookAtNew(ctx, f, vanished)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	for id, entry := range vanished {
		l := Look{Split: id, State: StateGone, Size: entry.Size, Entry: entry}
		switch {
		case identityOf(entry.Content).rows > 0:
			l.State = StateLost
		case entry.Lost:
			l.State = StateGivenUp
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Look) int { return strings.Compare(a.Split, b.Split) })
	return out, nil
}

// lookAtNew tells a new file from a renamed one, which it takes out of vanished.
func (s *Source) lookAtNew(ctx context.Context, f file, vanished map[string]checkpoints.Split) (Look, error) {
	l := Look{Split: f.id, State: StateWaiting, Size: f.size}
	var one findings
	one.moved = checkpoints.Splits{}
	if err := s.findRenamed(ctx, []file{f}, vanished, &one); err != nil {
		l.State, l.Problem, err = stopped(StateUnclear, err)
		return l, err
	}
	if entry, ok := one.moved[f.id]; ok {
		l.State, l.Entry, l.Was = readState(entry), entry, one.gone[0]
	} else if f.size == 0 {
		l.State = StateEmpty
	}
	return l, nil
}

func readState(entry checkpoints.Split) string {
	switch {
	case identityOf(entry.Content).rows > 0:
		return StatePartly
	case entry.Lost:
		return StateGivenUp
	}
	return StateRead
}

// stopped is the state of a file that a run would stop at; other errors are given back.
func stopped(state string, err error) (string, string, error) {
	var input *connectors.InputError
	var data *connectors.DataError
	switch {
	case errors.As(err, &input):
		return state, input.Reason, nil
	case errors.As(err, &data):
		return state, data.Err.Error(), nil
	}
	return "", "", err
}
