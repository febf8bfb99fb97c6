//go:build failpoints

package connectors

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var (
	failpointMu   sync.Mutex
	failpointHits int
)

// Failpoint kills the process, as kill -9 does, when the environment variable LOCKSTEP_FAILPOINT
// is its name, or "name:n" and it is reached for the nth time.
func Failpoint(name string) {
	want, nth, _ := strings.Cut(os.Getenv("LOCKSTEP_FAILPOINT"), ":")
	if want != name {
		return
	}
	n, err := strconv.Atoi(nth)
	if err != nil {
		n = 1
	}
	failpointMu.Lock()
	defer failpointMu.Unlock()
	if failpointHits++; failpointHits == n {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal may take a moment; nothing after the failpoint must run
	}
}
