package api

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func ownedBy(job types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: job, Controller: new(true)}}
}

// heldPod is a pod of Job 1, with the finalizer.
func heldPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", Namespace: "ns", UID: "2", ResourceVersion: "10", Finalizers: []string{batchv1.JobTrackingFinalizer}, OwnerReferences: ownedBy("1"),
	}}
}

// callsAbout returns a Pods of Job 1, which knows the pod, and the Job.
func callsAbout(client kubernetes.Interface, pod *corev1.Pod) (*Pods, *tracker.Job) {
	known := tracker.New(tracker.Key{UID: "1"}, nil)
	known.ObservePod(podcache.From(pod), tracker.Watch)
	c := &Client{Core: client.CoreV1(), Tracer: telemetry.NewTracer(noop.NewTracerProvider(), "test")}
	return c.Pods(known, record.NewFakeRecorder(1)), known
}

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
			held := heldPod()
			held.DeletionTimestamp, held.DeletionGracePeriodSeconds = new(metav1.Now()), &tc.grace
			held.Finalizers = append(held.Finalizers, tc.others...)
			answer := held.DeepCopy()
			answer.Finalizers = tc.others
			client := fake.NewClientset()
			client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, answer, nil })
			calls, known := callsAbout(client, held)
			after, err := calls.patch(t.Context(), podcache.From(held), releasePatch(held.UID))
			if gone := after == nil; err != nil || gone != tc.wantGone {
				t.Fatalf("gone is %v, error %v; want %v", gone, err, tc.wantGone)
			}
			late := held.DeepCopy()
			late.ResourceVersion = "11"
			known.ObservePod(podcache.From(late), tracker.Watch)
			if still := known.Census(0).Known == 1; still == tc.wantGone {
				t.Errorf("after a late event the tracker knows the pod: %v", still)
			}
		})
	}
}

// The decision deletes a pod that somebody has taken from the Job meanwhile. It is neither
// released nor deleted.
func TestAPodThatWasTakenFromTheJobIsNotDeleted(t *testing.T) {
	for name, owners := range map[string][]metav1.OwnerReference{"for another Job": ownedBy("9"), "for nobody": nil} {
		t.Run(name, func(t *testing.T) {
			seen := heldPod()
			live := seen.DeepCopy()
			live.ResourceVersion, live.OwnerReferences = "11", owners
			client := fake.NewClientset(live)
			patches := 0
			client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				patches++
				return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("it has changed"))
			})
			calls, _ := callsAbout(client, seen)
			if err := calls.Delete(t.Context(), &batchv1.Job{}, "2", &jobpolicyv1.DeletePod{ReleaseFirst: true}); err != nil {
				t.Error(err)
			}
			if patches != 1 {
				t.Errorf("%d patches, want the one that met the conflict", patches)
			}
			if _, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
				t.Errorf("the pod: %v, want it to be there", err)
			}
		})
	}
}

// A pod is released before it is deleted, or was released by an earlier reconcile whose
// deletion failed. In between, somebody takes it from the Job, or its kubelet writes its status.
func TestAPodThatIsTakenAfterItsReleaseIsNotDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*corev1.Pod) // after the release
		deletes int               // tries
		deleted bool
	}{
		"nothing happens":            {func(*corev1.Pod) {}, 1, true},
		"its kubelet writes":         {func(p *corev1.Pod) { p.ResourceVersion, p.Status.Phase = "12", corev1.PodRunning }, 2, true},
		"another Job has adopted it": {func(p *corev1.Pod) { p.ResourceVersion, p.OwnerReferences = "12", ownedBy("9") }, 1, false},
	} {
		run := func(t *testing.T, releaseFirst bool) {
			live := heldPod()
			if !releaseFirst {
				live.ResourceVersion, live.Finalizers = "11", nil
			}
			client, deletes, deleted := fake.NewClientset(), 0, false
			calls, _ := callsAbout(client, live)
			if !releaseFirst {
				tc.change(live)
			}
			client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				live.ResourceVersion, live.Finalizers = "11", nil
				released := live.DeepCopy()
				tc.change(live)
				return true, released, nil
			})
			client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, live.DeepCopy(), nil })
			client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				deletes++
				wanted := a.(clienttesting.DeleteActionImpl).GetDeleteOptions().Preconditions.ResourceVersion
				if wanted != nil && *wanted != live.ResourceVersion {
					return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("it has changed"))
				}
				deleted = true
				return true, nil, nil
			})
			if err := calls.Delete(t.Context(), &batchv1.Job{}, "2", &jobpolicyv1.DeletePod{ReleaseFirst: releaseFirst}); err != nil {
				t.Error(err)
			}
			if deletes != tc.deletes || deleted != tc.deleted {
				t.Errorf("deleted %v after %d tries, want %v after %d", deleted, deletes, tc.deleted, tc.deletes)
			}
		}
		t.Run(name, func(t *testing.T) { run(t, true) })
		t.Run(name+", released earlier", func(t *testing.T) { run(t, false) })
	}
}

// A pod is deleted because it does not start, and its node is faster.
func TestAPodThatHasStartedIsNotDeletedForNotStarting(t *testing.T) {
	for name, started := range map[string]bool{"it has not started": false, "it has": true} {
		t.Run(name, func(t *testing.T) {
			seen := heldPod()
			live := seen.DeepCopy()
			live.ResourceVersion = "11"
			if started {
				live.Status.Phase = corev1.PodRunning
			}
			client := fake.NewClientset(live)
			client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if wanted := a.(clienttesting.DeleteActionImpl).GetDeleteOptions().Preconditions.ResourceVersion; wanted == nil || *wanted != "11" {
					return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("it has changed"))
				}
				return false, nil, nil
			})
			calls, _ := callsAbout(client, seen)
			err := calls.Delete(t.Context(), &batchv1.Job{}, "2", &jobpolicyv1.DeletePod{OnlyUnstarted: true})
			if errors.Is(err, ErrPodStarted) != started || err != nil && !started {
				t.Errorf("error %v", err)
			}
			if _, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{}); apierrors.IsNotFound(err) == started {
				t.Errorf("the pod: %v", err)
			}
		})
	}
}

// A watch that lags shows nothing of a deletion for now. The pod is not to be replaced before it counts as failed, so
// until then it is active; and it is deleted only once, however often a decision says so.
func TestAPodThatIsDeletedForNotStartingIsActiveUntilThatIsSeen(t *testing.T) {
	live, deletions := heldPod(), 0
	client := fake.NewClientset()
	client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, live.DeepCopy(), nil })
	client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if wanted := a.(clienttesting.DeleteActionImpl).GetDeleteOptions().Preconditions.ResourceVersion; wanted == nil || *wanted != live.ResourceVersion {
			return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("it has changed"))
		}
		live.ResourceVersion, live.DeletionTimestamp, live.DeletionGracePeriodSeconds = "11", new(metav1.Now()), new(int64(0))
		deletions++
		return true, nil, nil
	})
	calls, known := callsAbout(client, live.DeepCopy())
	for reconcile, active := range []int32{1, 0, 0} {
		if err := calls.Delete(t.Context(), &batchv1.Job{}, "2", &jobpolicyv1.DeletePod{OnlyUnstarted: true}); err != nil {
			t.Fatal(err)
		}
		view := known.View(tracker.ViewOptions{MaxRows: 10})
		if view.Pods.GetActive() != active || len(view.Unaccounted) != 1-int(active) || len(view.Retry.GetRecentFailures()) != 1-int(active) {
			t.Errorf("after reconcile %d: %v, rows %v, retry delay after %v", reconcile, view.Pods, view.Unaccounted, view.Retry)
		}
	}
	if deletions != 1 {
		t.Errorf("%d deletions", deletions)
	}
}

// A pod that has ended stays with its logs, also when a decision has not seen its end.
func TestAPodThatHasEndedIsNotDeletedForNotStarting(t *testing.T) {
	seen := heldPod()
	live := seen.DeepCopy()
	live.ResourceVersion, live.Status.Phase = "11", corev1.PodFailed
	client := fake.NewClientset(live)
	client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("it has changed"))
	})
	calls, _ := callsAbout(client, seen)
	if err := calls.Delete(t.Context(), &batchv1.Job{}, "2", &jobpolicyv1.DeletePod{OnlyUnstarted: true}); err != nil {
		t.Errorf("error %v, after which the deletion would be tried again", err)
	}
}

// A pod is told to end once: not if it has no more time anyway, has ended or is being deleted, or is another Job's by now. What is
// stored counts, not what was seen last.
func TestEnd(t *testing.T) {
	cases := map[string]struct {
		// seen and stored change the pod as it was seen last, and as it is stored.
		seen, stored func(*corev1.Pod)
		want         *int64
		patches      int
	}{
		"it may be active for ever":              {want: new(int64(60)), patches: 1},
		"it may be active for longer":            {seen: mayBeActive(61), want: new(int64(60)), patches: 1},
		"it was told":                            {seen: mayBeActive(60), want: new(int64(60))},
		"it was told for less":                   {seen: mayBeActive(1), want: new(int64(1))},
		"it was told, and that was not seen":     {stored: mayBeActive(59), want: new(int64(59)), patches: 1},
		"it has ended":                           {seen: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }},
		"it has ended, and that was not seen":    {stored: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, patches: 1},
		"it is being deleted":                    {seen: func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }},
		"it is another's, and that was not seen": {stored: func(p *corev1.Pod) { p.OwnerReferences = ownedBy("3") }, patches: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := heldPod()
			if tc.seen != nil {
				tc.seen(seen)
			}
			stored := seen.DeepCopy()
			if tc.stored != nil {
				stored.ResourceVersion = "11"
				tc.stored(stored)
			}
			client, patches := fake.NewClientset(stored), 0
			client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				if patches++; stored.ResourceVersion != seen.ResourceVersion && patches == 1 {
					return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("changed"))
				}
				return false, nil, nil
			})
			calls, _ := callsAbout(client, seen)
			if err := calls.End(t.Context(), seen.UID, &jobpolicyv1.EndPod{ActiveDeadlineSeconds: 60}); err != nil {
				t.Fatal(err)
			}
			pod, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := pod.Spec.ActiveDeadlineSeconds; (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want || patches != tc.patches {
				t.Errorf("it may be active for %v seconds after %d patches, want %v after %d", got, patches, tc.want, tc.patches)
			}
			if len(pod.Finalizers) != 1 {
				t.Errorf("its finalizers are %v", pod.Finalizers)
			}
		})
	}
}

// An admission webhook may drop the deadline, or set a longer one. That is an error, so that nobody tries again without
// a pause (invariant I11). If the pod ends by itself meanwhile, nothing is missing.
func TestADeadlineThatIsDroppedIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  func(*corev1.Pod)
		dropped bool
	}{
		"it is dropped":        {func(*corev1.Pod) {}, true},
		"it is longer":         {mayBeActive(61), true},
		"it is as told":        {mayBeActive(60), false},
		"it is shorter":        {mayBeActive(59), false},
		"the pod has ended":    {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"the pod is another's": {func(p *corev1.Pod) { p.OwnerReferences = ownedBy("3") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := heldPod()
			answer := seen.DeepCopy()
			answer.ResourceVersion = "11"
			tc.answer(answer)
			client := fake.NewClientset(seen)
			client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, answer, nil })
			calls, _ := callsAbout(client, seen)
			err := calls.End(t.Context(), seen.UID, &jobpolicyv1.EndPod{ActiveDeadlineSeconds: 60})
			if errors.Is(err, ErrDropped) != tc.dropped || err != nil && !tc.dropped {
				t.Errorf("error %v, want that the deadline was dropped: %v", err, tc.dropped)
			}
			if told := refusalOf(err) != ""; told != tc.dropped {
				t.Errorf("people are told: %v, want %v", told, tc.dropped)
			}
		})
	}
}

func mayBeActive(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &seconds }
}
