//go:build failpoints

package duckdb

import (
	"path/filepath"
	"testing"

	"lockstep/connectors/connectorstest"
)

func TestKills(t *testing.T) {
	connectorstest.TestKills(t, func(folder string) connectorstest.Database {
		return file{filepath.Join(folder, "mart.duckdb")}
	})
}
