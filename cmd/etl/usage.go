package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep/engine"
	"lockstep/sql"
)

// usageError is a mistake on the command line.
type usageError struct {
	problem string
	hint    string
}

func (e *usageError) Error() string {
	if e.hint == "" {
		return e.problem
	}
	return e.problem + "\n  " + e.hint
}

// asked makes a mistake of the command line of a --where that cannot be computed.
func asked(err error) error {
	var condition *engine.ConditionError
	if errors.As(err, &condition) {
		return &usageError{"--where: " + condition.Error(), "nothing was written; compare with values of the column's type, or use TRY_CAST"}
	}
	return err
}

// takes checks the arguments against their names in Use: "FILE SQL", "[PATH]", "PATH…".
func takes(names ...string) cobra.PositionalArgs {
	least, most := 0, len(names)
	for _, n := range names {
		if !strings.HasPrefix(n, "[") {
			least++
		}
		if strings.HasSuffix(n, "…") {
			most = 1 << 16
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		usage := "usage: " + cmd.UseLine()
		switch {
		case len(args) < least:
			return &usageError{fmt.Sprintf("%s needs %s", cmd.CommandPath(), names[len(args)]), usage}
		case len(args) > most && most == 0:
			return &usageError{fmt.Sprintf("%s takes no arguments", cmd.CommandPath()), usage}
		case len(args) > most:
			return &usageError{fmt.Sprintf("%s takes no more than %s: %q is left over", cmd.CommandPath(), strings.Join(names, " "), args[most]), usage}
		}
		return nil
	}
}

func unknownCommand(root *cobra.Command, name string) error {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	hint := "etl --help lists the commands"
	if near := sql.Suggest(name, names); near != "" {
		hint = "did you mean etl " + near + "?"
	} else if strings.HasSuffix(name, ".sql") {
		hint = "to run a pipeline: etl run " + name
	}
	return &usageError{fmt.Sprintf("there is no command %q", name), hint}
}

func flagError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help lists the flags"
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return &usageError{err.Error(), hint}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := sql.Suggest(unknown.GetSpecifiedName(), names); near != "" {
		hint = "did you mean --" + near + "?"
	}
	return &usageError{err.Error(), hint}
}
