package executor

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/tracker"
)

// While a pod is adopted, somebody else counts another one and releases it, and
// the Job's new version arrives before the pod's. Decided on at once, the pod would
// be counted a second time (I2).
func TestNothingIsDecidedBeforeTheListThatAForeignStatusCallsFor(t *testing.T) {
	ended, loose := testPod(2, failedPhase), testPod(3, func(pod *corev1.Pod) { pod.OwnerReferences, pod.Finalizers = nil, nil })
	server := newServer(testJob(), ended, loose)
	decider := &script{}
	e, err := New(testConfig(server, decider))
	must(err)
	s := e.jobs.with("ns", testUID(1), func(s *jobState) {
		s.observe(testJob(func(j *batchv1.Job) { j.ResourceVersion = "1" }), jobWatched)
	})
	s.pods.Observe(leanPod(2, failedPhase, func(pod *corev1.Pod) { pod.ResourceVersion = ended.ResourceVersion }), tracker.Watch)
	must(e.podInformer.GetIndexer().Add(leanPod(3, func(pod *corev1.Pod) {
		pod.OwnerReferences, pod.Finalizers, pod.ResourceVersion = nil, nil, loose.ResourceVersion
	})))
	server.failures["patch pods"] = func(int) error {
		ended.Finalizers = nil
		server.stamp(ended)
		must(server.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), ended, "ns"))
		s.observe(testJob(func(j *batchv1.Job) { j.ResourceVersion, j.Status.Failed = "1000", 1 }), jobWatched)
		return nil
	}
	for n := 1; len(decider.requests()) == 0; n++ {
		if n > 3 {
			t.Fatal("nothing is decided")
		}
		if _, err := e.round(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	first := decider.requests()[0]
	if rows := first.GetUnaccountedPods(); first.GetStatus().GetFailed() != 1 || len(rows) != 0 {
		t.Errorf("failed is %d with rows %v, want 1 and no row of the pod that was counted", first.GetStatus().GetFailed(), rows)
	}
}
