package world

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// With limits per index, a failed pod is recorded as soon as its replacement exists, also if the answer to the creation
// comes before the event, which then tells the executor nothing new, and if no node takes the new pod, so that no other event follows.
func TestAReplacedPodIsRecordedWithoutAnEvent(t *testing.T) {
	prepare()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(false)
		s.job.spec.CompletionMode, s.job.spec.BackoffLimitPerIndex = new(batchv1.IndexedCompletion), new(int32(1))
		waits := pod(sec, endsWell)
		waits.start = time.Hour // For a node.
		s.job.fates = []fate{pod(sec, endsBadly), waits}
		s.network.event = span{50 * time.Millisecond, 60 * time.Millisecond} // Longer than an answer takes.
		var created []time.Time
		var recorded time.Time
		w := newWorld(s.plan, false)
		w.seen = func(write apiserver.Write) {
			switch object := write.New.(type) {
			case *corev1.Pod:
				if write.Old == nil {
					created = append(created, write.Time)
				}
			case *batchv1.Job:
				if list := object.Status.UncountedTerminatedPods; list != nil && len(list.Failed) > 0 && recorded.IsZero() {
					recorded = write.Time
				}
			}
		}
		w.run()
		if len(created) != 2 || recorded.IsZero() {
			t.Fatalf("pods were created %d times, want 2; the failed one was recorded: %t", len(created), !recorded.IsZero())
		}
		if late := recorded.Sub(created[1]); late < 0 || late > 2*sec {
			t.Errorf("the failed pod was recorded %s after its replacement was created", late)
		}
	})
}
