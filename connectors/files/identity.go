package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// unread is a file with rows that were not read yet.
type unread struct {
	file
	seen checkpoints.Split // zero for a new file
}

// findings is what became of the files of a position, and which are to be read.
type findings struct {
	unread []unread // sorted by id
	moved  checkpoints.Splits
	gone   []string
}

// compare holds the files that are there against those that were read. Only files whose time of
// change differs, and new ones as large as a vanished one, are opened.
func (s *Source) compare(ctx context.Context, found []file, seen checkpoints.Splits) (findings, error) {
	out := findings{moved: checkpoints.Splits{}}
	var fresh []file
	present := make(map[string]bool, len(found))
	for _, f := range found {
		present[f.id] = true
		old, ok := seen[f.id]
		if !ok {
			fresh = append(fresh, f)
			continue
		}
		if err := s.confirm(ctx, f, &old); err != nil {
			return out, err
		}
		if old != seen[f.id] {
			out.moved[f.id] = old
		}
		if identityOf(old.Content).rows > 0 {
			out.unread = append(out.unread, unread{f, old})
		}
	}
	vanished := map[string]checkpoints.Split{}
	for id, old := range seen {
		if !present[id] {
			vanished[id] = old
		}
	}
	if err := s.findRenamed(ctx, fresh, vanished, &out); err != nil {
		return out, err
	}
	for _, id := range slices.Sorted(maps.Keys(vanished)) {
		old := vanished[id]
		if rows := identityOf(old.Content).rows; rows > 0 {
			return out, s.inputError(id, fmt.Sprintf("is gone, but its rows %d to %d were not read yet", old.Next+1, rows),
				"put the file back; under another name it is found by its content")
		}
	}
	slices.SortFunc(out.unread, func(a, b unread) int { return compareIDs(a.file, b.file) })
	return out, nil
}

// confirm checks that a file has the bytes that were read, and notes its new time of change.
func (s *Source) confirm(ctx context.Context, f file, old *checkpoints.Split) error {
	if f.size == old.Size && f.mtime == old.ModTime {
		return nil
	}
	if f.size != old.Size {
		return s.changed(f.id, *old, fmt.Sprintf("it has %d bytes now, it had %d", f.size, old.Size))
	}
	h := hashFile(ctx, f.path, nil)
	if h.err != nil {
		return s.unreadable(ctx, f, h.err)
	}
	if h.sum != identityOf(old.Content).hash {
		return s.changed(f.id, *old, "it has the same size, but other content")
	}
	old.ModTime = f.mtime
	return nil
}

func (s *Source) changed(id string, old checkpoints.Split, how string) error {
	what := "was changed after it was read"
	if rows := identityOf(old.Content).rows; rows > 0 {
		what = fmt.Sprintf("was changed after %d of its %d rows were read", old.Next, rows)
	}
	return s.inputError(id, fmt.Sprintf("%s (change %d): %s", what, old.Seq, how),
		"files that were read must not change: restore the original, and put corrections or new rows in a new file")
}

func (s *Source) unreadable(ctx context.Context, f file, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var access *fs.PathError
	if errors.As(err, &access) {
		return s.dataError(f.path, "cannot be read: "+reasonOf(err), "check the file and its permissions")
	}
	return s.dataError(f.path, err.Error(), "") // of counting its records
}

// findRenamed splits new paths into renamed files and new ones. Renamed ones leave vanished. When
// several files have the same bytes, they are paired in the order of their ids; a copy beside a file
// that is still there is a new file.
func (s *Source) findRenamed(ctx context.Context, fresh []file, vanished map[string]checkpoints.Split, out *findings) error {
	sizes := map[int64]bool{}
	byContent := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(vanished)) {
		old := vanished[id]
		sizes[old.Size] = true
		hash := identityOf(old.Content).hash
		byContent[hash] = append(byContent[hash], id)
	}
	for _, f := range fresh {
		if !sizes[f.size] {
			out.unread = append(out.unread, unread{file: f})
			continue
		}
		h := hashFile(ctx, f.path, nil)
		if h.err != nil {
			return s.unreadable(ctx, f, h.err)
		}
		ids := byContent[h.sum]
		if len(ids) == 0 {
			out.unread = append(out.unread, unread{file: f})
			continue
		}
		old := vanished[ids[0]]
		byContent[h.sum] = ids[1:]
		delete(vanished, ids[0])
		out.gone = append(out.gone, ids[0])
		old.ModTime = f.mtime
		out.moved[f.id] = old
		if identityOf(old.Content).rows > 0 {
			out.unread = append(out.unread, unread{f, old})
		}
	}
	return nil
}

// errWriting is the reason for a file that does not hold still.
var errWriting = errors.New("was being written while it was read; nothing was committed")

func (s *Source) writing(path string) error {
	return &connectors.DataError{Source: s.spec.Name, Where: s.shown(path), Err: errWriting,
		Hint: "run again; to be safe write to a name that ends in .tmp, then rename"}
}
