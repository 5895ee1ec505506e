package api

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/record"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
)

// When a pod's deletion was only waiting for the finalizer, the API server
// answers the release with the version from before it. The release is confirmed
// all the same, and a late event does not bring the pod back.
func TestReleaseWithWhichAPodGoesIsConfirmed(t *testing.T) {
	cases := map[string]struct {
		grace    int64
		others   []string
		wantGone bool
	}{
		"nothing else holds the pod":              {grace: 0, wantGone: true},
		"its containers have time to end":         {grace: 30},
		"another finalizer holds the pod for now": {grace: 0, others: []string{"example.com/hold"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now, yes := metav1.Now(), true
			held := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "p", Namespace: "ns", UID: "2", ResourceVersion: "10", DeletionTimestamp: &now, DeletionGracePeriodSeconds: &tc.grace,
				Finalizers:      append([]string{batchv1.JobTrackingFinalizer}, tc.others...),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "1", Controller: &yes}},
			}}
			answer := held.DeepCopy()
			answer.Finalizers = tc.others
			client := fake.NewClientset()
			client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, answer, nil })
			known := tracker.New()
			known.Observe(podcache.From(held), tracker.Watch)

			calls := (&Client{Kubernetes: client}).Pods("1", known, record.NewFakeRecorder(1))
			after, err := calls.patch(t.Context(), podcache.From(held), releasePatch(held.UID))
			if gone := after == nil; err != nil || gone != tc.wantGone {
				t.Fatalf("gone is %v, error %v; want %v", gone, err, tc.wantGone)
			}
			late := held.DeepCopy()
			late.ResourceVersion = "11"
			known.Observe(podcache.From(late), tracker.Watch)
			if still := known.Len() == 1; still == tc.wantGone {
				t.Errorf("after a late event the tracker knows the pod: %v", still)
			}
		})
	}
}
