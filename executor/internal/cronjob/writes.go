package cronjob

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// edit changes metadata and spec of the CronJob, if it still has the version that was decided
// on. changed says that the CronJob has got a new version. It gets none if, for example, a
// webhook undoes the edit in the same request.
func (a *applier) edit(ctx context.Context, s *cronState, snap snapshot, decided *jobpolicyv1.CronJobEdits) (changed bool, err error) {
	if decided == nil {
		return false, nil
	}
	ctx, end := a.base.Span(ctx, telemetry.SpanCronJobEdited)
	defer func() { end(err) }()
	edit, err := a.edits(snap.cron, decided)
	if err != nil {
		return false, err
	}
	edited, err := a.api.EditCronJob(ctx, &s.refusals, snap.cron, edit)
	if edited == nil {
		return false, err
	}
	s.observe(edited)
	return edited.ResourceVersion != snap.cron.ResourceVersion, err
}

func (a *applier) edits(cron *batchv1.CronJob, decided *jobpolicyv1.CronJobEdits) (api.CronJobEdit, error) {
	annotations, err := wire.EditedAnnotations(decided)
	if err != nil {
		return api.CronJobEdit{}, fmt.Errorf("edits: %w: %w", err, controller.ErrBadAnswer)
	}
	edit := api.CronJobEdit{Annotations: annotations}
	switch {
	case !decided.GetSuspend():
	case a.scope.HandedOver(cron):
		edit.Annotations[wire.CronJobSuspend] = ptr.To("true")
	default:
		edit.Suspend = true
	}
	return edit, nil
}

// writeStatus replaces the status of the version that was decided on. written says that the
// CronJob has a new version.
func (a *applier) writeStatus(ctx context.Context, s *cronState, snap snapshot, m *jobpolicyv1.CronJobStatus) (written bool, err error) {
	if m == nil {
		return false, nil
	}
	cron, err := snap.withStatus(m)
	if err != nil {
		return false, err
	}
	if apiequality.Semantic.DeepEqual(cron, snap.cron) {
		return false, nil
	}
	ctx, end := a.base.Span(ctx, telemetry.SpanStatusWritten)
	defer func() { end(err) }()
	updated, err := a.api.UpdateCronJobStatus(ctx, &s.refusals, cron)
	newer := updated != nil && s.observe(updated)
	return err == nil && newer, err
}
