package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockstep/connectors"
	"lockstep/connectors/files"
	"lockstep/engine/duck"
)

func inferCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "infer GLOB",
		Short: "Print the CREATE SOURCE statement for files",
		Long: `Print the CREATE SOURCE statement for files, with the columns and options found by
looking at some of them. Put the glob in quotes, so that the shell leaves it alone. It
is relative to the working directory; in a pipeline file it is relative to that file.

What was guessed is written down, and a run guesses nothing: correct the statement
where you know better.`,
		Example: `  etl infer 'landing/orders/*.csv' >> daily_sales.sql`,
		Args:    takes("GLOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			statement, err := infer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON(cmd) {
				printJSON(cmd.OutOrStdout(), map[string]string{"statement": statement})
				return nil
			}
			_, err = io.WriteString(cmd.OutOrStdout(), statement)
			return err
		},
	}
}

func infer(ctx context.Context, glob string) (statement string, err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if info, statErr := os.Stat(glob); statErr == nil && info.IsDir() {
		return "", &usageError{glob + " is a folder", "name the files in it, like '" + filepath.Join(glob, "*.csv") + "'"}
	}
	prefix := files.Prefix(connectors.SourceSpec{From: glob, Base: cwd})
	eng, err := duck.Open(ctx, duck.Options{Dirs: []string{prefix}})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	return files.Infer(ctx, eng, glob)
}
