package executor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/metrics"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// reporter reports what was done in metrics, in the log and as events.
type reporter struct {
	base    *controller.Controller
	metrics *jobMetrics
}

// reconciled counts a reconcile. A namespace that is being deleted is not counted as an
// error.
func (r *reporter) reconciled(ctx context.Context, job *batchv1.Job, action string, err error, took time.Duration) {
	if action == noAction {
		return
	}
	result := resultSuccess
	if err != nil && !errors.Is(err, api.ErrNamespaceTerminating) {
		result = resultError
	}
	metrics.Observe(ctx, r.metrics.syncDuration.WithLabelValues(completionModeLabel(job), result, action), took.Seconds())
	r.metrics.syncs.WithLabelValues(completionModeLabel(job), result, action).Inc()
}

// waited counts a decision to wait. The labels name the kind of object whose view is too old.
func (r *reporter) waited(d *jobpolicyv1.DecideJobResponse) {
	group, resource := "", "pods"
	if slices.Contains(d.GetRequirements(), jobpolicyv1.Requirement_REQUIREMENT_CURRENT_JOB) {
		group, resource = batchv1.GroupName, "jobs"
	}
	r.metrics.staleSkips.WithLabelValues(group, resource).Inc()
}

// remember records a decision for EachJob.
func (r *reporter) remember(ctx context.Context, s *state.Job, snap snapshot, d *jobpolicyv1.DecideJobResponse) {
	explanation, err := proto.Marshal(d.GetExplanation())
	if err != nil {
		r.base.Logger.ErrorContext(ctx, "explanation not kept: it cannot be encoded", slog.Any("error", err))
		return
	}
	s.Decisions.Record(snap.req.GetNow().AsTime(), d.GetVerdict(), explanation)
}

// statusWritten counts and logs a status write.
func (r *reporter) statusWritten(ctx context.Context, w *state.StatusWrite) {
	after := *w.Job
	after.Status = w.Status
	job := &after
	r.metrics.statusWritten(w.Job, job)
	if c := wire.FinishedCondition(job); c != nil {
		r.base.Logger.InfoContext(ctx, "job finished", append(telemetry.JobAttrs(job), slog.String("result", string(c.Type)), slog.String("reason", c.Reason))...)
	}
}

// actions counts the actions of pod failure policies.
func (r *reporter) actions(actions []*jobpolicyv1.PodFailureActionCount) {
	for _, a := range actions {
		r.metrics.failurePolicy.WithLabelValues(wire.ActionName(a.GetAction())).Add(float64(a.GetCount()))
	}
}

// creation counts an attempt to create a pod. An attempt in a namespace that is being
// deleted does not count: its failure says nothing about the Job.
func (r *reporter) creation(reason string, err error) {
	if errors.Is(err, api.ErrNamespaceTerminating) {
		return
	}
	result := labelSucceeded
	if err != nil {
		result = labelFailed
	}
	if altered, ok := errors.AsType[*api.AlteredError](err); ok {
		r.metrics.altered.WithLabelValues(altered.Kind, altered.Field).Inc()
	}
	r.metrics.creations.WithLabelValues(reason, result).Inc()
}

// resolve announces a status write without an answer if the newest version of the Job
// shows that the write took effect. As long as the Job has not changed, the write may
// still take effect.
func (r *reporter) resolve(ctx context.Context, s *state.Job) {
	if job := s.Version.Last(); job != nil {
		r.resolveBy(ctx, s, job)
	}
}

// resolveBy is resolve for a given version of the Job.
func (r *reporter) resolveBy(ctx context.Context, s *state.Job, job *batchv1.Job) {
	w := s.Unanswered.Resolve(job)
	if w == nil {
		return
	}
	r.statusWritten(ctx, w)
	r.actions(w.Actions)
	r.base.RecordEvents(w.Job, w.Events)
}
