package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/sql"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check PATH…",
		Short: "Find every fault of pipeline files without running them",
		Long: `Find every fault of pipeline files without running them.

A folder stands for all .sql files below it. Statements, SELECTs, keys, options and
paths are checked, and all faults of all files are printed at once. No destination is
opened and no row of input is read; a Parquet source that declares no columns has the
schema of its first file looked at. Exits with 1 when anything is wrong.`,
		Example: `  etl check daily_sales.sql
  etl check pipelines/`,
		Args: takes("PATH…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := pipelineFiles(args)
			if err != nil {
				return err
			}
			return checkFiles(cmd, paths)
		},
	}
}

// pipelineFiles are the named files, and all .sql files below named folders.
func pipelineFiles(args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &usageError{arg + ": no such file or folder", ""}
		}
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			paths = append(paths, arg)
			continue
		}
		found, err := sqlFiles(arg)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, &usageError{arg + ": no .sql files in this folder", "etl init writes a first pipeline"}
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

func sqlFiles(dir string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir() && strings.EqualFold(filepath.Ext(path), ".sql") && !strings.HasPrefix(d.Name(), "."):
			paths = append(paths, path)
		}
		return nil
	})
	slices.Sort(paths)
	return paths, err
}

// checked is what check found in one file.
type checked struct {
	File     string     `json:"file"`
	Pipeline string     `json:"pipeline,omitempty"`
	OK       bool       `json:"ok"`
	Sources  int        `json:"sources"`
	Sinks    int        `json:"sinks"`
	Unread   []string   `json:"unread,omitempty"` // sources that no sink reads
	Faults   sql.Errors `json:"faults,omitempty"`
	Error    string     `json:"error,omitempty"` // what is no fault at a place of the file

	path string // of the destination
}

func checkFiles(cmd *cobra.Command, paths []string) error {
	results, faults := make([]checked, 0, len(paths)), 0
	names := map[string]string{} // destination and pipeline → file
	for _, path := range paths {
		c, err := checkFile(cmd.Context(), path)
		if err != nil {
			return err
		}
		if c.OK {
			c.sameName(names)
		}
		if !c.OK {
			faults += max(1, len(c.Faults))
		}
		results = append(results, c)
	}
	if asJSON(cmd) {
		printJSON(cmd.OutOrStdout(), struct {
			Files  []checked `json:"files"`
			Faults int       `json:"faults"`
		}{results, faults})
	} else {
		apart := ""
		for _, c := range results {
			if !c.OK {
				fmt.Fprint(cmd.ErrOrStderr(), apart)
				apart = "\n"
			}
			c.print(cmd)
		}
		if faults > 1 {
			fmt.Fprintf(cmd.ErrOrStderr(), "\n%d faults\n", faults)
		}
	}
	if faults > 0 {
		return &printed{exitWrong}
	}
	return nil
}

// checkFile gives an error only when it was stopped.
func checkFile(ctx context.Context, path string) (checked, error) {
	c := checked{File: path}
	err := withFile(path, func(s *session) error {
		c.Pipeline, c.Sources, c.Sinks, c.path = s.script.Name, len(s.script.Sources), len(s.script.Sinks), s.path
		if err := s.compile(ctx); err != nil {
			return err
		}
		for _, source := range s.pipeline.Plan.Sources {
			if source.Reads == 0 {
				c.Unread = append(c.Unread, source.Name)
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	c.OK = err == nil
	if err != nil && !errors.As(err, &c.Faults) {
		c.Error = err.Error()
	}
	return c, nil
}

// sameName finds two files that are the same pipeline: the second to run would take the first one's
// progress for its own.
func (c *checked) sameName(seen map[string]string) {
	key := c.path + "\x00" + c.Pipeline
	if other, ok := seen[key]; ok {
		c.OK = false
		c.Error = fmt.Sprintf("%s: pipeline %s of the same destination is also in %s\n  give one of them another name with CREATE PIPELINE name;", c.File, c.Pipeline, other)
		return
	}
	seen[key] = c.File
}

func (c *checked) print(cmd *cobra.Command) {
	switch {
	case len(c.Faults) > 0:
		fmt.Fprint(cmd.ErrOrStderr(), c.Faults.Render())
	case c.Error != "":
		fmt.Fprintln(cmd.ErrOrStderr(), "error:", c.Error)
	default:
		unread := ""
		if len(c.Unread) > 0 {
			unread = "; no sink reads " + strings.Join(c.Unread, ", ")
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: ok (%s, %s%s)\n", c.File, plural(int64(c.Sources), "source"), plural(int64(c.Sinks), "sink"), unread)
	}
}
