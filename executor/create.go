package executor

import (
	"context"
	"errors"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/gang"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// createPods creates pods, members of the PodGroup if one is named. It begins with
// one and stops at the first failure: what would fail a thousand times, such as
// a quota, fails a few times only.
func (e *Executor) createPods(ctx context.Context, s *jobState, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse, podGroup string) error {
	if d.GetCreate().GetCount() == 0 {
		return nil
	}
	job := gang.InPodGroup(e.template(s, snap), podGroup)
	plan := creationPlan(job, d.GetCreate())
	reason := creationReason(job, d.GetCreate(), snap.req.GetPods().GetTerminating())
	var some atomic.Bool
	err := s.creating.Do(ctx, len(plan), func(ctx context.Context, i int) error {
		err := calls.Create(ctx, job, newPod(job, plan[i].index, plan[i].failures), plan[i].index)
		switch {
		case err == nil:
			some.Store(true)
		case errors.Is(err, api.ErrNamespaceTerminating):
			s.namespaceGoes()
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

// countCreation counts a creation that was tried. One in a namespace that is
// going away says nothing about the Job.
func (e *Executor) countCreation(reason string, err error) {
	if errors.Is(err, api.ErrNamespaceTerminating) {
		return
	}
	result := labelSucceeded
	if err != nil {
		result = labelFailed
	}
	e.metrics.creations.WithLabelValues(reason, result).Inc()
}
