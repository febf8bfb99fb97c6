package plannertest

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Cases is how many cases a test of random pipelines wants: LOCKSTEP_CASES, or a few.
func Cases() int {
	if n, err := strconv.Atoi(os.Getenv("LOCKSTEP_CASES")); err == nil {
		return n
	}
	return 100
}

// Seed is where random cases begin: LOCKSTEP_SEED, which gives the same cases again, or another every time.
func Seed(t *testing.T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("LOCKSTEP_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("LOCKSTEP_SEED=%d", seed)
	return seed
}

// Draw has rapid draw and check cases, a hundred at a time, until there were enough.
func Draw(t *testing.T, enough func() bool, check func(*rapid.T)) {
	t.Helper()
	round := rapid.MakeCheck(func(rt *rapid.T) {
		if !enough() {
			check(rt)
		}
	})
	for seed := Seed(t); !enough() && !t.Failed(); seed += 1 << 20 { // rapid counts up from its seed
		if err := flag.Set("rapid.seed", fmt.Sprint(seed)); err != nil {
			t.Fatal(err)
		}
		round(t)
	}
}
