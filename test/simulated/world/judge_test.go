package world

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A tape is a stream of writes, written by hand, that a judge sees.
type tape struct {
	t       *testing.T
	judge   *judge
	now     time.Time
	version uint64
	stored  map[types.UID]runtime.Object
}

// Writers on a tape. Names that begin with "executor" are ours.
const (
	executorA = "executor-a"
	executorB = "executor-b"
	user      = "user"
	kubelet   = "kubelet"
	collector = "garbage-collector"
)

const others = "example.com/controller"

func newTape(t *testing.T) *tape {
	t.Helper()
	tp := &tape{t: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), stored: map[types.UID]runtime.Object{}}
	tp.judge = newJudge(judgeOptions{
		executors: func(by string) bool { return strings.HasPrefix(by, "executor") },
		managed:   func(job *batchv1.Job) bool { return valueOr(job.Spec.ManagedBy, "") != others },
		lag:       time.Minute,
		noticing:  true,
		terse:     true,
		rivals:    true, // The writes on a tape come at any time.
	})
	return tp
}

func (tp *tape) wait(d time.Duration) { tp.now = tp.now.Add(d) }

// commit plays a write; next is nil if the object is removed.
func (tp *tape) commit(by, verb, resource, subresource string, meta metav1.Object, next runtime.Object) {
	tp.version++
	w := apiserver.Write{
		Time: tp.now, ResourceVersion: tp.version, By: by, Verb: verb, Resource: resource, Subresource: subresource,
		Key: types.NamespacedName{Namespace: meta.GetNamespace(), Name: meta.GetName()}, UID: meta.GetUID(),
	}
	if old, ok := tp.stored[w.UID]; ok {
		w.Old = old
	}
	if next != nil {
		w.New = next
		tp.stored[w.UID] = next
	} else {
		delete(tp.stored, w.UID)
	}
	tp.judge.wrote(w)
}

// job creates a Job: NonIndexed, two completions, two at a time.
func (tp *tape) job(name string, changes ...func(*batchv1.Job)) types.UID {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("job-" + name), Generation: 1},
		Spec: batchv1.JobSpec{
			Completions: new(int32(2)), Parallelism: new(int32(2)), BackoffLimit: new(int32(6)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": name}},
		},
	}
	for _, change := range changes {
		change(job)
	}
	tp.commit(user, "create", "jobs", "", job, job)
	return job.UID
}

// spec lets a user change the spec or the metadata of Job a.
func (tp *tape) spec(change func(*batchv1.Job)) {
	tp.t.Helper()
	job := tp.stored["job-a"].(*batchv1.Job).DeepCopy()
	change(job)
	job.Generation++
	tp.commit(user, "update", "jobs", "", job, job)
}

// status writes a Job's status, and as executors do, with the options that the Job asks for if these can be read.
func (tp *tape) status(by string, uid types.UID, change func(*batchv1.JobStatus)) {
	tp.t.Helper()
	job := tp.stored[uid].(*batchv1.Job).DeepCopy()
	if job.Status.UncountedTerminatedPods == nil {
		job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	change(&job.Status)
	if _, problems := wire.PolicySpec(job.Annotations); len(problems) == 0 && isExecutor(by) {
		wire.WithLastValid(&job.ObjectMeta, job.Annotations[wire.Policy])
	}
	tp.commit(by, "update", "jobs", "status", job, job)
}

// pod creates a pod of a Job; index is noIndex unless the Job is Indexed.
func (tp *tape) pod(by string, job types.UID, name string, index int32, changes ...func(*corev1.Pod)) types.UID {
	jobName := strings.TrimPrefix(string(job), "job-")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(tp.now),
			Labels: map[string]string{"job": jobName}, Annotations: map[string]string{}, Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: jobName, UID: job, Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if index != noIndex {
		pod.Annotations[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(index)
	}
	for _, change := range changes {
		change(pod)
	}
	tp.commit(by, "create", "pods", "", pod, pod)
	return pod.UID
}

// edit changes a pod.
func (tp *tape) edit(by string, uid types.UID, change func(*corev1.Pod)) {
	tp.t.Helper()
	pod := tp.stored[uid].(*corev1.Pod).DeepCopy()
	change(pod)
	tp.commit(by, "patch", "pods", "", pod, pod)
}

// ends lets a pod's container end with a code.
func (tp *tape) ends(uid types.UID, code int32, changes ...func(*corev1.Pod)) {
	tp.t.Helper()
	tp.edit(kubelet, uid, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(tp.now)},
		}}}
		for _, change := range changes {
			change(pod)
		}
	})
}

func (tp *tape) release(by string, uid types.UID) {
	tp.t.Helper()
	tp.edit(by, uid, func(pod *corev1.Pod) { pod.Finalizers = nil })
}

// deletes marks a pod for deletion.
func (tp *tape) deletes(by string, uid types.UID) {
	tp.t.Helper()
	pod := tp.stored[uid].(*corev1.Pod).DeepCopy()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(tp.now)), new(int64(0))
	tp.commit(by, "delete", "pods", "", pod, pod)
}

// removes takes an object out of the storage.
func (tp *tape) removes(by, resource string, uid types.UID) {
	tp.t.Helper()
	tp.commit(by, "delete", resource, "", tp.stored[uid].(metav1.Object), nil)
}

func setCondition(s *batchv1.JobStatus, kind batchv1.JobConditionType, reason string, at time.Time) {
	s.Conditions = append(s.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(at)})
}

func succeededList(s *batchv1.JobStatus, uids ...types.UID) {
	s.UncountedTerminatedPods.Succeeded = uids
}

func failedList(s *batchv1.JobStatus, uids ...types.UID) { s.UncountedTerminatedPods.Failed = uids }

// Changes of a Job. retries sets how often each index may fail and be tried again.
func noRetries(job *batchv1.Job) { job.Spec.BackoffLimit = new(int32(0)) }

func suspend(job *batchv1.Job) { job.Spec.Suspend = new(true) }

func parallel(n int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.Parallelism = &n }
}

func completions(n int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.Completions = &n }
}

func sized(completions, parallelism int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.Completions, job.Spec.Parallelism = &completions, &parallelism }
}

func retries(limit int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.BackoffLimitPerIndex = &limit }
}

func deadline(seconds int64) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = &seconds }
}

func timeToLive(seconds int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.TTLSecondsAfterFinished = &seconds }
}

func indexedJob(completions int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		job.Spec.Completions, job.Spec.Parallelism = new(completions), new(completions)
	}
}

// A streamCase is a stream; want are the rules that it breaks, in order.
type streamCase struct {
	play func(*tape)
	want []string
}

func runStreams(t *testing.T, cases map[string]streamCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tp := newTape(t)
			tc.play(tp)
			var got []string
			for _, b := range tp.judge.breaches() {
				got = append(got, b.rule)
				if b.text == "" || b.at.IsZero() {
					t.Errorf("breach without text or time: %v", b)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("rules broken: %q, want %q", got, tc.want)
				for _, b := range tp.judge.breaches() {
					t.Log(b)
				}
			}
		})
	}
}
