package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestProgress: a bar while a long reading goes on, nothing for a short one, and nothing left of it.
func TestProgress(t *testing.T) {
	for after, shown := range map[time.Duration]bool{0: true, time.Hour: false} {
		to, err := os.Create(filepath.Join(t.TempDir(), "screen"))
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		p := &progress{to: to, name: "daily", after: after}
		for done := int64(0); done <= 1000; done += 100 {
			p.read(done, 1000)
			time.Sleep(5 * time.Millisecond)
		}
		p.read(10, 500) // another reading
		p.clear()
		p.clear()
		text, err := os.ReadFile(to.Name())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "daily: reading"); got != shown {
			t.Errorf("after %v: shown is %v: %q", after, got, text)
		}
		if shown && (!strings.Contains(string(text), "daily: read, computing") || strings.TrimSpace(string(text[strings.LastIndex(string(text), "\r"):])) != "") {
			t.Errorf("the screen ends in %q", text)
		}
	}
	// Of several parts, each of readings of its own, there is one bar of all; a message stands beside it.
	to, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	p := &progress{to: to, name: "daily"}
	for part := range int64(4) {
		p.part(part*500_000, 2_000_000)
		for range 2 { // sources
			for done := int64(0); done <= 250_000; done += 50_000 {
				p.read(done, 250_000)
				time.Sleep(5 * time.Millisecond)
			}
		}
		if got := p.before + p.last; got != (part+1)*500_000 || p.total != 2_000_000 {
			t.Errorf("after part %d the bar is at %d of %d", part, got, p.total)
		}
		p.aside(func() { to.WriteString("saved\n") })
	}
	text, err := os.ReadFile(to.Name())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "saved\n"); n != 4 || !strings.Contains(string(text), "daily: reading") {
		t.Errorf("%d messages: %q", n, text)
	}
	p.clear()
	// Nobody looks at a file, and calls of none are fine.
	cmd := &cobra.Command{}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.SetErr(file)
	if p := newProgress(cmd, "daily"); p != nil {
		t.Error("there is progress for a file")
	}
	var none *progress
	none.clear()
	said := false
	none.aside(func() { said = true })
	if !said {
		t.Error("a message was not printed")
	}
}
