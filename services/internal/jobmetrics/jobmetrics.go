// Package jobmetrics exports how many Jobs the executor manages, how many of them wait for
// something, and how many the engine rejects.
package jobmetrics

import (
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/telemetry"
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

// Jobs is the controller of Jobs, package executor.
type Jobs interface {
	EachJob(f func(executor.Observation))
}

// A collector counts when somebody reads the metrics. Replicas that do not lead know no
// Jobs and export 0.
type collector struct {
	jobs                       Jobs
	managed, waiting, rejected *prometheus.Desc
}

// Register exports the metrics.
func Register(r prometheus.Registerer, jobs Jobs) error {
	return r.Register(&collector{
		jobs:     jobs,
		managed:  prometheus.NewDesc("jobpolicy_managed_jobs", "Jobs that this executor manages and that have not finished.", nil, nil),
		waiting:  prometheus.NewDesc("jobpolicy_waiting_jobs", "Managed Jobs that wait for something, by reason: one of WaitReason of the contract, pods_refused (the API server refuses to create pods), writes_refused (it refuses other writes) or pods_hindered (pods cannot start). A Job counts once for each of its reasons.", []string{"reason"}, nil),
		rejected: prometheus.NewDesc("jobpolicy_rejected_jobs", "Managed Jobs about which the engine makes no decision, by reason (ErrorReason of the contract).", []string{"reason"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- c.managed
	out <- c.waiting
	out <- c.rejected
}

// Collect implements prometheus.Collector. Reasons that no Job has are exported as 0.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	waiting, rejected := map[string]int{podsRefused: 0, writesRefused: 0, podsHindered: 0}, map[string]int{}
	for reason := range jobpolicyv1.WaitReason_name {
		if reason := jobpolicyv1.WaitReason(reason); reason != jobpolicyv1.WaitReason_WAIT_REASON_UNSPECIFIED {
			waiting[telemetry.WaitReason(reason)] = 0
		}
	}
	for _, reason := range rejections {
		rejected[jobpolicyv1grpc.ReasonName(reason)] = 0
	}
	managed := 0
	c.jobs.EachJob(func(o executor.Observation) {
		if o.Rejected != "" {
			rejected[o.Rejected]++
		}
		if finished(o.Job) {
			return
		}
		managed++
		for reason := range reasons(o) {
			waiting[reason]++
		}
	})
	out <- prometheus.MustNewConstMetric(c.managed, prometheus.GaugeValue, float64(managed))
	for reason, n := range waiting {
		out <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(n), reason)
	}
	for reason, n := range rejected {
		out <- prometheus.MustNewConstMetric(c.rejected, prometheus.GaugeValue, float64(n), reason)
	}
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
		found[telemetry.WaitReason(wait.GetReason())] = true
	}
	return found
}
