package executor

import (
	"context"
	"log/slog"
	"time"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
)

const (
	// maxInProgress bounds how many Jobs are reconciled at once. Most of them wait for the
	// API server. Config.Workers bounds how many are read and decided on.
	maxInProgress = 256
	// maxLowWait is how long a Job of low priority waits for a busy API server.
	maxLowWait = 10 * time.Second
	// maxRequeueAfter bounds how far ahead a reconcile is planned. The queue keeps an entry
	// until its time, even if the Job is gone long before.
	maxRequeueAfter = time.Hour
)

// jobQueue holds the Jobs that are due. It takes only Jobs that controller.Scope.Reconciles.
type jobQueue struct {
	*controller.Queue[tracker.Key]
	scope controller.Scope
}

// A reconcileFunc reconciles a Job.
type reconcileFunc = func(ctx context.Context, key tracker.Key) (controller.Result, error)

func newJobQueue(base *controller.Controller, cfg *Config, jobs *tracker.Jobs, scope controller.Scope, writes *limit.Pool, reconcile reconcileFunc) jobQueue {
	q := jobQueue{scope: scope}
	q.Queue = controller.NewQueue(base, controller.Options[tracker.Key]{
		Name: telemetry.JobQueue, Reconcile: reconcile, Describe: describe(jobs), Quiet: api.NamespaceTerminating,
		MaxInProgress: maxInProgress, Namespace: func(key tracker.Key) string { return key.Namespace },
		MinInterval: cfg.SyncBatchPeriod, EventsWait: true, MaxRequeueAfter: maxRequeueAfter,
		Low: controller.LowPriority{
			// The API server is taken for busy if writes wait for a slot, or if more Jobs are
			// being reconciled than one Job may have writes in flight.
			Busy:   func() bool { return writes.Waiting() > 0 || q.InProgress() > cfg.Writes.PerJob },
			Period: cfg.StatusPeriod, Max: maxLowWait,
		},
	})
	return q
}

// describe names a Job in the log.
func describe(jobs *tracker.Jobs) func(tracker.Key) []slog.Attr {
	return func(key tracker.Key) []slog.Attr {
		attrs := []slog.Attr{slog.String("uid", string(key.UID)), slog.String("namespace", key.Namespace)}
		if s, ok := jobs.Find(key); ok {
			if job := s.Current(); job != nil {
				attrs = append(attrs, slog.String("job", job.Name))
			}
		}
		return attrs
	}
}

// enqueue makes a Job due. It ignores a Job that is gone, has finished or is unmanaged.
func (q jobQueue) enqueue(s *tracker.Job, cause controller.Cause, priority controller.Priority) {
	q.enqueueAfter(s, cause, priority, 0)
}

func (q jobQueue) enqueueAfter(s *tracker.Job, cause controller.Cause, priority controller.Priority, delay time.Duration) {
	if q.scope.Reconciles(s.Current()) {
		q.EnqueueAfter(s.Key, cause, priority, delay)
	}
}

// highIf is PriorityHigh if high is true.
func highIf(high bool) controller.Priority {
	if high {
		return controller.PriorityHigh
	}
	return controller.PriorityNormal
}

// Why a Job is due.
const (
	causePod controller.Cause = "pod.event"
	causeJob controller.Cause = "job.event"
	// causeWorkload: a Workload has changed that the Job waits for or follows.
	causeWorkload controller.Cause = "workload.event"
	// causePolicy: the Job's options may have changed.
	causePolicy controller.Cause = "policy.event"
	// causeNode: the state of a node may have changed on which a pod of the Job is being deleted.
	causeNode controller.Cause = "node.event"
	// causeMissed: an idle Job had something to do, and no event had made it due.
	causeMissed controller.Cause = "missed.reconcile"
)
