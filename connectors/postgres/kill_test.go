//go:build failpoints

package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/connectors/connectorstest"
	"lockstep/connectors/postgres/pgtest"
)

// folder finds its database when it is opened.
type folder struct{ path string }

func (f folder) Open(t *testing.T) *connectorstest.Session { return kept(t, f.path).Open(t) }

func TestKills(t *testing.T) {
	connectorstest.TestKills(t, []string{"after-copy", "after-merge"}, func(path string) connectorstest.Database { return folder{path} })
}

// kept is a database whose address is in a folder, so that another process finds it.
func kept(t *testing.T, folder string) database {
	t.Helper()
	path := filepath.Join(folder, "dsn")
	if dsn, err := os.ReadFile(path); err == nil {
		return database{strings.TrimSpace(string(dsn))}
	}
	db := database{pgtest.Start(t).Database(t)}
	must(t, os.WriteFile(path, []byte(db.dsn), 0o600))
	return db
}
