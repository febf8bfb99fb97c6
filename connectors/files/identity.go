package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

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
		err := s.confirm(ctx, f, &old)
		var changed *connectors.InputError
		if errors.As(err, &changed) && s.settings.replaced {
			fresh = append(fresh, f) // it may be another file under this name
			continue
		}
		if err != nil {
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
		if identityOf(old.Content).rows > 0 {
			return out, s.inputError(id, goneReason(old), "put the file back; under another name it is found by its content; "+s.waysOn(id, true))
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
		return s.changed(f.id, *old, f.size, fmt.Sprintf("it has %d bytes now, it had %d", f.size, old.Size))
	}
	h := hashFile(ctx, f.path, nil, nil)
	if h.err != nil {
		return s.unreadable(ctx, f, h.err)
	}
	if h.sum != identityOf(old.Content).hash {
		return s.changed(f.id, *old, f.size, "it has the same size, but other content")
	}
	old.ModTime = f.mtime
	return nil
}

func (s *Source) changed(id string, old checkpoints.Split, size int64, how string) error {
	what := "was changed after it was read"
	if rows := identityOf(old.Content).rows; rows > 0 {
		what = fmt.Sprintf("was changed after %d of its %d rows were read", old.Next, rows)
	}
	hint := "files that were read must not change: restore the original, and put corrections or new rows in a new file"
	if old.Lost {
		what = "was changed after its loss was accepted"
	}
	if size > old.Size {
		hint += fmt.Sprintf("; if it was still being written, cut it back to %d bytes, put what came later in a new file,"+
			" and let files be written under a name that ends in .tmp and renamed when they are whole", old.Size)
	}
	err := s.inputError(id, what+": "+how, hint+"; "+s.waysOn(id, false))
	err.Seq = old.Seq
	return err
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

// findRenamed splits new paths into renamed files and new ones. Renamed ones leave vanished. A copy
// beside a file that is still there is a new file. A path with the bytes of a file that is gone may be
// either: that file under another name, whose rows must not count twice, or a delivery that repeats
// it, whose rows must count. A rename keeps the time of change, so the same time tells; where it
// differs nothing is guessed, unless the source says what repeats are.
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
		h := hashFile(ctx, f.path, nil, nil)
		if h.err != nil {
			return s.unreadable(ctx, f, h.err)
		}
		ids := byContent[h.sum]
		if len(ids) == 0 {
			out.unread = append(out.unread, unread{file: f})
			continue
		}
		at := slices.IndexFunc(ids, func(id string) bool { return vanished[id].ModTime == f.mtime })
		if at < 0 {
			first := vanished[ids[0]]
			switch {
			case s.settings.repeats == "new", first.Rows == 0 && identityOf(first.Content).rows == 0: // no row could count twice
				out.unread = append(out.unread, unread{file: f})
				continue
			case s.settings.repeats == "renamed":
				at = 0
			default:
				return s.repeated(f, ids[0], first)
			}
		}
		id := ids[at]
		old := vanished[id]
		byContent[h.sum] = slices.Delete(slices.Clone(ids), at, at+1)
		delete(vanished, id)
		out.gone = append(out.gone, id)
		if s.settings.replaced { // its rows are known by its name
			out.unread = append(out.unread, unread{file: f})
			continue
		}
		old.ModTime = f.mtime
		out.moved[f.id] = old
		if identityOf(old.Content).rows > 0 {
			out.unread = append(out.unread, unread{f, old})
		}
	}
	return nil
}

// repeated asks whether a file is renamed or new.
func (s *Source) repeated(f file, gone string, old checkpoints.Split) error {
	was := time.Unix(0, old.ModTime).UTC().Format("2006-01-02T15:04:05.999999999Z")
	return s.inputError(f.id, fmt.Sprintf("has the bytes of %s, which was read and is gone, but another time of change: it may be that file under another name, or a new one", gone),
		fmt.Sprintf("if it is the same file, give it its time back: touch -d %s %s; if files of this source can repeat, write WITH (repeats = 'new')", was, s.shown(f.path)))
}

// errWriting is the reason for a file that does not hold still.
var errWriting = errors.New("was being written while it was read; nothing was committed")

func (s *Source) writing(path string) error {
	return &connectors.DataError{Source: s.spec.Name, Where: s.shown(path), Err: errWriting,
		Hint: "run again; to be safe write to a name that ends in .tmp, then rename"}
}
