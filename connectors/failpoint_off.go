//go:build !failpoints

package connectors

// Failpoint does nothing. Built with the tag failpoints it can end the process at a named place, for
// the tests of what survives.
func Failpoint(string) {}
