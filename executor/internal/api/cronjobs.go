package api

import (
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
)

// CronJob reads a CronJob by its UID. ErrGone: there is no CronJob of that name, or it has
// another UID (invariant I8).
func (c *Client) CronJob(ctx context.Context, namespace, name string, uid types.UID) (*batchv1.CronJob, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cron, err := c.Kubernetes.BatchV1().CronJobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("reading cron job: %w", err)
	}
	if cron.UID != uid {
		return nil, ErrGone
	}
	cron.ManagedFields = nil
	return cron, nil
}

// A CronJobEdit changes metadata and spec of a CronJob.
type CronJobEdit struct {
	// Annotations are set; nil removes an annotation.
	Annotations map[string]*string
	// Suspend sets spec.suspend to true.
	Suspend bool
}

// EditCronJob edits a CronJob if it still has the given version, and returns its new
// version. ErrGone: it does not exist any more. ErrChanged: it has another version, which
// EditCronJob returns.
//
// If no answer comes, EditCronJob reads the CronJob. If that shows the edit, the edit has
// succeeded. Then EditCronJob returns the version that it was given: what it read may hold
// changes by others, which the watch must show as new.
func (c *Client) EditCronJob(ctx context.Context, refusals *writes.Refusals, cron *batchv1.CronJob, edit CronJobEdit) (edited *batchv1.CronJob, err error) {
	defer func() { c.cronJobEnded(refusals, writes.UpdateCronJob, cron, err) }()
	patch, err := edit.patch(cron)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	edited, err = c.Kubernetes.BatchV1().CronJobs(cron.Namespace).Patch(limited, cron.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return c.cronJobWritten(ctx, cron, edited, err, edit.shown)
}

// shown reports whether a CronJob has what the edit sets.
func (e CronJobEdit) shown(cron *batchv1.CronJob) bool {
	for name, text := range e.Annotations {
		if have, ok := cron.Annotations[name]; ok != (text != nil) || (ok && have != *text) {
			return false
		}
	}
	return !e.Suspend || ptr.Deref(cron.Spec.Suspend, false)
}

// patch is a merge patch. Its preconditions are the CronJob's UID and version.
func (e CronJobEdit) patch(cron *batchv1.CronJob) ([]byte, error) {
	metadata := map[string]any{"uid": cron.UID, "resourceVersion": cron.ResourceVersion}
	if len(e.Annotations) > 0 {
		metadata["annotations"] = e.Annotations
	}
	patch := map[string]any{"metadata": metadata}
	if e.Suspend {
		patch["spec"] = map[string]any{"suspend": true}
	}
	return json.Marshal(patch)
}

// UpdateCronJobStatus writes the CronJob's status, and the annotations wire.NextScheduleTime and wire.LastValidPolicy that
// belong to it, if the CronJob still has the given version. It returns what EditCronJob returns.
func (c *Client) UpdateCronJobStatus(ctx context.Context, refusals *writes.Refusals, cron *batchv1.CronJob) (updated *batchv1.CronJob, err error) {
	defer func() { c.cronJobEnded(refusals, writes.UpdateCronJobStatus, cron, err) }()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	updated, err = c.Kubernetes.BatchV1().CronJobs(cron.Namespace).UpdateStatus(limited, cron, metav1.UpdateOptions{})
	return c.cronJobWritten(ctx, cron, updated, err, func(live *batchv1.CronJob) bool {
		return apiequality.Semantic.DeepEqual(live.Status, cron.Status) &&
			live.Annotations[wire.NextScheduleTime] == cron.Annotations[wire.NextScheduleTime] &&
			live.Annotations[wire.LastValidPolicy] == cron.Annotations[wire.LastValidPolicy]
	})
}

func (c *Client) cronJobEnded(refusals *writes.Refusals, k writes.Kind, cron *batchv1.CronJob, err error) {
	c.written(Subject{cron, refusals}, k, "", "", err)
}

// cronJobWritten says what became of a write of a version of a CronJob. If there was no answer,
// shown says whether a CronJob shows the write. After a conflict it reads the CronJob. If
// there is no newer version, the conflict comes from elsewhere, for example from an
// admission webhook, and may repeat at once: so it is an error like any other, and not
// ErrChanged.
func (c *Client) cronJobWritten(ctx context.Context, version, written *batchv1.CronJob, err error, shown func(*batchv1.CronJob) bool) (*batchv1.CronJob, error) {
	switch {
	case err == nil:
		written.ManagedFields = nil
		return written, nil
	case apierrors.IsNotFound(err):
		return nil, ErrGone
	case !apierrors.IsConflict(err) && !OutcomeUnknown(err):
		return nil, err
	}
	live, readErr := c.CronJob(ctx, version.Namespace, version.Name, version.UID)
	switch {
	case OutcomeUnknown(err):
		if readErr != nil || live.ResourceVersion == version.ResourceVersion || !shown(live) {
			return nil, err
		}
		return version, nil
	case readErr != nil:
		return nil, readErr
	case live.ResourceVersion == version.ResourceVersion:
		return nil, err
	}
	return live, ErrChanged
}
