package executor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// errNamespaceTerminating: no pod can be created any more. It is the way of all
// namespaces, not a failure that a person should read about.
var errNamespaceTerminating = errors.New("namespace is terminating")

// createPods creates pods, members of the PodGroup if one is named. It begins with
// one and stops at the first failure: what would fail a thousand times, such as
// a quota, fails a few times only.
func (e *Executor) createPods(ctx context.Context, s *jobState, snap snapshot, d *jobpolicyv1.DecideJobResponse, podGroup string) error {
	if d.GetCreate().GetCount() == 0 {
		return nil
	}
	job := inPodGroup(e.template(s, snap), podGroup)
	plan := creationPlan(job, d.GetCreate())
	reason := creationReason(job, d.GetCreate(), snap.req.GetPods().GetTerminating())
	var some atomic.Bool
	err := s.creating.Do(ctx, len(plan), func(ctx context.Context, i int) error {
		err := e.createPod(ctx, s, job, plan[i])
		if err == nil {
			some.Store(true)
		}
		e.countCreation(reason, err)
		return err
	})
	if err != nil && some.Load() {
		s.endHold(&s.createHold)
	}
	return err
}

// namespaceGoes takes in that the Job's namespace is being deleted.
func (s *jobState) namespaceGoes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaceGoing = true
}

// template is the newest version of the judged Job: its pod template may have
// changed since.
func (e *Executor) template(s *jobState, snap snapshot) *batchv1.Job {
	if job := s.current(); job != nil {
		return job
	}
	return snap.job
}

// creation is a pod to create.
type creation struct {
	index    int32
	failures *jobpolicyv1.IndexFailureCount
}

func creationPlan(job *batchv1.Job, d *jobpolicyv1.CreatePods) []creation {
	plan := make([]creation, 0, d.GetCount())
	if !wire.Indexed(job) {
		for range d.GetCount() {
			plan = append(plan, creation{index: tracker.NoIndex})
		}
		return plan
	}
	failures := map[int32]*jobpolicyv1.IndexFailureCount{}
	for _, f := range d.GetFailureCounts() {
		failures[f.GetIndex()] = f
	}
	wire.EachIndex(d.GetIndexes(), func(ix int32) {
		c := creation{index: ix, failures: failures[ix]}
		if c.failures == nil && job.Spec.BackoffLimitPerIndex != nil {
			c.failures = &jobpolicyv1.IndexFailureCount{Index: ix}
		}
		plan = append(plan, c)
	})
	return plan
}

func (e *Executor) createPod(ctx context.Context, s *jobState, job *batchv1.Job, c creation) (err error) {
	ctx, end := e.span(ctx, SpanPodCreated)
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	inFlight := s.pods.BeginCreate(c.index)
	pod, err := e.cfg.Client.CoreV1().Pods(job.Namespace).Create(ctx, newPod(job, c.index, c.failures), metav1.CreateOptions{})
	switch {
	case err == nil:
		inFlight.Created(podcache.From(pod))
		s.progressed()
		annotate(ctx, AttrPodName.String(pod.Name), AttrPodUID.String(string(pod.UID)))
		e.podEvent(s, job, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", pod.Name)
		return nil
	case namespaceTerminating(err):
		inFlight.Refused()
		if err := e.confirmTerminating(ctx, job.Namespace); err != nil {
			return err
		}
		s.namespaceGoes()
		return errNamespaceTerminating
	case outcomeUnknown(err):
		inFlight.Unknown()
	default:
		inFlight.Refused()
	}
	e.podEvent(s, job, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	return err
}

// confirmTerminating is nil if the namespace is being deleted, or is gone. The API
// server that refused a pod may have meant one of that name before it.
func (e *Executor) confirmTerminating(ctx context.Context, name string) error {
	namespace, err := e.cfg.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading namespace %s, which is said to be terminating: %w", name, err)
	case namespace.DeletionTimestamp == nil:
		return fmt.Errorf("namespace %s was said to be terminating and is not", name)
	}
	return nil
}

// countCreation counts a creation that was tried. One in a namespace that is
// going away says nothing about the Job.
func (e *Executor) countCreation(reason string, err error) {
	if errors.Is(err, errNamespaceTerminating) {
		return
	}
	result := labelSucceeded
	if err != nil {
		result = labelFailed
	}
	e.metrics.creations.WithLabelValues(reason, result).Inc()
}
