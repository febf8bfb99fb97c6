package main

import (
	"errors"
	"regexp"
	"strings"

	"lockstep/connectors"
	"lockstep/engine"
)

// Hints of packages below name commands as `etl drop FILE`: they do not know what the file was called on the
// command line.

var commandOnFile = regexp.MustCompile(`\betl [^\n]*?\bFILE\b`)

// onFile puts the pipeline file, written for a shell, into the commands of a text.
func onFile(text, file string) string {
	return commandOnFile.ReplaceAllStringFunc(text, func(command string) string {
		return strings.TrimSuffix(command, "FILE") + file
	})
}

// withCommands is onFile for every error in an error.
func withCommands(err error, file string) {
	var (
		target      *connectors.TargetError
		input       *connectors.InputError
		unavailable *connectors.UnavailableError
		data        *connectors.DataError
		blocked     *engine.BlockedError
	)
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			withCommands(one, file)
		}
		return
	}
	switch {
	case err == nil:
	case errors.As(err, &target):
		target.Hint = onFile(target.Hint, file)
	case errors.As(err, &input):
		input.Hint = onFile(input.Hint, file)
	case errors.As(err, &unavailable):
		unavailable.Hint = onFile(unavailable.Hint, file)
	case errors.As(err, &data):
		data.Hint = onFile(data.Hint, file)
	case errors.As(err, &blocked):
		blocked.File = file
	}
}
