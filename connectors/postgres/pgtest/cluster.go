// Package pgtest gives tests a Postgres of their own: one throwaway cluster per test process, one
// database per test. It is stopped and removed when the process ends, in whatever way it ends.
package pgtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// script lives as long as its standard input, which is a pipe of the test process: when that dies, by
// kill -9 too, the script reads the end of it, stops the server and removes the folder.
const script = `
bin=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/etl-postgres.XXXXXX") || exit 1
pid=
stop() {
  if [ -n "$pid" ]; then kill -QUIT "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; fi
  cd /; rm -rf "$dir"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM
cd "$dir"
"$bin/initdb" -D data -U etl --auth=trust -E UTF8 --locale=C --no-sync >log 2>&1 || { cat log; exit 1; }
starts=0
while true; do
  "$bin/postgres" -D data -k "$dir" -c listen_addresses= -c fsync=off -c max_connections=200 -c shared_buffers=64MB >>log 2>&1 </dev/null &
  pid=$!
  n=0
  until [ -S .s.PGSQL.5432 ]; do
    n=$((n+1)); [ $n -lt 600 ] || { cat log; exit 1; }
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  if ! [ -S .s.PGSQL.5432 ]; then # what a killed one left may still be ending
    starts=$((starts+1)); [ $starts -lt 50 ] || { cat log; exit 1; }
    sleep 0.2; continue
  fi
  starts=0
  echo "ready $dir $pid"
  read -r line || exit 0
  kill "-$line" "$pid"; wait "$pid" 2>/dev/null; pid=
  rm -f .s.PGSQL.5432 .s.PGSQL.5432.lock
done
`

// Cluster is a running server.
type Cluster struct {
	Dir string // its socket is here

	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd

	mu   sync.Mutex
	made int
}

var (
	once   sync.Once
	shared *Cluster
	failed error
)

// Start gives the cluster of this process. Without Postgres programs the test is skipped, or fails with
// CI set.
func Start(t testing.TB) *Cluster {
	t.Helper()
	once.Do(func() { shared, failed = start() })
	if failed == nil {
		return shared
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("NO POSTGRES: %v", failed)
	}
	fmt.Fprintf(os.Stderr, "NO POSTGRES, so %s was not run: %v\n", t.Name(), failed)
	t.Skipf("NO POSTGRES: %v", failed)
	return nil
}

// Available tells whether Start gives a cluster.
func Available() bool {
	once.Do(func() { shared, failed = start() })
	return failed == nil
}

// Stop ends the cluster. TestMain may call it; otherwise the end of the process does it.
func Stop() {
	if shared == nil {
		return
	}
	_ = shared.in.Close()
	_, _ = io.Copy(io.Discard, shared.out)
	_ = shared.cmd.Wait()
	shared = nil
}

func start() (*Cluster, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", script, "sh", bin)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 { // the server refuses to run as root
		if cmd.SysProcAttr.Credential, err = unprivileged(); err != nil {
			return nil, err
		}
		cmd.Env = append(os.Environ(), "TMPDIR=/tmp", "HOME=/tmp")
	}
	c := &Cluster{cmd: cmd}
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	c.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return c, c.ready()
}

// ready waits until the script says that the server is there, and the server that it takes connections.
func (c *Cluster) ready() error {
	line, err := c.out.ReadString('\n')
	said, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ok {
		rest, _ := io.ReadAll(c.out)
		return fmt.Errorf("the server did not start: %s%s", line, rest)
	}
	c.Dir, _, _ = strings.Cut(said, " ")
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		conn, err := pgx.Connect(context.Background(), c.dsn("postgres"))
		if err == nil {
			return conn.Close(context.Background())
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// Restart stops the server with a signal (KILL, QUIT, INT) and starts it again on the same data.
func (c *Cluster) Restart(t testing.TB, signal string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, signal); err != nil {
		t.Fatal(err)
	}
	if err := c.ready(); err != nil {
		t.Fatal(err)
	}
}

// Database makes an empty database and gives its DSN. It is dropped with the cluster.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	dsn, err := c.newDatabase()
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// NewDatabase is Database where there is no testing.TB. It must be Available.
func NewDatabase() (string, error) { return shared.newDatabase() }

func (c *Cluster) newDatabase() (string, error) {
	c.mu.Lock()
	c.made++
	name := fmt.Sprintf("test%d_%d", os.Getpid(), c.made)
	c.mu.Unlock()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.dsn("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	return c.dsn(name), err
}

func (c *Cluster) dsn(database string) string {
	return fmt.Sprintf("host=%s user=etl dbname=%s sslmode=disable", c.Dir, database)
}

// Socket is the address of the server, for a proxy in front of it.
func (c *Cluster) Socket() string { return filepath.Join(c.Dir, ".s.PGSQL.5432") }

// programs finds the newest initdb and postgres that are new enough.
func programs() (string, error) {
	if dir := os.Getenv("LOCKSTEP_POSTGRES"); dir != "" {
		return dir, nil
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	sort.Slice(dirs, func(i, j int) bool { return majorOf(dirs[i]) > majorOf(dirs[j]) })
	more, _ := filepath.Glob("/usr/pgsql-*/bin")
	dirs = append(dirs, more...)
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if runtime.GOOS == "darwin" {
		brew, _ := filepath.Glob("/opt/homebrew/opt/postgresql@*/bin")
		dirs = append(dirs, brew...)
	}
	var old []string
	for _, dir := range dirs {
		out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
		if _, initErr := os.Stat(filepath.Join(dir, "initdb")); err != nil || initErr != nil {
			continue
		}
		fields := strings.Fields(string(out))
		if len(fields) < 3 {
			continue
		}
		major, _, _ := strings.Cut(fields[2], ".")
		if n, err := strconv.Atoi(major); err == nil && n >= 15 {
			return dir, nil
		}
		old = append(old, strings.TrimSpace(string(out)))
	}
	if len(old) > 0 {
		return "", fmt.Errorf("only older ones than 15 are installed (%s)", strings.Join(old, ", "))
	}
	return "", fmt.Errorf("no initdb and postgres were found; install Debian's package postgresql, or set LOCKSTEP_POSTGRES to their folder")
}

// LimitFiles keeps a process of the server from making any file larger than so many bytes. Where that cannot be
// done the test is skipped.
func LimitFiles(t testing.TB, pid, bytes int) {
	t.Helper()
	cmd := exec.Command("prlimit", "--pid", strconv.Itoa(pid), fmt.Sprintf("--fsize=%d", bytes))
	if os.Getuid() == 0 {
		who, err := unprivileged()
		if err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("NO FULL DISK: prlimit: %v %s", err, out)
	}
}

func majorOf(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: false}, nil
		}
	}
	return nil, fmt.Errorf("this runs as root, and there is no user postgres or nobody to run the server as")
}
