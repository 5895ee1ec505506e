package executor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// reporter reports what was done in metrics, in the log and as events.
type reporter struct {
	base    *controller.Controller
	metrics *jobMetrics
}

// noAction is the action of a reconcile that does not count as a sync: the Job is gone or is
// left alone, or what is known of it is too old to act on.
const noAction = ""

// syncAction is the label "action" of a reconcile that ended with a decision: what the decision
// does with active pods, by the names of the built-in controller (upstream syncJob and manageJob,
// v1.37). As there, a suspended Job counts as one whose pods are deleted, even if it has none. A
// decision that only waits to create or delete pods is "tracking"; upstream counts it as the step
// that waits.
func syncAction(req *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) string {
	switch spec := req.GetSpec(); {
	case spec.GetDeleting() || endsBeforePods(d.GetVerdict()):
		return actionReconciling
	case len(d.GetDelete())+len(d.GetEnd()) > 0:
		return actionDeleted
	case d.GetCreate() != nil:
		return actionCreated
	case req.GetInFlight().GetCreates() > 0:
		return actionReconciling
	case spec.GetSuspend():
		return actionDeleted
	default:
		return actionTracking
	}
}

// endsBeforePods reports whether a Job ends by a rule that the built-in controller checks before
// it creates or deletes pods. It checks only the completions after that.
func endsBeforePods(v *jobpolicyv1.Verdict) bool {
	return v != nil && v.GetRule() != jobpolicyv1.Rule_RULE_COMPLETIONS_REACHED
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
	telemetry.Observe(ctx, r.metrics.syncDuration.WithLabelValues(completionModeLabel(job), result, action), took.Seconds())
	r.metrics.syncs.WithLabelValues(completionModeLabel(job), result, action).Inc()
}

// skipped counts a reconcile that was given up before a decision was applied, because the
// Job or its pods must be read from the API server first.
func (r *reporter) skipped(s *tracker.Job) {
	if s.Has(tracker.StaleJob) {
		r.metrics.staleSkips.WithLabelValues(batchv1.GroupName, "jobs").Inc()
	}
	if s.Has(tracker.StalePods) {
		r.metrics.staleSkips.WithLabelValues(corev1.GroupName, "pods").Inc()
	}
}

// remember records a decision for EachJob.
func (r *reporter) remember(ctx context.Context, s *tracker.Job, snap snapshot, d *jobpolicyv1.DecideJobResponse) {
	explanation, err := proto.Marshal(d.GetExplanation())
	if err != nil {
		r.base.Logger.ErrorContext(ctx, "explanation not kept: it cannot be encoded", slog.Any("error", err))
		return
	}
	s.Decided(snap.req.GetNow().AsTime(), d.GetVerdict(), explanation)
}

// statusWritten counts and logs a status write.
func (r *reporter) statusWritten(ctx context.Context, w *tracker.StatusWrite) {
	after := *w.Job
	after.Status = w.Status
	job := &after
	r.metrics.statusWritten(w.Job, job)
	r.failed(ctx, job, w.End)
	if c := wire.FinishedCondition(job); c != nil {
		r.base.Logger.InfoContext(ctx, "job finished", append(telemetry.JobAttrs(job), slog.String("result", string(c.Type)), slog.String("reason", c.Reason))...)
	}
}

// failed counts and logs how a Job failed; nil: it has not, or that was announced before.
func (r *reporter) failed(ctx context.Context, job *batchv1.Job, end *jobpolicyv1.JobEnd) {
	if end == nil {
		return
	}
	end = proto.CloneOf(end)
	end.Failures = nil // What pods said at their end may be secret.
	class := jobend.ClassName(end.GetClass())
	r.metrics.failures.WithLabelValues(class, end.GetRule().Name()).Inc()
	r.base.Logger.InfoContext(ctx, "job fails", append(telemetry.JobAttrs(job), slog.String("class", class), slog.String("end", jobend.Message(end)))...)
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
func (r *reporter) resolve(ctx context.Context, s *tracker.Job) {
	if job := s.LastVersion(); job != nil {
		r.resolveBy(ctx, s, job)
	}
}

// resolveBy is resolve for a given version of the Job.
func (r *reporter) resolveBy(ctx context.Context, s *tracker.Job, job *batchv1.Job) {
	w := s.Resolve(job)
	if w == nil {
		return
	}
	r.statusWritten(ctx, w)
	r.actions(w.Actions)
	r.base.RecordEvents(w.Job, w.Events)
}
