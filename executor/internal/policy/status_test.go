package policy

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (w *world) policy(name string) *unstructured.Unstructured {
	w.t.Helper()
	policy, err := w.dynamic.Resource(Resource).Namespace("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return policy
}

// statusWrites is how often a status was written.
func (w *world) statusWrites() (n int) {
	for _, action := range w.dynamic.Actions() {
		if action.GetVerb() == "patch" && action.GetSubresource() == "status" {
			n++
		}
	}
	return n
}

// The status counts unfinished managed users and says what is wrong. It is written when that changes, and no other time.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, foreign := testJob("over", "a"), testJob("foreign", "a")
		over.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		foreign.Spec.ManagedBy = new("example.com/other")
		cron := &batchv1.CronJob{ObjectMeta: testJob("cron", "a").ObjectMeta}
		w := newWorld(t, nil, testNamespace("b"), testJob("one", "a"), testJob("two", "a"), testJob("none", ""), over, foreign, cron)
		w.put(testPolicy("a", 1, ttl(1)))
		w.put(testPolicy("b", 1, ttl(-1)))
		go w.policies.WriteStatuses(t.Context())
		time.Sleep(time.Minute)
		read := func(name string) (s status) {
			t.Helper()
			obj, err := w.policies.decode(w.policy(name))
			if err != nil {
				t.Fatal(err)
			}
			return obj.(*object).status
		}
		if s := read("a"); s.ObservedGeneration != 1 || s.Jobs != 2 || s.CronJobs != 1 || len(s.Conditions) != 1 || s.Conditions[0].Status != metav1.ConditionTrue || s.Conditions[0].Message != "" {
			t.Errorf("status of a policy with two Jobs and a CronJob: %+v", s)
		}
		s := read("b")
		if want := "spec.job.ttlSecondsAfterFailed: expected a whole number from 0 to 2147483647, found -1"; s.Jobs != 1 || s.Conditions[0].Status != metav1.ConditionFalse || s.Conditions[0].Message != want {
			t.Errorf("status of an invalid policy: %+v, want %s", s, want)
		}
		if n := w.statusWrites(); n != 2 {
			t.Errorf("%d writes of a status, want one for each policy", n)
		}
		since := s.Conditions[0].LastTransitionTime
		if err := w.client.BatchV1().Jobs("ns").Delete(t.Context(), "none", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := read("b"); s.Jobs != 0 || !s.Conditions[0].LastTransitionTime.Equal(&since) {
			t.Errorf("status after the Job has gone: %+v, want no Jobs, and the condition since %s", s, since)
		}
		fixed := w.policy("b")
		fixed.Object["spec"] = testPolicy("b", 2, ttl(1)).Object["spec"]
		fixed.SetGeneration(2)
		w.put(fixed)
		time.Sleep(time.Minute)
		if s := read("b"); s.ObservedGeneration != 2 || s.Conditions[0].Status != metav1.ConditionTrue || s.Conditions[0].LastTransitionTime.Equal(&since) {
			t.Errorf("status after the policy is mended: %+v", s)
		}
		if n := w.statusWrites(); n != 4 {
			t.Errorf("%d writes of a status, want 4", n)
		}
	})
}
