package cronjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/newerfields"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// deleteJob deletes a Job; its pods follow in the background. A Job that does not
// exist any more counts as deleted.
func (a *applier) deleteJob(ctx context.Context, s *cronState, snap snapshot, del *jobpolicyv1.DeleteJob) (err error) {
	ctx, end := a.base.Span(ctx, telemetry.SpanJobDeleted, telemetry.AttrJobName.String(del.GetName()))
	defer func() { end(err) }()
	uid, err := wire.UIDString(del.GetUid())
	if err != nil {
		return fmt.Errorf("delete job %s: %w", del.GetName(), err)
	}
	err = a.api.DeleteJob(ctx, s.subject(snap), s.namespace, del.GetName(), uid)
	if err != nil && !errors.Is(err, api.ErrGone) {
		a.base.Recorder.Eventf(snap.cron, corev1.EventTypeWarning, "FailedDelete", "Deleted job: %v", err)
		return fmt.Errorf("deleting job %s: %w", del.GetName(), err)
	}
	s.runs.deleted(uid)
	return nil
}

// createJob creates the Job of a run. errStartedBefore: the CronJob has this run already.
// errNameInUse: a Job of somebody else has its name. errNotCreated: the creation failed, and
// backs off.
func (a *applier) createJob(ctx context.Context, s *cronState, snap snapshot, create *jobpolicyv1.CreateJob) (err error) {
	ctx, end := a.base.Span(ctx, telemetry.SpanJobCreated, telemetry.AttrJobName.String(create.GetName()))
	defer func() { end(err) }()
	again := s.runs.beginCreation(create.GetName())
	job, err := a.api.CreateJob(ctx, s.subject(snap), newJob(snap.cron, create))
	switch {
	case err == nil:
		a.started(ctx, s, create, job) // From here on it counts as active, and then not as pending any more.
		s.runs.resolved(create.GetName())
		return nil
	case errors.As(err, new(*api.AlteredError)): // The name is free again, or another try finds whose it is.
		s.runs.resolved(create.GetName())
		err = a.removeAltered(ctx, s, snap, job, err)
	case apierrors.IsAlreadyExists(err):
		err = a.existing(ctx, s, create, err)
		if again && errors.Is(err, errStartedBefore) {
			err = nil // An earlier creation took effect, and got no answer.
		}
		return err
	case api.OutcomeUnknown(err):
		s.runs.creationUnanswered()
	case !again:
		s.runs.resolved(create.GetName()) // Refused, and no earlier creation can have taken effect.
	case a.refusedAgain(ctx, s, snap, create.GetName()):
		s.started()
		return nil
	}
	if api.NamespaceTerminating(err) {
		return fmt.Errorf("creating job %s: %w", create.GetName(), err)
	}
	a.base.Recorder.Eventf(snap.cron, corev1.EventTypeWarning, "FailedCreate", "Error creating job: %v", err)
	return a.creationFailed(ctx, s, create, err)
}

// refusedAgain: a creation was refused, and an earlier one of the same run was not answered. Of a CronJob with a group, that one
// counts as active as long as it is in doubt. found: it took effect.
func (a *applier) refusedAgain(ctx context.Context, s *cronState, snap snapshot, name string) (found bool) {
	if snap.group.name == "" {
		return false
	}
	job, err := a.jobOfName(ctx, s, name)
	return err == nil && job != nil && controllingUID(job) == s.uid
}

// removeAltered deletes a new Job that admission has taken from the CronJob: it would count for no
// policy, and nobody would ever delete it. It returns the error that says so.
func (a *applier) removeAltered(ctx context.Context, s *cronState, snap snapshot, job *batchv1.Job, altered error) error {
	a.altered.WithLabelValues("Job", "ownerReferences").Inc()
	s.runs.deleted(job.UID)
	if err := a.api.DeleteJob(ctx, s.subject(snap), s.namespace, job.Name, job.UID); err != nil && !errors.Is(err, api.ErrGone) {
		return fmt.Errorf("%w; deleting it: %w", altered, err)
	}
	return altered
}

// subject is the CronJob, for which its Jobs are written.
func (s *cronState) subject(snap snapshot) api.Subject {
	return api.Subject{Object: snap.cron, Refusals: &s.refusals}
}

// newJob makes a Job from the CronJob's template, with its fields of package newerfields.
func newJob(cron *batchv1.CronJob, create *jobpolicyv1.CreateJob) *batchv1.Job {
	template := cron.Spec.JobTemplate.DeepCopy()
	annotations := map[string]string{}
	maps.Copy(annotations, template.Annotations)
	maps.Copy(annotations, wire.RunAnnotations(create))
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: create.GetName(), Namespace: cron.Namespace,
			Labels: template.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, wire.CronJobKind)},
		},
		Spec: template.Spec,
	}
	newerfields.Job(job, cron)
	return job
}

func (a *applier) started(ctx context.Context, s *cronState, create *jobpolicyv1.CreateJob, job *batchv1.Job) {
	s.runs.add(job)
	s.started()
	if at := create.GetScheduledTime(); at != nil {
		a.skew.Observe(job.CreationTimestamp.Sub(at.AsTime()).Seconds())
	}
	a.base.Logger.InfoContext(ctx, "run started", slog.String("namespace", s.namespace), slog.String("cronJob", s.name), slog.String("job", job.Name))
}

// existing finds out whose Job has the name of a run that could not be created. If it is
// the CronJob's own, the run was started before: errStartedBefore. If no Job has the name, the
// same refusal may follow at once, so creation backs off.
func (a *applier) existing(ctx context.Context, s *cronState, create *jobpolicyv1.CreateJob, cause error) error {
	job, err := a.jobOfName(ctx, s, create.GetName())
	switch {
	case err != nil:
		return err
	case job == nil:
		return a.creationFailed(ctx, s, create, cause)
	case controllingUID(job) != s.uid:
		return errNameInUse
	}
	return errStartedBefore
}

// findUnanswered looks for the run before this one if its creation was not answered. The
// concurrency policy depends on it, and the watch may show it much later. If the name is in
// use, another decision is needed: api.ErrChanged.
func (a *applier) findUnanswered(ctx context.Context, s *cronState, next string) error {
	name := s.runs.unresolved(next)
	if name == "" {
		return nil
	}
	job, err := a.jobOfName(ctx, s, name)
	if err == nil && job != nil {
		err = api.ErrChanged
	}
	return err
}

// jobOfName asks the API server which Job has the name of a run, and remembers whose it is.
// nil: there is none.
func (a *applier) jobOfName(ctx context.Context, s *cronState, name string) (*batchv1.Job, error) {
	job, err := a.api.JobOfName(ctx, s.namespace, name)
	if err != nil && !errors.Is(err, api.ErrGone) {
		return nil, err
	}
	switch {
	case job == nil:
	case controllingUID(job) == s.uid:
		s.runs.add(job)
	default:
		s.taken(name)
	}
	s.runs.resolved(name)
	return job, nil
}

// findLost looks for a run whose creation was not answered, and that is not to be created again: it counts as
// active in its group. If there was such a run, another decision is needed: api.ErrChanged.
func (a *applier) findLost(ctx context.Context, s *cronState) error {
	name := s.runs.unresolved("")
	if name == "" || s.backsOff() > 0 {
		return nil
	}
	if _, err := a.jobOfName(ctx, s, name); err != nil {
		return err
	}
	return api.ErrChanged
}

// creationFailed starts the backoff of creation, and returns errNotCreated.
func (a *applier) creationFailed(ctx context.Context, s *cronState, create *jobpolicyv1.CreateJob, cause error) error {
	delay := s.failed(create, a.base.BackoffLimits())
	a.base.Logger.WarnContext(ctx, "run not started", slog.String("namespace", s.namespace), slog.String("cronJob", s.name),
		slog.String("job", create.GetName()), slog.Duration("retryAfter", delay), slog.Any("error", cause))
	return fmt.Errorf("%w: %w", errNotCreated, cause)
}
