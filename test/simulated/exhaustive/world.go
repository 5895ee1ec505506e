package exhaustive

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// decided is the time of every decision.
var decided = then.Add(time.Hour)

// A Plant is a defect of the executor that must be found.
type Plant string

// The defects.
const (
	NoFence               Plant = "no list of the pods after somebody else has counted"
	ReleaseBeforeStatus   Plant = "finalizers are released before the status is written"
	LostReleaseIsDone     Plant = "a release without an answer counts as done"
	LostCreationForgotten Plant = "a creation without an answer counts as refused"
	NothingIsReleased     Plant = "no finalizer is released"
	StatusWithoutVersion  Plant = "a status replaces whatever version there is"
)

// Faults are how many of each there may be in one run.
type Faults struct {
	Losses, Crashes, Deletions, Failures, Toggles int
	// JobDeletion: a user deletes the Job, its pods first.
	JobDeletion bool
}

// A Scope is one Job and what may happen to it.
type Scope struct {
	Name string
	// Pods is how many pods there may be, at most maxPods. Executors write at the same time.
	Pods, Executors          int
	Parallelism, Completions int32 // Completions 0: not set.
	BackoffLimit             int32
	Indexed, ReplaceFailed   bool
	SuccessPolicy            bool // Index 0 is enough.
	Suspended                bool
	Starts                   bool // Pods become Running, and ready.
	// Waits: a decision may leave routine statuses for later, or not.
	Waits   bool
	Running bool // All pods exist at the start, and all executors know them.
	Faults
	// LateJobs: after a restart the Job may be as it was seen before.
	LateJobs bool
	Plant    Plant
}

type left struct {
	losses, crashes, deletions, failures, toggles int
	jobDeletion                                   bool
}

// A world is one state.
type world struct {
	cluster
	scope     *Scope
	executors [maxExecutors]*executor
	left      left
	problems  []string
}

// newWorld is the Job, as each executor has seen it.
func (s *Scope) newWorld() *world {
	w := &world{scope: s, left: left{s.Losses, s.Crashes, s.Deletions, s.Failures, s.Toggles, s.JobDeletion}}
	w.memory = newMemory(s.Plant)
	w.cluster.jobs = []*jobVersion{{job: &batchv1.Job{}}}
	v := w.storeJob(func(job *batchv1.Job) { *job = *s.job() })
	v.at, w.jobs = 0, []*jobVersion{v}
	if s.Running {
		w.createAll()
	}
	for e := range s.Executors {
		w.executors[e] = &executor{}
		w.restart(w.executors[e], false)
	}
	return w
}

func (w *world) createAll() {
	create := &jobpolicyv1.CreatePods{Count: w.scope.Parallelism}
	if w.scope.Indexed {
		create.Indexes = &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: 0, Last: w.scope.Parallelism - 1}}}
	}
	for _, pod := range wire.NewPods(w.job(), nil, create) {
		w.createPod(pod.From(w.job()), pod.Index)
	}
}

func (s *Scope) job() *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "j", UID: jobUID, Generation: 1, CreationTimestamp: then},
		Spec: batchv1.JobSpec{
			Parallelism: &s.Parallelism, BackoffLimit: &s.BackoffLimit, Selector: &metav1.LabelSelector{},
			Suspend: &s.Suspended, CompletionMode: ptr.To(batchv1.NonIndexedCompletion), PodReplacementPolicy: ptr.To(batchv1.TerminatingOrFailed),
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
	if s.Completions > 0 {
		job.Spec.Completions = &s.Completions
	}
	if s.Indexed {
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	if s.ReplaceFailed {
		job.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
	}
	if s.SuccessPolicy {
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: ptr.To("0")}}}
	}
	return job
}
