package executor

import (
	"testing"

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
			held := testPod(2, func(p *corev1.Pod) {
				now := metav1.Now()
				p.ResourceVersion, p.DeletionTimestamp, p.DeletionGracePeriodSeconds = "10", &now, &tc.grace
				p.Finalizers = append(p.Finalizers, tc.others...)
			})
			answer := held.DeepCopy()
			answer.Finalizers = tc.others
			client := fake.NewClientset()
			client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, answer, nil })
			e := &Executor{cfg: Config{Client: client}}
			s := &jobState{uid: testUID(1), pods: tracker.New()}
			s.pods.Observe(podcache.From(held), tracker.Watch)

			after, err := e.patchPod(t.Context(), s, podcache.From(held), releasePatch(held.UID))
			if gone := after == nil; err != nil || gone != tc.wantGone {
				t.Fatalf("gone is %v, error %v; want %v", gone, err, tc.wantGone)
			}
			late := held.DeepCopy()
			late.ResourceVersion = "11"
			s.pods.Observe(podcache.From(late), tracker.Watch)
			if known := s.pods.Len() == 1; known == tc.wantGone {
				t.Errorf("after a late event the tracker knows the pod: %v", known)
			}
		})
	}
}
