package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/connectors"
	"lockstep/sql"
)

//go:embed templates/daily_sales.sql
var examplePipeline string

//go:embed templates/orders.csv
var exampleOrders string

func initCommand() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a small pipeline that runs",
		Long: `Write a small pipeline that runs, into DIR or the working directory.

Without --from it is a commented example with three rows of input. With --from, the
source is inferred from your files and a first table over them is proposed: read it,
then change it to what you need. Existing files are never overwritten.`,
		Example: `  etl init
  etl init sales --from 'landing/orders/*.csv'`,
		Args: takes("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			files, err := firstFiles(cmd.Context(), dir, from)
			if err != nil {
				return err
			}
			if err := writeNew(files); err != nil {
				return err
			}
			return sayNext(cmd, files)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "files to take the source from, as a glob in quotes")
	return cmd
}

// newFile is a file that init writes. The pipeline comes first.
type newFile struct{ path, text string }

func firstFiles(ctx context.Context, dir, from string) ([]newFile, error) {
	if from == "" {
		return []newFile{
			{filepath.Join(dir, "daily_sales.sql"), examplePipeline},
			{filepath.Join(dir, "landing", "orders", "2024-05.csv"), exampleOrders},
		}, nil
	}
	source, err := infer(ctx, from)
	if err != nil {
		return nil, err
	}
	glob, err := relativeTo(dir, from)
	if err != nil {
		return nil, err
	}
	source = strings.Replace(source, "FROM "+quoteText(from), "FROM "+quoteText(glob), 1)
	name, text, err := propose(ctx, source)
	if err != nil {
		return nil, err
	}
	return []newFile{{filepath.Join(dir, name+".sql"), text}}, nil
}

// relativeTo writes a path that is relative to the working directory relative to a folder.
func relativeTo(dir, path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	absDir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	absPath, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(absDir, absPath)
}

// writeNew creates all files, or none when one of them exists.
func writeNew(files []newFile) error {
	for _, f := range files {
		if _, err := os.Lstat(f.path); err == nil {
			return &usageError{f.path + " exists already; nothing was written", "choose another folder: etl init DIR"}
		}
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o777); err != nil {
			return err
		}
		out, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			return &usageError{f.path + " exists already", "choose another folder: etl init DIR"}
		}
		if err != nil {
			return err
		}
		_, err = out.WriteString(f.text)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	return nil
}

func sayNext(cmd *cobra.Command, files []newFile) error {
	out, paths := cmd.OutOrStdout(), make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	pipeline := connectors.ShellWord(files[0].path)
	next := []string{"etl check " + pipeline, "etl run " + pipeline, "etl query " + pipeline + " 'FROM " + sinkOf(files[0]) + "'"}
	if asJSON(cmd) {
		printJSON(out, map[string][]string{"wrote": paths, "next": next})
		return nil
	}
	for _, p := range paths {
		fmt.Fprintln(out, "wrote", p)
	}
	fmt.Fprintln(out, "\nnext:")
	for _, n := range next {
		fmt.Fprintln(out, "  "+n)
	}
	return nil
}

func sinkOf(pipeline newFile) string {
	script, err := sql.Parse(pipeline.path, pipeline.text)
	if err != nil || len(script.Sinks) == 0 {
		return "etl.status" // cannot be: what init writes was compiled
	}
	return script.Sinks[0].Name.String()
}
