package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// pipelineFiles are the named files, and the .sql files of named folders, by name. Folders in them are
// not entered: what lies there may be old versions, tests or other pipelines' input. several tells that
// output must say which pipeline it is about.
func pipelineFiles(args []string) (paths []string, several bool, err error) {
	folder := false
	for _, arg := range args {
		info, err := os.Stat(arg)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, noSuchFile(arg, "no such file or folder")
		}
		if err != nil {
			return nil, false, &usageError{arg + ": " + reasonOf(err), "check its permissions"}
		}
		if !info.IsDir() {
			paths = append(paths, arg)
			continue
		}
		folder = true
		found, err := sqlFiles(arg)
		if err != nil {
			return nil, false, &usageError{arg + ": cannot be listed: " + reasonOf(err), "check its permissions"}
		}
		if len(found) == 0 {
			return nil, false, &usageError{arg + ": no .sql files in this folder", "etl init writes a first pipeline; folders in a folder are not entered: name them"}
		}
		paths = append(paths, found...)
	}
	return paths, folder || len(paths) > 1, nil
}

// sqlFiles leaves out names that begin with . or _: they are put aside.
func sqlFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") || !strings.EqualFold(filepath.Ext(path), ".sql") {
			continue
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			continue // a folder or a pipe; a link that leads nowhere is told when it is opened
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// worse is the exit code of two pipelines: the one that needs somebody most. What may pass by itself
// comes last.
func worse(a, b int) int {
	order := map[int]int{exitIncompatible: 6, exitInput: 5, exitWrong: 4, exitUsage: 3, exitUnavailable: 2, exitHeld: 1, exitOK: 0}
	if cmp.Compare(order[a], order[b]) >= 0 {
		return a
	}
	return b
}
