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

// Seed is where random cases begin: LOCKSTEP_SEED, or the -rapid.seed of a failure, which give the same cases again;
// otherwise another every time.
func Seed(t *testing.T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("LOCKSTEP_SEED"), 10, 64)
	if err != nil {
		seed, err = strconv.ParseUint(flag.Lookup(rapidSeed).Value.String(), 10, 64)
	}
	if err != nil || seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("LOCKSTEP_SEED=%d", seed)
	return seed
}

const rapidSeed = "rapid.seed"

// Draw has rapid draw and check cases, a hundred at a time, until there were enough.
func Draw(t *testing.T, enough func() bool, check func(*rapid.T)) {
	t.Helper()
	round := rapid.MakeCheck(func(rt *rapid.T) {
		if !enough() {
			check(rt)
		}
	})
	was := flag.Lookup(rapidSeed).Value.String()
	defer func() { _ = flag.Set(rapidSeed, was) }()                  // other tests draw as they would
	for seed := Seed(t); !enough() && !t.Failed(); seed += 1 << 20 { // rapid counts up from its seed
		if err := flag.Set(rapidSeed, fmt.Sprint(seed)); err != nil {
			t.Fatal(err)
		}
		round(t)
	}
}
