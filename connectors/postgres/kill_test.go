//go:build failpoints

package postgres

import (
	"testing"

	"lockstep/connectors/connectorstest"
)

// folder finds its database when it is opened.
type folder struct{ path string }

func (f folder) Open(t *testing.T) *connectorstest.Session { return kept(t, f.path).Open(t) }

func TestKills(t *testing.T) {
	connectorstest.TestKills(t, []string{"after-copy", "after-merge"}, func(path string) connectorstest.Database { return folder{path} })
}
