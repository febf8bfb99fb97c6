package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"lockstep/connectors"
)

// tempDir is a folder that DuckDB spills to. A run that was killed cannot remove its own, which may be
// large, so the next one does. The lock on a file in it tells whether its run is alive, also from
// inside another container.
type tempDir struct {
	path string
	lock *os.File
}

const (
	tempPattern = "etl-*"
	lockName    = "lock"
)

func newTempDir() (*tempDir, error) {
	removeDead()
	path, err := os.MkdirTemp("", tempPattern)
	if err != nil {
		return nil, noTempDir(err)
	}
	t := &tempDir{path: path}
	// Under its name the file is never seen without its lock.
	unlocked := filepath.Join(path, "new")
	if t.lock, err = os.Create(unlocked); err == nil {
		err = syscall.Flock(int(t.lock.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		err = os.Rename(unlocked, filepath.Join(path, lockName))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the folder to spill to: %w", err), t.remove())
	}
	return t, nil
}

// noTempDir says where no folder could be made.
func noTempDir(err error) error {
	hint := "make it, or let TMPDIR name another folder"
	if os.Getenv("TMPDIR") == "" {
		hint = "let TMPDIR name a folder on a disk with room"
	}
	return &connectors.UnavailableError{What: os.TempDir(), Err: errors.New("no folder for temporary files can be made there: " + reasonOf(err)), Hint: hint}
}

func (t *tempDir) remove() error {
	err := os.RemoveAll(t.path)
	if t.lock != nil {
		err = errors.Join(err, t.lock.Close())
	}
	return err
}

// removeDead removes the folders of runs that are no more. What cannot be removed is left: it may
// belong to somebody else.
func removeDead() {
	locks, err := filepath.Glob(filepath.Join(os.TempDir(), tempPattern, lockName))
	if err != nil {
		return // the pattern is fixed
	}
	for _, path := range locks {
		lock, err := os.Open(path)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = lock.Close()
	}
}
