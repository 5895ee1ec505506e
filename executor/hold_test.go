package executor

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// A quota that lets one pod at a time through must not slow a Job down more and
// more: only attempts in a row that create nothing lengthen the delay.
func TestCreationIsHeldBackLongerOnlyWhileNothingIsCreated(t *testing.T) {
	cfg := Config{APIBackoff: time.Second, MaxAPIBackoff: time.Minute}
	e := &Executor{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	s := &jobState{}
	hold := func() time.Duration {
		before := time.Now()
		e.holdCreation(t.Context(), s, &batchv1.Job{}, errors.New("exceeded quota"))
		return s.createNotBefore.Sub(before).Round(time.Second)
	}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := hold(); got != want {
			t.Errorf("held back for %v, want %v", got, want)
		}
	}
	s.mayCreate()
	if !s.createNotBefore.IsZero() {
		t.Error("creation is still held back after a pod was created or has ended")
	}
	if got := hold(); got != time.Second {
		t.Errorf("held back for %v after progress, want %v", got, time.Second)
	}
}
