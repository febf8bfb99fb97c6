package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readEnvFile reads KEY=VALUE lines. Values are taken as they are: nothing in them is expanded. In
// single quotes every character means itself; in double quotes \n, \t, \", \$ and \\ are known. No
// message shows any part of a value.
func readEnvFile(path string) (env map[string]string, warning string, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", &usageError{"--env-file: " + path + ": no such file", ""}
	case err == nil && info.IsDir():
		return nil, "", &usageError{"--env-file: " + path + " is a folder", "name a file of KEY=VALUE lines"}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, "", &usageError{"--env-file: " + path + ": " + reasonOf(err), "check its permissions"}
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 {
		warning = fmt.Sprintf("%s can be read by other users of this machine: chmod 600 %s", path, path)
	}
	if !utf8.Valid(text) || strings.ContainsRune(string(text), 0) {
		return nil, "", &usageError{"--env-file: " + path + " is not UTF-8 text", ""}
	}
	env, places := map[string]string{}, map[string]int{}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\uFEFF")) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		wrong := func(problem string) error {
			return &usageError{fmt.Sprintf("--env-file: %s:%d: %s", path, n, problem), "a line is KEY=VALUE, # and a comment, or empty"}
		}
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		key = strings.TrimSpace(key)
		switch {
		case !ok:
			return nil, "", wrong("there is no = in it")
		case !envName.MatchString(key):
			return nil, "", wrong("what stands before the = is no name of a variable")
		case places[key] > 0:
			return nil, "", wrong(fmt.Sprintf("%s was set in line %d already", key, places[key]))
		}
		value, problem := envValue(strings.TrimSpace(value))
		if problem != "" {
			return nil, "", wrong("the value of " + key + " " + problem)
		}
		env[key], places[key] = value, n
	}
	return env, warning, nil
}

var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\$`, `$`, `\\`, `\`)

func envValue(text string) (value, problem string) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		if at := strings.Index(text, " #"); at >= 0 || strings.HasPrefix(text, "#") || strings.Contains(text, "\t#") {
			return "", "has a # after a space: put the value in quotes, and the comment on a line of its own"
		}
		return text, ""
	}
	quote, end := text[0], -1
	for i := 1; i < len(text) && end < 0; i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote:
			end = i
		}
	}
	rest := ""
	if end >= 0 {
		rest = strings.TrimSpace(text[end+1:])
	}
	switch {
	case end < 0:
		return "", "has a quote that is not closed on its line"
	case rest != "" && rest[0] != '#':
		return "", "goes on after its closing quote"
	case quote == '\'':
		return text[1:end], ""
	}
	return unescape.Replace(text[1:end]), ""
}

func reasonOf(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
