package executor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/tracker"
)

// While a pod is adopted, somebody else counts another one and releases it, and
// the Job's new version arrives before the pod's. Decided on at once, the pod would
// be counted a second time (I2).
func TestAStatusOfAnotherClientIsFollowedByAListBeforeTheDecision(t *testing.T) {
	ended, loose := testPod(2, failedPhase), testPod(3, unclaimed)
	server := newServer(testJob(), ended, loose)
	decider := &script{}
	cfg, registry := testConfig(server, decider), prometheus.NewRegistry()
	cfg.Registerer = registry
	e := build(t, cfg)
	s := seeJob(e)
	s.ObservePod(cachedPod(2, failedPhase, func(pod *corev1.Pod) { pod.ResourceVersion = ended.ResourceVersion }), tracker.Watch)
	must(e.reconciler.podWatch.pods.In("ns").GetIndexer().Add(cachedPod(3, unclaimed, func(pod *corev1.Pod) { pod.ResourceVersion = loose.ResourceVersion })))
	server.Failures["patch pods"] = func(int) error {
		ended.Finalizers = nil
		server.replace(podResource, ended)
		s.Observe(testJob(func(j *batchv1.Job) { j.ResourceVersion, j.Status.Failed = "1000", 1 }), tracker.Watch)
		return nil
	}
	for n := 1; len(decider.Requests()) == 0; n++ {
		if n > 3 {
			t.Fatal("nothing is decided")
		}
		if _, err := e.reconciler.Reconcile(t.Context(), s.Key); err != nil {
			t.Fatal(err)
		}
	}
	first := decider.Requests()[0]
	if rows := first.GetUnaccountedPods(); first.GetStatus().GetFailed() != 1 || len(rows) != 0 {
		t.Errorf("failed is %d with rows %v, want 1 and no row of the pod that was counted", first.GetStatus().GetFailed(), rows)
	}
	want := map[string]float64{"skips_total{group= resource=pods}": 1}
	if diff := cmp.Diff(want, samples(t, registry, "job_controller_stale_sync_")); diff != "" {
		t.Errorf("reconciles given up (-want +got):\n%s", diff)
	}
}

// The executor vouches for its view: what it has written is part of it, although
// the watch has yet to show that, and what the watch shows of before changes nothing.
func TestTheViewContainsOwnWrites(t *testing.T) {
	e := build(t, testConfig(newServer(), &script{}))
	version := func(rv string, active int32) *batchv1.Job {
		return testJob(func(j *batchv1.Job) { j.ResourceVersion, j.Status.Active = rv, active })
	}
	s := e.jobs.With(testKey, func(s *tracker.Job) { s.Observe(version("1", 0), tracker.Watch) })
	s.BeginCreate(tracker.NoIndex).Created(cachedPod(2, func(pod *corev1.Pod) { pod.ResourceVersion = "5" }))
	s.Observe(version("6", 1), tracker.Written)
	s.Observe(version("4", 0), tracker.Watch)
	snap, err := e.decider.snapshot(s, false)
	must(err)
	if snap.req.GetPods().GetActive() != 1 || snap.req.GetStatus().GetActive() != 1 {
		t.Errorf("active pods %d, in the status %d; want 1, 1", snap.req.GetPods().GetActive(), snap.req.GetStatus().GetActive())
	}
}
