package api

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
)

// Job reads a Job by its UID. ErrGone: there is no Job of that name, or it has another UID
// (invariant I8).
func (c *Client) Job(ctx context.Context, namespace, name string, uid types.UID) (*batchv1.Job, error) {
	job, err := c.JobOfName(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if job.UID != uid {
		return nil, ErrGone
	}
	return job, nil
}

// JobOfName reads the Job that has a name, whatever its UID. ErrGone: there is none, or the name is
// one that no object can have. Such a name may come from an owner reference, of which the API server
// checks only that the name is not empty; the client would send no request.
func (c *Client) JobOfName(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	if len(content.IsPathSegmentName(name)) > 0 {
		return nil, ErrGone
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	job, err := c.Kubernetes.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("reading job %s: %w", name, err)
	}
	job.ManagedFields = nil
	return job, nil
}

// CreateJob creates the Job of a CronJob's run, and returns it as the API server has it. Errors are
// those of the API server, such as AlreadyExists, and AlteredError: the Job does not belong to the
// CronJob, and is to be deleted.
func (c *Client) CreateJob(ctx context.Context, cron Subject, job *batchv1.Job) (created *batchv1.Job, err error) {
	defer func() { c.written(cron, writes.CreateRun, job.Name, "", err) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	created, err = c.Kubernetes.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{})
	if err == nil {
		err = alteredOwner("Job", job, created).orNil()
	}
	return created, err
}

// UpdateStatus writes the Job's status, and the annotation wire.LastValidPolicy that belongs to it, and returns the Job as
// it is then. The API server refuses the write if the Job has changed since the given version. If no answer comes,
// UpdateStatus reads the Job: if that has both, the write has succeeded. ErrGone: the Job
// does not exist any more. After an error for which OutcomeUnknown is true, the write may still
// take effect.
func (c *Client) UpdateStatus(ctx context.Context, refusals *writes.Refusals, job *batchv1.Job) (updated *batchv1.Job, err error) {
	defer func() { c.versionWritten(Subject{job, refusals}, writes.UpdateStatus, job, err) }()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	updated, err = c.Kubernetes.BatchV1().Jobs(job.Namespace).UpdateStatus(limited, job, metav1.UpdateOptions{})
	switch {
	case err == nil:
		updated.ManagedFields = nil
		return updated, nil
	case apierrors.IsNotFound(err):
		return nil, ErrGone
	case !OutcomeUnknown(err):
		return nil, err
	}
	live, readErr := c.Job(ctx, job.Namespace, job.Name, job.UID)
	if readErr != nil || !wire.SameStatus(&live.Status, &job.Status) ||
		live.Annotations[wire.LastValidPolicy] != job.Annotations[wire.LastValidPolicy] {
		return nil, err
	}
	return live, nil
}

// versionWritten is written for a write that requires the version of the Job that was seen. A conflict
// is no refusal if the Job has changed. If it has not, the next write is of the same version.
func (c *Client) versionWritten(s Subject, k writes.Kind, job *batchv1.Job, err error) {
	if !apierrors.IsConflict(err) {
		c.written(s, k, "", "", err)
		return
	}
	s.Refusals.Keep(k, func(version string) bool { return version == job.ResourceVersion })
	c.written(s, k, "", job.ResourceVersion, err)
}

// DeleteJob deletes the Job of a CronJob's run that has the UID. Its pods follow in the background.
// ErrGone: it does not exist any more.
func (c *Client) DeleteJob(ctx context.Context, cron Subject, namespace, name string, uid types.UID) (err error) {
	defer func() { c.written(cron, writes.DeleteRun, name, string(uid), err) }()
	background := metav1.DeletePropagationBackground
	err = c.deleteJob(ctx, namespace, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if !apierrors.IsConflict(err) {
		return err
	}
	// Another Job has the name, or an admission webhook refused.
	if _, readErr := c.Job(ctx, namespace, name, uid); errors.Is(readErr, ErrGone) {
		return ErrGone
	}
	return err
}

// DeleteJobVersion deletes a version of a Job, its pods first. It fails if the Job has
// changed since. ErrGone: the Job does not exist any more.
func (c *Client) DeleteJobVersion(ctx context.Context, refusals *writes.Refusals, job *batchv1.Job) (err error) {
	defer func() { c.versionWritten(Subject{job, refusals}, writes.DeleteJob, job, err) }()
	foreground := metav1.DeletePropagationForeground
	return c.deleteJob(ctx, job.Namespace, job.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
		PropagationPolicy: &foreground,
	})
}

func (c *Client) deleteJob(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.Kubernetes.BatchV1().Jobs(namespace).Delete(ctx, name, options)
	if apierrors.IsNotFound(err) {
		return ErrGone
	}
	return err
}
