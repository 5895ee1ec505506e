package executor

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// While the API server refuses pods, an observation and /debug/decisions say why.
func TestAnObservationSaysWhyPodsAreNotCreated(t *testing.T) {
	var room atomic.Bool
	server := newServer(testJob())
	server.failures["create pods"] = func(int) error {
		if room.Load() {
			return nil
		}
		return apierrors.NewInternalError(errors.New("exceeded quota: small"))
	}
	cfg := testConfig(server, creatingOnce{})
	cfg.APIBackoff, cfg.MaxAPIBackoff = time.Second, time.Minute
	inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
		why := func() (observed string) {
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			e.EachJob(func(o Observation) { observed = o.Refusal.Why })
			return observed
		}
		if observed := why(); !strings.Contains(observed, "exceeded quota: small") {
			t.Errorf("observed %q, want the quota", observed)
		}
		room.Store(true)
		if observed := why(); observed != "" {
			t.Errorf("after the pod was created: observed %q, want nothing", observed)
		}
	})
}
