package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/connectors"
)

// given is what the command line says of the pipelines it names, beside their files.
type given struct {
	attach map[string]string // database in lower case → the file that ATTACH shall name
	env    map[string]string // of --env-file
	flags  string            // as they were given, for commands in hints
}

type givenKey struct{}

// takesFiles adds the flags of every command that reads pipeline files.
func takesFiles(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	attach := flags.StringArray("attach", nil, "NAME=FILE: use this database file in place of the one that ATTACH … AS NAME names")
	envFile := flags.String("env-file", "", "file of KEY=VALUE lines that getenv reads where the environment has no such variable")
	cmd.ValidArgsFunction = completeFiles
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		g := &given{attach: map[string]string{}}
		for _, a := range *attach {
			name, file, ok := strings.Cut(a, "=")
			if name = strings.ToLower(strings.TrimSpace(name)); !ok || name == "" || file == "" {
				return &usageError{"--attach takes NAME=FILE", "as in --attach mart=dev.duckdb"}
			}
			if _, twice := g.attach[name]; twice {
				return &usageError{"--attach names database " + name + " twice", ""}
			}
			g.attach[name] = file
			g.flags += " --attach " + connectors.ShellWord(a)
		}
		if *envFile != "" {
			env, warning, err := readEnvFile(*envFile)
			if err != nil {
				return err
			}
			g.flags += " --env-file " + connectors.ShellWord(*envFile)
			if g.env = env; warning != "" {
				warn(cmd, "%s", warning)
			}
		}
		cmd.SetContext(context.WithValue(cmd.Context(), givenKey{}, g))
		return nil
	}
	return cmd
}

func givenIn(ctx context.Context) *given {
	if g, ok := ctx.Value(givenKey{}).(*given); ok {
		return g
	}
	return &given{}
}

// lookup answers getenv. The environment wins over the file, so that one run can be told otherwise.
func (g *given) lookup(name string) (string, bool) {
	if value, ok := os.LookupEnv(name); ok {
		return value, true
	}
	value, ok := g.env[name]
	return value, ok
}

// attached is the file that the command line names for a database. Unlike in a pipeline file, its path
// is relative to the working directory.
func (g *given) attached(name string) (shown, path string, ok bool) {
	shown, ok = g.attach[strings.ToLower(name)]
	if !ok {
		return "", "", false
	}
	path = shown
	if abs, err := filepath.Abs(path); err == nil && !strings.Contains(path, "://") {
		path = abs
	}
	return shown, path, true
}

// covers makes sure that every --attach is about the pipeline: one that is not would leave it writing
// where its file says.
func (g *given) covers(file string, names []string) error {
	for attach := range g.attach {
		found := false
		for _, n := range names {
			found = found || strings.EqualFold(n, attach)
		}
		if !found {
			return &usageError{fmt.Sprintf("%s attaches no database %s", file, attach), "--attach names one that the file attaches: " + strings.Join(names, ", ")}
		}
	}
	return nil
}
