package cronjob

import (
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/backoff"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// cronState is what is remembered about one CronJob UID. None of it is needed after a restart.
type cronState struct {
	uid             types.UID
	namespace, name string
	runs            *runs

	mu sync.Mutex
	// cron is the newest version seen; nil after its deletion. It is replaced, never
	// changed.
	cron *batchv1.CronJob
	// nameTaken is the name of a run that a Job of somebody else has.
	nameTaken string
	// creation backs off after a Job could not be created.
	creation backoff.Backoff
	sequence uint64 // Of the last request.
	// warned has the generation and the text of the last warning about the CronJob.
	warned string
	last   *jobpolicyv1.CronJobExplanation // Of the last decision.
}

func newCronState(cron *batchv1.CronJob) *cronState {
	return &cronState{uid: cron.UID, namespace: cron.Namespace, name: cron.Name, runs: newRuns()}
}

// observe stores a version of the CronJob, and reports whether it is newer than the
// known one.
func (s *cronState) observe(cron *batchv1.CronJob) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cron != nil && wire.ResourceVersion(cron.ResourceVersion) <= wire.ResourceVersion(s.cron.ResourceVersion) {
		return false
	}
	s.cron = cron
	return true
}

func (s *cronState) current() *batchv1.CronJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cron
}

// started ends the backoff of creation, because a Job was created.
func (s *cronState) started() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creation.Reset()
	s.nameTaken = ""
}

// taken records that a Job of somebody else has the name of a run.
func (s *cronState) taken(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nameTaken = name
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
