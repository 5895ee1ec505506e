package executor

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod that appears after its Job has finished was created by an executor with an old view.
// It is deleted. A pod that another controller has taken over meanwhile runs on.
func TestAPodThatComesAfterTheEndOfItsJobEnds(t *testing.T) {
	cases := map[string]struct {
		job  func(*batchv1.Job)
		pod  func(*corev1.Pod)
		ends bool
	}{
		"it runs":                {job: finished, ends: true},
		"it has ended":           {job: finished, pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }},
		"it is a stray":          {job: finished, pod: stray},
		"it is nobody's":         {job: finished, pod: loose},
		"its Job is not managed": {job: func(j *batchv1.Job) { finished(j); unmanaged(j) }},
		"its Job is deleted, not its pod": {job: func(j *batchv1.Job) {
			finished(j)
			j.Finalizers, j.DeletionTimestamp = []string{"orphan"}, new(metav1.Now())
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, pod := newServer(testJob(tc.job)), testPod(2)
				start(t, testConfig(s, &script{}))
				time.Sleep(time.Minute)
				if tc.pod != nil {
					tc.pod(pod)
				}
				if _, err := s.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if ended := slices.Contains(s.Done(), "delete pods"); ended != tc.ends {
					t.Errorf("the pod was deleted: %t, want %t; writes: %q", ended, tc.ends, s.Done())
				}
			})
		})
	}
}
