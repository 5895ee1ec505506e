package ttl

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
)

// TestAClockThatIsSetDelaysNothingForLong has a clock that is a day behind at the
// first look, and is set right after it.
func TestAClockThatIsSetDelaysNothingForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var behind atomic.Int64
		behind.Store(int64(24 * time.Hour))
		began := time.Now()
		now := func() time.Time {
			return ended.Add(time.Hour + time.Since(began) - time.Duration(behind.Load()))
		}
		client := fake.NewClientset(testJob())
		d := due(ended.Add(time.Minute))
		start(t, client, d, func(c *Config) { c.Now = now })
		time.Sleep(time.Second)
		if len(d.Requests()) == 0 || len(deletions(client)) > 0 {
			t.Fatalf("questions: %d, deletions: %d; want it to be looked at and kept", len(d.Requests()), len(deletions(client)))
		}
		behind.Store(0)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(deletions(client)) != 1 {
			t.Errorf("ten minutes after the clock was set right, the Job is still there")
		}
	})
}
