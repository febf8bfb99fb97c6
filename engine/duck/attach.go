package duck

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
)

// fileKey identifies a database file of this process: device and inode, or the folder's and the
// base name while the file does not exist.
type fileKey struct {
	dev, ino uint64
	name     string
}

var (
	openFilesMu sync.Mutex
	openFiles   = map[fileKey]string{} // path it was opened under
)

// OpenError says why a database file could not be attached.
type OpenError struct {
	Path string
	PID  string // of the program that holds it, when DuckDB told
	Held bool
	Err  error
}

func (e *OpenError) Error() string { return fmt.Sprintf("open %s: %v", e.Path, e.Err) }
func (e *OpenError) Unwrap() error { return e.Err }

// Attach opens a DuckDB file under a name. Reading only never creates the file. While it is
// attached no other process can open it.
func (e *Engine) Attach(ctx context.Context, path, alias string, readOnly bool) error {
	key, err := keyOf(path)
	if err != nil {
		return &OpenError{Path: path, Err: err}
	}
	openFilesMu.Lock()
	defer openFilesMu.Unlock()
	if other, ok := openFiles[key]; ok {
		return &OpenError{Path: path, Held: true, PID: fmt.Sprint(os.Getpid()), Err: fmt.Errorf("this process already has it open as %s", other)}
	}
	stmt := "ATTACH " + Literal(path) + " AS " + Quote(alias)
	if readOnly {
		stmt += " (READ_ONLY)"
	}
	if err := e.Exec(ctx, stmt); err != nil {
		held, pid := lockHolder(err)
		return &OpenError{Path: path, Held: held, PID: pid, Err: err}
	}
	if created, err := keyOf(path); err == nil {
		key = created
	}
	openFiles[key] = path
	e.attached[alias] = key
	return nil
}

// Detach closes an attached file so that other programs can open it.
func (e *Engine) Detach(ctx context.Context, alias string) error {
	key, ok := e.attached[alias]
	if !ok {
		return nil
	}
	if err := e.Exec(ctx, "DETACH "+Quote(alias)); err != nil {
		return err
	}
	openFilesMu.Lock()
	defer openFilesMu.Unlock()
	delete(openFiles, key)
	delete(e.attached, alias)
	return nil
}

// keyOf looks a file up without opening it: closing any descriptor of a file drops the process's
// lock on it.
func keyOf(path string) (fileKey, error) {
	info, err := os.Stat(path)
	if err == nil {
		return inode(info, "")
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fileKey{}, err
	}
	return inode(dir, filepath.Base(path))
}

func inode(info os.FileInfo, name string) (fileKey, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileKey{}, fmt.Errorf("no inode for %s", info.Name())
	}
	return fileKey{dev: uint64(st.Dev), ino: st.Ino, name: name}, nil //nolint:unconvert // int32 on some systems
}

var pidPattern = regexp.MustCompile(`PID (\d+)`)

func lockHolder(err error) (held bool, pid string) {
	if !strings.Contains(err.Error(), "Could not set lock on file") {
		return false, ""
	}
	if m := pidPattern.FindStringSubmatch(err.Error()); m != nil {
		pid = m[1]
	}
	return true, pid
}
