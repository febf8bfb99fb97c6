package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"lockstep/connectors/postgres/pgtest"
	"lockstep/engine/duck"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"etl": main})
}

// TestScript runs the scripts of testdata/script. Beside testscript's own commands they have:
//
//	code N CMD…        run CMD; it must exit with N
//	signal SIG N CMD…  run CMD, send it SIG after its first line, it must exit with N (-1: it was killed)
//	mask stdout|stderr write the last output to the file masked, without times, pids and versions
//	json stdout|stderr the last output must be one JSON document
//	duck FILE SQL      run one statement; the database file, if not "-", is attached as db
//	hold FILE          keep the database file open in another process than etl's
//	release [DELAY]    let go of it, after a while in the background
//	postgres [SQL]     make an empty database and set MART_DSN to it, or run SQL in it
//
// and the condition postgres, that there is one.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "postgres":
				if !pgtest.Available() && os.Getenv("CI") != "" {
					return false, errors.New("NO POSTGRES")
				}
				return pgtest.Available(), nil
			}
			return false, errors.New("unknown condition " + cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": runCode, "signal": runSignal, "mask": runMask, "json": runJSON, "duck": runDuck, "hold": runHold, "release": runRelease, "postgres": runPostgres,
		},
	})
}

// setup makes every script check that no temporary folder is left behind.
func setup(env *testscript.Env) error {
	env.Values[holding{}] = &holding{}
	temp := filepath.Join(env.WorkDir, ".tmp")
	env.Defer(func() {
		left, err := filepath.Glob(filepath.Join(temp, "etl-*"))
		if err != nil || len(left) > 0 {
			env.T().Fatal("temporary folders were left behind:", left, err)
		}
	})
	return nil
}

func runPostgres(ts *testscript.TestScript, neg bool, args []string) {
	ctx := context.Background()
	if len(args) == 0 {
		dsn, err := pgtest.NewDatabase()
		ts.Check(err)
		ts.Setenv("MART_DSN", dsn)
		return
	}
	conn, err := pgx.Connect(ctx, ts.Getenv("MART_DSN"))
	ts.Check(err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, strings.Join(args, " "))
	ts.Check(err)
}

func runCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N CMD…")
	}
	checkCode(ts, args[0], ts.Exec(args[1], args[2:]...))
}

func checkCode(ts *testscript.TestScript, want string, err error) {
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
}

func runSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: signal SIG N CMD…")
	}
	number := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}[args[0]]
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "TMPDIR="+ts.Getenv("TMPDIR"))
	cmd.Stderr = ts.Stderr()
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == 0 {
			ts.Check(cmd.Process.Signal(number))
		}
	}
	checkCode(ts, args[1], cmd.Wait())
}

var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d+\.\d s\b`), "T s"},
	{regexp.MustCompile(`just now|\d+ (s|min) ago`), "AGO"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d`), "YYYY-MM-DD HH:MM:SS"},
	{regexp.MustCompile(`pid \d+ \([^)]*\)`), "pid N (PROGRAM)"},
	{regexp.MustCompile(`plan [0-9a-f]{4}\b`), "plan HASH"},
	{regexp.MustCompile(`((?:batch|backfill|rebuild) {2,})[0-9a-f]{4}\n`), "${1}HASH\n"},
	{regexp.MustCompile(`\d+(\.\d)? k?B (in|of state)`), "SIZE $2"},
}

func runMask(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.ReplaceAll(ts.ReadFile(args[0]), ts.MkAbs("."), "$WORK")
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs("masked"), []byte(text), 0o666))
}

func runJSON(ts *testscript.TestScript, _ bool, args []string) {
	if text := ts.ReadFile(args[0]); !json.Valid([]byte(text)) {
		ts.Fatalf("not one JSON document: %s", text)
	}
}

func runDuck(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: duck FILE SQL")
	}
	ctx := context.Background()
	eng := openEngine(ts, args[0])
	defer eng.Close()
	ts.Check(eng.Exec(ctx, strings.ReplaceAll(args[1], "$WORK", ts.MkAbs("."))))
}

func openEngine(ts *testscript.TestScript, file string) *duck.Engine {
	ctx := context.Background()
	eng, err := duck.Open(ctx, duck.Options{Dirs: []string{ts.MkAbs(".")}, Threads: 1})
	ts.Check(err)
	if file != "-" {
		ts.Check(eng.Attach(ctx, ts.MkAbs(file), "db", false))
	}
	return eng
}

// holding is the file that a script holds.
type holding struct{ eng *duck.Engine }

func runHold(ts *testscript.TestScript, _ bool, args []string) {
	h := ts.Value(holding{}).(*holding)
	h.eng = openEngine(ts, args[0])
	ts.Defer(func() { _ = h.eng.Close() })
}

func runRelease(ts *testscript.TestScript, _ bool, args []string) {
	h := ts.Value(holding{}).(*holding)
	if len(args) == 0 {
		ts.Check(h.eng.Close())
		return
	}
	delay, err := time.ParseDuration(args[0])
	ts.Check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(delay)
		_ = h.eng.Close()
	}()
	ts.Defer(func() { <-done })
}
