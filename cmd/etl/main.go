// Command etl keeps tables up to date with the SELECTs of pipeline files.
//
// One file per command; session.go opens what a pipeline file names; exit.go decides exit codes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main without the exit. The first interrupt lets the batch finish or roll back; a second one
// stops at once, which is safe: a batch is committed or it is not.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // the next signal has its default effect
	}()
	root := newRoot()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return exitCode(cmd, err, ctx)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "etl",
		Short:         "Keep tables up to date with SQL: input, result and progress move in one transaction",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().Bool("json", false, "print results and errors as JSON")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(runCommand(), versionCommand())
	return root
}
