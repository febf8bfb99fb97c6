//go:build failpoints

package connectorstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// killedEnv tells the test binary that it is the process to be killed, and its database.
const killedEnv = "LOCKSTEP_TEST_KILLED"

// TestKills kills a process at every failpoint of its first commit, and of a later one. Afterwards all
// of the change is there or nothing, and the pipeline goes on. apply are the failpoints while rows are
// written; a database keeps what it needs to be found again in its folder.
func TestKills(t *testing.T, apply []string, at func(folder string) Database) {
	if folder := os.Getenv(killedEnv); folder != "" {
		killed(t, at(folder))
		return
	}
	points := slices.Concat([]string{"commit-begin", "after-ddl"}, apply,
		[]string{"after-segments", "after-manifest", "before-commit", "after-commit", "after-confirm"})
	for i, point := range points {
		there := i >= len(points)-2
		t.Run(point, func(t *testing.T) {
			t.Run("first commit", func(t *testing.T) {
				folder := t.TempDir()
				s := at(folder).Open(t)
				s.Close(t)
				kill(t, folder, point)
				r := start(t, at(folder), salesSink)
				if r.head.Fresh == there {
					t.Fatalf("the head is %+v", r.head)
				}
				must(t, r.Destination.CheckTargets(background, r.head, []connectors.SinkSpec{salesSink}))
				r.commitAnyway()
			})
			t.Run("later commit", func(t *testing.T) {
				folder := t.TempDir()
				r := start(t, at(folder), salesSink)
				r.commit(rowA, rowB)
				r.Close(t)
				kill(t, folder, point)
				if there {
					delete(r.table, rowB.key())
					r.table[rowA.key()], r.table[rowC.key()] = changedA, rowC
				}
				r.Session = at(folder).Open(t)
				r.again(at(folder))
				r.commitAnyway()
			})
		})
	}
}

var changedA = row{rowA.day, rowA.store, "9.00", "U"}

// killed makes the commit that does not come to its end.
func killed(t *testing.T, db Database) {
	r := start(t, db, salesSink)
	rows := []row{rowA, rowB}
	if !r.head.Fresh {
		rows = []row{changedA, rowB.with("D"), rowC}
	}
	err := r.Destination.Commit(background, r.lease, r.change(rows...))
	t.Fatalf("it survived: %v", err)
}

func kill(t *testing.T, folder, point string) {
	t.Helper()
	root, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+root+"$")
	cmd.Env = append(os.Environ(), killedEnv+"="+folder, "LOCKSTEP_FAILPOINT="+point)
	out, err := cmd.CombinedOutput()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
	if entries, _ := filepath.Glob(filepath.Join(folder, "*")); len(entries) == 0 {
		t.Fatal("the process worked elsewhere")
	}
}

// commitAnyway commits one more row on whatever the head is.
func (r *run) commitAnyway() {
	r.t.Helper()
	before := r.head.Manifest.Sinks[r.sink.Name].Rows
	change := r.change(row{"'2024-12-31'", "'z'", "1.00", "I"})
	must(r.t, r.Destination.Commit(background, r.lease, change))
	rows := r.Rows(r.t, "SELECT count(*) FROM "+r.Table(r.sink.Schema, r.sink.Table))
	if rows[0][0] != fmt.Sprint(before+1) {
		r.t.Errorf("there are %s rows, want %d", rows[0][0], before+1)
	}
	position := loadPosition(r.t, r, change.Manifest.Seq)
	if err := (checkpoints.Position{"orders": position}).Verify(change.Manifest.Position); err != nil {
		r.t.Error(err)
	}
}
