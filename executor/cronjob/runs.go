package cronjob

import (
	"context"
	"fmt"
	"log/slog"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// deleteJob deletes a Job; its pods follow in the background. A Job that does not
// exist any more counts as deleted.
func (a *applier) deleteJob(ctx context.Context, s *cronState, snap snapshot, del *jobpolicyv1.DeleteJob) (err error) {
	ctx, end := a.base.Span(ctx, telemetry.SpanJobDeleted, telemetry.AttrJobName.String(del.GetName()))
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, api.Timeout)
	defer cancel()
	uid, err := wire.UIDString(del.GetUid())
	if err != nil {
		return fmt.Errorf("delete job %s: %w", del.GetName(), err)
	}
	background := metav1.DeletePropagationBackground
	err = a.base.Client.BatchV1().Jobs(snap.cron.Namespace).Delete(ctx, del.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if err != nil && !a.isGone(ctx, snap.cron.Namespace, del.GetName(), uid, err) {
		a.base.Recorder.Eventf(snap.cron, corev1.EventTypeWarning, "FailedDelete", "Deleted job: %v", err)
		return fmt.Errorf("deleting job %s: %w", del.GetName(), err)
	}
	s.unmadeJob(uid)
	return nil
}

// isGone reports whether a deletion failed because the Job does not exist any more. A
// conflict has two causes: another Job has the name, or an admission webhook refused.
func (a *applier) isGone(ctx context.Context, namespace, name string, uid types.UID, err error) bool {
	if !apierrors.IsConflict(err) {
		return apierrors.IsNotFound(err)
	}
	live, readErr := a.liveJob(ctx, namespace, name)
	return readErr == nil && (live == nil || live.UID != uid)
}

// createJob creates the Job of a run. created is false if another Job has its name, or
// the creation failed and backs off.
func (a *applier) createJob(ctx context.Context, s *cronState, snap snapshot, create *jobpolicyv1.CreateJob) (created bool, err error) {
	ctx, end := a.base.Span(ctx, telemetry.SpanJobCreated, telemetry.AttrJobName.String(create.GetName()))
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, api.Timeout)
	defer cancel()
	s.sends(create.GetName())
	job, err := a.base.Client.BatchV1().Jobs(snap.cron.Namespace).Create(ctx, newJob(snap.cron, create), metav1.CreateOptions{})
	switch {
	case err == nil:
		a.started(ctx, s, snap, create, job)
		return true, nil
	case apierrors.IsAlreadyExists(err):
		return a.existing(ctx, s, snap, create, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, fmt.Errorf("creating job %s: %w", create.GetName(), err)
	}
	a.base.Recorder.Eventf(snap.cron, corev1.EventTypeWarning, "FailedCreate", "Error creating job: %v", err)
	a.creationFailed(ctx, s, err)
	return false, nil
}

// newJob makes a Job from the CronJob's template.
func newJob(cron *batchv1.CronJob, create *jobpolicyv1.CreateJob) *batchv1.Job {
	template := cron.Spec.JobTemplate.DeepCopy()
	annotations := maps.Clone(template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, create.GetAnnotations())
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: create.GetName(), Namespace: cron.Namespace,
			Labels: template.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, cronJobKind)},
		},
		Spec: template.Spec,
	}
}

func (a *applier) started(ctx context.Context, s *cronState, snap snapshot, create *jobpolicyv1.CreateJob, job *batchv1.Job) {
	s.madeJob(job)
	s.mu.Lock()
	s.creation.Reset()
	s.nameTaken = ""
	s.mu.Unlock()
	if at := create.GetScheduledTime(); at != nil {
		a.skew.Observe(job.CreationTimestamp.Sub(at.AsTime()).Seconds())
	}
	a.base.Logger.InfoContext(ctx, "run started", slog.String("namespace", snap.cron.Namespace), slog.String("cronJob", snap.cron.Name), slog.String("job", job.Name))
}

// existing finds out whose Job has the name of a run that could not be created. If it is
// the CronJob's own, the run has started: the Job was created before a restart, or by the
// built-in controller. If no Job has the name, the same refusal may follow at once, so
// creation backs off.
func (a *applier) existing(ctx context.Context, s *cronState, snap snapshot, create *jobpolicyv1.CreateJob, cause error) (started bool, err error) {
	inUse, err := a.nameInUse(ctx, s, snap, create)
	if err != nil {
		return false, err
	}
	if !inUse {
		a.creationFailed(ctx, s, cause)
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.made {
		started = started || m.job.Name == create.GetName()
	}
	return started, nil
}

// nameInUse asks the API server whether a Job has the name of a run, and remembers
// whose it is.
func (a *applier) nameInUse(ctx context.Context, s *cronState, snap snapshot, create *jobpolicyv1.CreateJob) (bool, error) {
	job, err := a.liveJob(ctx, snap.cron.Namespace, create.GetName())
	if err != nil || job == nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if controllingUID(job) != s.uid {
		s.nameTaken = create.GetName()
		return true, nil
	}
	s.keepMade(job)
	return true, nil
}

// creationFailed starts the backoff of creation.
func (a *applier) creationFailed(ctx context.Context, s *cronState, cause error) {
	s.mu.Lock()
	delay := s.creation.Failed(a.base.BackoffLimits())
	s.mu.Unlock()
	a.base.Logger.WarnContext(ctx, "job of a run not created", slog.String("namespace", s.namespace), slog.String("cronJob", s.name),
		slog.Duration("retryAfter", delay), slog.Any("error", cause))
}
