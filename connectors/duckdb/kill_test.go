//go:build failpoints

package duckdb

import (
	"path/filepath"
	"testing"

	"lockstep/connectors/connectorstest"
)

func TestKills(t *testing.T) {
	connectorstest.TestKills(t, []string{"after-delete", "after-insert"}, func(folder string) connectorstest.Database {
		return file{filepath.Join(folder, "mart.duckdb")}
	})
}
