package executor

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/limit"
	"jobpolicy.dev/executor/metrics"
	"jobpolicy.dev/executor/state"
)

const (
	// maxInProgress bounds how many Jobs are reconciled at once, most of which wait for
	// the API server. How many are decided on at once is Config.Workers.
	maxInProgress = 256
	// maxLowWait is how long a Job of low priority waits for a busy API server.
	maxLowWait = 10 * time.Second
	// maxRequeueAfter bounds how far ahead a reconcile is planned. The queue keeps a
	// planned one until its time, although its Job may be gone long before.
	maxRequeueAfter = time.Hour
)

// jobQueue holds the Jobs that are due. Only Jobs that are reconciled get into it.
type jobQueue struct {
	*controller.Queue[types.UID]
	scope state.Scope
}

func newJobQueue(base *controller.Controller, cfg *Config, jobs *state.Jobs, scope state.Scope, writes *limit.Pool, reconcile reconcileFunc) jobQueue {
	q := jobQueue{scope: scope}
	q.Queue = controller.NewQueue(base, controller.Options[types.UID]{
		Name: metrics.JobQueue, Reconcile: reconcile, Describe: describe(jobs),
		Workers: maxInProgress, Namespace: jobs.Namespace,
		MinInterval: cfg.SyncBatchPeriod, EventsWait: true, MaxRequeueAfter: maxRequeueAfter,
		Low: controller.LowPriority{
			// The API server is busy: writes wait for a slot, or as many Jobs are reconciled as
			// one Job may have writes in flight.
			Busy:   func() bool { return writes.Waiting() > 0 || q.InProgress() > cfg.Writes.PerJob },
			Period: cfg.StatusPeriod, Max: maxLowWait,
		},
	})
	return q
}

// enqueue makes a Job due, if it is reconciled at all.
func (q jobQueue) enqueue(s *state.Job, cause controller.Cause, priority controller.Priority) {
	q.enqueueAfter(s, cause, priority, 0)
}

func (q jobQueue) enqueueAfter(s *state.Job, cause controller.Cause, priority controller.Priority, delay time.Duration) {
	if q.scope.Reconciles(s.Version.Current()) {
		q.EnqueueAfter(s.UID, cause, priority, delay)
	}
}

// priorityIf is PriorityHigh if high is true.
func priorityIf(high bool) controller.Priority {
	if high {
		return controller.PriorityHigh
	}
	return controller.PriorityNormal
}

// Why a Job is due.
const (
	causePod controller.Cause = "pod.event"
	causeJob controller.Cause = "job.event"
	// causeSafety: nothing else made the Job due, though it ought to.
	causeSafety controller.Cause = "safety.look"
)
