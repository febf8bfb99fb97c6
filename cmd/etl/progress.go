package main

import (
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// progress shows on a terminal how much of the input is read, once that takes a while. All methods may
// be called of nil, which shows nothing.
type progress struct {
	to    *os.File
	name  string
	after time.Duration // how long a reading goes on unseen

	mu    sync.Mutex
	bar   *progressbar.ProgressBar
	total int64 // of the bar
	last  int64 // what was read last of the reading at work
	// Of several parts the bar is of all: whole bytes, of which those before the reading at work were read.
	whole, before int64
}

const progressAfter = 500 * time.Millisecond

// newProgress is nil where nobody looks: stderr is no terminal, or its reader is a program.
func newProgress(cmd *cobra.Command, name string) *progress {
	to, ok := cmd.ErrOrStderr().(*os.File)
	if !ok || !term.IsTerminal(int(to.Fd())) || os.Getenv("TERM") == "dumb" || asJSON(cmd) || isQuiet(cmd) || logsJSON(cmd) {
		return nil
	}
	return &progress{to: to, name: name, after: progressAfter}
}

// read is told of the bytes read so far, and of all there are.
func (p *progress) read(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.whole == 0 {
		p.show(done, total)
		return
	}
	if done < p.last { // another source
		p.before += p.last
	}
	p.last = done
	p.show(min(p.before+done, p.whole), p.whole)
}

// part is told before each part of a long reading how much of it all was read.
func (p *progress) part(done, whole int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.last, p.whole = done, 0, whole
	p.show(done, whole)
}

func (p *progress) show(done, total int64) {
	if p.bar == nil || p.total != total { // another reading
		p.end()
		p.total = total
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(&later{to: p.to, from: time.Now().Add(p.after)}),
			progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetDescription(p.name+": reading"),
			progressbar.OptionSetPredictTime(true), progressbar.OptionShowTotalBytes(true))
	}
	if done >= total {
		p.bar.Describe(p.name + ": read, computing") // what follows has no measure
	}
	_ = p.bar.Set64(done) // a screen that cannot be written to is no reason to stop
}

// aside prints something while a reading goes on.
func (p *progress) aside(print func()) {
	if p == nil {
		print()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	print()
}

// clear takes the bar off the screen, before anything else is printed there.
func (p *progress) clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.whole = 0
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	p.bar, p.total = nil, 0
}

// later leaves out what is written before a time: the bar measures from the start, but a short reading
// is not worth showing.
type later struct {
	to   *os.File
	from time.Time
}

func (l *later) Write(b []byte) (int, error) {
	if time.Now().Before(l.from) {
		return len(b), nil
	}
	return l.to.Write(b)
}
