package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/test/kit/ledger"
)

// An observer records what a watch shows of Jobs, and when.
type observer struct {
	client kubernetes.Interface

	mu   sync.Mutex
	jobs map[string]map[string]*seenJob // by namespace and name
	// book holds each status to the invariants. It knows no pods: they are too many.
	book   *ledger.Book
	broken []ledger.Problem
}

// A seenJob is the newest version of a Job.
type seenJob struct {
	*batchv1.Job
	// created is when its creation was sent; over is when Complete or Failed was
	// first seen.
	created, over time.Time
}

func newObserver(client kubernetes.Interface) *observer {
	return &observer{client: client, jobs: map[string]map[string]*seenJob{}, book: ledger.NewBook()}
}

func (o *observer) run(ctx context.Context) {
	follow(ctx, o.client, o.client.BatchV1().Jobs(metav1.NamespaceAll), &batchv1.Job{}, o.store())
}

func (o *observer) store() observedJobs { return observedJobs{o.see, o} }

// observedJobs is the observer as what a watch fills.
type observedJobs struct {
	seer[*batchv1.Job]
	o *observer
}

// Replace takes a new list. Versions that came before it were perhaps not seen.
func (s observedJobs) Replace(list []any, version string) error {
	s.o.mu.Lock()
	for _, obj := range list {
		if job, ok := obj.(*batchv1.Job); ok && s.o.jobs[job.Namespace][job.Name] != nil {
			s.o.book.JobAfterGap(job)
		}
	}
	s.o.mu.Unlock()
	return s.seer.Replace(list, version)
}

// announce says that a Job is about to be created. The observer ignores all other Jobs.
func (o *observer) announce(namespace, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.jobs[namespace] == nil {
		o.jobs[namespace] = map[string]*seenJob{}
	}
	o.jobs[namespace][name] = &seenJob{created: time.Now()}
}

func (o *observer) forget(namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, known := range o.jobs[namespace] {
		if known.Job != nil {
			o.book.JobGone(known.UID)
		}
	}
	delete(o.jobs, namespace)
}

func (o *observer) see(job *batchv1.Job, gone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.jobs[job.Namespace][job.Name]
	if known == nil || gone {
		return
	}
	known.Job = job
	o.broken = append(o.broken, o.book.Job(job)...)
	if known.over.IsZero() && terminal(job) != "" {
		known.over = time.Now()
	}
}

// all returns the Jobs of a namespace by name; those that were not seen yet have
// a nil Job.
func (o *observer) all(namespace string) []seenJob {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []seenJob
	for _, name := range slices.Sorted(maps.Keys(o.jobs[namespace])) {
		list = append(list, *o.jobs[namespace][name])
	}
	return list
}

// problems are the invariants that statuses of a namespace have broken.
func (o *observer) problems(namespace string) (found []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.broken {
		if p.Job.Namespace == namespace {
			found = append(found, fmt.Sprintf("job %s: %s", p.Job.Name, p))
		}
	}
	return found
}

// over is how many Jobs of a namespace have ended.
func (o *observer) over(namespace string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, job := range o.jobs[namespace] {
		if !job.over.IsZero() {
			n++
		}
	}
	return n
}

// terminal is the condition that ended a Job; empty while it has none.
func terminal(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type
		}
	}
	return ""
}
