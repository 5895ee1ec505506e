package executor

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/writes"
)

// While the API server refuses pods, an observation and /debug/decisions say why.
func TestAnObservationSaysWhyPodsAreNotCreated(t *testing.T) {
	var room atomic.Bool
	server := newServer(testJob())
	server.Failures["create pods"] = func(int) error {
		if room.Load() {
			return nil
		}
		return apierrors.NewInternalError(errors.New("exceeded quota: small"))
	}
	cfg := testConfig(server, &script{Otherwise: creatingOnce})
	cfg.APIBackoff, cfg.MaxAPIBackoff = time.Second, time.Minute
	inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
		why := func() (observed string) {
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			e.EachJob(func(o Observation) { observed = refusalsOf(o.Refusals)[writes.CreatePod] })
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

// What people are shown has wall time, as the times of other objects that they compare it
// with.
func TestARefusalAndItsEventHaveWallTime(t *testing.T) {
	server := newServer(testJob())
	server.Failures["create pods"] = func(int) error { return apierrors.NewInternalError(errors.New("exceeded quota: small")) }
	clock := &fakes.Clock{}
	clock.Set(-24 * time.Hour)
	cfg := testConfig(server, &script{Otherwise: creatingOnce})
	cfg.Now = clock.Now
	inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		shown := map[string]time.Time{}
		e.EachJob(func(o Observation) { shown["refusal"] = o.Refusals[0].Since })
		events, err := server.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		must(err)
		for _, event := range events.Items {
			shown["event "+event.Reason] = event.FirstTimestamp.Time
		}
		if len(shown) < 2 {
			t.Errorf("shown: %v, want a refusal and an event", shown)
		}
		for what, at := range shown {
			if off := clock.Now().Sub(at); off < 0 || off > time.Minute {
				t.Errorf("%s: %s before now", what, off)
			}
		}
	})
}
