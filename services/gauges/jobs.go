package gauges

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

// Jobs and CronJobs are the controllers, those of executor.Executor.
type (
	Jobs interface {
		EachJob(f func(executor.Observation))
	}
	CronJobs interface {
		EachCronJob(f func(executor.CronJobObservation))
	}
)

// Reasons to wait that the engine does not know.
const (
	// podsRefused: the API server refuses to create pods.
	podsRefused = "pods_refused"
	// writesRefused: the API server refuses other writes.
	writesRefused = "writes_refused"
	// podsHindered: there are pods that cannot start.
	podsHindered = "pods_hindered"
)

// rejections are the reasons for which the engine makes no decision about a Job.
var rejections = []jobpolicyv1.ErrorReason{
	jobpolicyv1.ErrorReason_ERROR_REASON_INVALID_REQUEST,
	jobpolicyv1.ErrorReason_ERROR_REASON_UNSUPPORTED_FIELD,
	jobpolicyv1.ErrorReason_ERROR_REASON_UNKNOWN_METHOD,
	jobpolicyv1.ErrorReason_ERROR_REASON_UNKNOWN_VERSION,
}

// A collector counts when somebody reads the metrics. Replicas that do not lead know no
// Jobs and export 0.
type collector struct {
	jobs  Jobs
	crons CronJobs
	now   func() time.Time
	watcher

	managed, waiting, rejected, hindered, stuck, lastRetry, missed *prometheus.Desc
}

// RegisterJobs exports how many Jobs the executor manages, how many of them wait for something,
// and how many the engine rejects; which of them may need somebody; and which CronJobs do not start their runs.
func RegisterJobs(r prometheus.Registerer, jobs Jobs, crons CronJobs) error {
	return r.Register(newCollector(jobs, crons, time.Now))
}

func newCollector(jobs Jobs, crons CronJobs, now func() time.Time) *collector {
	return &collector{
		jobs: jobs, crons: crons, now: now,
		hindered: prometheus.NewDesc("jobpolicy_hindered_pods", "Pods of managed Jobs that cannot start, by the most frequent reason in their Job: a reason of scheduler or kubelet, or other.", []string{"reason"}, nil),
		stuck: prometheus.NewDesc("jobpolicy_job_without_progress_seconds",
			"How long the managed Job that has made no progress for longest has made none: it wants pods, none of them is ready, and none ends. A retry delay does not count. 0: all make progress.", nil, nil),
		lastRetry: prometheus.NewDesc("jobpolicy_jobs_without_retries", "Managed Jobs with failed pods that fail when one more pod does.", nil, nil),
		missed:    prometheus.NewDesc("jobpolicy_missed_run_cronjobs", "Managed CronJobs whose latest run is due and does not start, by reason: starting_deadline (it is too late for it) or concurrency_policy (an earlier run goes on).", []string{"reason"}, nil),
		managed:   prometheus.NewDesc("jobpolicy_managed_jobs", "Jobs that this executor manages and that have not finished.", nil, nil),
		waiting:   prometheus.NewDesc("jobpolicy_waiting_jobs", "Managed Jobs that wait for something, by reason: one of WaitReason of the contract, pods_refused (the API server refuses to create pods), writes_refused (it refuses other writes) or pods_hindered (pods cannot start). A Job counts once for each of its reasons.", []string{"reason"}, nil),
		rejected:  prometheus.NewDesc("jobpolicy_rejected_jobs", "Managed Jobs about which the engine makes no decision, by reason (ErrorReason of the contract).", []string{"reason"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.managed, c.waiting, c.rejected, c.hindered, c.stuck, c.lastRetry, c.missed} {
		out <- desc
	}
}

// Collect implements prometheus.Collector. Reasons that no Job has are exported as 0.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	var managed []executor.Observation
	rejected := map[string]int{}
	for _, reason := range rejections {
		rejected[jobpolicyv1grpc.ReasonName(reason)] = 0
	}
	c.jobs.EachJob(func(o executor.Observation) {
		if o.Rejected != "" {
			rejected[o.Rejected]++
		}
		if !finished(o.Job) {
			managed = append(managed, o)
		}
	})
	gauge := func(desc *prometheus.Desc, n float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, labels...)
	}
	byReason := func(desc *prometheus.Desc, counts map[string]int) {
		for reason, n := range counts {
			gauge(desc, float64(n), reason)
		}
	}
	gauge(c.managed, float64(len(managed)))
	gauge(c.stuck, c.longest(managed, c.now()).Seconds())
	gauge(c.lastRetry, float64(count(managed, lastRetry)))
	byReason(c.rejected, rejected)
	byReason(c.waiting, waitingJobs(managed))
	byReason(c.hindered, hinderedPods(managed))
	byReason(c.missed, missedRuns(c.crons))
}

func count(jobs []executor.Observation, is func(executor.Observation) bool) (n int) {
	for _, o := range jobs {
		if is(o) {
			n++
		}
	}
	return n
}

// waitName is what the metrics of engines call a reason, too: pods_remaining, for example.
func waitName(r jobpolicyv1.WaitReason) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "WAIT_REASON_"))
}

// waitingJobs counts Jobs by what they wait for.
func waitingJobs(jobs []executor.Observation) map[string]int {
	waiting := map[string]int{podsRefused: 0, writesRefused: 0, podsHindered: 0}
	for reason := range jobpolicyv1.WaitReason_name {
		if reason := jobpolicyv1.WaitReason(reason); reason != jobpolicyv1.WaitReason_WAIT_REASON_UNSPECIFIED {
			waiting[waitName(reason)] = 0
		}
	}
	for _, o := range jobs {
		for reason := range reasons(o) {
			waiting[reason]++
		}
	}
	return waiting
}

// hindrances are the reasons that have a time series of their own. Whoever may write the status of a pod
// could write any other.
var hindrances = append(podcache.StartReasons(), corev1.PodReasonUnschedulable, corev1.PodReasonSchedulingGated, corev1.PodReasonSchedulerError)

// otherHindrance stands for all other reasons.
const otherHindrance = "other"

// hinderedPods counts pods that cannot start.
func hinderedPods(jobs []executor.Observation) map[string]int {
	pods := map[string]int{otherHindrance: 0}
	for _, reason := range hindrances {
		pods[reason] = 0
	}
	for _, o := range jobs {
		reason := o.Hindered.Reason
		if _, known := pods[reason]; !known {
			reason = otherHindrance
		}
		pods[reason] += int(o.Hindered.Pods)
	}
	return pods
}

// missedRules are the rules by which a run that is due does not start, and what the metric calls them.
var missedRules = map[jobpolicyv1.Rule]string{
	jobpolicyv1.Rule_RULE_STARTING_DEADLINE_PASSED: "starting_deadline",
	jobpolicyv1.Rule_RULE_CONCURRENCY_FORBIDDEN:    "concurrency_policy",
}

func missedRuns(crons CronJobs) map[string]int {
	missed := map[string]int{}
	for _, reason := range missedRules {
		missed[reason] = 0
	}
	crons.EachCronJob(func(o executor.CronJobObservation) {
		if reason, is := missedRules[o.Explanation.GetDecidingRule()]; is {
			missed[reason]++
		}
	})
	return missed
}

func finished(job *batchv1.Job) bool { return wire.FinishedCondition(job) != nil }

// reasons are the reasons for which a Job waits, each once.
func reasons(o executor.Observation) map[string]bool {
	found := map[string]bool{}
	for _, r := range o.Refusals {
		if r.Kind == writes.CreatePod {
			found[podsRefused] = true
		} else {
			found[writesRefused] = true
		}
	}
	if o.Hindered.Pods > 0 {
		found[podsHindered] = true
	}
	for _, wait := range o.Decision.Explained().GetWaits() {
		found[waitName(wait.GetReason())] = true
	}
	return found
}
