package main

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// textTable lays cells out in columns, without lines around them.
type textTable struct{ writer table.Writer }

func newTable(header ...string) *textTable {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Options.SeparateHeader = false
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	w.AppendHeader(cells(header))
	return &textTable{w}
}

// right aligns columns, counted from 1, to the right: numbers.
func (t *textTable) right(columns ...int) {
	configs := make([]table.ColumnConfig, len(columns))
	for i, n := range columns {
		configs[i] = table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	t.writer.SetColumnConfigs(configs)
}

func (t *textTable) add(row ...string) { t.writer.AppendRow(cells(row)) }

func (t *textTable) print(out io.Writer) error {
	_, err := io.WriteString(out, t.writer.Render()+"\n")
	return err
}

func cells(texts []string) table.Row {
	row := make(table.Row, len(texts))
	for i, s := range texts {
		row[i] = oneLine(s)
	}
	return row
}
