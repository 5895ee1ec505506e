package cronjob

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Errors of a run's creation. Except after errStartedBefore, the decision is not applied any
// further, as after api.ErrChanged, and another one is needed at once.
var (
	// errNameInUse: a Job has the name of the next run. The next request says so.
	errNameInUse = errors.New("the name of the run is in use")
	// errStartedBefore: the run was started before, by this controller before a restart or by
	// the built-in controller, which has told of it.
	errStartedBefore = errors.New("the run was started before")
	// errNotCreated: the Job of a run could not be created. The next request tells the engine
	// to leave the creation for later, until its backoff ends.
	errNotCreated = errors.New("the job of the run was not created")
)

// decideAgain reports whether another decision is needed at once.
func decideAgain(err error) bool {
	return errors.Is(err, api.ErrChanged) || errors.Is(err, errNameInUse) || errors.Is(err, errNotCreated)
}

// An applier carries decisions out.
type applier struct {
	api   *api.Client
	base  *controller.Controller
	scope controller.Scope
	skew  prometheus.Observer // The time from when a run was due to its Job's creation.
	// altered counts the Jobs that admission has taken from their CronJobs.
	altered *prometheus.CounterVec
	starts  *starts
}

// apply carries a decision out in the contract's order, and stops at the first step that
// does not succeed. again says that the next reconcile is due at once.
func (a *applier) apply(ctx context.Context, s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) (again bool, err error) {
	if snap.group.name != "" && d.GetCreate() == nil {
		if err := a.findLost(ctx, s); err != nil {
			return false, err
		}
	}
	if d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
		s.nothingToWrite()
		a.base.RecordEvents(snap.cron, d.GetEvents())
		s.runs.recorded(snap.jobs)
		return false, nil
	}
	if err := a.changeJobs(ctx, s, snap, d); err != nil {
		return false, err
	}
	edited, err := a.edit(ctx, s, snap, d.GetEdits())
	if err != nil {
		return false, err
	}
	written, err := a.writeStatus(ctx, s, snap, d.GetStatus())
	if err != nil {
		return false, err
	}
	if d.GetCreate() == nil {
		s.runs.recorded(snap.jobs)
		a.base.RecordEvents(snap.cron, otherEvents(d))
	}
	changed := written || edited || d.GetCreate() != nil || len(d.GetDelete()) > 0
	return answer.FollowUp(d, changed) == jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE, nil
}

// changeJobs deletes Jobs, and creates the one of a run.
func (a *applier) changeJobs(ctx context.Context, s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) error {
	create := d.GetCreate()
	if create != nil {
		if err := a.mayStart(ctx, s, snap, d); err != nil {
			return err
		}
	}
	err := a.deleteJobs(ctx, s, snap, d)
	if create == nil {
		return err
	}
	if err != nil {
		s.runs.notSent()
		return err
	}
	err = a.createJob(ctx, s, snap, create)
	switch {
	case errors.Is(err, errStartedBefore):
		return nil
	case err != nil:
		return err
	}
	// The events go out now, whether or not the next writes succeed: no later decision
	// reports this run again.
	a.base.RecordEvents(snap.cron, otherEvents(d))
	return nil
}

// deleteJobs deletes Jobs, and records the event of each deletion at once. If a deletion fails,
// the others are still tried. But if the deletions make room for a run, the first failure ends
// them.
func (a *applier) deleteJobs(ctx context.Context, s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) error {
	var failed []error
	for i, del := range d.GetDelete() {
		err := a.deleteJob(ctx, s, snap, del)
		switch {
		case err == nil:
			a.base.RecordEvents(snap.cron, d.GetEvents()[i:i+1])
		case d.GetCreate() != nil:
			return err
		default:
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// otherEvents are the events of a decision without those of its deletions, which come first.
func otherEvents(d *jobpolicyv1.DecideCronJobResponse) []*jobpolicyv1.JobEvent {
	return d.GetEvents()[len(d.GetDelete()):]
}

// mayStart returns nil if a run can be started. A started run cannot be undone, so mayStart
// checks three things at the API server, not in the cache:
//
//   - The decision was made on the newest version of the CronJob.
//   - If the creation of an earlier run was not answered, that run does not exist.
//   - If the decision deletes Jobs to make room for the run, no Job has the run's name.
//
// Of a CronJob with a group, the run counts as active from now on.
func (a *applier) mayStart(ctx context.Context, s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) error {
	if snap.group.name != "" && a.starts.count(snap.group) != snap.begun {
		return api.ErrChanged // Others of the group were faster: that needs no request.
	}
	live, err := a.api.CronJob(ctx, s.namespace, s.name, s.uid)
	if err != nil {
		return err
	}
	s.observe(live)
	if live.ResourceVersion != snap.cron.ResourceVersion {
		return api.ErrChanged
	}
	if err := a.findUnanswered(ctx, s, d.GetCreate().GetName()); err != nil {
		return err
	}
	if len(d.GetDelete()) > 0 {
		switch job, err := a.jobOfName(ctx, s, d.GetCreate().GetName()); {
		case err != nil:
			return err
		case job != nil:
			return errNameInUse
		}
	}
	begin := func() { s.runs.beginCreation(d.GetCreate().GetName()) }
	if snap.group.name != "" && !a.starts.begin(snap.group, snap.begun, begin) {
		return api.ErrChanged
	}
	return nil
}
