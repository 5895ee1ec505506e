package cronjob

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/executor/controller"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// errChanged: another decision is needed, because the CronJob has changed, a Job of another
// owner has the name of the next run, or that run could not be created.
var errChanged = errors.New("the cron job or its jobs have changed since the decision")

// An applier carries decisions out.
type applier struct {
	live
	base  *controller.Controller
	scope scope
	skew  prometheus.Histogram // The time from when a run was due to its Job's creation.
}

// apply carries a decision out in the contract's order, and stops at the first step that
// does not succeed. errChanged: another decision is needed. again says that the next
// reconcile is due at once.
func (a *applier) apply(ctx context.Context, s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) (again bool, err error) {
	if d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
		a.base.RecordEvents(snap.cron, d.GetEvents())
		s.recorded(snap.jobs)
		return false, nil
	}
	if d.GetCreate() != nil {
		// A started run cannot be undone. So read from the API server, and not from
		// the cache, whether the decision was made on the newest version.
		if err := a.confirm(ctx, s, snap); err != nil {
			return false, err
		}
	}
	if d.GetCreate() != nil && len(d.GetDelete()) > 0 {
		// Nothing is deleted to make room for a run that cannot start.
		switch used, err := a.nameInUse(ctx, s, snap, d.GetCreate()); {
		case err != nil:
			return false, err
		case used:
			return false, errChanged
		}
	}
	for _, del := range d.GetDelete() {
		if err := a.deleteJob(ctx, s, snap, del); err != nil {
			return false, err
		}
	}
	events := d.GetEvents()
	if d.GetCreate() != nil {
		created, err := a.createJob(ctx, s, snap, d.GetCreate())
		switch {
		case err != nil:
			return false, err
		case !created:
			return false, errChanged
		}
		// The events go out now, whether or not the next writes succeed: no later
		// decision reports this run again.
		a.base.RecordEvents(snap.cron, events)
		events = nil
	}
	if err := a.edit(ctx, s, snap, d.GetEdits()); err != nil {
		return false, err
	}
	written, err := a.writeStatus(ctx, s, snap, d.GetStatus())
	if err != nil {
		return false, err
	}
	if d.GetCreate() == nil {
		s.recorded(snap.jobs)
	}
	a.base.RecordEvents(snap.cron, events)
	// If the status as stored did not change, the same decision would follow for ever
	// (invariant I11).
	changed := written || d.GetStatus() == nil || d.GetEdits() != nil
	return changed && d.GetFollowUp() == jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE, nil
}

func (a *applier) confirm(ctx context.Context, s *cronState, snap snapshot) error {
	live, err := a.liveCron(ctx, s)
	if err != nil {
		return err
	}
	if live.ResourceVersion != snap.cron.ResourceVersion {
		return errChanged
	}
	return nil
}
