package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/sql"
)

func checkCommand() *cobra.Command {
	return takesFiles(quiet(&cobra.Command{
		Use:   "check PATH…",
		Short: "Find every fault of pipeline files without running them",
		Long: `Find every fault of pipeline files without running them.

A folder stands for the .sql files in it; names that begin with . or _ are left out.
Statements, SELECTs, keys, options and paths are checked, and all faults of all files
are printed at once. Two files that would write one table are told as well. No destination is
opened and no row of input is read; a Parquet source that declares no columns has the
schema of its first file looked at. Exits with 1 when anything is wrong.`,
		Example: `  etl check daily_sales.sql
  etl check pipelines/`,
		Args: takes("PATH…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, _, err := pipelineFiles(args)
			if err != nil {
				return err
			}
			return checkFiles(cmd, paths)
		},
	}))
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

	code   int
	path   string   // of the destination
	tables []string // that the sinks write
}

func checkFiles(cmd *cobra.Command, paths []string) error {
	results, faults, code := make([]checked, 0, len(paths)), 0, exitOK
	seen := map[string]string{} // destination and pipeline or table → file
	for _, path := range paths {
		c, err := checkFile(cmd.Context(), path)
		if err != nil {
			return err
		}
		if c.OK {
			c.clashes(seen)
		}
		if !c.OK {
			faults += max(1, len(c.Faults))
			code = worse(code, max(c.code, exitWrong))
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
		return &printed{code}
	}
	return nil
}

// checkFile gives an error only when it was stopped.
func checkFile(ctx context.Context, path string) (checked, error) {
	c := checked{File: path}
	err := withFile(ctx, path, func(s *session) error {
		c.Pipeline, c.Sources, c.Sinks, c.path = s.script.Name, len(s.script.Sources), len(s.script.Sinks), s.identity()
		if err := s.compile(ctx); err != nil {
			return err
		}
		for _, sink := range s.pipeline.Plan.Sinks {
			c.tables = append(c.tables, strings.ToLower(cmp.Or(sink.Schema, "main")+"."+sink.Table))
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
	c.OK, c.code = err == nil, codeOf(err)
	if err != nil && !errors.As(err, &c.Faults) {
		c.Error = err.Error()
	}
	return c, nil
}

// clashes finds two files that are the same pipeline of one destination, where the second to run would
// take the first one's progress for its own, and two that write the same table.
func (c *checked) clashes(seen map[string]string) {
	wrong := func(format string, args ...any) {
		c.OK = false
		c.Error = strings.TrimPrefix(c.Error+"\n"+fmt.Sprintf(format, args...), "\n")
	}
	note := func(kind, name string) (other string) {
		key := c.path + "\x00" + kind + "\x00" + name
		if other, ok := seen[key]; ok {
			return other
		}
		seen[key] = c.File
		return ""
	}
	if other := note("pipeline", c.Pipeline); other != "" {
		wrong("%s: pipeline %s of the same destination is also in %s\n  give one of them another name with CREATE PIPELINE name;", c.File, c.Pipeline, other)
		return // the tables are, then, no second fault
	}
	for _, table := range c.tables {
		if other := note("table", table); other != "" {
			wrong("%s: table %s of the same destination is also written by %s\n  a table has one pipeline: give one of the sinks another table", c.File, strings.TrimPrefix(table, "main."), other)
		}
	}
}

// realPath is a path without links, as far as it exists: two names of one file are the same file.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

func (c *checked) print(cmd *cobra.Command) {
	switch {
	case len(c.Faults) > 0:
		fmt.Fprint(cmd.ErrOrStderr(), c.Faults.Render())
	case c.Error != "":
		fmt.Fprintln(cmd.ErrOrStderr(), "error:", c.Error)
	case !isQuiet(cmd):
		unread := ""
		if len(c.Unread) > 0 {
			unread = "; no sink reads " + strings.Join(c.Unread, ", ")
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: ok (%s, %s%s)\n", c.File, plural(int64(c.Sources), "source"), plural(int64(c.Sinks), "sink"), unread)
	}
}
