package executor

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var (
	podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	jobResource = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// bookkeeper is a Decider that does one step of the ledger in each decision: it records
// and releases failed pods, and counts those whose release is confirmed. It releases the
// pods of a Job that is being deleted.
type bookkeeper struct {
	Decider
	onFirst func()
}

func (b *bookkeeper) DecideJob(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	b.onFirst()
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY}
	for _, row := range req.GetUnaccountedPods() {
		d.Release = append(d.Release, row.GetUid())
	}
	if req.GetSpec().GetDeleting() {
		if req.GetActivePods() == nil && req.GetPods().GetTrackedActive() > 0 {
			d.Disposition = jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE
			d.Requirements = []jobpolicyv1.Requirement{jobpolicyv1.Requirement_REQUIREMENT_ACTIVE_PODS}
		}
		for _, row := range req.GetActivePods().GetPods() {
			d.Release = append(d.Release, row.GetUid())
		}
		return d, nil
	}
	recorded := req.GetStatus().GetUncounted().GetFailed()
	left := slices.DeleteFunc(slices.Clone(recorded), func(uid []byte) bool {
		return slices.ContainsFunc(req.GetConfirmedReleases(), func(c []byte) bool { return bytes.Equal(c, uid) })
	})
	d.Status = &jobpolicyv1.JobStatus{Failed: req.GetStatus().GetFailed() + int32(len(recorded)-len(left))}
	for _, uid := range d.Release {
		if !slices.ContainsFunc(left, func(have []byte) bool { return bytes.Equal(have, uid) }) {
			left = append(left, uid)
		}
	}
	d.Status.Uncounted = &jobpolicyv1.UncountedTerminatedPods{Failed: left}
	return d, nil
}

// deletions are what the API server and the garbage collector do to the Job and
// its pods, 2 and 3, in each mode of deletion. s is locked.
var deletions = map[metav1.DeletionPropagation]func(s *server){
	metav1.DeletePropagationBackground: func(s *server) {
		must(s.Tracker().Delete(jobResource, "ns", "job"))
	},
	metav1.DeletePropagationForeground: func(s *server) {
		s.replace(jobResource, beingDeleted(testJob()))
		s.replace(podResource, beingDeleted(testPod(2, failedPhase)))
		s.replace(podResource, beingDeleted(testPod(3)))
	},
	metav1.DeletePropagationOrphan: func(s *server) {
		s.replace(jobResource, beingDeleted(testJob()))
		s.replace(podResource, testPod(2, failedPhase, loose))
		s.replace(podResource, testPod(3, loose))
		must(s.Tracker().Delete(jobResource, "ns", "job"))
	},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func beingDeleted[O metav1.Object](o O) O {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	return o
}

func (s *server) replace(resource schema.GroupVersionResource, o runtime.Object) {
	s.Stamp(o)
	must(s.Tracker().Update(resource, o, "ns"))
}

// kubernetes#108645, kubernetes#141346: whatever the way in which a Job is
// deleted, whatever the step of the ledger, and although the API server does not
// answer at first, its pods lose the finalizer.
func TestPodsAreReleasedHoweverAndWheneverTheirJobIsDeleted(t *testing.T) {
	timeout := errors.New("timeout")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "job", errors.New("newer"))
	steps := map[string]struct {
		write string
		n     int
	}{
		"before anything is recorded":    {},
		"when pods are to be recorded":   {write: "update jobs/status", n: 1},
		"when pods are to be released":   {write: "patch pods", n: 1},
		"when their release is to count": {write: "update jobs/status", n: 2},
	}
	for mode, remove := range deletions {
		for name, step := range steps {
			t.Run(string(mode)+" "+name, func(t *testing.T) {
				s := newServer(testJob(), testPod(2, failedPhase), testPod(3))
				var once sync.Once
				decider := &bookkeeper{onFirst: func() {}}
				if step.write == "" {
					decider.onFirst = func() { once.Do(func() { s.Lock(); defer s.Unlock(); remove(s) }) }
				}
				s.Failures["update jobs/status"] = func(n int) error {
					if step.write != "update jobs/status" || n != step.n {
						return nil
					}
					remove(s)
					return conflict
				}
				s.Failures["patch pods"] = func(n int) error {
					if step.write == "patch pods" && n == step.n {
						remove(s)
					}
					if n <= 3 && step.n != 2 {
						return timeout
					}
					return nil
				}
				start(t, testConfig(s, decider))
				for _, pod := range []string{"pod-2", "pod-3"} {
					eventually(t, pod+" is released", func() bool { return !hasFinalizer(s.pod(t, pod)) })
				}
			})
		}
	}
}

// Foreground deletion of a Job waits for its pods. A pod whose labels do not match any
// more must be released, too, or the deletion never ends.
func TestAJobBeingDeletedReleasesPodsItDoesNotSelect(t *testing.T) {
	s := newServer(beingDeleted(testJob()), beingDeleted(testPod(2, stray)))
	start(t, testConfig(s, &script{}))
	eventually(t, "the pod is released", func() bool { return !hasFinalizer(s.pod(t, "pod-2")) })
	if metav1.GetControllerOf(s.pod(t, "pod-2")) == nil {
		t.Error("the pod does not belong to its Job any more")
	}
}

// The cache may not show yet that a Job is being deleted. The Job must not adopt pods then,
// because they would be deleted with it.
func TestAJobBeingDeletedAdoptsNothing(t *testing.T) {
	s := newServer(beingDeleted(testJob()), testPod(2, unclaimed))
	decider := &script{}
	e := build(t, testConfig(s, decider))
	must(e.reconciler.podWatch.pods.In("ns").GetStore().Add(podcache.From(s.pod(t, "pod-2"))))
	cached := testJob()
	cached.ResourceVersion = "1"
	st := e.jobs.With(tracker.KeyOf(cached), func(st *tracker.Job) { st.Observe(cached, tracker.Watch) })
	if _, err := e.reconciler.Reconcile(t.Context(), st.Key); err != nil {
		t.Fatal(err)
	}
	s.WantWrites(t)
	if asked := decider.Requests(); len(asked) != 1 || !asked[0].GetSpec().GetDeleting() {
		t.Errorf("asked %v, want one question about a Job that is being deleted", asked)
	}
}

// In replace mode the executor releases the pods of deleted Jobs, whoever managed them,
// because no other controller does. It leaves the pods of existing unmanaged Jobs alone.
func TestPodsOfADeletedUnmanagedJobAreReleasedInReplaceMode(t *testing.T) {
	// When the orphan is released, the executor has also handled the other pod.
	orphan := testPod(3, func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, nil })
	s := newServer(testJob(unmanaged), testPod(2), orphan)
	cfg := testConfig(s, &script{})
	cfg.ReplaceBuiltin = true
	start(t, cfg)
	eventually(t, "the orphan is released", func() bool { return !hasFinalizer(s.pod(t, "pod-3")) })
	if !hasFinalizer(s.pod(t, "pod-2")) {
		t.Error("the pod was released while its Job was there")
	}
	must(s.Tracker().Delete(jobResource, "ns", "job"))
	eventually(t, "the pod is released", func() bool { return !hasFinalizer(s.pod(t, "pod-2")) })
}

// A Job may be deleted and created again under its name before the executor has seen the
// deletion.
func TestAnUnmanagedJobOfTheSameNameIsLeftAlone(t *testing.T) {
	s := newServer(testJob())
	creating := applying(&jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}})
	decider := &script{Answers: []reply{func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		s.Lock()
		defer s.Unlock()
		must(s.Tracker().Delete(jobResource, "ns", "job"))
		next := testJob(unmanaged, func(j *batchv1.Job) { j.UID = testUID(5) })
		s.Stamp(next)
		must(s.Tracker().Add(next))
		return creating(req)
	}}}
	start(t, testConfig(s, decider))
	var created string
	eventually(t, "the first Job's last pod is created and released", func() bool {
		pods, err := s.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
		must(err)
		if len(pods.Items) != 1 || hasFinalizer(&pods.Items[0]) {
			return false
		}
		created = string(metav1.GetControllerOf(&pods.Items[0]).UID)
		return true
	})
	if created != string(testUID(1)) {
		t.Errorf("the pod belongs to %s, want the first Job", created)
	}
	for _, req := range decider.Requests() {
		if !bytes.Equal(req.GetJob().GetUid(), uidsOf(t, 1)[0]) {
			t.Errorf("asked about the unmanaged Job: %v", req.GetJob())
		}
	}
}

// A pod came and went between two lists of the pod watch, so only the answer to its creation
// ever showed it. Its Job is deleted, and nothing of it is kept.
func TestADeletedJobIsForgottenAlthoughTheWatchMissedAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := testJob()
		s := newServer(job)
		e := start(t, testConfig(s, &script{}))
		time.Sleep(time.Second)
		known, _ := e.jobs.Find(tracker.KeyOf(job))
		known.ObservePod(cachedPod(2, func(p *corev1.Pod) { p.ResourceVersion = "110" }), tracker.Response)
		if err := s.BatchV1().Jobs("ns").Delete(t.Context(), job.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * checkPeriod)
		if _, known := e.jobs.Find(tracker.KeyOf(job)); !known {
			t.Error("the Job is forgotten before the watch has shown the pod's version")
		}
		later := testPod(3, func(p *corev1.Pod) { p.OwnerReferences, p.Labels, p.Finalizers = nil, nil, nil })
		for range 20 { // Versions from 101 on.
			s.Stamp(later)
		}
		if _, err := s.CoreV1().Pods("ns").Create(t.Context(), later, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * checkPeriod)
		if _, known := e.jobs.Find(tracker.KeyOf(job)); known {
			t.Error("the Job is still known")
		}
	})
}
