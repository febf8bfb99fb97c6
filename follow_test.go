package lockstep_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockstep/engine/duck"
)

// follower is a running `etl run --follow`.
type follower struct {
	j     *job
	cmd   *exec.Cmd
	lines chan string
	mu    sync.Mutex
	err   bytes.Buffer
	ended chan struct{} // after the last line
}

func (j *job) follow(every string, args ...string) *follower {
	j.t.Helper()
	f := &follower{j: j, lines: make(chan string, 10_000), ended: make(chan struct{})}
	f.cmd = exec.Command(j.etl, append([]string{"run", "p.sql", "--follow", "--every", every, "--max-batch-bytes", "1"}, args...)...)
	f.cmd.Dir, f.cmd.Stderr = j.dir, f
	out, err := f.cmd.StdoutPipe()
	j.check(err)
	j.check(f.cmd.Start())
	go func() {
		defer close(f.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f.lines <- lines.Text()
		}
	}()
	j.t.Cleanup(func() {
		_ = f.cmd.Process.Kill() // unless it has ended
		<-f.ended
		_ = f.cmd.Wait()
	})
	return f
}

// Write takes what the process says on stderr.
func (f *follower) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err.Write(p)
}

func (f *follower) said() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err.String()
}

// batches waits for that many lines.
func (f *follower) batches(n int) []string {
	f.j.t.Helper()
	var out []string
	late := time.After(time.Minute)
	for range n {
		select {
		case line := <-f.lines:
			out = append(out, line)
		case <-late:
			f.j.t.Fatalf("%d of %d batches after a minute: %v\n%s", len(out), n, out, f.said())
		}
	}
	return out
}

func (f *follower) signal(s os.Signal) {
	f.j.t.Helper()
	f.j.check(f.cmd.Process.Signal(s))
}

// pause stops the process while it does not hold the file.
func (f *follower) pause() {
	f.j.t.Helper()
	ctx := f.j.t.Context()
	db, err := duck.Open(ctx, duck.Options{Dirs: []string{f.j.dir}, Threads: 1})
	f.j.check(err)
	defer db.Close()
	for range 1000 {
		f.signal(syscall.SIGSTOP)
		if db.Attach(ctx, filepath.Join(f.j.dir, "m.duckdb"), "m", true) == nil {
			f.j.check(db.Detach(ctx, "m"))
			return
		}
		f.signal(syscall.SIGCONT)
		time.Sleep(10 * time.Millisecond)
	}
	f.j.t.Fatal("it never gives the file back")
}

// exit waits for the end.
func (f *follower) exit(want int) {
	f.j.t.Helper()
	select {
	case <-f.ended:
	case <-time.After(time.Minute):
		f.j.t.Fatalf("it does not end: %s", f.said())
	}
	_ = f.cmd.Wait()
	if code := f.cmd.ProcessState.ExitCode(); code != want {
		f.j.t.Fatalf("exit %d, want %d: %s", code, want, f.said())
	}
}

// etlRun is a command beside the follower; it waits for the file when a batch is at work.
func (j *job) etlRun(args ...string) string {
	j.t.Helper()
	cmd := exec.Command(j.etl, args...)
	cmd.Dir = j.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		j.t.Fatalf("etl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestFollow(t *testing.T) {
	etl := buildETL(t, "duckdb_arrow")
	start := func(t *testing.T) *job { return newJob(t, etl) }

	t.Run("others read and run in between", func(t *testing.T) {
		j := start(t)
		f := j.follow("50ms")
		f.batches(1) // batch 0 makes the tables
		for range 5 {
			j.land(2)
			f.batches(2)
			j.etlRun("query", "p.sql", "SELECT count(*) FROM m.stores")
			j.etlRun("status", "p.sql")
		}
		// Another run commits while the follower is looking away.
		for range 3 {
			f.pause()
			j.land(2)
			j.etlRun("run", "p.sql")
			f.signal(syscall.SIGCONT)
			j.land(1)
			f.batches(1)
		}
		if said := f.said(); strings.Count(said, "\n") > 0 && !strings.Contains(said, "is held by") {
			t.Errorf("it said %q", said)
		}
		f.signal(syscall.SIGTERM)
		f.exit(0)
		j.expectRight()
	})

	t.Run("another SELECT is applied", func(t *testing.T) {
		j := start(t)
		f := j.follow("50ms")
		f.batches(1)
		f.pause()
		toApply(j, 0)
		j.etlRun("apply", "p.sql", "--yes")
		f.signal(syscall.SIGCONT)
		j.land(1)
		f.exit(3)
		if said := f.said(); !strings.Contains(said, "another SELECT was applied") || !strings.Contains(said, "start the run again") {
			t.Errorf("it said %q", said)
		}
	})

	t.Run("waits while the file is held, and says so once", func(t *testing.T) {
		j := start(t)
		hold := func() *duck.Engine {
			db, err := duck.Open(t.Context(), duck.Options{Dirs: []string{j.dir}, Threads: 1})
			j.check(err)
			for err = syscall.EAGAIN; err != nil; time.Sleep(time.Millisecond) {
				err = db.Attach(t.Context(), filepath.Join(j.dir, "m.duckdb"), "m", false)
			}
			return db
		}
		db := hold()
		f := j.follow("20ms")
		for !strings.Contains(f.said(), "is held by pid ") {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		j.check(db.Close())
		f.batches(1)
		db = hold()
		j.land(1)
		time.Sleep(400 * time.Millisecond)
		j.check(db.Close())
		f.batches(1)
		if said := f.said(); strings.Count(said, "is held by pid ") != 2 || strings.Count(said, "\n") != 2 {
			t.Errorf("it said %q", said)
		}
		f.signal(os.Interrupt)
		f.exit(0)
		j.expectRight()
	})

	t.Run("stops at wrong input, one object per line", func(t *testing.T) {
		j := start(t)
		j.land(1)
		f := j.follow("20ms", "--json")
		for _, line := range f.batches(1) {
			var r struct{ Pipeline string }
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.Pipeline != "p" {
				t.Errorf("%q: %v", line, err)
			}
		}
		j.check(os.WriteFile(filepath.Join(j.dir, "in", "zz.csv"), []byte("id,store,amount,sold_at\nx,,,\n"), 0o644))
		f.exit(1)
		var failure struct{ Exit int }
		if line := f.batches(1)[0]; json.Unmarshal([]byte(line), &failure) != nil || failure.Exit != 1 {
			t.Errorf("the last line is %q", line)
		}
		j.check(os.Remove(filepath.Join(j.dir, "in", "zz.csv")))
		j.expectRight()
	})

	t.Run("what somebody did to the database meanwhile", func(t *testing.T) {
		database := func(j *job) string { return filepath.Join(j.dir, "m.duckdb") }
		for name, c := range map[string]struct {
			do   func(j *job, backup string)
			exit int
			say  string
		}{
			"removed": {func(j *job, _ string) { j.check(os.Remove(database(j))) }, 5, "it was removed while its pipeline was followed"},
			"another one": {func(j *job, _ string) {
				j.check(os.Remove(database(j)))
				newDatabase(j)
			}, 3, "was replaced by one in which the pipeline never ran"},
			"another one, with nothing read yet": {func(j *job, _ string) {
				j.check(os.Remove(database(j)))
				newDatabase(j)
			}, 3, "was replaced by one in which the pipeline never ran"},
			"damaged": {func(j *job, _ string) {
				j.open(database(j), func(db *duck.Engine) {
					j.check(db.Exec(j.t.Context(), "UPDATE m.etl.manifests SET counts = 'x' WHERE seq = (SELECT max(seq) FROM m.etl.manifests)"))
				})
			}, 0, ""},
			"a row deleted": {func(j *job, _ string) {
				db, err := duck.Open(j.t.Context(), duck.Options{Dirs: []string{j.dir}, Threads: 1})
				j.check(err)
				j.check(db.Attach(j.t.Context(), database(j), "m", false))
				j.check(db.Exec(j.t.Context(), "DELETE FROM m.stores WHERE n = (SELECT max(n) FROM m.stores)"))
				j.check(db.Close())
			}, 3, "it was edited or truncated"},
			"a backup put back": {func(j *job, backup string) {
				data, err := os.ReadFile(backup)
				j.check(err)
				j.check(os.WriteFile(database(j), data, 0o644))
			}, 0, ""},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				j := start(t)
				j.land(1)
				j.run()
				data, err := os.ReadFile(database(j))
				j.check(err)
				j.check(os.WriteFile(database(j)+".bak", data, 0o644))
				f := j.follow("50ms")
				if name != "another one, with nothing read yet" {
					j.land(1)
					f.batches(1)
				} else {
					time.Sleep(time.Second) // it has looked
				}
				f.pause()
				c.do(j, database(j)+".bak")
				f.signal(syscall.SIGCONT)
				j.land(1)
				if c.exit != 0 {
					f.exit(c.exit)
					if !strings.Contains(f.said(), c.say) {
						t.Errorf("it said %q", f.said())
					}
					return
				}
				f.batches(map[string]int{"a backup put back": 2, "damaged": 1}[name]) // with the file of the batch that is gone
				f.signal(syscall.SIGTERM)
				f.exit(0)
				j.expectRight()
			})
		}
	})

	t.Run("killed and stopped at any moment", func(t *testing.T) {
		j := start(t)
		for i := range envInt("LOCKSTEP_FOLLOW_KILLS", 6) {
			f := j.follow("5ms")
			for range 4 {
				j.land(1)
				time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
			}
			if i%3 == 2 {
				f.signal(syscall.SIGTERM)
				f.exit(0)
				continue
			}
			f.signal(syscall.SIGKILL)
			f.exit(-1)
		}
		j.expectRight()
	})
}

// A follower that looks and folds for long holds no more memory or files than one that just began.
func TestFollowLeaks(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	j := newJob(t, buildETL(t, "duckdb_arrow"))
	f := j.follow("1ms")
	f.batches(1)
	fold := func(n int) {
		j.land(n)
		f.batches(n)
	}
	for range 10 {
		fold(4) // each wakes the file up and gives it back
	}
	files, memory := f.held()
	for range 40 {
		fold(4)
	}
	time.Sleep(3 * time.Second) // more than 1,000 idle looks
	afterFiles, afterMemory := f.held()
	t.Logf("after 40 batches %d files and %d MiB, after 200 and 1,000 idle looks %d files and %d MiB", files, memory, afterFiles, afterMemory)
	if afterFiles > files+2 || afterMemory > memory+max(memory/4, 30) {
		t.Error("it holds more and more")
	}
	f.signal(syscall.SIGTERM)
	f.exit(0)
	j.expectRight()
}

// held is how many files the process has open, and its memory in MiB.
func (f *follower) held() (files, mib int) {
	f.j.t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(f.cmd.Process.Pid))
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	f.j.check(err)
	text, err := os.ReadFile(filepath.Join(proc, "statm"))
	f.j.check(err)
	var total, resident int
	_, err = fmt.Sscan(string(text), &total, &resident)
	f.j.check(err)
	return len(open), resident * os.Getpagesize() >> 20
}
