package main

import (
	"github.com/spf13/cobra"
)

// completeFiles completes arguments that name pipeline files: .sql files and folders.
func completeFiles(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"sql"}, cobra.ShellCompDirectiveFilterFileExt
}
