package policy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
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

// status is that of a policy at the API server.
func (w *world) status(name string) status {
	w.t.Helper()
	obj, err := w.policies.decode(w.policy(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return obj.(*object).status
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
		read := w.status
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

// A condition that somebody else sets stays, and is no reason to write.
func TestStatusKeepsConditionsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, testNamespace(""), testJob("one", "a"))
		w.put(testPolicy("a", 1, ttl(1)))
		go w.policies.WriteStatuses(t.Context())
		time.Sleep(time.Minute)
		since := w.status("a").Conditions[0].LastTransitionTime
		reviewed := w.policy("a")
		conditions, _, err := unstructured.NestedSlice(reviewed.Object, "status", "conditions")
		if err != nil {
			t.Fatal(err)
		}
		other := map[string]any{"type": "example.com/Reviewed", "status": "True", "reason": "Seen", "message": "fine", "lastTransitionTime": "2000-01-02T03:04:05Z"}
		if err := unstructured.SetNestedSlice(reviewed.Object, append([]any{other}, conditions...), "status", "conditions"); err != nil {
			t.Fatal(err)
		}
		w.put(reviewed)
		time.Sleep(time.Minute)
		if n := w.statusWrites(); n != 1 {
			t.Errorf("%d writes of a status after somebody else's, want still 1", n)
		}
		if err := w.client.BatchV1().Jobs("ns").Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		want := []metav1.Condition{
			{Type: "example.com/Reviewed", Status: "True", Reason: "Seen", Message: "fine", LastTransitionTime: metav1.Date(2000, 1, 2, 3, 4, 5, 0, time.UTC)},
			{Type: conditionValid, Status: "True", Reason: reasonValid, ObservedGeneration: 1, LastTransitionTime: since},
		}
		s := w.status("a")
		if diff := cmp.Diff(want, s.Conditions); diff != "" || s.Jobs != 0 || w.statusWrites() != 2 {
			t.Errorf("after %d writes, want 2: %d Jobs, want 0, conditions (-want +got):\n%s", w.statusWrites(), s.Jobs, diff)
		}
	})
}
