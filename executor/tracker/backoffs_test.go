package tracker

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/podcache"
)

// A pod is left out because its delay has not ended, and the delay ends before the reconcile
// does. No event may follow for that pod, so the Job must be reconciled again.
func TestADelayThatEndsDuringAReconcileIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Key{}, nil)
		b.ObservePod(podcache.From(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "default", UID: "a", ResourceVersion: "1", Finalizers: []string{batchv1.JobTrackingFinalizer},
		}}), Watch)
		next := func(what string, want time.Duration, wantAgain bool) {
			t.Helper()
			at, again := b.NextRelease()
			if again != wantAgain || again && time.Until(at) != want {
				t.Errorf("%s: try again %t, after %s; want %t, %s", what, again, time.Until(at), wantAgain, want)
			}
		}
		next("nothing has failed", 0, false)
		b.ReleaseFailed("a", clock.Limits{First: time.Second, Max: time.Minute})
		next("the delay begins", time.Second, true)
		time.Sleep(time.Second - 1)
		if b.MayRelease("a") {
			t.Error("the pod may be released although its delay has not ended")
		}
		time.Sleep(2 * time.Nanosecond)
		next("the delay has ended since the pod was left out", -1, true)
		next("nothing was left out since", 0, false)
		if !b.MayRelease("a") {
			t.Error("the pod may not be released although its delay has ended")
		}
		next("the pod was not left out", 0, false)
	})
}
