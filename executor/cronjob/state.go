package cronjob

import (
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// cronState is what is remembered about one CronJob UID. None of it is needed after a restart.
type cronState struct {
	uid             types.UID
	namespace, name string

	mu sync.Mutex
	// cron is the newest version seen; nil after its deletion. It is replaced, never
	// changed.
	cron *batchv1.CronJob
	// made and unmade are the Jobs that this controller has created and deleted, and
	// whose creation or deletion the watch has not shown yet. A created Job stays here
	// until the status lists it, even if it is gone: otherwise a run that its user
	// deletes at once would start again.
	made   map[types.UID]*madeJob
	unmade map[types.UID]bool
	// creating is the name of the run whose creation was sent last. The answer may get lost,
	// and the run may be deleted before the creation is tried again. So a Job of this name
	// that the watch shows counts as one that this controller has created.
	creating string

	// nameTaken is the name of a run that a Job of somebody else has.
	nameTaken string
	// creation backs off after a Job could not be created.
	creation controller.Backoff
	sequence uint64 // Of the last request.
	// warned has the generation and the text of the last warning about the CronJob.
	warned string
	last   *jobpolicyv1.CronJobExplanation // Of the last decision.
}

// observe stores a version of the CronJob, and reports whether it is newer than the
// known one.
func (s *cronState) observe(cron *batchv1.CronJob) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cron != nil && tracker.ResourceVersion(cron.ResourceVersion) <= tracker.ResourceVersion(s.cron.ResourceVersion) {
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

// A madeJob is a Job that was created or found, and that the watch may not have shown yet.
type madeJob struct {
	job *batchv1.Job
	// recorded: the status lists it, or does not have to.
	recorded bool
}

func (s *cronState) madeJob(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepMade(job)
}

// sends records that a run is about to be created.
func (s *cronState) sends(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creating = name
}

// jobSeen takes a Job of the CronJob that the watch shows for the first time.
func (s *cronState) jobSeen(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if job.Name == s.creating {
		s.keepMade(job)
	}
}

// keepMade is madeJob for a caller that holds s.mu.
func (s *cronState) keepMade(job *batchv1.Job) {
	if s.made[job.UID] == nil {
		s.made[job.UID] = &madeJob{job: job}
	}
}

// recorded records that the status is up to date with these Jobs.
func (s *cronState) recorded(jobs []*batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range jobs {
		if m := s.made[job.UID]; m != nil {
			m.recorded = true
		}
	}
}

func (s *cronState) unmadeJob(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unmade[uid] = true
	delete(s.made, uid)
}

// jobs returns the Jobs that the CronJob controls, in order of name. It takes into account
// own writes that the watch has not shown yet.
func (s *cronState) jobs(store cache.SharedIndexInformer) []*batchv1.Job {
	// This is read before the index, so the index has at least this version.
	seen := tracker.ResourceVersion(store.GetStore().LastStoreSyncResourceVersion())
	objects, err := store.GetIndexer().ByIndex(ownerIndex, string(s.uid))
	if err != nil {
		panic("the index of Jobs by CronJob was added in New: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*batchv1.Job
	stored := map[types.UID]bool{}
	for _, obj := range objects {
		job := obj.(*batchv1.Job)
		stored[job.UID] = true
		if job.DeletionTimestamp != nil {
			// The watch shows the deletion. A finalizer may keep the Job for long.
			delete(s.unmade, job.UID)
		}
		if !s.unmade[job.UID] {
			out = append(out, job)
		}
	}
	for uid, m := range s.made {
		shown := stored[uid] || tracker.ResourceVersion(m.job.ResourceVersion) <= seen
		if shown && m.recorded {
			delete(s.made, uid)
			continue
		}
		if !stored[uid] {
			out = append(out, m.job)
		}
	}
	for uid := range s.unmade {
		if !stored[uid] {
			delete(s.unmade, uid)
		}
	}
	slices.SortFunc(out, func(a, b *batchv1.Job) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// known returns the state of a CronJob that exists.
func (c *Controller) known(uid types.UID) (*cronState, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.crons[uid]
	return s, ok
}
