package executor

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// putsBack makes the server put the finalizer of some pods back in the same request
// that removes it, as an admission webhook does, and counts the tries.
func (s *server) putsBack(names ...string) func(name string) int {
	return s.onPatch(func(name string) (runtime.Object, error) {
		return s.Tracker().Get(podResource, "ns", name)
	}, names...)
}

// putsBackOne puts the finalizer of pod-2 back.
func (s *server) putsBackOne() func(name string) int { return s.putsBack("pod-2") }

// putsBackChanged puts the finalizer of pod-2 back, and each time changes an annotation of it.
func (s *server) putsBackChanged() func(name string) int {
	times := 0
	return s.onPatch(func(name string) (runtime.Object, error) {
		object, err := s.Tracker().Get(podResource, "ns", name)
		if err != nil {
			return nil, err
		}
		pod := object.(*corev1.Pod).DeepCopy()
		times++
		pod.Annotations = map[string]string{"example.com/seen": strconv.Itoa(times)}
		s.Stamp(pod)
		return pod, s.Tracker().Update(podResource, pod, "ns")
	}, "pod-2")
}

// onPatch answers the patches of some pods, and counts those of all.
func (s *server) onPatch(answer func(name string) (runtime.Object, error), names ...string) func(name string) int {
	var mu sync.Mutex
	tries := map[string]int{}
	s.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.PatchAction).GetName()
		mu.Lock()
		defer mu.Unlock()
		tries[name]++
		if slices.Contains(names, name) {
			pod, err := answer(name)
			return true, pod, err
		}
		return false, nil, nil
	})
	return func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		return tries[name]
	}
}

// releasing answers with the release of ended pods that have the finalizer, and may delete
// active pods.
func releasing(deletes bool) reply {
	return func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
		for _, row := range req.GetUnaccountedPods() {
			d.Release = append(d.Release, row.GetUid())
		}
		switch {
		case !deletes || later(deferredUntil(req, jobpolicyv1.Step_STEP_DELETE_PODS), req.GetNow()):
			d.RequeueTime = deferredUntil(req, jobpolicyv1.Step_STEP_DELETE_PODS)
		case req.GetActivePods() == nil && req.GetPods().GetActive() > 0:
			d.Disposition = jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE
			return d, nil
		}
		for _, row := range req.GetActivePods().GetPods() {
			d.Delete = append(d.Delete, &jobpolicyv1.DeletePod{Uid: row.GetUid(), ReleaseFirst: true})
		}
		if len(d.Release)+len(d.Delete) > 0 {
			d.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
		}
		return d, nil
	}
}

// A finalizer that is put back is removed again after a delay that doubles, 1 s to
// 1 min: 10 tries in the first 5 minutes. Others are not delayed.
func TestAFinalizerThatIsPutBackMakesNoHotLoop(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     func(*corev1.Pod)
		job     func(*batchv1.Job)
		deletes bool
	}{
		"of a pod that has ended":              {pod: failedPhase, job: func(*batchv1.Job) {}},
		"of a pod that is to be deleted":       {pod: func(*corev1.Pod) {}, job: func(*batchv1.Job) {}, deletes: true},
		"of a pod that the Job does not match": {pod: stray, job: keptWhileDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(testJob(tc.job), testPod(2, tc.pod), testPod(3, tc.pod))
			tries := server.putsBack("pod-2")
			cfg := testConfig(server, &script{Otherwise: releasing(tc.deletes)})
			cfg.APIBackoff, cfg.MaxAPIBackoff = time.Second, time.Minute
			runFor(t, cfg, 5*time.Minute)
			if n := tries("pod-2"); n < 5 || n > 12 {
				t.Errorf("the finalizer was removed %d times in 5 minutes, want 5 to 12", n)
			}
			if n := tries("pod-3"); n != 1 {
				t.Errorf("that of the other pod was removed %d times, want once", n)
			}
			if n := strings.Count(strings.Join(server.Done(), ","), "delete pods"); tc.deletes && n != 1 {
				t.Errorf("%d pods were deleted, want the one that was released", n)
			}
		})
	}
}

// If no event asks for another try, the executor must release the pod once the webhook stops
// interfering. If the webhook changes the pod each time, each try is followed by an event. That
// must not make the tries faster.
func TestAnOrphanWhoseFinalizerIsPutBackIsTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(*corev1.Pod)
		putsBack func(*server) func(name string) int
	}{
		"its Job is gone":                 {func(*corev1.Pod) {}, (*server).putsBackOne},
		"nothing controls it":             {loose, (*server).putsBackOne},
		"its Job is gone, and it changes": {func(*corev1.Pod) {}, (*server).putsBackChanged},
		"nothing controls it, it changes": {loose, (*server).putsBackChanged},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(testPod(2, tc.change))
			tries := tc.putsBack(server)
			cfg := testConfig(server, &script{})
			cfg.ReplaceBuiltin, cfg.APIBackoff, cfg.MaxAPIBackoff = true, time.Second, time.Minute
			runFor(t, cfg, 5*time.Minute)
			if n := tries("pod-2"); n < 5 || n > 12 {
				t.Errorf("the finalizer was removed %d times in 5 minutes, want 5 to 12", n)
			}
		})
	}
}

// Another executor has adopted the pod, counted it and released it. This one's cache
// does not show that yet; giving the pod its finalizer again would make it count
// twice.
func TestAPodIsAdoptedAsItWasSeen(t *testing.T) {
	released := func(pod *corev1.Pod) { pod.Finalizers = nil }
	for name, tc := range map[string]struct {
		is          func(*corev1.Pod)
		wantTracked bool
		wantOwned   bool
	}{
		"nothing has happened since":         {is: unclaimed, wantTracked: true, wantOwned: true},
		"the pod has ended since":            {is: func(p *corev1.Pod) { unclaimed(p); failedPhase(p) }, wantTracked: true, wantOwned: true},
		"another executor has adopted it":    {is: func(*corev1.Pod) {}, wantTracked: true, wantOwned: true},
		"another executor has counted it":    {is: released, wantOwned: true},
		"the Job does not select it anymore": {is: func(p *corev1.Pod) { unclaimed(p); p.Labels = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(testJob(), testPod(3, tc.is))
			e := build(t, testConfig(server, &script{}))
			s := seeJob(e)
			must(e.reconciler.podWatch.pods.In("ns").GetIndexer().Add(cachedPod(3, unclaimed, func(pod *corev1.Pod) { pod.ResourceVersion = "1" })))
			must(e.reconciler.claim(t.Context(), s, e.reconciler.calls(s), s.Current()))
			pod := podcache.From(server.pod(t, "pod-3"))
			if ref, _ := pod.ControllingJob(); pod.HasTrackingFinalizer != tc.wantTracked || (ref != nil) != tc.wantOwned {
				t.Errorf("has the finalizer: %v, controlled by %v; want %v, %v", pod.HasTrackingFinalizer, ref, tc.wantTracked, tc.wantOwned)
			}
			if known, ok := s.Pod(pod.UID); ok != tc.wantOwned || (ok && known.HasTrackingFinalizer != tc.wantTracked) {
				t.Errorf("the tracker knows the pod: %v (%+v), want %v", ok, known, tc.wantOwned)
			}
		})
	}
}

// A pod is not disowned if the Job's selector matches it again in the meantime.
func TestAPodIsLetGoAsItWasSeen(t *testing.T) {
	server := newServer(testJob(), testPod(3))
	e := build(t, testConfig(server, &script{}))
	s := seeJob(e)
	s.ObservePod(cachedPod(3, func(pod *corev1.Pod) { pod.Labels, pod.ResourceVersion = nil, "1" }), tracker.Watch)
	must(e.reconciler.claim(t.Context(), s, e.reconciler.calls(s), s.Current()))
	if pod := podcache.From(server.pod(t, "pod-3")); !pod.HasTrackingFinalizer || !pod.Controlled() {
		t.Errorf("has the finalizer: %v, controlled: %v; want both", pod.HasTrackingFinalizer, pod.Controlled())
	}
}

// The answer to its creation has shown a pod with the Job as its owner. While the watch was
// interrupted, somebody removed the owner: the watch's first version has none. The Job must
// adopt the pod, and not count it as its own for ever.
func TestAPodThatWasDisownedUnseenIsClaimed(t *testing.T) {
	e := build(t, testConfig(newServer(testJob()), &script{}))
	defer discard(e)
	s := e.jobs.With(testKey, func(s *tracker.Job) { s.Observe(testJob(), tracker.Watch) })
	s.ObservePod(cachedPod(3, func(pod *corev1.Pod) { pod.ResourceVersion = "5" }), tracker.Response)
	e.watcher.podSeen(nil, cachedPod(3, func(pod *corev1.Pod) { pod.OwnerReferences, pod.ResourceVersion = nil, "6" }))
	if _, known := s.Pod(testUID(3)); known {
		t.Error("the tracker counts on the pod")
	}
	if !s.MustRefresh() {
		t.Error("nothing is claimed before the next decision")
	}
}
