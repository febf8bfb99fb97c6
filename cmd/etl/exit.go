package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"

	"github.com/duckdb/duckdb-go/v2"
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
	exitSignal       = 128 // plus the number of the signal that stopped it
)

// printed is an outcome that the command's own output has told; only the exit code is left.
type printed struct{ code int }

func (p *printed) Error() string { return fmt.Sprintf("exit %d", p.code) }

// partial is an error after results that --json must still show.
type partial struct {
	err    error
	result any
}

func (p *partial) Error() string { return p.err.Error() }
func (p *partial) Unwrap() error { return p.err }

func codeOf(err error) int {
	var (
		told        *printed
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
	case errors.As(err, &told):
		return told.code
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

// finish prints the error of a command and returns the process's exit code.
func finish(ctx context.Context, cmd *cobra.Command, err error, wantsJSON bool) int {
	code := codeOf(err)
	var told *printed
	switch {
	case err == nil || errors.As(err, &told):
		return code
	case errors.Is(err, syscall.EPIPE):
		return exitOK // the reader has seen enough
	}
	var signal *stopped
	if errors.As(context.Cause(ctx), &signal) && interrupted(err) {
		code = exitSignal + int(signal.signal)
		err = replaced(err, signal)
	}
	if wantsJSON {
		f := failureOf(err)
		f.Exit = code
		if following(cmd) {
			printJSONLine(cmd.OutOrStdout(), f)
		} else {
			printJSON(cmd.OutOrStdout(), f)
		}
		return code
	}
	printError(cmd, err)
	if wait := cmd.Flags().Lookup("wait"); code == exitHeld && wait != nil && !wait.Changed && !logsJSON(cmd) {
		fmt.Fprintln(cmd.ErrOrStderr(), "  wait for it, or let etl wait: --wait 5m")
	}
	return code
}

// interrupted tells an error that only says that the context ended.
func interrupted(err error) bool {
	var stopped *duckdb.Error
	return errors.Is(err, context.Canceled) || errors.As(err, &stopped) && stopped.Type == duckdb.ErrorTypeInterrupt
}

// replaced says something else, but keeps the results so far.
func replaced(err, say error) error {
	var done *partial
	if errors.As(err, &done) {
		return &partial{say, done.result}
	}
	return say
}

// printError prints an error of the command; printErrorOf one of a file among several.
func printError(cmd *cobra.Command, err error) { printErrorOf(cmd, "", err) }

func printErrorOf(cmd *cobra.Command, file string, err error) {
	w := cmd.ErrOrStderr()
	if logsJSON(cmd) {
		logError(w, file, err)
		return
	}
	var faults sql.Errors
	var blocked *engine.BlockedError
	var signal *stopped
	of := ""
	if file != "" {
		of = file + ": "
	}
	switch {
	case errors.As(err, &faults):
		fmt.Fprint(w, faults.Render())
		if n := len(faults); n > 1 {
			fmt.Fprintf(w, "\n%d faults\n", n)
		}
	case errors.As(err, &blocked), errors.As(err, &signal):
		fmt.Fprintln(w, of+err.Error()) // they begin with a word of their own
	default:
		text := message(err)
		if !strings.HasPrefix(text, file) { // many begin with it
			text = of + text
		}
		fmt.Fprintln(w, "error:", text)
	}
}

// excerpt is where DuckDB points into the statement that failed.
var excerpt = regexp.MustCompile(`(?s)\n+LINE \d+: .*?(\n *\^+|$)`)

// message is the error's text without a statement that the author did not write.
func message(err error) string {
	var statement *duckdb.Error
	if errors.As(err, &statement) {
		return excerpt.ReplaceAllString(err.Error(), "")
	}
	return err.Error()
}

// failure is an error as data.
type failure struct {
	Error  string              `json:"error"`
	Hint   string              `json:"hint,omitempty"`
	Exit   int                 `json:"exit"`
	Faults sql.Errors          `json:"faults,omitempty"`
	Plan   *planner.Comparison `json:"plan,omitempty"`
	Cost   *engine.Cost        `json:"cost,omitempty"` // of applying that plan
	Result any                 `json:"result,omitempty"`
}

func failureOf(err error) *failure {
	out := &failure{Error: message(err), Exit: codeOf(err)}
	var blocked *engine.BlockedError
	var done *partial
	if errors.As(err, &done) {
		out.Result = done.result
	}
	switch {
	case errors.As(err, &blocked):
		out.Plan, out.Cost = &blocked.Comparison, &blocked.Cost
	case errors.As(err, &out.Faults):
	default:
		out.Error, out.Hint, _ = strings.Cut(out.Error, "\n  ")
	}
	return out
}

// logError writes an error as one line of JSON.
func logError(w io.Writer, file string, err error) {
	f := failureOf(err)
	attrs := []any{"exit", f.Exit}
	if file != "" {
		attrs = append(attrs, "file", file)
	}
	if f.Hint != "" {
		attrs = append(attrs, "hint", f.Hint)
	}
	if len(f.Faults) > 0 {
		attrs = append(attrs, "faults", f.Faults)
	}
	jsonLog(w).Error(f.Error, attrs...)
}

// printJSONLine is for commands that print one object per line.
func printJSONLine(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
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
