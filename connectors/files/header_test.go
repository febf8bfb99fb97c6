package files

import (
	"bufio"
	"strings"
	"testing"

	"lockstep/connectors"
)

func FuzzHeader(f *testing.F) {
	f.Add("id,amount\n1,2\n", ",", `"`, `"`, "", byte(0))
	f.Add("\xef\xbb\xbf\"a\",\"b \"\"c\"\"\"\r\n", ",", `"`, `"`, "", byte(0))
	f.Add("# note\nexport\n'x\ny';z", ";", "'", `\`, "#", byte(1))
	f.Add("a||b\r", "||", `"`, `"`, "", byte(0))
	f.Add("\"open", ",", `"`, `"`, "", byte(0))
	f.Add("\n\na,b", "\t", "", "", "#", byte(2))
	f.Fuzz(func(t *testing.T, text, delim, quote, escape, comment string, skip byte) {
		settings, faults := newSettings(connectors.SourceSpec{From: "x.csv", Columns: declare("id BIGINT"), Options: map[string]connectors.Option{
			"delim": {Text: delim}, "quote": {Text: quote}, "escape": {Text: escape}, "comment": {Text: comment}, "skip": {Text: string('0' + rune(skip%4))},
		}})
		if faults != nil {
			t.Skip()
		}
		names, err := readHeader(strings.NewReader(text), &settings)
		if err == nil && len(names) == 0 {
			t.Error("a header without names")
		}
		size := 0
		for _, n := range names {
			size += len(n)
		}
		if size > len(text) {
			t.Errorf("names of %d bytes from %d", size, len(text))
		}
		layout, bad := arrange(names, declare("id BIGINT"), ",")
		if bad == nil && !strings.EqualFold(names[layout.at[0]], "id") {
			t.Errorf("id is not %q", names[layout.at[0]])
		}
		count := settings.rowCounter(t.Context())
		rows, err := count(bufio.NewReader(strings.NewReader(text)), plain)
		if err == nil && rows > int64(len(text)) {
			t.Errorf("%d rows in %d bytes", rows, len(text))
		}
	})
}
