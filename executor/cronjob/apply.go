package cronjob

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

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
	// A status that is the same in the API's words would be decided on again for ever
	// (invariant I11).
	changed := written || d.GetStatus() == nil || d.GetEdits() != nil
	return changed && d.GetFollowUp() == jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE, nil
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

func (c *Controller) recordEvents(cron *batchv1.CronJob, events []*jobpolicyv1.JobEvent) {
	for _, ev := range events {
		kind := corev1.EventTypeNormal
		if ev.GetType() == jobpolicyv1.EventType_EVENT_TYPE_WARNING {
			kind = corev1.EventTypeWarning
		}
		c.recorder.Event(cron, kind, ev.GetReason(), ev.GetMessage())
	}
}
