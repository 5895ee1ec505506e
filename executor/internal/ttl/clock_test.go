package ttl

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"jobpolicy.dev/executor/internal/fakes"
)

// TestAClockThatIsSetDelaysNothingForLong has a clock that is a day behind at the
// first look, and is set right after it.
func TestAClockThatIsSetDelaysNothingForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &fakes.Clock{}
		clock.Set(time.Until(ended) + time.Hour - 24*time.Hour)
		client := fake.NewClientset(testJob())
		d := due(ended.Add(time.Minute))
		start(t, client, d, func(c *Config) { c.Now = clock.Now })
		time.Sleep(time.Second)
		if len(d.Requests()) == 0 || len(deletions(client)) > 0 {
			t.Fatalf("questions: %d, deletions: %d; want it to be looked at and kept", len(d.Requests()), len(deletions(client)))
		}
		clock.Set(24 * time.Hour)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(deletions(client)) != 1 {
			t.Errorf("ten minutes after the clock was set right, the Job is still there")
		}
	})
}
