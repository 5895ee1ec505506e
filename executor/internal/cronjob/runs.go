package cronjob

import (
	"cmp"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/wire"
)

// runs are the Jobs of one CronJob: what the watch shows, corrected by this controller's
// own writes that the watch does not show yet.
type runs struct {
	mu sync.Mutex
	// created are Jobs that this controller has created or found. A Job stays here until the
	// watch shows it and the status lists it, even if it is gone: otherwise a run that its
	// user deletes at once would start again.
	created map[types.UID]*createdJob
	// removed are Jobs that this controller has deleted, until the watch shows the deletion. The
	// value is the resource version of a Job that the watch may not have shown yet, or 0.
	removed map[types.UID]uint64
	// pending is the name of the run whose creation was sent last, as long as it is not known
	// whether a Job of that name exists. The answer may get lost, and the run may be deleted
	// before the creation is tried again. So a Job of this name that the watch shows counts as
	// one that this controller has created. (If the watch shows it later than the next try, and its
	// user has deleted it before that, it starts again.)
	pending string
	// unanswered: the creation of the pending run ended without an answer.
	unanswered bool
}

// A createdJob is a Job that was created or found, and that the watch may not have shown yet.
type createdJob struct {
	job *batchv1.Job
	// recorded: the status lists it, or does not have to.
	recorded bool
}

func newRuns() *runs {
	return &runs{created: map[types.UID]*createdJob{}, removed: map[types.UID]uint64{}}
}

// beginCreation records that a run is about to be created. again says that an earlier creation of
// this run ended without an answer, so it may have taken effect.
func (r *runs) beginCreation(name string) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending != name {
		r.pending, r.unanswered = name, false
	}
	return r.unanswered
}

// notSent records that the creation that was begun last is not sent.
func (r *runs) notSent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.unanswered {
		r.pending = ""
	}
}

// creationUnanswered records that the creation that was sent last ended without an answer.
func (r *runs) creationUnanswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = true
}

// resolved records that it is known whether a Job of this name exists.
func (r *runs) resolved(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == name {
		r.pending, r.unanswered = "", false
	}
}

// unresolved returns the name of the run that may exist because its creation was not answered,
// if it is not the next run; "" if there is none.
func (r *runs) unresolved(next string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == next {
		return ""
	}
	return r.pending
}

// seen takes a Job that the watch shows for the first time.
func (r *runs) seen(job *batchv1.Job) {
	r.mu.Lock()
	ours := job.Name == r.pending
	r.mu.Unlock()
	if ours {
		r.add(job)
		r.resolved(job.Name)
	}
}

// add takes a Job that this controller has created, or has read from the API server.
func (r *runs) add(job *batchv1.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if job.DeletionTimestamp != nil {
		delete(r.removed, job.UID) // A finalizer keeps it: it is in the list, as deleting.
	}
	if r.created[job.UID] == nil {
		r.created[job.UID] = &createdJob{job: job}
	}
}

// deleted records that this controller has deleted a Job.
func (r *runs) deleted(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed[uid] = 0
	if m := r.created[uid]; m != nil {
		r.removed[uid] = wire.ResourceVersion(m.job.ResourceVersion)
	}
	delete(r.created, uid)
}

// recorded records that the status is up to date with these Jobs.
func (r *runs) recorded(jobs []*batchv1.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, job := range jobs {
		if m := r.created[job.UID]; m != nil {
			m.recorded = true
		}
	}
}

// list returns the Jobs in order of name. cron is the ownerKey of their CronJob.
func (r *runs) list(cron string, store cache.SharedIndexInformer) []*batchv1.Job {
	stored, version := storedJobs(cron, store)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetShown(stored, version)
	var jobs []*batchv1.Job
	for uid, job := range stored {
		_, deleted := r.removed[uid]
		if m := r.created[uid]; !deleted && (m == nil || !newer(m.job, job)) {
			jobs = append(jobs, job)
		}
	}
	for uid, m := range r.created {
		if stored[uid] == nil || newer(m.job, stored[uid]) {
			jobs = append(jobs, m.job)
		}
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return jobs
}

// forgetShown forgets those writes of this controller that the watch has shown. stored are the
// CronJob's Jobs in the cache, and version is the cache's version.
func (r *runs) forgetShown(stored map[types.UID]*batchv1.Job, version uint64) {
	for uid, m := range r.created {
		shown := stored[uid] != nil || wire.ResourceVersion(m.job.ResourceVersion) <= version
		if shown && m.recorded {
			delete(r.created, uid)
		}
	}
	for uid, from := range r.removed {
		// A finalizer may keep a deleted Job for long. Then it is in the list, as deleting.
		job := stored[uid]
		if (job == nil && from <= version) || (job != nil && job.DeletionTimestamp != nil) {
			delete(r.removed, uid)
		}
	}
}

func newer(a, b *batchv1.Job) bool {
	return wire.ResourceVersion(a.ResourceVersion) > wire.ResourceVersion(b.ResourceVersion)
}

// storedJobs returns the CronJob's Jobs in the cache, and the cache's version.
func storedJobs(cron string, store cache.SharedIndexInformer) (jobs map[types.UID]*batchv1.Job, version uint64) {
	// This is read before the index, so the index has at least this version.
	version = wire.ResourceVersion(store.GetStore().LastStoreSyncResourceVersion())
	objects, err := store.GetIndexer().ByIndex(ownerIndex, cron)
	if err != nil {
		panic("the index of Jobs by CronJob was added in New: " + err.Error())
	}
	jobs = map[types.UID]*batchv1.Job{}
	for _, obj := range objects {
		job := obj.(*batchv1.Job)
		jobs[job.UID] = job
	}
	return jobs, version
}
