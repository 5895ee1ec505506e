package gauges

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/testenv"
)

type counted []executor.Observation

func (j *counted) EachJob(f func(executor.Observation)) {
	for _, o := range *j {
		f(o)
	}
}

type crons []executor.CronJobObservation

func (c crons) EachCronJob(f func(executor.CronJobObservation)) {
	for _, o := range c {
		f(o)
	}
}

func job(t *testing.T, uid byte, waits ...jobpolicyv1.WaitReason) executor.Observation {
	t.Helper()
	id, err := wire.UIDString(testenv.UID(uid))
	if err != nil {
		t.Fatal(err)
	}
	e := &jobpolicyv1.Explanation{}
	for _, reason := range waits {
		e.Waits = append(e.Waits, &jobpolicyv1.Wait{Reason: reason})
	}
	text, err := proto.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return executor.Observation{
		Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: id, Name: string(id)}}, Decision: &tracker.Decision{Explanation: text},
	}
}

// gauges are the gauges, by name and reason.
func gauges(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "jobpolicy_")
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = m.GetGauge().GetValue()
		}
	}
	return got
}

// expect compares gauges, by name and reason.
func expect(t *testing.T, r prometheus.Gatherer, want map[string]float64) {
	t.Helper()
	got := gauges(t, r)
	for name, value := range want {
		if n, ok := got[name]; !ok || n != value {
			t.Errorf("%s = %v, want %v; there are %v", name, n, value, got)
		}
	}
}

func TestJobsAreCountedByWhatTheyWaitFor(t *testing.T) {
	done := job(t, 1, jobpolicyv1.WaitReason_WAIT_REASON_FINALIZERS)
	done.Job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	backoff, remaining := jobpolicyv1.WaitReason_WAIT_REASON_POD_FAILURE_BACKOFF, jobpolicyv1.WaitReason_WAIT_REASON_PODS_REMAINING
	refused, hindered := job(t, 4), job(t, 5)
	refused.Refusals = []writes.Refusal{{Kind: writes.CreatePod, Why: "exceeded quota"}, {Kind: writes.ReleasePod, Why: "a policy"}}
	hindered.Hindered = tracker.Hindered{Pods: 2, Reason: "Unschedulable"}
	undecided := job(t, 6)
	undecided.Decision = nil
	all := &counted{done, job(t, 2, backoff), job(t, 3, backoff, backoff, remaining), refused, hindered, undecided}
	registry := prometheus.NewRegistry()
	if err := RegisterJobs(registry, all, crons{}); err != nil {
		t.Fatal(err)
	}
	expect(t, registry, map[string]float64{
		"managed_jobs":                     5,
		"waiting_jobs pod_failure_backoff": 2, "waiting_jobs pods_remaining": 1,
		"waiting_jobs pods_refused": 1, "waiting_jobs writes_refused": 1, "waiting_jobs pods_hindered": 1,
		"waiting_jobs finalizers": 0, "rejected_jobs INVALID_REQUEST": 0,
		"hindered_pods Unschedulable": 2, "hindered_pods ImagePullBackOff": 0, "hindered_pods SignatureValidationFailed": 0, "hindered_pods other": 0,
	})
}

func TestRejectedJobsAreCountedByReason(t *testing.T) {
	invalid, other, unsupported := job(t, 1), job(t, 2), job(t, 3)
	invalid.Rejected, other.Rejected, unsupported.Rejected = "INVALID_REQUEST", "INVALID_REQUEST", "UNSUPPORTED_FIELD"
	registry := prometheus.NewRegistry()
	if err := RegisterJobs(registry, &counted{invalid, other, unsupported, job(t, 4)}, crons{}); err != nil {
		t.Fatal(err)
	}
	expect(t, registry, map[string]float64{
		"rejected_jobs INVALID_REQUEST": 2, "rejected_jobs UNSUPPORTED_FIELD": 1, "rejected_jobs UNKNOWN_METHOD": 0,
	})
}

// One series for each reason that scheduler and kubelet have, and one for all that others may write.
func TestReasonsOfPodsAreBounded(t *testing.T) {
	image, made, more := job(t, 1), job(t, 2), job(t, 3)
	image.Hindered = tracker.Hindered{Pods: 3, Reason: "ImagePullBackOff"}
	made.Hindered, more.Hindered = tracker.Hindered{Pods: 1, Reason: "MadeUp1"}, tracker.Hindered{Pods: 4, Reason: "MadeUp2"}
	registry := prometheus.NewRegistry()
	if err := RegisterJobs(registry, &counted{image, made, more}, crons{}); err != nil {
		t.Fatal(err)
	}
	expect(t, registry, map[string]float64{"hindered_pods ImagePullBackOff": 3, "hindered_pods other": 5})
	if _, there := gauges(t, registry)["hindered_pods MadeUp1"]; there {
		t.Error("a reason that somebody made up has a series of its own")
	}
}

func TestCronJobsThatDoNotStartTheirRuns(t *testing.T) {
	by := func(rule jobpolicyv1.Rule) executor.CronJobObservation {
		return executor.CronJobObservation{CronJob: &batchv1.CronJob{}, Explanation: &jobpolicyv1.CronJobExplanation{DecidingRule: rule}}
	}
	late, forbidden := jobpolicyv1.Rule_RULE_STARTING_DEADLINE_PASSED, jobpolicyv1.Rule_RULE_CONCURRENCY_FORBIDDEN
	registry := prometheus.NewRegistry()
	err := RegisterJobs(registry, &counted{}, crons{by(late), by(late), by(forbidden), by(jobpolicyv1.Rule_RULE_NOTHING_DUE), {CronJob: &batchv1.CronJob{}}})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, registry, map[string]float64{"missed_run_cronjobs starting_deadline": 2, "missed_run_cronjobs concurrency_policy": 1})
}

// A Job whose pods have failed has no retry left when the engine says so; one whose first failure would fail
// it has had none from the start, and one that has a verdict needs none.
func TestJobsWithoutRetries(t *testing.T) {
	with := func(uid byte, failed, left int32) executor.Observation {
		o := job(t, uid)
		text, err := proto.Marshal(&jobpolicyv1.Explanation{Facts: &jobpolicyv1.JobFacts{Failed: failed, RetriesLeft: left}})
		if err != nil {
			t.Fatal(err)
		}
		o.Decision.Explanation = text
		return o
	}
	decided := with(5, 7, 0)
	decided.Job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}
	registry := prometheus.NewRegistry()
	if err := RegisterJobs(registry, &counted{with(1, 6, 0), with(2, 0, 0), with(3, 1, 5), job(t, 4), decided}, crons{}); err != nil {
		t.Fatal(err)
	}
	expect(t, registry, map[string]float64{"jobs_without_retries": 1})
}
