package executor

import (
	"fmt"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const orphanManager = "jobpolicy.dev/test"

// An orphanBench is an orphanReleaser with one Job that has finished, and a pod of it that runs as far as
// the informer shows.
type orphanBench struct {
	*testing.T
	*orphanReleaser
	base   *controller.Controller
	server *fakes.Server
	job    *tracker.Job
	pod    *corev1.Pod
}

func newOrphanBench(t *testing.T) *orphanBench {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pod", UID: fakes.UID(2), Labels: map[string]string{"job": "1"}, Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: fakes.UID(1), Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	b := &orphanBench{T: t, server: fakes.NewServer(pod), pod: pod}
	cfg := fakes.Config(b.server, &fakes.Script[*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse]{})
	cfg.ManagedBy = orphanManager
	base, err := controller.New(cfg, controller.Identity{Component: "test", Scope: "test"})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := controller.NewPodInformers(b.server, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, writes := &api.Client{Kubernetes: b.server, Core: b.server.CoreV1(), Tracer: base.Tracer}, limit.NewPool(limit.Config{Total: 1})
	b.base, b.orphanReleaser = base, newOrphanReleaser(base, orphanConfig{
		API: client, Scope: cfg.Scope(), Jobs: tracker.NewJobs(writes), Pods: pods, Writes: writes,
		Calls: func(s *tracker.Job) *api.Pods {
			return client.Pods(s, &record.FakeRecorder{})
		},
	})
	b.job = b.finishedJob("ns", 1)
	b.show(pod)
	return b
}

// finishedJob makes a Job known that has finished.
func (b *orphanBench) finishedJob(namespace string, n int) *tracker.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job", UID: fakes.UID(n), ResourceVersion: "1"},
		Spec:       batchv1.JobSpec{ManagedBy: new(orphanManager), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "1"}}},
		Status:     batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}},
	}
	return b.cfg.Jobs.With(tracker.KeyOf(job), func(s *tracker.Job) { s.Observe(job, tracker.Watch) })
}

// show lets the informer show a pod.
func (b *orphanBench) show(pod *corev1.Pod) {
	b.Helper()
	kept := podcache.From(pod.DeepCopy())
	if err := b.cfg.Pods.In(pod.Namespace).GetIndexer().Add(kept); err != nil {
		b.Fatal(err)
	}
	ref, _ := kept.ControllingJob()
	if s, ok := b.cfg.Jobs.Find(tracker.KeyOfOwner(kept, ref)); ok {
		s.ObservePod(kept, tracker.Watch)
	}
}

// changes changes the pod at the API server. The informer does not show that.
func (b *orphanBench) changes(change func(*corev1.Pod)) {
	b.pod = b.pod.DeepCopy()
	change(b.pod)
	b.server.Stamp(b.pod)
	if err := b.server.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), b.pod, "ns"); err != nil {
		b.Fatal(err)
	}
}

func (b *orphanBench) reconcile() {
	b.Helper()
	if _, err := b.Reconcile(b.Context(), orphanKey{namespace: "ns", name: "pod", uid: b.pod.UID}); err != nil {
		b.Fatal(err)
	}
}

// exists reports whether the pod exists, and whether it has the finalizer.
func (b *orphanBench) exists() (exists, held bool) {
	pod, err := b.server.CoreV1().Pods("ns").Get(b.Context(), "pod", metav1.GetOptions{})
	return err == nil, err == nil && podcache.From(pod).HasTrackingFinalizer
}

func succeeds(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }

// The executor that counted the pod and finished the Job has lost its lease, or a list has
// shown more than the watch. So the informer may show a pod as running that has ended.
func TestAPodThatHasEndedStaysAlthoughTheWatchIsBehind(t *testing.T) {
	cases := map[string]struct {
		before     func(*orphanBench)
		wantExists bool
	}{
		"it runs": {before: func(*orphanBench) {}},
		"it runs, and has changed since": {before: func(b *orphanBench) {
			b.changes(func(pod *corev1.Pod) { pod.Labels["also"] = "this" })
		}},
		"it has ended, and the executor does not know": {wantExists: true, before: func(b *orphanBench) { b.changes(succeeds) }},
		"it has ended, as a list has shown": {wantExists: true, before: func(b *orphanBench) {
			b.changes(succeeds)
			b.job.ObservePod(podcache.From(b.pod), tracker.Response)
		}},
		"it ends while it is deleted": {wantExists: true, before: func(b *orphanBench) {
			b.server.Failures["delete pods"] = func(n int) error {
				if n == 1 {
					b.changes(succeeds)
				}
				return nil
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newOrphanBench(t)
			tc.before(b)
			b.reconcile()
			exists, held := b.exists()
			if exists != tc.wantExists || held {
				t.Errorf("the pod exists: %t, want %t; it has its finalizer: %t; writes: %q", exists, tc.wantExists, held, b.server.Done())
			}
		})
	}
}

// Calls about the pods of one namespace hang, for example because of a webhook. The pods of
// another namespace do not wait for them.
func TestNoNamespaceHoldsUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newOrphanBench(t)
		hang, calls := make(chan struct{}), b.cfg.Calls
		b.cfg.Calls = func(s *tracker.Job) *api.Pods {
			if s.Namespace == "slow" {
				<-hang
			}
			return calls(s)
		}
		for n := range 20 {
			pod := b.pod.DeepCopy()
			pod.Namespace, pod.Name, pod.UID = "slow", fmt.Sprint("pod-", n), fakes.UID(100+n)
			pod.OwnerReferences[0].UID = fakes.UID(3)
			b.finishedJob("slow", 3)
			b.show(pod)
			b.Enqueue(podcache.From(pod))
		}
		b.Enqueue(podcache.From(b.pod))
		fakes.Run(t, b.base.Run)
		synctest.Wait()
		if exists, _ := b.exists(); exists {
			t.Error("a pod waits for those of another namespace")
		}
		close(hang)
	})
}

// The events of pods and of their Job come at the same time. A pod may leave its Job when the
// Job has just gone, before EnqueueLeftovers, and the state of the Job is dropped with it.
func TestAPodOfAJobThatHasJustGoneWasManaged(t *testing.T) {
	for name, managed := range map[string]bool{"a managed Job": true, "another controller's Job": false} {
		t.Run(name, func(t *testing.T) {
			b := newOrphanBench(t)
			job := b.job.Current().DeepCopy()
			if !managed {
				job.Spec.ManagedBy = new("example.com/other")
			}
			b.Remember(job)
			b.job.Gone(job, managed)
			b.cfg.Jobs.DropUnused(b.job.Key)
			if got := b.wasManaged(podcache.From(b.pod)); got != managed {
				t.Errorf("the pod was managed: %t, want %t", got, managed)
			}
		})
	}
}
