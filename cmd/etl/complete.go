package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print what makes a shell complete commands, files and flags",
		Long: `Print what makes a shell complete commands, pipeline files, flags and their values.

SHELL is bash, zsh, fish or powershell. To try it in the shell you are in:

  bash         source <(etl completion bash)
  zsh          source <(etl completion zsh)
  fish         etl completion fish | source
  powershell   etl completion powershell | Out-String | Invoke-Expression

To have it in every shell, put that line into ~/.bashrc, ~/.zshrc,
~/.config/fish/config.fish or $PROFILE. bash needs the package bash-completion.`,
		Example:   `  source <(etl completion bash)`,
		Args:      takes("SHELL"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return &usageError{fmt.Sprintf("there is no completion for %q", args[0]), "there is one for " + strings.Join(shells, ", ")}
		},
	}
}

// completeFiles completes arguments that name pipeline files: .sql files and folders.
func completeFiles(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !strings.Contains(cmd.Use, "…") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"sql"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeFlag completes the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, values func(cmd *cobra.Command, args []string) ([]string, cobra.ShellCompDirective)) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return values(cmd, args)
	})
	if err != nil {
		panic(err) // the flag is not there
	}
}

// oneOf are fixed values.
func oneOf(values ...string) func(*cobra.Command, []string) ([]string, cobra.ShellCompDirective) {
	return func(*cobra.Command, []string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// withSuffix are files.
func withSuffix(suffixes ...string) func(*cobra.Command, []string) ([]string, cobra.ShellCompDirective) {
	return func(*cobra.Command, []string) ([]string, cobra.ShellCompDirective) {
		return suffixes, cobra.ShellCompDirectiveFilterFileExt
	}
}

// namesIn are names in the pipeline file that the command line has already.
func namesIn(of func(*session) []string) func(*cobra.Command, []string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if len(args) > 0 {
			_ = withFile(context.Background(), args[0], func(s *session) error { // a faulty file completes nothing
				names = of(s)
				return nil
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func sinkNames(s *session) []string {
	var names []string
	for _, sink := range s.script.Sinks {
		names = append(names, sink.Name.Parts[len(sink.Name.Parts)-1].Text)
	}
	return names
}

func sourceNames(s *session) []string {
	var names []string
	for _, source := range s.script.Sources {
		names = append(names, source.Name.Text)
	}
	return names
}
