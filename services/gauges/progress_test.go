package gauges

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// How long a Job has made no progress: the states of one Job, a minute after each other, beside one that is as it should be.
func TestSecondsWithoutProgress(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	started := func(change ...func(*executor.Observation)) executor.Observation {
		o := job(t, 1)
		o.Job.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
		o.Job.Status.StartTime = &metav1.Time{Time: noon.Add(-10 * time.Minute)}
		for _, c := range change {
			c(&o)
		}
		return o
	}
	spec := func(f func(*batchv1.JobSpec)) func(*executor.Observation) {
		return func(o *executor.Observation) { f(&o.Job.Spec) }
	}
	status := func(f func(*batchv1.JobStatus)) func(*executor.Observation) {
		return func(o *executor.Observation) { f(&o.Job.Status) }
	}
	ready := status(func(s *batchv1.JobStatus) { s.Ready = new(int32(1)) })
	failed := func(n int32) func(*executor.Observation) { return status(func(s *batchv1.JobStatus) { s.Failed = n }) }
	cases := map[string]struct {
		states []executor.Observation
		want   float64 // minutes at the last of them
	}{
		"no pod has run since the start": {[]executor.Observation{started()}, 10},
		"for longer":                     {[]executor.Observation{started(), started(), started()}, 12},
		"it has not started":             {[]executor.Observation{started(status(func(s *batchv1.JobStatus) { s.StartTime = nil }))}, 60},
		"resumed before it was known, and not started again": {[]executor.Observation{started(status(func(s *batchv1.JobStatus) {
			s.StartTime = nil
			s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-5 * time.Minute))}}
		}))}, 5},
		"a pod runs":                            {[]executor.Observation{started(), started(ready)}, 0},
		"a pod ran until a minute ago":          {[]executor.Observation{started(ready), started(), started()}, 1},
		"pods fail":                             {[]executor.Observation{started(), started(failed(1)), started(failed(2))}, 0},
		"pods had failed":                       {[]executor.Observation{started(), started(failed(1)), started(failed(1)), started(failed(1))}, 2},
		"pods had failed before it was known":   {[]executor.Observation{started(failed(3)), started(failed(3))}, 1},
		"suspended":                             {[]executor.Observation{started(), started(spec(func(s *batchv1.JobSpec) { s.Suspend = new(true) }))}, 0},
		"suspended, and resumed a moment later": {[]executor.Observation{started(), started(status(func(s *batchv1.JobStatus) { s.StartTime.Time = noon.Add(30 * time.Second) }))}, 0.5},
		"without parallelism":                   {[]executor.Observation{started(spec(func(s *batchv1.JobSpec) { s.Parallelism = new(int32(0)) }))}, 0},
		"being deleted":                         {[]executor.Observation{started(func(o *executor.Observation) { o.Job.DeletionTimestamp = &metav1.Time{Time: noon} })}, 0},
		"its pods are held by scheduling gates": {[]executor.Observation{started(func(o *executor.Observation) { o.Hindered.Reason = "SchedulingGated" })}, 0},
		"its pods find no room":                 {[]executor.Observation{started(func(o *executor.Observation) { o.Hindered.Reason = "Unschedulable" })}, 10},
		"in its retry delay": {[]executor.Observation{started(func(o *executor.Observation) {
			o.Decision = job(t, 1, jobpolicyv1.WaitReason_WAIT_REASON_POD_FAILURE_BACKOFF).Decision
		})}, 0},
		"started in the future": {[]executor.Observation{started(status(func(s *batchv1.JobStatus) { s.StartTime.Time = noon.Add(time.Hour) }))}, 0},
		"it has failed, and a pod does not end": {[]executor.Observation{started(), started(status(func(s *batchv1.JobStatus) {
			s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}
		}))}, 0},
		"it has succeeded, and a pod does not end": {[]executor.Observation{started(status(func(s *batchv1.JobStatus) {
			s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}}
		}))}, 0},
		"complete": {[]executor.Observation{started(), started(status(func(s *batchv1.JobStatus) {
			s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}))}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			running := job(t, 2)
			running.Job.Status.Ready = new(int32(1))
			all, now := &counted{}, noon
			c := newCollector(all, crons{}, func() time.Time { return now })
			for i, state := range tc.states {
				*all, now = counted{state, running}, noon.Add(time.Duration(i)*time.Minute)
				got := gauges(t, gathered{c})["job_without_progress_seconds"]
				if i == len(tc.states)-1 && got != tc.want*60 {
					t.Errorf("%v seconds, want %v", got, tc.want*60)
				}
			}
		})
	}
}

// gathered gathers from one collector.
type gathered struct{ prometheus.Collector }

// Gather implements prometheus.Gatherer.
func (g gathered) Gather() ([]*dto.MetricFamily, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(g.Collector); err != nil {
		return nil, err
	}
	return registry.Gather()
}
