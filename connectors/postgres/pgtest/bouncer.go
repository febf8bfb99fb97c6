package pgtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// bouncerScript lives as long as its standard input, like the server's.
const bouncerScript = `
dir=$(mktemp -d /tmp/etl-bouncer.XXXXXX) || exit 1
trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$dir/ini" <<END
[databases]
* = host=$2 user=etl
[pgbouncer]
pool_mode = transaction
auth_type = any
listen_addr =
unix_socket_dir = $dir
default_pool_size = $3
server_reset_query_always = 0
END
"$1" "$dir/ini" >"$dir/log" 2>&1 </dev/null &
pid=$!
echo "$dir"
read -r line
`

// Bouncer starts PgBouncer in front of the cluster, in transaction mode with so many sessions, and rewrites
// the DSN of a database to go through it. Without the program the test is skipped.
func (c *Cluster) Bouncer(t testing.TB, dsn string, sessions int) string {
	t.Helper()
	program := os.Getenv("LOCKSTEP_PGBOUNCER")
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		t.Skip("NO PGBOUNCER: install Debian's package pgbouncer, or set LOCKSTEP_PGBOUNCER to the program")
	}
	cmd := exec.Command("/bin/sh", "-c", bouncerScript, "sh", program, c.Dir, fmt.Sprint(sessions))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		var err error
		if cmd.SysProcAttr.Credential, err = unprivileged(); err != nil {
			t.Fatal(err)
		}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	dir, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir = strings.TrimSpace(dir)
	through := strings.Replace(dsn, "host="+c.Dir, "host="+dir+" port=6432", 1)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		config, err := pgx.ParseConfig(through)
		if err != nil {
			t.Fatal(err)
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		conn, err := pgx.ConnectConfig(context.Background(), config)
		if err == nil {
			_ = conn.Close(context.Background())
			return through
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(dir + "/log")
			t.Fatalf("%v\n%s", err, log)
		}
	}
}
