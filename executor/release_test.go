package executor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestAPodThatEndsWhileItIsBeingDeletedKeepsItsFinalizer(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "pod-2", errors.New("newer"))
	cases := map[string]struct {
		phase         corev1.PodPhase
		wantFinalizer bool
	}{
		"a pod that has ended is to be counted":   {corev1.PodSucceeded, true},
		"another change of the pod means nothing": {corev1.PodRunning, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(testJob(), testPod(2))
			lists := s.Count("list", "pods")
			s.Failures["patch pods"] = func(n int) error {
				if n > 1 {
					return nil
				}
				s.replace(podResource, testPod(2, func(pod *corev1.Pod) { pod.Status.Phase = tc.phase }))
				return conflict
			}
			decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{
				Delete: []*jobpolicyv1.DeletePod{{Uid: uidsOf(t, 2)[0], ReleaseFirst: true}},
			})}}
			start(t, testConfig(s, decider))
			decider.Await(t, 2)
			pod, err := s.CoreV1().Pods("ns").Get(context.Background(), "pod-2", metav1.GetOptions{})
			if has := err == nil && hasFinalizer(pod); has != tc.wantFinalizer {
				t.Errorf("the pod has its finalizer: %v, want %v (%v)", has, tc.wantFinalizer, err)
			}
			if rows := decider.Requests()[1].GetUnaccountedPods(); tc.wantFinalizer && len(rows) != 1 {
				t.Errorf("the second question lists %v, want the pod that has ended", rows)
			}
			// The watch has not shown the end, so it may not have shown those of other pods.
			if listed := lists() > 0; listed != tc.wantFinalizer {
				t.Errorf("the pods were listed before the second question: %v, want %v", listed, tc.wantFinalizer)
			}
		})
	}
}

// The answer to a release shows that the pod has failed. The watch will not show that as
// relevant, so nothing else would make the Job due before requeueIfNoEvent.
func TestAChangeThatAnAnswerShowsIsReconciled(t *testing.T) {
	s := newServer(testJob(), testPod(2))
	s.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, testPod(2, func(pod *corev1.Pod) {
			pod.Finalizers, pod.ResourceVersion, pod.Status.Phase = nil, "1000000", corev1.PodFailed
		}), nil
	})
	var asked []time.Time
	cfg := testConfig(s, &script{Otherwise: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		asked = append(asked, time.Now())
		d := settled(req, 0)
		if len(asked) == 1 {
			d.Disposition, d.Release = jobpolicyv1.Disposition_DISPOSITION_APPLY, uidsOf(t, 2)
		}
		return d, nil
	}})
	inBubble(t, cfg, nil, func(t *testing.T, _ *Executor) {
		time.Sleep(requeueIfNoEvent / 2)
		synctest.Wait()
		if len(asked) != 2 || asked[1].Sub(asked[0]) > cfg.SyncBatchPeriod {
			t.Errorf("asked at %v, want twice within %v", asked, cfg.SyncBatchPeriod)
		}
	})
}
