package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"lockstep/engine/duck"
	"lockstep/planner"
	"lockstep/sql"
)

// propose writes a pipeline over an inferred source: rows and sums per day, or per value of a text
// column. It is a start that runs, not a guess at what is wanted.
func propose(ctx context.Context, source string) (name, text string, err error) {
	script, err := sql.Parse("", pipelineText(source, "CREATE SINK mart.t PRIMARY KEY () AS SELECT 1 AS n"))
	if err != nil {
		return "", "", err
	}
	decl := script.Sources[0]
	written := nameIn(script.Text, decl.Name)
	for _, grouped := range []bool{true, false} {
		key, list, group := proposeSelect(script.Text, decl, grouped)
		name = wordsOf(decl.Name.Text + "_by_" + key)
		if key == "" {
			name = wordsOf(decl.Name.Text + "_total")
		}
		text = pipelineText(source, fmt.Sprintf("CREATE SINK mart.%s PRIMARY KEY (%s) AS\nSELECT %s\nFROM %s%s",
			quoteName(name), key, strings.Join(list, ", "), written, group))
		if script, err = sql.Parse(name+".sql", text); err == nil {
			_, err = planner.Compile(ctx, script, nil)
		}
		if err == nil {
			return name, text, nil
		}
	}
	return "", "", err
}

func pipelineText(source, sink string) string {
	return "-- A first table over these files: change it to what you need. Paths are relative to this file.\n" +
		"ATTACH 'mart.duckdb' AS mart;\n\n" + source + "\n" + sink + ";\n"
}

var (
	notInName  = regexp.MustCompile(`[^a-z0-9]+`)
	plainName  = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	identifier = regexp.MustCompile(`(?i)(^|_)(id|key|no|nr|num|number|code|year|month|day|zip)$`)
)

// maxSums bounds the columns that are added up.
const maxSums = 3

// proposeSelect is the key column, as written, the SELECT list and the GROUP BY of a first table.
func proposeSelect(text string, decl *sql.Source, grouped bool) (key string, list []string, group string) {
	if grouped {
		if key, expr := proposeKey(text, decl); key != "" {
			list, group = append(list, expr), "\nGROUP BY ALL"
			return key, append(list, sums(text, decl)...), group
		}
	}
	return "", sums(text, decl), ""
}

func sums(text string, decl *sql.Source) []string {
	list := []string{"count(*) AS row_count"}
	for _, c := range decl.Columns {
		typ := strings.ToUpper(c.Type.Text)
		number := strings.HasPrefix(typ, "DECIMAL") || typ == "DOUBLE" || typ == "FLOAT" || strings.HasSuffix(typ, "INT") || typ == "INTEGER"
		if number && !identifier.MatchString(c.Name.Text) && len(list) <= maxSums {
			list = append(list, fmt.Sprintf("sum(%s) AS %s", nameIn(text, c.Name), quoteName("sum_"+c.Name.Text)))
		}
	}
	return list
}

// proposeKey groups by the day of the first time, else by the first text or truth value.
func proposeKey(text string, decl *sql.Source) (key, expr string) {
	for _, c := range decl.Columns {
		name := nameIn(text, c.Name)
		switch strings.ToUpper(c.Type.Text) {
		case "DATE":
			return "day", name + " AS day"
		case "TIMESTAMP":
			return "day", name + "::DATE AS day"
		case "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ":
			return "day", "(" + name + " AT TIME ZONE 'UTC')::DATE AS day"
		}
	}
	for _, c := range decl.Columns {
		typ := strings.ToUpper(c.Type.Text)
		if typ == "VARCHAR" || typ == "BOOLEAN" {
			return nameIn(text, c.Name), nameIn(text, c.Name)
		}
	}
	return "", ""
}

// wordsOf makes a file and table name.
func wordsOf(text string) string {
	return strings.Trim(notInName.ReplaceAllString(strings.ToLower(text), "_"), "_")
}

func quoteName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return duck.Quote(name)
}

// nameIn is a name as it stands in the text, with its quotes.
func nameIn(text string, n sql.Name) string { return text[n.Span.Start:n.Span.End] }
