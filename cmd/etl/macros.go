package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/connectors/files"
	"lockstep/engine/duck"
	"lockstep/sql"
)

func macrosCommand() *cobra.Command {
	return takesFiles(&cobra.Command{
		Use:   "macros FILE",
		Short: "Print the SQL that lets a SELECT of the file run in plain DuckDB",
		Long: `Print the SQL that lets a SELECT of the file run in plain DuckDB.

Each source becomes a temporary view of its name over its files, and SET VARIABLE and
CREATE VIEW are repeated. Paste the output into a DuckDB shell, then the SELECT of a
sink: it gives the rows of the table when all files were read. Comments say where
DuckDB's readers take more than etl does. Values of getenv are not printed: the shell
reads them itself.`,
		Example: `  etl macros daily_sales.sql > _macros.sql`,
		Args:    takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFile(cmd.Context(), args[0], func(s *session) error {
				text, err := s.macros(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON(cmd) {
					printJSON(cmd.OutOrStdout(), struct {
						Pipeline string `json:"pipeline"`
						SQL      string `json:"sql"`
					}{s.script.Name, text})
					return nil
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			})
		},
	})
}

func (s *session) macros(ctx context.Context) (string, error) {
	if err := s.compile(ctx); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- The sources of pipeline %s for a plain DuckDB: run this, then a SELECT of the pipeline file.\n", s.script.Name)
	b.WriteString("-- A view reads all files that match, whether a run has read them or not. Text is decoded by the rules of\n")
	b.WriteString("-- etl, and rows that etl would reject are left out, however many.\n")
	b.WriteString("SET TimeZone = 'UTC';\n")
	for _, v := range s.pipeline.Plan.Variables {
		fmt.Fprintf(&b, "%s;\n", v)
	}
	for _, source := range s.pipeline.Plan.Sources {
		from, ok := s.pipeline.Sources[source.Name].(*files.Source)
		if !ok {
			return "", fmt.Errorf("source %s is no source of files", source.Name)
		}
		fmt.Fprintf(&b, "\n-- Source %s. Where DuckDB takes more than etl:\n", source.Name)
		for _, lax := range files.MacroLaxness(s.spec(source.Name)) {
			fmt.Fprintf(&b, "--   %s\n", lax)
		}
		texts := macroTexts(source.Decl)
		if texts.Glob != "" || len(texts.Options) > 0 {
			b.WriteString("-- getenv is a function of DuckDB's own shell; elsewhere write the value in its place. A relative path counts\n-- from the folder that DuckDB runs in.\n")
		}
		text, err := from.Macro(texts)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	for _, v := range s.script.Views {
		fmt.Fprintf(&b, "\nCREATE OR REPLACE TEMP VIEW %s AS\n%s;\n", duck.Quote(v.Name.Text), strings.TrimSpace(v.Select.Text))
	}
	return b.String(), nil
}

// macroTexts are what the pipeline file takes from the environment.
func macroTexts(decl *sql.Source) files.MacroTexts {
	out := files.MacroTexts{Options: map[string]string{}}
	if decl.From.HasEnv() {
		out.Glob = decl.From.String()
	}
	for _, o := range decl.With {
		if o.Value.Kind == sql.StringValue && o.Value.Text.HasEnv() {
			out.Options[strings.ToLower(o.Name.Text)] = o.Value.Text.String()
		}
	}
	return out
}
