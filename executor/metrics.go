package executor

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const subsystem = "job_controller"

// Label values of the metrics that the built-in Job controller has, too.
const (
	resultSuccess = "success"
	resultError   = "error"

	actionReconciling = "reconciling"
	actionTracking    = "tracking"
	actionCreated     = "pods_created"
	actionDeleted     = "pods_deleted"

	labelSucceeded = "succeeded"
	labelFailed    = "failed"

	createNew                         = "new"
	createRecreateTerminatingOrFailed = "recreate_terminating_or_failed"
	createRecreateFailed              = "recreate_failed"
)

// jobMetrics are the metrics of the built-in Job controller, under the same names so that
// dashboards keep working, and our own metrics of decisions.
type jobMetrics struct {
	syncDuration    *prometheus.HistogramVec
	syncs           *prometheus.CounterVec
	jobsFinished    *prometheus.CounterVec
	podsFinished    *prometheus.CounterVec
	failurePolicy   *prometheus.CounterVec
	tracking        *prometheus.CounterVec
	finishedIndexes *prometheus.CounterVec
	creations       *prometheus.CounterVec
	unmanaged       *prometheus.CounterVec
	staleSkips      *prometheus.CounterVec
	altered         *prometheus.CounterVec
	standstills     *prometheus.CounterVec
	failures        *prometheus.CounterVec
	decisions       *decisionMetrics
	managers        managers
}

// maxManagers bounds the names in jobs_by_external_controller_total. Anybody who may create
// a Job chooses such a name, and each name is a time series.
const maxManagers = 100

// otherManagers stands for the names beyond maxManagers.
const otherManagers = "other"

// managers are the names in jobs_by_external_controller_total.
type managers struct {
	mu    sync.Mutex
	names map[string]bool
}

// label is the name in the metric: otherManagers if there is no room for another name.
func (m *managers) label(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[name] {
		return name
	}
	if len(m.names) >= maxManagers {
		return otherManagers
	}
	if m.names == nil {
		m.names = map[string]bool{}
	}
	m.names[name] = true
	return name
}

// decisionMetrics are the metrics of the decisions.
type decisionMetrics struct {
	duration         *prometheus.HistogramVec
	decisions        *prometheus.CounterVec
	missedReconciles *prometheus.CounterVec
}

// newJobMetrics returns the metrics, also those of the decisions, and registers them with to, which may be nil.
func newJobMetrics(to prometheus.Registerer) (*jobMetrics, error) {
	r := &telemetry.Registrar{To: to}
	m := &jobMetrics{
		syncDuration: r.Histogram(subsystem, "job_sync_duration_seconds", "The time it took to reconcile a Job.",
			prometheus.ExponentialBuckets(0.004, 2, 15), "completion_mode", "result", "action"),
		syncs:           r.Counter(subsystem, "job_syncs_total", "Reconciles of Jobs.", "completion_mode", "result", "action"),
		jobsFinished:    r.Counter(subsystem, "jobs_finished_total", "Jobs that finished.", "completion_mode", "result", "reason"),
		podsFinished:    r.Counter(subsystem, "job_pods_finished_total", "Finished pods that are fully accounted for.", "completion_mode", "result"),
		failurePolicy:   r.Counter(subsystem, "pod_failures_handled_by_failure_policy_total", "Failed pods, by the action of the pod failure policy.", "action"),
		tracking:        r.Counter(subsystem, "terminated_pods_tracking_finalizer_total", "Terminated pods that got (add) or lost (delete) the tracking finalizer, whoever owns them.", "event"),
		finishedIndexes: r.Counter(subsystem, "job_finished_indexes_total", "Finished indexes.", "status", "backoffLimit"),
		creations:       r.Counter(subsystem, "job_pods_creation_total", "Pod creations, by reason and outcome.", "reason", "status"),
		unmanaged:       r.Counter(subsystem, "jobs_by_external_controller_total", "Jobs seen that another controller manages; beyond 100 names it is called other.", "controller_name"),
		staleSkips:      r.Counter(subsystem, "stale_sync_skips_total", "Reconciles given up because the Job or its pods had to be read from the API server first.", "group", "resource"),
		altered:         telemetry.AlteredObjects(r, "pod", "ownerReferences", "labels", "annotations", "finalizers"),
		standstills:     r.Counter("jobpolicy", "runaway_creations_total", "How often a Job stood still for an hour, because none of the pods created for it was seen as its own."),
		failures:        r.Counter("jobpolicy", "job_failures_total", "Jobs that failed, by the kind of failure and by the rule that ended them. Counted when the status announces it.", "class", "rule"),
		decisions: &decisionMetrics{
			duration: r.Histogram("jobpolicy", "decision_duration_seconds", "The time it took the engine to answer, as the executor measures it.",
				prometheus.ExponentialBuckets(0.0005, 2, 15), "disposition"),
			decisions:        r.Counter("jobpolicy", "decisions_total", "Decisions, by kind and by the rule that reached a verdict.", "disposition", "rule"),
			missedReconciles: r.Counter("jobpolicy", "missed_reconciles_total", "Jobs that were not reconciled although there was something to do."),
		},
	}
	m.decisions.missedReconciles.WithLabelValues() // Exported as 0 before the first one.
	m.standstills.WithLabelValues()
	return m, r.Err
}

// countUnmanaged counts a Job that another controller manages.
func (m *jobMetrics) countUnmanaged(manager string) {
	m.unmanaged.WithLabelValues(m.managers.label(manager)).Inc()
}

func completionModeLabel(job *batchv1.Job) string {
	if wire.Indexed(job) {
		return string(batchv1.IndexedCompletion)
	}
	return string(batchv1.NonIndexedCompletion)
}

func dispositionLabel(d jobpolicyv1.Disposition) string {
	return strings.ToLower(strings.TrimPrefix(d.String(), "DISPOSITION_"))
}

// statusWritten counts the pods, indexes and Jobs that a status write declares finished.
func (m *jobMetrics) statusWritten(before, after *batchv1.Job) {
	mode := completionModeLabel(after)
	old, now := &before.Status, &after.Status
	succeeded := int64(now.Succeeded) - int64(old.Succeeded)
	if wire.Indexed(after) {
		succeeded = m.indexesFinished(before, after)
	}
	m.podsFinished.WithLabelValues(mode, labelSucceeded).Add(float64(max(0, succeeded)))
	m.podsFinished.WithLabelValues(mode, labelFailed).Add(float64(max(0, int64(now.Failed)-int64(old.Failed))))
	c := wire.FinishedCondition(after)
	if c == nil || wire.FinishedCondition(before) != nil {
		return
	}
	result := labelSucceeded
	if c.Type == batchv1.JobFailed {
		result = labelFailed
	}
	m.jobsFinished.WithLabelValues(mode, result, c.Reason).Inc()
}

// indexesFinished counts the indexes that a status write added, and returns how many of
// them succeeded. Indexes beyond completions do not count: a Job that is scaled down loses
// them, and a counter cannot decrease.
func (m *jobMetrics) indexesFinished(before, after *batchv1.Job) (succeeded int64) {
	limit := "global"
	if after.Spec.BackoffLimitPerIndex != nil {
		limit = "perIndex"
	}
	end := ptr.Deref(after.Spec.Completions, 0)
	old, now := &before.Status, &after.Status
	succeeded = max(0, indexesBelow(end, &now.CompletedIndexes)-indexesBelow(end, &old.CompletedIndexes))
	m.finishedIndexes.WithLabelValues(labelSucceeded, limit).Add(float64(succeeded))
	if failed := indexesBelow(end, now.FailedIndexes) - indexesBelow(end, old.FailedIndexes); failed > 0 {
		m.finishedIndexes.WithLabelValues(labelFailed, limit).Add(float64(failed))
	}
	return succeeded
}

// indexesBelow is how many indexes of a list are below end; 0 if the list is nil.
func indexesBelow(end int32, list *string) (n int64) {
	if list == nil {
		return 0
	}
	set, err := wire.ParseIndexes(*list)
	if err != nil {
		return 0
	}
	for _, r := range set.GetRanges() {
		n += max(0, int64(min(r.GetLast(), end-1))-int64(r.GetFirst())+1)
	}
	return n
}

// creationReason is the "reason" label of job_pods_creation_total.
func creationReason(job *batchv1.Job, create *jobpolicyv1.CreatePods, terminating int32) string {
	failed := create.GetAfterFailures()
	switch {
	case failed && wire.PodReplacementPolicy(job) == batchv1.Failed:
		return createRecreateFailed
	case failed || terminating > 0:
		return createRecreateTerminatingOrFailed
	default:
		return createNew
	}
}
