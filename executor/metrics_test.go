package executor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// samples are the series above 0 whose name begins with the prefix, without it:
// what a counter says, and how often a histogram was observed.
func samples(t *testing.T, registry *prometheus.Registry, prefix string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		name, ok := strings.CutPrefix(f.GetName(), prefix)
		if !ok {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if value != 0 {
				out[fmt.Sprintf("%s{%s}", name, strings.Join(labels, " "))] = value
			}
		}
	}
	return out
}

func indexedJob(completions int32, perIndex bool, status batchv1.JobStatus) *batchv1.Job {
	return testJob(func(j *batchv1.Job) {
		mode := batchv1.IndexedCompletion
		j.Spec.CompletionMode, j.Spec.Completions, j.Status = &mode, &completions, status
		if perIndex {
			j.Spec.BackoffLimitPerIndex = new(int32)
		}
	})
}

func jobWith(status batchv1.JobStatus) *batchv1.Job {
	return testJob(func(j *batchv1.Job) { j.Status = status })
}

func over(condition batchv1.JobConditionType, reason string) []batchv1.JobCondition {
	return []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, Reason: reason}}
}

func TestAStatusWriteCountsWhatItMadeTrue(t *testing.T) {
	cases := map[string]struct {
		before, after *batchv1.Job
		want          map[string]float64
	}{
		"pods are counted": {
			before: jobWith(batchv1.JobStatus{Succeeded: 1, Failed: 2}),
			after:  jobWith(batchv1.JobStatus{Succeeded: 4, Failed: 3}),
			want: map[string]float64{
				"job_pods_finished_total{completion_mode=NonIndexed result=succeeded}": 3,
				"job_pods_finished_total{completion_mode=NonIndexed result=failed}":    1,
			},
		},
		"a Job completes": {
			before: jobWith(batchv1.JobStatus{Succeeded: 1, Conditions: over(batchv1.JobSuccessCriteriaMet, "CompletionsReached")}),
			after:  jobWith(batchv1.JobStatus{Succeeded: 1, Conditions: over(batchv1.JobComplete, "CompletionsReached")}),
			want:   map[string]float64{"jobs_finished_total{completion_mode=NonIndexed reason=CompletionsReached result=succeeded}": 1},
		},
		"a Job fails": {
			before: indexedJob(2, false, batchv1.JobStatus{}),
			after:  indexedJob(2, false, batchv1.JobStatus{Conditions: over(batchv1.JobFailed, "DeadlineExceeded")}),
			want:   map[string]float64{"jobs_finished_total{completion_mode=Indexed reason=DeadlineExceeded result=failed}": 1},
		},
		"a Job that was finished is not counted again": {
			before: jobWith(batchv1.JobStatus{Conditions: over(batchv1.JobFailed, "DeadlineExceeded")}),
			after:  jobWith(batchv1.JobStatus{Conditions: over(batchv1.JobFailed, "DeadlineExceeded")}),
			want:   map[string]float64{},
		},
		"indexes succeed": {
			before: indexedJob(9, false, batchv1.JobStatus{Succeeded: 3, CompletedIndexes: "0-2"}),
			after:  indexedJob(9, false, batchv1.JobStatus{Succeeded: 5, CompletedIndexes: "0-3,7"}),
			want: map[string]float64{
				"job_finished_indexes_total{backoffLimit=global status=succeeded}":  2,
				"job_pods_finished_total{completion_mode=Indexed result=succeeded}": 2,
			},
		},
		"a Job that was scaled down loses indexes, and one more succeeds": {
			before: indexedJob(5, false, batchv1.JobStatus{Succeeded: 7, CompletedIndexes: "0-3,7-9"}),
			after:  indexedJob(5, false, batchv1.JobStatus{Succeeded: 5, CompletedIndexes: "0-4"}),
			want: map[string]float64{
				"job_finished_indexes_total{backoffLimit=global status=succeeded}":  1,
				"job_pods_finished_total{completion_mode=Indexed result=succeeded}": 1,
			},
		},
		"indexes fail": {
			before: indexedJob(9, true, batchv1.JobStatus{Failed: 1, FailedIndexes: new("")}),
			after:  indexedJob(9, true, batchv1.JobStatus{Failed: 3, FailedIndexes: new("1,4")}),
			want: map[string]float64{
				"job_finished_indexes_total{backoffLimit=perIndex status=failed}": 2,
				"job_pods_finished_total{completion_mode=Indexed result=failed}":  2,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			m, err := newJobMetrics(registry)
			if err != nil {
				t.Fatal(err)
			}
			m.statusWritten(tc.before, tc.after)
			if diff := cmp.Diff(tc.want, samples(t, registry, "job_controller_")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// How a Job failed is counted with the status that announces it, once.
func TestAFailureIsCountedByItsClass(t *testing.T) {
	failed := func(repeated bool, conditions ...*jobpolicyv1.JobCondition) reply {
		return applying(&jobpolicyv1.DecideJobResponse{
			Status: &jobpolicyv1.JobStatus{Conditions: conditions},
			Verdict: &jobpolicyv1.Verdict{
				Rule: jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED, Repeated: repeated,
				End: &jobpolicyv1.JobEnd{Class: jobpolicyv1.EndClass_END_CLASS_OUT_OF_MEMORY, Rule: jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED},
			},
		})
	}
	is := func(kind string) *jobpolicyv1.JobCondition {
		return &jobpolicyv1.JobCondition{Type: kind, Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE, Reason: "BackoffLimitExceeded"}
	}
	registry := prometheus.NewRegistry()
	s := newServer(testJob())
	cfg := testConfig(s, &script{Answers: []reply{failed(false, is("FailureTarget")), failed(true, is("FailureTarget"), is("Failed"))}})
	cfg.Registerer = registry
	start(t, cfg)
	eventually(t, "the Job is counted as finished", func() bool { return len(samples(t, registry, "job_controller_jobs_finished")) > 0 })
	want := map[string]float64{"_total{class=OutOfMemory rule=backoffLimitExceeded}": 1}
	if diff := cmp.Diff(want, samples(t, registry, "jobpolicy_job_failures")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCreationsAreCountedByWhatTheyAreFor(t *testing.T) {
	replaceFailed, both := batchv1.Failed, batchv1.TerminatingOrFailed
	cases := map[string]struct {
		policy      *batchv1.PodReplacementPolicy
		failed      bool
		terminating int32
		want        string
	}{
		"nothing has failed":                                {policy: &both, want: "new"},
		"nothing has failed, no policy":                     {want: "new"},
		"a pod has failed":                                  {policy: &both, failed: true, want: "recreate_terminating_or_failed"},
		"a pod is being deleted":                            {terminating: 1, want: "recreate_terminating_or_failed"},
		"a pod has failed, only those are replaced":         {policy: &replaceFailed, failed: true, want: "recreate_failed"},
		"a pod is being deleted, only failed are replaced":  {policy: &replaceFailed, terminating: 1, want: "recreate_terminating_or_failed"},
		"nothing has failed, only failed pods are replaced": {policy: &replaceFailed, want: "new"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			job := testJob(func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = tc.policy })
			if got := creationReason(job, &jobpolicyv1.CreatePods{AfterFailures: tc.failed}, tc.terminating); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAReconcileCountsItselfAndWhatItDid(t *testing.T) {
	gone := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("namespace is going away"))
	gone.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	ignored := []*jobpolicyv1.PodFailureActionCount{{
		Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE, Count: 1,
	}}
	cases := map[string]struct {
		answer   reply
		creation error
		want     map[string]float64
	}{
		"pods are created": {
			answer: applying(&jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 2}}),
			want: map[string]float64{
				"job_pods_creation_total{reason=new status=succeeded}":                                     2,
				"job_syncs_total{action=pods_created completion_mode=NonIndexed result=success}":           1,
				"job_sync_duration_seconds{action=pods_created completion_mode=NonIndexed result=success}": 1,
			},
		},
		"a creation fails": {
			answer:   applying(&jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 2}}),
			creation: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota: q")),
			want: map[string]float64{
				"job_pods_creation_total{reason=new status=failed}":                                      1,
				"job_syncs_total{action=pods_created completion_mode=NonIndexed result=error}":           1,
				"job_sync_duration_seconds{action=pods_created completion_mode=NonIndexed result=error}": 1,
			},
		},
		"the namespace is going away": {
			answer:   applying(&jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 2}}),
			creation: gone,
			want: map[string]float64{
				"job_syncs_total{action=pods_created completion_mode=NonIndexed result=success}":           1,
				"job_sync_duration_seconds{action=pods_created completion_mode=NonIndexed result=success}": 1,
			},
		},
		"an ignored failure leaves the status as it was": {
			answer: applying(&jobpolicyv1.DecideJobResponse{PodFailureActions: ignored}),
			want: map[string]float64{
				"pod_failures_handled_by_failure_policy_total{action=Ignore}":                          1,
				"job_syncs_total{action=tracking completion_mode=NonIndexed result=success}":           1,
				"job_sync_duration_seconds{action=tracking completion_mode=NonIndexed result=success}": 1,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(testJob())
			s.Failures["create pods"] = func(int) error { return tc.creation }
			cfg, registry := testConfig(s, &script{Answers: []reply{tc.answer}}), prometheus.NewRegistry()
			cfg.Registerer = registry
			e := build(t, cfg)
			st := e.jobs.With(testKey, func(st *tracker.Job) { st.Observe(testJob(), tracker.Watch) })
			if _, err := e.reconciler.Reconcile(t.Context(), st.Key); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, samples(t, registry, "job_controller_")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesOfOtherManagersAreBounded(t *testing.T) {
	m, err := newJobMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxManagers + 20 {
		m.countUnmanaged(fmt.Sprintf("example.com/%d", i))
	}
	m.countUnmanaged("example.com/7")
	if got := testutil.CollectAndCount(m.unmanaged); got != maxManagers+1 {
		t.Errorf("%d series, want %d", got, maxManagers+1)
	}
	for name, want := range map[string]float64{"example.com/7": 2, otherManagers: 20} {
		if got := testutil.ToFloat64(m.unmanaged.WithLabelValues(name)); got != want {
			t.Errorf("%v Jobs of %s, want %v", got, name, want)
		}
	}
}

func TestJobsOfOtherManagersAreCountedOnce(t *testing.T) {
	named := func(manager string) *batchv1.Job {
		return testJob(func(j *batchv1.Job) { j.Spec.ManagedBy = &manager })
	}
	nobody := testJob(func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	cases := map[string]struct {
		job  *batchv1.Job
		want map[string]float64
	}{
		"of a third controller":          {named("example.com/other"), map[string]float64{"jobs_by_external_controller_total{controller_name=example.com/other}": 1}},
		"of this executor":               {named(ManagedBy), map[string]float64{}},
		"of the built-in controller":     {named(batchv1.JobControllerName), map[string]float64{}},
		"of nobody, so the built-in one": {nobody, map[string]float64{}},
	}
	for name, tc := range cases {
		for _, replace := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, replace=%v", name, replace), func(t *testing.T) {
				cfg, registry := testConfig(newServer(), &script{}), prometheus.NewRegistry()
				cfg.Registerer, cfg.ReplaceBuiltin = registry, replace
				e := build(t, cfg)
				e.watcher.jobSeen(nil, tc.job)
				changed := tc.job.DeepCopy()
				changed.ResourceVersion = "7"
				e.watcher.jobSeen(tc.job, changed)
				if diff := cmp.Diff(tc.want, samples(t, registry, "job_controller_")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestTerminatedPodsWithTheFinalizerAreCountedAsTheyComeAndGo(t *testing.T) {
	const add, del = "terminated_pods_tracking_finalizer_total{event=add}", "terminated_pods_tracking_finalizer_total{event=delete}"
	version := func(rv string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.ResourceVersion = rv } }
	free := func(p *corev1.Pod) { p.Finalizers = nil }
	ofTraining := func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Training" }
	cases := map[string]struct {
		see  func(*Executor)
		want map[string]float64
	}{
		"a running pod does not count": {
			see: func(e *Executor) { e.watcher.podSeen(nil, cachedPod(2)) }, want: map[string]float64{},
		},
		"a pod ends": {
			see:  func(e *Executor) { e.watcher.podSeen(cachedPod(2), cachedPod(2, failedPhase, version("2"))) },
			want: map[string]float64{add: 1},
		},
		"a pod is seen when it has ended": {
			see: func(e *Executor) { e.watcher.podSeen(nil, cachedPod(2, failedPhase)) }, want: map[string]float64{add: 1},
		},
		"an ended pod is released": {
			see: func(e *Executor) {
				e.watcher.podSeen(cachedPod(2, failedPhase), cachedPod(2, failedPhase, free, version("2")))
			},
			want: map[string]float64{del: 1},
		},
		"an ended pod goes with its finalizer": {
			see: func(e *Executor) { e.watcher.podGone(cachedPod(2, failedPhase)) }, want: map[string]float64{del: 1},
		},
		"whoever owns it": {
			see: func(e *Executor) { e.watcher.podSeen(nil, cachedPod(2, failedPhase, ofTraining)) }, want: map[string]float64{add: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg, registry := testConfig(newServer(), &script{}), prometheus.NewRegistry()
			cfg.Registerer = registry
			e := build(t, cfg)
			tc.see(e)
			if diff := cmp.Diff(tc.want, samples(t, registry, "job_controller_")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetricsHaveUpstreamsNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newServer(testJob(), testPod(2, failedPhase))
	cfg := testConfig(s, &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{
		Create: &jobpolicyv1.CreatePods{Count: 1},
		Status: &jobpolicyv1.JobStatus{Failed: 1, Conditions: []*jobpolicyv1.JobCondition{{
			Type: "Failed", Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE, Reason: "BackoffLimitExceeded",
		}}},
	})}})
	cfg.Registerer = registry
	start(t, cfg)
	names := func() []string {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range families {
			out = append(out, f.GetName())
		}
		return out
	}
	want := []string{
		"job_controller_job_pods_creation_total", "job_controller_job_pods_finished_total", "job_controller_job_sync_duration_seconds",
		"job_controller_job_syncs_total", "job_controller_jobs_finished_total", "job_controller_terminated_pods_tracking_finalizer_total",
		"jobpolicy_altered_objects_total", "jobpolicy_decision_duration_seconds", "jobpolicy_decisions_total", "jobpolicy_engine_errors_total", "jobpolicy_events_dropped_total",
		"jobpolicy_jobs_stood_down", "jobpolicy_missed_reconciles_total", "jobpolicy_refused_writes_total", "jobpolicy_runaway_creations_total", "jobpolicy_second_controller_writes_total",
		"workqueue_adds_total", "workqueue_depth", "workqueue_longest_running_processor_seconds", "workqueue_queue_duration_seconds",
		"workqueue_retries_total", "workqueue_unfinished_work_seconds", "workqueue_work_duration_seconds",
	}
	eventually(t, "finished Job", func() bool { return slices.Contains(names(), "job_controller_job_syncs_total") })
	if diff := cmp.Diff(want, names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	eventually(t, "work on the Job and on its pod", func() bool {
		return slices.Equal([]string{"adds_total{name=job_orphan_pod}", "adds_total{name=job}"}, slices.DeleteFunc(
			slices.Sorted(maps.Keys(samples(t, registry, "workqueue_"))), func(s string) bool { return !strings.HasPrefix(s, "adds") }))
	})
	if _, err := New(cfg); err != nil {
		t.Errorf("a second executor on the same registry: %v", err)
	}
}

// A slow reconcile in the histogram leads to its trace.
func TestReconcilesHaveExemplars(t *testing.T) {
	m, err := newJobMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &reporter{metrics: m}
	for _, sampled := range []bool{false, true} {
		id := trace.TraceID{15: 1}
		sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{7: 1}, TraceFlags: trace.TraceFlags(0).WithSampled(sampled)})
		r.reconciled(trace.ContextWithSpanContext(t.Context(), sc), testJob(), actionCreated, nil, time.Second)
		want := map[bool]string{true: id.String()}[sampled]
		if got := exemplar(t, m.syncDuration); got != want {
			t.Errorf("sampled %v: the exemplar is trace %q, want %q", sampled, got, want)
		}
	}
}

// exemplar is the trace that a histogram's only exemplar names; empty if it has none.
func exemplar(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, bucket := range families[0].GetMetric()[0].GetHistogram().GetBucket() {
		for _, label := range bucket.GetExemplar().GetLabel() {
			return label.GetValue()
		}
	}
	return ""
}
