package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/connectors"
	"lockstep/engine"
	"lockstep/planner"
	"lockstep/sql"
)

// The exit codes, as documented in docs/operations.md.
const (
	exitOK           = 0
	exitWrong        = 1   // the pipeline or its data is wrong
	exitUsage        = 2   // the command line is
	exitIncompatible = 3   // the plan or the target is not what the table was built with
	exitInput        = 4   // input is lost or was changed
	exitUnavailable  = 5   // the destination cannot be opened
	exitHeld         = 75  // another run or program holds it
	exitInterrupted  = 130 // stopped by a signal with input left
)

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// differsError: reconcile found rows that differ. They were printed.
type differsError struct{ keys int64 }

func (e *differsError) Error() string { return fmt.Sprintf("%d keys differ", e.keys) }

func codeOf(err error) int {
	var (
		usage       *usageError
		blocked     *engine.BlockedError
		target      *connectors.TargetError
		damaged     *connectors.DamagedError
		input       *connectors.InputError
		unavailable *connectors.UnavailableError
		fenced      *connectors.FencedError
		held        *connectors.HeldError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &blocked), errors.As(err, &target), errors.As(err, &damaged):
		return exitIncompatible
	case errors.As(err, &input):
		return exitInput
	case errors.As(err, &held), errors.As(err, &fenced):
		return exitHeld
	case errors.As(err, &unavailable):
		return exitUnavailable
	}
	return exitWrong
}

// exitCode prints the error of a command and returns the process's exit code.
func exitCode(cmd *cobra.Command, err error, ctx context.Context) int {
	if err == nil {
		return exitOK
	}
	code := codeOf(err)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(cmd.ErrOrStderr(), "stopped; what was committed stays, the rest waits for the next run")
		return exitInterrupted
	}
	if strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "accepts ") || strings.HasPrefix(err.Error(), "requires ") {
		code = exitUsage
	}
	if asJSON(cmd) {
		printErrorJSON(cmd.OutOrStdout(), err, code)
		return code
	}
	printError(cmd.ErrOrStderr(), err)
	return code
}

func printError(w io.Writer, err error) {
	var faults sql.Errors
	if errors.As(err, &faults) {
		fmt.Fprintln(w, faults.Render())
		if n := len(faults); n > 1 {
			fmt.Fprintf(w, "\n%d faults\n", n)
		}
		return
	}
	fmt.Fprintln(w, err)
}

func printErrorJSON(w io.Writer, err error, code int) {
	out := struct {
		Error  string              `json:"error"`
		Exit   int                 `json:"exit"`
		Faults sql.Errors          `json:"faults,omitempty"`
		Plan   *planner.Comparison `json:"plan,omitempty"`
	}{Error: err.Error(), Exit: code}
	errors.As(err, &out.Faults)
	var blocked *engine.BlockedError
	if errors.As(err, &blocked) {
		out.Plan = &blocked.Comparison
	}
	printJSON(w, out)
}

func printJSON(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a closed pipe is the reader's choice
}

func asJSON(cmd *cobra.Command) bool {
	on, err := cmd.Flags().GetBool("json")
	return err == nil && on
}
