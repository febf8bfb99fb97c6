package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"lockstep/engine/duck"
)

// release is set by the Makefile from the newest tag.
var release = "dev"

// version names this build: the release, and the commit when it is known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return release + "+" + s.Value[:12]
		}
	}
	return release
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of etl and of the DuckDB inside it",
		Long:    `Print the versions of etl, of the DuckDB inside it and of the Go that built it.`,
		Example: `  etl version --json`,
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			eng, err := duck.Open(cmd.Context(), duck.Options{})
			if err != nil {
				return err
			}
			defer eng.Close()
			duckdb, err := eng.Version(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON(cmd) {
				printJSON(cmd.OutOrStdout(), map[string]string{"etl": version(), "duckdb": duckdb, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
				return nil
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "etl %s (DuckDB %s, %s, %s/%s)\n", version(), duckdb, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
