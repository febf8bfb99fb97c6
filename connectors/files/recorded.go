package files

import (
	"context"
	"slices"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// Recorded prepares ranges that were read before. Every file is hashed again while it is read: its bytes
// must be those that were recorded. One that is gone may be found under another name, since the same bytes
// give the same rows; not where rows are known by the name of their file.
func (s *Source) Recorded(ctx context.Context, ranges []checkpoints.Range, find bool) ([]connectors.Range, error) {
	out := make([]connectors.Range, len(ranges))
	var others []file
	for i, r := range ranges {
		f, err := s.pattern.stat(r.Split)
		if err != nil {
			return nil, s.located(err)
		}
		if f == nil && find && s.nameless() {
			if others == nil {
				if others, err = s.besides(ranges); err != nil {
					return nil, err
				}
			}
			if f, err = s.withBytes(ctx, r, &others); err != nil {
				return nil, err
			}
		}
		if f == nil {
			hint := "put the file back"
			if find && s.nameless() {
				hint += ", another name is fine"
			}
			return nil, s.inputError(r.Split, "is gone, but its rows must be read again", hint)
		}
		next := checkpoints.Split{Next: r.To, Rows: r.Rows, Size: f.size, ModTime: f.mtime - 1, Content: r.Content} // not the time: the bytes tell
		switch {
		case s.settings.format == formatParquet:
			next.Rows = r.To
		case f.size != r.To: // text is read whole
			return nil, s.inputError(r.Split, "was changed after it was read, and its rows must be read again", "restore the original")
		}
		out[i] = connectors.Range{Split: f.id, From: r.From, To: r.To, Rows: r.Rows, Next: next}
	}
	return out, nil
}

// nameless: no row depends on the name of its file.
func (s *Source) nameless() bool {
	return !s.settings.replaced && !slices.ContainsFunc(s.spec.Columns, func(c connectors.SourceColumn) bool { return c.Metadata == "filename" })
}

// besides lists the files that are not of the ranges.
func (s *Source) besides(ranges []checkpoints.Range) ([]file, error) {
	found, err := s.list(nil)
	return slices.DeleteFunc(found, func(f file) bool {
		return slices.ContainsFunc(ranges, func(r checkpoints.Range) bool { return r.Split == f.id })
	}), err
}

// withBytes takes the file out of others that has the bytes of a range's file; nil when none has.
func (s *Source) withBytes(ctx context.Context, r checkpoints.Range, others *[]file) (*file, error) {
	want := identityOf(r.Content).hash
	for i, f := range *others {
		if s.settings.format != formatParquet && f.size != r.To {
			continue
		}
		sum, ok := s.sums[f]
		if !ok {
			h := hashFile(ctx, f.path, nil, nil)
			if h.err != nil {
				return nil, s.unreadable(ctx, f, h.err)
			}
			if s.sums == nil {
				s.sums = map[file]string{}
			}
			sum = h.sum
			s.sums[f] = sum
		}
		if sum == want {
			*others = slices.Delete(*others, i, i+1)
			return &f, nil
		}
	}
	return nil, nil
}
