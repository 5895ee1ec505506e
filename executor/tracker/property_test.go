package tracker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/proto/podfacts"
)

// The order of observations does not matter, nor whether some are missing: if the last one
// of each pod is among them, the state is the same as after the last ones alone.
func TestEveryOrderOfObservationsEndsInTheSameState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Policy{Policy: podfacts.Policy{Indexed: rapid.Bool().Draw(t, "indexed")}, Matches: selecting.Matches}
		type step struct {
			pod  *podcache.Pod
			gone bool
		}
		var steps []step
		fresh := New(Key{}, nil)
		fresh.SetPolicy(policy)
		for n := range rapid.IntRange(1, 6).Draw(t, "pods") {
			versions := rapid.IntRange(1, 4).Draw(t, "versions")
			gone := rapid.Bool().Draw(t, "gone")
			for v := 1; v <= versions; v++ {
				pod := drawPod(t, n, v)
				for range rapid.IntRange(0, 2).Draw(t, "copies") {
					steps = append(steps, step{pod: pod})
				}
				if v == versions {
					steps = append(steps, step{pod: pod, gone: gone})
					if !gone {
						fresh.ObservePod(pod, Watch)
					}
				}
			}
		}
		tr := New(Key{}, nil)
		tr.BeginCall() // Responses may arrive at any time.
		early := rapid.Bool().Draw(t, "policy early")
		if early {
			tr.SetPolicy(policy)
		}
		for i, s := range rapid.Permutation(steps).Draw(t, "order") {
			if s.gone {
				tr.PodGone(s.pod.UID, Watch)
			} else {
				tr.ObservePod(s.pod, Source(i%2))
			}
			if sum := tr.pods.counter.Totals.Summary(); min(sum.Active, sum.Ready, sum.Terminating, sum.TrackedActive) < 0 || sum.Restarts < 0 {
				t.Fatalf("a count is below 0: %+v", sum)
			}
		}
		if !early {
			tr.SetPolicy(policy)
		}
		got, want := mustView(t, tr, ViewOptions{ActiveRows: 100}), mustView(t, fresh, ViewOptions{ActiveRows: 100})
		got.Retry, want.Retry = nil, nil // History, not state.
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("(-from scratch +tracked):\n%s", diff)
		}
	})
}

// By the contract no pod is both a row and confirmed, and there is a row for each active
// pod unless the list is marked as truncated.
func TestAPodIsToldOfOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := New(Key{}, nil)
		recorded := &batchv1.UncountedTerminatedPods{}
		for n := range rapid.IntRange(0, 5).Draw(t, "pods") {
			tr.ObservePod(drawPod(t, n, 1), Watch)
			if rapid.Bool().Draw(t, "recorded") {
				recorded.Failed = append(recorded.Failed, uidOf(n))
			}
		}
		v := mustView(t, tr, ViewOptions{Uncounted: recorded, ActiveRows: rapid.IntRange(1, 5).Draw(t, "limit")})
		told := map[string]int{}
		for _, uid := range v.Confirmed {
			told[string(uid)]++
		}
		for _, row := range v.Unaccounted {
			told[string(row.Uid)]++
		}
		for _, row := range v.Active.Pods {
			told[string(row.Uid)]++
		}
		for uid, times := range told {
			if times > 1 {
				t.Errorf("pod %x is told of %d times", uid, times)
			}
		}
		if cut := len(v.Active.Pods) < int(v.Pods.Active); cut != v.Active.Truncated {
			t.Errorf("%d rows of %d active pods, truncated %v", len(v.Active.Pods), v.Pods.Active, v.Active.Truncated)
		}
	})
}

func drawPod(t *rapid.T, n, rv int) *podcache.Pod {
	options := []option{
		inPhase(rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown, ""}).Draw(t, "phase")),
		withIndex(rapid.SampledFrom([]string{"0", "1", "63", "64", "4096", "no"}).Draw(t, "index")),
		restarted(rapid.Int32Range(0, 3).Draw(t, "restarts")),
	}
	if rapid.Bool().Draw(t, "tracked") {
		options = append(options, tracked)
	}
	if rapid.Bool().Draw(t, "ready") {
		options = append(options, isReady)
	}
	if rapid.Bool().Draw(t, "deleting") {
		options = append(options, deletedAt(epoch, 1))
	}
	if rapid.IntRange(0, 4).Draw(t, "stray") == 0 {
		options = append(options, stray)
	}
	return podOf(n, rv, options...)
}
