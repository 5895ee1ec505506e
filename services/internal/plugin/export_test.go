package plugin

import (
	"testing"
	"time"
)

// SetNow sets the clock of the commands for a test.
func SetNow(t *testing.T, at time.Time) {
	now = func() time.Time { return at }
	t.Cleanup(func() { now = time.Now })
}
