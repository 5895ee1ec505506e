package executor

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

const maxActiveRows = 100000

// firstStatusDelay is how long after its creation a suspended Job gets its first status. A client
// may create such a Job and update it at once, with the version that the answer shows: a status
// written in between would make that update a conflict. On two busy cores such an update takes 12 ms
// (median), 36 ms (90 %), at most 100 ms.
const firstStatusDelay = 100 * time.Millisecond

func isSuspended(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) }

// snapshot is a request and the version of the Job that it describes. made is the
// request's now in monotonic time.
type snapshot struct {
	job  *batchv1.Job
	req  *jobpolicyv1.DecideJobRequest
	made time.Time
	// asks: the Job asks for options.
	asks bool
}

// errStale: while the snapshot was made, something changed that has to be read or adopted
// before the next decision.
var errStale = errors.New("the Job or its pods are stale")

// snapshot builds a request. activeRows asks for rows of active pods.
//
// The view is never older than a write of this process. The answer to a write becomes part of
// the view before the write counts as done. A write without an answer counts as in flight, or
// refresh reads its outcome before the snapshot.
func (d *decider) snapshot(s *tracker.Job, activeRows bool) (snapshot, error) {
	job := s.Current()
	if job == nil {
		return snapshot{}, api.ErrGone
	}
	made, now := time.Now(), d.cfg.Now()
	read, problems := d.policies.OfJob(job)
	if len(problems) > 0 {
		read = d.policies.LastOfJob(job)
	}
	asked := s.Options(read, problems)
	options := tracker.ViewOptions{Uncounted: job.Status.UncountedTerminatedPods, Now: now, MaxRows: s.MaxRows(d.cfg.rowLimit(job)), Options: asked}
	if podfacts.ReadsNodes(asked) {
		d.nodes.Watch()
		options.Node = d.nodes.State
	}
	if activeRows {
		options.ActiveRows = maxActiveRows
	}
	view := s.View(options)
	req, err := view.Request(job, d.cfg.Settings, now)
	if err != nil {
		return snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	req.Spec.Options, req.Spec.OptionProblems = asked, problems
	if view.HasRun {
		podfacts.TellHasRun(req)
	}
	req.RequestId = string(job.UID) + "-" + strconv.FormatUint(s.NextRequest(), 10)
	req.NamespaceDeleting = s.Has(tracker.NamespaceTerminating)
	req.SeenSuspended = job.Status.StartTime == nil && !isSuspended(job) && s.SeenSuspended()
	req.Deferrals = d.deferrals(s, job, now)
	return snapshot{job: job, req: req, made: made, asks: d.policies.Asked(job.Namespace, job.Annotations)}, nil
}

// deferred reports whether the engine was asked to leave a step for later.
func (s *snapshot) deferred() bool {
	return slices.ContainsFunc(s.req.GetDeferrals(), func(d *jobpolicyv1.Deferral) bool {
		return d.GetUntil().AsTime().After(s.req.GetNow().AsTime())
	})
}

// deferrals are the steps that the engine must leave for later: steps that are backing
// off, and routine statuses that would follow each other too fast.
func (d *decider) deferrals(s *tracker.Job, job *batchv1.Job, now time.Time) []*jobpolicyv1.Deferral {
	var list []*jobpolicyv1.Deferral
	postpone := func(step jobpolicyv1.Step, until time.Time) {
		list = append(list, &jobpolicyv1.Deferral{Step: step, Until: timestamppb.New(until)})
	}
	if at := d.cfg.createAfter(s); !at.IsZero() {
		postpone(jobpolicyv1.Step_STEP_CREATE_PODS, clock.WallOf(at, now))
	}
	if at := s.StepWaitsUntil(tracker.Delete); !at.IsZero() {
		postpone(jobpolicyv1.Step_STEP_DELETE_PODS, clock.WallOf(at, now))
	}
	if at := s.StepWaitsUntil(tracker.DeleteFinished); !at.IsZero() {
		postpone(jobpolicyv1.Step_STEP_DELETE_FINISHED_PODS, clock.WallOf(at, now))
	}
	switch due := s.StatusDue(); {
	case due.IsZero() && isSuspended(job):
		postpone(jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS, clock.WallOf(s.FirstSeen().Add(firstStatusDelay), now))
	case !due.IsZero():
		record := clock.WallOf(due, now)
		postpone(jobpolicyv1.Step_STEP_RECORD_PODS, record)
		postpone(jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS, record.Add(d.cfg.StatusPeriod/2))
	}
	return list
}

const (
	// leastRows is the default of Config.Rows.Least.
	leastRows = 1000
	// maxRowsPerIndex is a little less than the contract's limit, because the tracker may
	// list some more. With limits per index, failed pods stay unaccounted until they are
	// replaced. A shorter list could be full of them and hide all other pods.
	maxRowsPerIndex = 99000
)

// rowLimit is how many unaccounted pods a request lists. By default it is enough to fill two
// status writes, so that the cost of a reconcile does not grow with the Job; for a Job with
// backoffLimitPerIndex it is maxRowsPerIndex. Config.Rows.Max lowers both.
func (c *Config) rowLimit(job *batchv1.Job) int {
	limit := max(c.Rows.Least, 2*int(c.Settings.GetMaxUncountedPods()))
	perIndex := job.Spec.BackoffLimitPerIndex != nil
	if perIndex {
		limit = maxRowsPerIndex
	}
	switch most := c.Rows.Max; {
	case most > 0 && perIndex:
		limit = min(limit, max(c.Rows.Least, most))
	case most > 0:
		limit = min(limit, most)
	}
	return limit
}
