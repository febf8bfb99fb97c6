package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// What goes to stderr is text for people, or with --log-format json one JSON object a line.

func logsJSON(cmd *cobra.Command) bool {
	format, err := cmd.Flags().GetString("log-format")
	return err == nil && format == "json"
}

func checkLogFormat(cmd *cobra.Command) error {
	format, err := cmd.Flags().GetString("log-format")
	if err == nil && format != "text" && format != "json" {
		return &usageError{fmt.Sprintf("there is no log format %q", format), "there are text, json"}
	}
	return nil
}

func jsonLog(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }

// warn tells what needs no action of this run but somebody should know. --quiet does not keep it back.
func warn(cmd *cobra.Command, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if logsJSON(cmd) {
		jsonLog(cmd.ErrOrStderr()).Warn(text)
		return
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "warning:", text)
}

// quiet adds --quiet to a command.
func quiet(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolP("quiet", "q", false, "print only trouble, as a mail from cron should")
	return cmd
}

func isQuiet(cmd *cobra.Command) bool {
	on, err := cmd.Flags().GetBool("quiet")
	return err == nil && on
}
