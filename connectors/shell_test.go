package connectors_test

import (
	"os/exec"
	"testing"

	"lockstep/connectors"
)

// A shell takes the word for the text, whatever is in it.
func TestShellWord(t *testing.T) {
	for _, text := range []string{"a", "in/2024-05-03.csv", "", "it's", "a b", "~", "$HOME", "a\nb", "*?[x]", `\`, "é", "`x`", "!", "#"} {
		out, err := exec.Command("sh", "-c", "printf %s "+connectors.ShellWord(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q gives %q, %v", text, out, err)
		}
	}
	if word := connectors.ShellWord("in/2024-05-03_b.csv"); word != "in/2024-05-03_b.csv" {
		t.Errorf("a plain word is quoted: %s", word)
	}
}
