package files

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Losses lists the files that were changed after they were read, those that are gone with unread rows, and
// those that were given up.
func (s *Source) Losses(ctx context.Context, seen checkpoints.Splits) ([]connectors.Loss, error) {
	looked, err := s.Look(ctx, seen)
	if err != nil {
		return nil, err
	}
	var out []connectors.Loss
	for _, l := range looked {
		switch l.State {
		case StateChanged, StateLost:
		case StateGivenUp:
			out = append(out, connectors.Loss{Split: l.Split, Shown: s.shown(s.pattern.abs(l.Split)), Next: l.Entry, Accepted: true})
			continue
		default:
			continue
		}
		next := l.Entry
		loss := connectors.Loss{Split: l.Split, Shown: s.shown(s.pattern.abs(l.Split)), Reason: l.Problem, Accepted: next.Lost}
		next.Lost = true
		was := identityOf(next.Content)
		if was.rows > 0 {
			loss.Unread = was.rows - next.Next
		}
		next.Content = was.hash // none of it waits
		if l.State == StateLost {
			loss.Reason = goneReason(l.Entry)
		} else if next, err = s.asItIs(ctx, l.Split, next); err != nil {
			return nil, err
		}
		loss.Next = next
		out = append(out, loss)
	}
	return out, nil
}

// asItIs gives an entry the identity that its file has now.
func (s *Source) asItIs(ctx context.Context, id string, entry checkpoints.Split) (checkpoints.Split, error) {
	f, err := s.pattern.stat(id)
	if err != nil {
		return entry, s.located(err)
	}
	if f == nil {
		return entry, s.writing(s.pattern.abs(id))
	}
	h := hashFile(ctx, f.path, nil, nil)
	if h.err != nil {
		return entry, s.unreadable(ctx, *f, h.err)
	}
	if now, err := s.pattern.stat(id); err != nil || now == nil || *now != *f {
		return entry, errors.Join(s.writing(f.path), err)
	}
	entry.Size, entry.ModTime, entry.Content = f.size, f.mtime, h.sum
	return entry, nil
}

func goneReason(old checkpoints.Split) string {
	return fmt.Sprintf("is gone, but its rows %d to %d were not read yet", old.Next+1, identityOf(old.Content).rows)
}

// intact refuses ranges of what is not there any more.
func (s *Source) intact(ranges []connectors.Range) error {
	at := slices.IndexFunc(ranges, func(r connectors.Range) bool { return r.Next.Lost })
	if at < 0 {
		return nil
	}
	return s.inputError(ranges[at].Split, "what was read of it is lost, as was accepted, and cannot be read again",
		"the table keeps its rows, but nothing tells what they should be\n  "+s.taking(ranges[at].Split))
}

// waysOn are the commands that go on where a file that was read is another one now, or is gone.
func (s *Source) waysOn(id string, gone bool) string {
	ways := "or go on without it:\n"
	if !gone {
		ways = "or go on:\n  " + s.taking(id) + "\n"
	}
	return ways + "  etl accept-loss FILE --source " + connectors.ShellWord(s.spec.Name) + " --split " + connectors.ShellWord(id) + "    keeps what the table has of it"
}

// taking is the command that makes the table what it would be had a file always been what it is now.
func (s *Source) taking(id string) string {
	does := "takes it as it is now"
	if f, err := s.pattern.stat(id); err == nil && f == nil {
		does = "takes its rows out: it is gone"
	}
	return "etl backfill FILE --files " + connectors.ShellWord(s.shown(s.pattern.abs(id))) + "    " + does
}
