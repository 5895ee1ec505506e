package cronjob

import (
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// cronState is what is remembered about one CronJob UID. Nothing of it is needed
// after a restart.
type cronState struct {
	uid             types.UID
	namespace, name string

	mu sync.Mutex
	// cron is the newest version seen; nil after its deletion. Never changed in
	// place.
	cron *batchv1.CronJob
	// made and unmade are own creations and deletions of Jobs that the watch has
	// not shown yet. A Job that was made stays, even if it is gone, until the
	// CronJob's status was written with it: a run that its user deletes at once would
	// be started again.
	made   map[types.UID]*madeJob
	unmade map[types.UID]bool

	nameTaken       string
	createNotBefore time.Time // Monotonic: the clock may be set meanwhile.
	createFailures  int
	sequence        uint64
	// told are the generation and the text that were last told about in an event
	// of this controller's own.
	told string
	last *jobpolicyv1.CronJobExplanation
}

// observe takes in a version of the CronJob. It reports whether it is news.
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

// A madeJob is one that exists although no watch may have shown it.
type madeJob struct {
	job *batchv1.Job
	// recorded: the status knows of it, or need not.
	recorded bool
}

func (s *cronState) madeJob(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepMade(job)
}

// keepMade needs s.mu.
func (s *cronState) keepMade(job *batchv1.Job) {
	if s.made[job.UID] == nil {
		s.made[job.UID] = &madeJob{job: job}
	}
}

// recorded takes in that a round with these Jobs has left nothing to be written.
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

// jobs are the Jobs that the CronJob controls, own writes included that the watch
// has not shown yet, in order of name.
func (s *cronState) jobs(store cache.SharedIndexInformer) []*batchv1.Job {
	// Read before the index: what the watch has shown up to here, the index has.
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
			// The watch shows the deletion; a finalizer may keep the Job for long.
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

func (c *Controller) cronHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.cronSeen(nil, obj.(*batchv1.CronJob)) },
		UpdateFunc: func(old, obj any) {
			c.cronSeen(old.(*batchv1.CronJob), obj.(*batchv1.CronJob))
		},
		DeleteFunc: func(obj any) {
			if cron, ok := deletedObject[*batchv1.CronJob](obj); ok {
				c.cronGone(cron.UID)
			}
		},
	}
}

func (c *Controller) jobHandler() cache.ResourceEventHandler {
	wake := func(job *batchv1.Job) {
		if uid := controllingUID(job); uid != "" {
			c.queue.Add(uid)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { wake(obj.(*batchv1.Job)) },
		UpdateFunc: func(old, obj any) {
			before, job := old.(*batchv1.Job), obj.(*batchv1.Job)
			if controllingUID(before) != controllingUID(job) {
				wake(before)
			}
			if worthARound(before, job) {
				wake(job)
			}
		},
		DeleteFunc: func(obj any) {
			if job, ok := deletedObject[*batchv1.Job](obj); ok {
				wake(job)
			}
		},
	}
}

// worthARound reports whether a change of a Job says anything to its CronJob. The
// counters of a running Job do not.
func worthARound(before, job *batchv1.Job) bool {
	return controllingUID(before) != controllingUID(job) || before.UID != job.UID ||
		outcome(before) != outcome(job) || (before.DeletionTimestamp == nil) != (job.DeletionTimestamp == nil) ||
		!before.Status.StartTime.Equal(job.Status.StartTime)
}

// deletedObject unwraps the tombstone of an object whose deletion was missed.
func deletedObject[T any](obj any) (T, bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	object, ok := obj.(T)
	return object, ok
}

func (c *Controller) cronSeen(old, cron *batchv1.CronJob) {
	if old != nil && old.UID != cron.UID {
		c.cronGone(old.UID)
	}
	c.mu.Lock()
	s, ok := c.crons[cron.UID]
	if !ok {
		s = &cronState{
			uid: cron.UID, namespace: cron.Namespace, name: cron.Name,
			made: map[types.UID]*madeJob{}, unmade: map[types.UID]bool{},
		}
		c.crons[cron.UID] = s
	}
	c.mu.Unlock()
	if s.observe(cron) {
		c.queue.Add(cron.UID)
	}
}

func (c *Controller) cronGone(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.crons[uid]
	if !ok {
		return
	}
	delete(c.crons, uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cron = nil
}
