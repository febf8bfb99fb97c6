package pgtest

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestNoLeak: the cluster of a process that is killed goes with it.
func TestNoLeak(t *testing.T) {
	if os.Getenv("LOCKSTEP_TEST_LEAK") != "" {
		c := Start(t)
		c.Database(t)
		if err := os.WriteFile(os.Getenv("LOCKSTEP_TEST_LEAK"), []byte(c.Dir), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = exec.Command("kill", "-9", strconv.Itoa(os.Getpid())).Run()
		select {}
	}
	c := Start(t)
	conn, err := pgx.Connect(context.Background(), c.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close(context.Background())
	told := t.TempDir() + "/dir"
	cmd := exec.Command(os.Args[0], "-test.run=TestNoLeak")
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_LEAK="+told)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("it was not killed: %s", out)
	}
	dir, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(string(dir)); os.IsNotExist(err) {
			return
		}
	}
	t.Errorf("%s is left", dir)
}

func TestMain(m *testing.M) {
	code := m.Run()
	Stop()
	os.Exit(code)
}
