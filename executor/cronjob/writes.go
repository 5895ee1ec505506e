package cronjob

import (
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// edit changes metadata and spec of the CronJob, if it still has the version that was
// decided on.
func (a *applier) edit(ctx context.Context, s *cronState, snap snapshot, edits *jobpolicyv1.CronJobEdits) (err error) {
	if edits == nil {
		return nil
	}
	ctx, end := a.base.Span(ctx, telemetry.SpanCronJobEdited)
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, api.Timeout)
	defer cancel()
	patch, err := a.editPatch(snap.cron, edits)
	if err != nil {
		return err
	}
	updated, err := a.base.Client.BatchV1().CronJobs(snap.cron.Namespace).Patch(ctx, snap.cron.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return a.writeFailed(ctx, s, snap.cron.ResourceVersion, err)
	}
	updated.ManagedFields = nil
	s.observe(updated)
	return nil
}

// editPatch is a merge patch. Its precondition is the version that was decided on.
func (a *applier) editPatch(cron *batchv1.CronJob, edits *jobpolicyv1.CronJobEdits) ([]byte, error) {
	annotations := map[string]any{}
	metadata := map[string]any{"uid": cron.UID, "resourceVersion": cron.ResourceVersion, "annotations": annotations}
	patch := map[string]any{"metadata": metadata}
	if edits.GetSuspend() && a.scope.handedOver(cron) {
		annotations[AnnotationSuspend] = "true"
	}
	if edits.GetSuspend() && !a.scope.handedOver(cron) {
		patch["spec"] = map[string]any{"suspend": true}
	}
	for _, name := range edits.GetRemoveAnnotations() {
		annotations[name] = nil
	}
	for name, text := range edits.GetSetAnnotations() {
		annotations[name] = text
	}
	for name := range annotations {
		if !wire.IsAnnotation(name) {
			return nil, fmt.Errorf("edits of annotation %q, want one of jobpolicy.dev/: %w", name, controller.ErrBadAnswer)
		}
	}
	return json.Marshal(patch)
}

// writeStatus replaces the status of the version that was decided on. written says that the
// CronJob has a new version.
func (a *applier) writeStatus(ctx context.Context, s *cronState, snap snapshot, m *jobpolicyv1.CronJobStatus) (written bool, err error) {
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
	ctx, end := a.base.Span(ctx, telemetry.SpanStatusWritten)
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, api.Timeout)
	defer cancel()
	cron := snap.cron.DeepCopy()
	cron.Status = *status
	if current := s.current(); current != nil {
		cron.ResourceVersion = current.ResourceVersion // An edit may have made a newer version.
	}
	updated, err := a.base.Client.BatchV1().CronJobs(cron.Namespace).UpdateStatus(ctx, cron, metav1.UpdateOptions{})
	if err != nil {
		return false, a.writeFailed(ctx, s, cron.ResourceVersion, err)
	}
	updated.ManagedFields = nil
	return s.observe(updated), nil
}

// writeFailed reads the CronJob after a conflict. If there is a newer version, the
// decision was made on an old one: errChanged. If there is none, the conflict comes
// from elsewhere, for example from an admission webhook, and may repeat at once: so it
// is an error like any other.
func (a *applier) writeFailed(ctx context.Context, s *cronState, version string, err error) error {
	if apierrors.IsNotFound(err) {
		return errGone
	}
	if !apierrors.IsConflict(err) {
		return err
	}
	live, readErr := a.liveCron(ctx, s)
	if readErr != nil {
		return readErr
	}
	if live.ResourceVersion == version {
		return err
	}
	return errChanged
}
