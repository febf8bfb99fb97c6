// Command etl keeps tables up to date with the SELECTs of pipeline files.
//
// One file per command. session.go opens what a pipeline file names, wiring.go finds it, secrets.go
// keeps what getenv gave out of every message; exit.go prints errors and decides exit codes.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// stopped is the cause of the context's end when a signal came.
type stopped struct{ signal syscall.Signal }

func (s *stopped) Error() string {
	return "stopped; what was committed stays, the rest waits for the next run"
}

// run is main without the process around it. The first signal lets the batch finish or roll back; a
// second one ends the process at once, which is safe: a batch is committed or it is not.
func run(args []string, stdout, stderr io.Writer) int {
	// A closed pipe is found out by the write that fails, so that everything is still put away.
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		select {
		case got := <-signals:
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			if number, ok := got.(syscall.Signal); ok {
				cancel(&stopped{number})
			}
		case <-ctx.Done():
		}
	}()
	return guarded(stderr, func() int {
		root := newRoot()
		root.SetArgs(args)
		root.SetOut(stdout)
		root.SetErr(stderr)
		cmd, err := root.ExecuteContextC(ctx)
		return finish(ctx, cmd, err, asJSON(cmd) || slices.Contains(args, "--json")) // a faulty flag ends the parsing
	})
}

// guarded turns a panic into one calm line. Sessions close what they opened on the way here.
func guarded(stderr io.Writer, fn func() int) (code int) {
	defer func() {
		if v := recover(); v != nil {
			code = exitWrong
			problem, _, _ := strings.Cut(fmt.Sprint(v), "\n")
			fmt.Fprintf(stderr, "error: this is a bug in etl: %s\n  please report it; a batch that was not committed left nothing behind\n", problem)
		}
	}()
	return fn()
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "etl",
		Short: "Keep tables up to date with SQL",
		Long: `Keep tables up to date with SQL.

A pipeline is one .sql file: where rows come from, a SELECT, and the keyed table that
holds its result. Each run folds new input into the table. The rows, the input that
was read and the state are committed in one transaction, so a crash can neither lose
nor double a row.`,
		Example: `  etl init            write a small pipeline that runs
  etl run FILE        fold new input into its table
  etl status          what every pipeline here has read, and what waits`,
		Args:          cobra.ArbitraryArgs, // unknown commands are answered by RunE
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.PersistentFlags().Bool("json", false, "print results and errors as JSON")
	root.PersistentFlags().String("log-format", "text", "of what goes to stderr: text, or json, one object a line")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return checkLogFormat(cmd) }
	completeFlag(root, "log-format", oneOf("text", "json"))
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(initCommand(), inferCommand(), checkCommand(), planCommand(), applyCommand(), runCommand(), statusCommand(),
		previewCommand(), filesCommand(), rejectsCommand(), macrosCommand(), historyCommand(), queryCommand(), reconcileCommand(), backfillCommand(), dropCommand(), renameCommand(), adoptCommand(), diffCommand(), acceptLossCommand(), completionCommand(), versionCommand())
	return root
}
