package files

import (
	"context"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Recorded prepares ranges that were read before. Every file is hashed again while it is read: its bytes
// must be those that were recorded.
func (s *Source) Recorded(_ context.Context, ranges []checkpoints.Range) ([]connectors.Range, error) {
	out := make([]connectors.Range, len(ranges))
	for i, r := range ranges {
		f, err := s.pattern.stat(r.Split)
		if err != nil {
			return nil, s.located(err)
		}
		if f == nil {
			return nil, s.inputError(r.Split, "is gone, but its rows must be read again", "put the file back")
		}
		next := checkpoints.Split{Next: r.To, Rows: r.Rows, Size: f.size, ModTime: f.mtime - 1, Content: r.Content} // not the time: the bytes tell
		switch {
		case s.settings.format == formatParquet:
			next.Rows = r.To
		case f.size != r.To: // text is read whole
			return nil, s.inputError(r.Split, "was changed after it was read, and its rows must be read again", "restore the original")
		}
		out[i] = connectors.Range{Split: r.Split, From: r.From, To: r.To, Rows: r.Rows, Next: next}
	}
	return out, nil
}
