package cronjob

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// cronState is what is remembered about one CronJob UID. None of it is needed after a restart.
type cronState struct {
	cronKey
	runs *runs

	mu sync.Mutex
	// cron is the newest version seen; nil after its deletion. It is replaced, never
	// changed.
	cron *batchv1.CronJob
	// namesTaken are the names of runs that Jobs of others have, in the order in which that was
	// found.
	namesTaken []takenName
	// creation is the backoff after the Job of a scheduled run could not be created. asked is
	// the backoff after the Job of a manual run could not be created.
	creation, asked clock.Backoff
	// refusals are the writes for the CronJob that the API server refuses.
	refusals writes.Refusals
	sequence uint64 // Of the last request.
	// warned has the generation and the text of the last warning about the CronJob.
	warned string
	last   *jobpolicyv1.CronJobExplanation // Of the last decision.
	// options are the last ones that could be read; nil: none could be so far. unread: those of now cannot be.
	options *jobpolicyv1.CronJobOptions
	unread  bool
	// kept is the text that the CronJob's annotation got last because its options could not be read any more.
	kept  string
	place place
	held  heldGroup
	// wait is that of a run in a group of the cluster.
	wait clusterWait
	// wanted is the run that was asked for by hand, and since when that is known.
	wanted wantedRun
}

// A wantedRun was asked for by hand.
type wantedRun struct {
	text  string
	since time.Time
}

// askedSince is since when a run has been asked for by hand with this text; nil: none is.
func (s *cronState) askedSince(text string, now time.Time) *timestamppb.Timestamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted.text != text {
		s.wanted = wantedRun{text, now}
	}
	if text == "" {
		return nil
	}
	return timestamppb.New(s.wanted.since)
}

// lastOptions returns the options that were read, or the last ones that could be if problems say that these cannot:
// nil if these are not known. With problems, read are those that the CronJob's annotation has, which this process may not
// have known.
func (s *cronState) lastOptions(read *jobpolicyv1.CronJobOptions, problems []string) *jobpolicyv1.CronJobOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unread = len(problems) > 0; s.unread {
		s.options = cmp.Or(s.options, read)
		return s.options
	}
	s.options, s.kept = cmp.Or(read, noOptions), "" // The next status may have others than those kept.
	return read
}

// noOptions are those of a CronJob that has none. They are never changed.
var noOptions = &jobpolicyv1.CronJobOptions{}

func newCronState(cron *batchv1.CronJob) *cronState {
	return &cronState{cronKey: cronKey{cron.UID, cron.Namespace, cron.Name}, runs: newRuns()}
}

// observe stores a version of the CronJob, and reports whether it is newer than the
// known one.
func (s *cronState) observe(cron *batchv1.CronJob) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cron != nil && wire.ResourceVersion(cron.ResourceVersion) <= wire.ResourceVersion(s.cron.ResourceVersion) {
		return false
	}
	if s.cron != nil && asksAnew(s.cron, cron) {
		s.endBackoffs()
	}
	s.cron = cron
	return true
}

// asksAnew reports whether somebody has changed what the CronJob asks for, such as its template,
// or has suspended or resumed it. A write of its status does not count.
func asksAnew(before, after *batchv1.CronJob) bool {
	return before.Generation != after.Generation || !maps.Equal(ours(before.Annotations), ours(after.Annotations))
}

// ours are the annotations that ask this controller or the engine for something.
func ours(annotations map[string]string) map[string]string {
	kept := map[string]string{}
	for name, text := range annotations {
		if strings.HasPrefix(name, "jobpolicy.dev/") && name != wire.NextScheduleTime && name != wire.LastValidPolicy {
			kept[name] = text
		}
	}
	return kept
}

// endBackoffs ends both delays, because what made creations fail may be gone
// (kubernetes/kubernetes#139917). s.mu must be held.
func (s *cronState) endBackoffs() {
	s.creation.Reset()
	s.asked.Reset()
}

// madeRoom records that a Job of the CronJob is gone: a quota of Jobs may admit another one.
func (s *cronState) madeRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endBackoffs()
}

func (s *cronState) current() *batchv1.CronJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cron
}

// started ends the backoffs, because a Job was created.
func (s *cronState) started() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endBackoffs()
}

// failed begins the next delay after a Job could not be created.
func (s *cronState) failed(create *jobpolicyv1.CreateJob, limits clock.Limits) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backoff(create).Failed(limits)
}

// nothingToWrite forgets the refused writes. While a creation backs off, decisions leave it out.
func (s *cronState) nothingToWrite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals.Over(writes.DeleteRun, writes.UpdateCronJob, writes.UpdateCronJobStatus)
	if !s.creation.Active() && !s.asked.Active() {
		s.refusals.Over(writes.CreateRun)
	}
}

// backsOff is how long creations still back off; 0: they do not.
func (s *cronState) backsOff() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, time.Until(s.creation.Until()), time.Until(s.asked.Until()))
}

// backoff returns the backoff of a creation: asked if the run has no scheduled time. s.mu must
// be held.
func (s *cronState) backoff(create *jobpolicyv1.CreateJob) *clock.Backoff {
	if create.GetScheduledTime() == nil {
		return &s.asked
	}
	return &s.creation
}

// A name that is taken is tried again after rememberTaken: its Job may be gone. A request
// has at most maxTaken such names.
const (
	rememberTaken = time.Minute
	maxTaken      = 10
)

// A takenName is the name of a run that a Job of somebody else has, or had when that was found.
type takenName struct {
	name  string
	found time.Time
}

// taken records that a Job of somebody else has the name of a run.
func (s *cronState) taken(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namesTaken = slices.DeleteFunc(s.namesTaken, func(t takenName) bool { return t.name == name })
	s.namesTaken = append(s.namesTaken, takenName{name, time.Now()})
}

// takenNames are the names that are taken as far as is known, those found last, in order. s.mu must be locked.
func (s *cronState) takenNames() []string {
	s.namesTaken = slices.DeleteFunc(s.namesTaken, func(t takenName) bool { return time.Since(t.found) >= rememberTaken })
	var names []string
	for _, t := range s.namesTaken[max(0, len(s.namesTaken)-maxTaken):] {
		names = append(names, t.name)
	}
	slices.Sort(names)
	return names
}

// decided keeps the explanation of a decision, to be shown.
func (s *cronState) decided(d *jobpolicyv1.DecideCronJobResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = d.GetExplanation()
}

// known returns the state of a CronJob that exists.
func (c *Controller) known(uid types.UID) (*cronState, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.crons[uid]
	return s, ok
}
