package cronjobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// errChanged: the CronJob is not the one that was judged any more.
var errChanged = errors.New("cron job has changed since it was judged")

// apply carries a decision out in the contract's order, and stops at the first
// step that does not succeed. again: the next round is due at once.
func (c *Controller) apply(ctx context.Context, s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) (again bool, err error) {
	if d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
		c.recordEvents(snap.cron, d.GetEvents())
		s.recorded(snap.jobs)
		return false, nil
	}
	if d.GetCreate() != nil {
		// What is started cannot be taken back: look past every cache whether this
		// still is the CronJob that was judged.
		if err := c.confirm(ctx, s, snap); err != nil {
			return errors.Is(err, errChanged), ignore(err, errChanged)
		}
	}
	if d.GetCreate() != nil && len(d.GetDelete()) > 0 {
		// Nothing is deleted to make room for a run that cannot start.
		if used, err := c.nameInUse(ctx, s, snap, d.GetCreate()); err != nil || used {
			return used, err
		}
	}
	for _, del := range d.GetDelete() {
		if err := c.deleteJob(ctx, s, snap, del); err != nil {
			return false, err
		}
	}
	events := d.GetEvents()
	if d.GetCreate() != nil {
		created, err := c.createJob(ctx, s, snap, d.GetCreate())
		if err != nil || !created {
			return !created && err == nil, err
		}
		// Told now: whatever becomes of the writes that follow, no other decision
		// tells about this run again.
		c.recordEvents(snap.cron, events)
		events = nil
	}
	if err := c.edit(ctx, s, snap, d.GetEdits()); err != nil {
		return errors.Is(err, errChanged), ignore(err, errChanged)
	}
	written, err := c.writeStatus(ctx, s, snap, d.GetStatus())
	if err != nil {
		return errors.Is(err, errChanged), ignore(err, errChanged)
	}
	if d.GetCreate() == nil {
		s.recorded(snap.jobs)
	}
	c.recordEvents(snap.cron, events)
	// What else is due follows in the next decisions. A status that is the same in
	// the API's words would be decided on again for ever (invariant I11).
	return written || d.GetStatus() == nil || d.GetEdits() != nil, nil
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

func (c *Controller) confirm(ctx context.Context, s *cronState, snap snapshot) error {
	live, err := c.liveCron(ctx, s)
	if err != nil {
		return err
	}
	if live.ResourceVersion != snap.cron.ResourceVersion {
		return errChanged
	}
	return nil
}

// deleteJob deletes one Job, its pods in the background. One that is gone is as
// good as deleted.
func (c *Controller) deleteJob(ctx context.Context, s *cronState, snap snapshot, del *jobpolicyv1.DeleteJob) (err error) {
	ctx, end := c.span(ctx, SpanJobDeleted, AttrJobName.String(del.GetName()))
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	uid, err := tracker.UIDString(del.GetUid())
	if err != nil {
		return fmt.Errorf("delete job %s: %w", del.GetName(), err)
	}
	background := metav1.DeletePropagationBackground
	err = c.cfg.Client.BatchV1().Jobs(snap.cron.Namespace).Delete(ctx, del.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if err != nil && !c.isGone(ctx, snap.cron.Namespace, del.GetName(), uid, err) {
		c.recorder.Eventf(snap.cron, corev1.EventTypeWarning, "FailedDelete", "Deleted job: %v", err)
		return fmt.Errorf("deleting job %s: %w", del.GetName(), err)
	}
	s.unmadeJob(uid)
	return nil
}

// isGone reports whether a deletion failed because the Job is not there any more. A
// conflict may say that another Job has the name, or come from an admission webhook.
func (c *Controller) isGone(ctx context.Context, namespace, name string, uid types.UID, err error) bool {
	if !apierrors.IsConflict(err) {
		return apierrors.IsNotFound(err)
	}
	live, readErr := c.liveJob(ctx, namespace, name)
	return readErr == nil && (live == nil || live.UID != uid)
}

// createJob makes the Job of a run. created is false when somebody else's Job has
// its name, or creation is held back from now on.
func (c *Controller) createJob(ctx context.Context, s *cronState, snap snapshot, create *jobpolicyv1.CreateJob) (created bool, err error) {
	ctx, end := c.span(ctx, SpanJobCreated, AttrJobName.String(create.GetName()))
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	job, err := c.cfg.Client.BatchV1().Jobs(snap.cron.Namespace).Create(ctx, newJob(snap.cron, create), metav1.CreateOptions{})
	switch {
	case err == nil:
		c.started(ctx, s, snap, create, job)
		return true, nil
	case apierrors.IsAlreadyExists(err):
		return c.existing(ctx, s, snap, create, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, fmt.Errorf("%w: %w", errNamespaceTerminating, err)
	}
	c.recorder.Eventf(snap.cron, corev1.EventTypeWarning, "FailedCreate", "Error creating job: %v", err)
	c.holdCreation(ctx, s, err)
	return false, nil
}

// newJob makes a Job of the CronJob's template.
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

func (c *Controller) started(ctx context.Context, s *cronState, snap snapshot, create *jobpolicyv1.CreateJob, job *batchv1.Job) {
	s.madeJob(job)
	s.mu.Lock()
	s.createFailures, s.createNotBefore, s.nameTaken = 0, time.Time{}, ""
	s.mu.Unlock()
	if at := create.GetScheduledTime(); at != nil {
		c.metrics.skew.Observe(job.CreationTimestamp.Sub(at.AsTime()).Seconds())
	}
	c.log.InfoContext(ctx, "run started", slog.String("namespace", snap.cron.Namespace), slog.String("cronJob", snap.cron.Name), slog.String("job", job.Name))
}

// existing works out whose Job has the name of a run that could not be created.
// The CronJob's own was made before a restart, or by the built-in controller: the
// run is started. If no Job has it, cause is an answer that may come again at once:
// the next try waits.
func (c *Controller) existing(ctx context.Context, s *cronState, snap snapshot, create *jobpolicyv1.CreateJob, cause error) (started bool, err error) {
	inUse, err := c.nameInUse(ctx, s, snap, create)
	if err != nil {
		return false, err
	}
	if !inUse {
		c.holdCreation(ctx, s, cause)
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.made {
		started = started || m.job.Name == create.GetName()
	}
	return started, nil
}

// nameInUse looks past every cache for a Job of a run's name, and takes in whose
// it is.
func (c *Controller) nameInUse(ctx context.Context, s *cronState, snap snapshot, create *jobpolicyv1.CreateJob) (bool, error) {
	job, err := c.liveJob(ctx, snap.cron.Namespace, create.GetName())
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

// holdCreation holds creation back, longer each time in a row.
func (c *Controller) holdCreation(ctx context.Context, s *cronState, cause error) {
	s.mu.Lock()
	delay := min(c.cfg.APIBackoff<<min(s.createFailures, 20), c.cfg.MaxAPIBackoff)
	s.createFailures++
	s.createNotBefore = time.Now().Add(delay)
	s.mu.Unlock()
	c.log.WarnContext(ctx, "job of a run not created", slog.String("namespace", s.namespace), slog.String("cronJob", s.name),
		slog.Duration("retryAfter", delay), slog.Any("error", cause))
}

// edit changes the CronJob's own metadata and spec, of the version that was
// judged.
func (c *Controller) edit(ctx context.Context, s *cronState, snap snapshot, edits *jobpolicyv1.CronJobEdits) (err error) {
	if edits == nil {
		return nil
	}
	ctx, end := c.span(ctx, SpanCronJobEdited)
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	patch, err := c.editPatch(snap.cron, edits)
	if err != nil {
		return err
	}
	updated, err := c.cfg.Client.BatchV1().CronJobs(snap.cron.Namespace).Patch(ctx, snap.cron.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return c.writeFailed(ctx, s, snap.cron.ResourceVersion, err)
	}
	updated.ManagedFields = nil
	s.observe(updated)
	return nil
}

// editPatch is a merge patch with the judged version as its precondition.
func (c *Controller) editPatch(cron *batchv1.CronJob, edits *jobpolicyv1.CronJobEdits) ([]byte, error) {
	annotations := map[string]any{}
	metadata := map[string]any{"uid": cron.UID, "resourceVersion": cron.ResourceVersion, "annotations": annotations}
	patch := map[string]any{"metadata": metadata}
	if edits.GetSuspend() && c.handedOver(cron) {
		annotations[AnnotationSuspend] = "true"
	}
	if edits.GetSuspend() && !c.handedOver(cron) {
		patch["spec"] = map[string]any{"suspend": true}
	}
	if edits.GetClearRunNow() {
		annotations[annotationRunNow] = nil
	}
	if text := edits.GetObservedSchedule(); text != "" {
		annotations[annotationObserved] = text
	}
	if text := edits.GetFailuresCountedUntil(); text != "" {
		annotations[annotationCountedUntil] = text
	}
	return json.Marshal(patch)
}

// writeStatus replaces the status of the very version that was judged. written:
// that made a new version of the CronJob.
func (c *Controller) writeStatus(ctx context.Context, s *cronState, snap snapshot, m *jobpolicyv1.CronJobStatus) (written bool, err error) {
	if m == nil {
		return false, nil
	}
	status, err := snap.apiStatus(m)
	if err != nil {
		return false, err
	}
	if apiequality.Semantic.DeepEqual(status, &snap.cron.Status) {
		return false, nil
	}
	ctx, end := c.span(ctx, SpanStatusWritten)
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	cron := snap.cron.DeepCopy()
	cron.Status = *status
	if current := s.current(); current != nil {
		cron.ResourceVersion = current.ResourceVersion // an edit of this round has made it newer
	}
	updated, err := c.cfg.Client.BatchV1().CronJobs(cron.Namespace).UpdateStatus(ctx, cron, metav1.UpdateOptions{})
	if err != nil {
		return false, c.writeFailed(ctx, s, cron.ResourceVersion, err)
	}
	updated.ManagedFields = nil
	return s.observe(updated), nil
}

// writeFailed brings the view up to date after a write to a version that was
// refused because of a newer one. If there is none, the same answer may come again
// at once, from an admission webhook for example: it is an error like others.
func (c *Controller) writeFailed(ctx context.Context, s *cronState, version string, err error) error {
	if apierrors.IsNotFound(err) {
		return errGone
	}
	if !apierrors.IsConflict(err) {
		return err
	}
	live, readErr := c.liveCron(ctx, s)
	if readErr != nil {
		return readErr
	}
	if live.ResourceVersion == version {
		return err
	}
	return errChanged
}

func (c *Controller) recordEvents(cron *batchv1.CronJob, events []*jobpolicyv1.JobEvent) {
	for _, ev := range events {
		kind := corev1.EventTypeNormal
		if ev.GetType() == jobpolicyv1.EventType_EVENT_TYPE_WARNING {
			kind = corev1.EventTypeWarning
		}
		c.recorder.Event(cron, kind, ev.GetReason(), ev.GetMessage())
	}
}
