package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// The disk that is full is named, whatever statement met it.
func TestDiskFull(t *testing.T) {
	s := &session{wiring: &wiring{shown: "mart.duckdb"}, temp: &tempDir{path: "/tmp/etl-1"}}
	for text, want := range map[string]string{
		`cannot commit: TransactionContext Error: Failed to commit: Could not write file "/srv/data/mart.duckdb.wal": No space left on device`: "mart.duckdb: the disk of /srv/data is full",
		`the SELECT failed: IO Error: Could not write file "/tmp/etl-1/duckdb_temp_storage-0.tmp": No space left on device`:                    "temporary files: the disk of " + os.TempDir() + " is full",
		`Out of Memory Error: failed to offload data block of size 256.0 KiB (1.2 MiB/1.3 MiB used).`:                                          "temporary files: the disk of " + os.TempDir() + " is full",
		`something else`: "something else",
	} {
		err := s.diskFull(errors.New(text))
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ngives %v, want %s", text, err, want)
		}
		if strings.Contains(want, "full") && codeOf(err) != exitUnavailable {
			t.Errorf("%s exits with %d", text, codeOf(err))
		}
	}
	s.hidePath = true
	if err := s.diskFull(errors.New(`Could not write file "/secret/mart.duckdb": No space left on device`)); strings.Contains(err.Error(), "secret") {
		t.Errorf("a hidden path is shown: %v", err)
	}
}
