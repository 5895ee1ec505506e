package world

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// An outcome is what a pod was recorded as.
type outcome string

const (
	asSucceeded outcome = "succeeded"
	asFailed    outcome = "failed"
)

// An entry is a pod that is or was in a status's lists.
type entry struct {
	as      outcome
	counted int32 // How often.
	mark          // Who recorded it first, and when.
}

// A mark is who wrote something, and when.
type mark struct {
	by string
	at time.Time
}

// A jobRecord is what happened to one Job, by its UID (I8).
type jobRecord struct {
	uid types.UID
	key types.NamespacedName
	// job is the newest version, or the last one if the Job is gone. earlier holds
	// older versions with other specs, in order.
	job      *batchv1.Job
	earlier  []earlierSpec
	selector labels.Selector
	// valid are the options that it had.
	valid  validPolicies
	gone   bool
	goneAt time.Time

	// quotaRefused is the last try of an executor to create a pod of it if a quota refused that.
	quotaRefused quotaRefusal

	// terminationDeadline is the option that it was created with; 0: none. waitsForEver: it has none
	// any more.
	terminationDeadline time.Duration
	waitsForEver        bool
	// nodes are those that the Job looks at (terminationDeadlineNode); nil: it does not.
	nodes map[string]*nodeRecord

	// live are the stored pods that the Job controls; ends are those that were due to
	// be counted, in that order.
	live map[types.UID]*podRecord
	ends []*podRecord
	// departed are the pods that were live once and are gone or not the Job's any more,
	// in the order in which they left.
	departed []*podRecord

	entries           map[types.UID]*entry
	completed, failed indexset.Set
	// done says who first wrote that an index is done, and when.
	done map[int32]mark
	// tampered: somebody else has written the status.
	tampered bool

	decidedAt, finishedAt time.Time // The interim and the terminal condition.
	decidedBy, finishedBy string
	// endTold counts the events of each executor about the end.
	endTold map[string]int
	// decidedOn is the time up to which the writer of the interim condition knew
	// everything.
	decidedOn time.Time

	advance advance

	// guardedUntil is until when counts and the end may wait because a policy refuses to release
	// a pod.
	guardedUntil time.Time

	created, deletedAt time.Time
	// formerCron is the CronJob that controlled the Job before; leftCron is when that ended.
	formerCron types.UID
	leftCron   time.Time
	createdBy  string
	// loose are pods that succeeded without their finalizer.
	loose     []*podRecord
	ourWrites int
	// stimuli counts the writes by others, and other causes of writes of ours;
	// lastStimulus is when the last one was.
	stimuli      int
	lastStimulus time.Time
	// lastOurs is when an executor last wrote the Job or a pod of it, and touched
	// when somebody else wrote a pod of it.
	lastOurs, touched time.Time
	// clockUnseen: clocks were set so that counts change (noteCrossings), and no executor has asked about the Job since
	// then. clockSeen is when one first asked after the last such change.
	clockUnseen bool
	clockSeen   time.Time
	// secondAt is when a second controller last wrote the Job or a pod of it; said is
	// when each executor last said so.
	secondAt time.Time
	said     map[string]time.Time
}

type earlierSpec struct {
	job   *batchv1.Job
	until time.Time
}

func (j *judge) jobWritten(w apiserver.Write, ours bool) {
	r, known := j.jobs[w.UID]
	next, _ := w.New.(*batchv1.Job)
	before := j.book.Taken()
	problems := j.entered(w.UID, next)
	if ours {
		j.steps.add(before, j.book.Taken())
	}
	if !known {
		if next == nil {
			return
		}
		r = newJobRecord(w, next)
		if optionsOf(next).TerminationDeadlineNode == "NotReady" {
			r.nodes = j.nodes
		}
		j.jobs[w.UID] = r
		j.adoptKnownPods(w, r)
		j.cronJobStarted(w, ours, r)
		return
	}
	if ours {
		j.judgeJobWrite(w, r, next, problems)
	}
	if next == nil {
		r.gone, r.goneAt = true, w.Time
		j.countJobWrite(w, ours, r, false)
		return
	}
	old := r.job
	if w.Subresource == "status" {
		r.observeStatus(w, ours, j.second(w.By), next, j.surely())
	}
	r.advance.observe(w, old, next)
	specChanged := old.Generation != next.Generation
	if specChanged {
		r.earlier = append(r.earlier, earlierSpec{old, w.Time})
	}
	if r.deletedAt.IsZero() && next.DeletionTimestamp != nil {
		r.deletedAt = w.Time
	}
	if owner := cronOf(old); owner != cronOf(next) {
		r.formerCron, r.leftCron = owner, w.Time
	}
	r.valid.had(next.Annotations)
	r.job, r.waitsForEver = next, optionsOf(next).TerminationDeadlineSeconds == 0
	if specChanged {
		r.observeAgain(w)
	}
	j.countJobWrite(w, ours, r, specChanged)
}

// entered enters a version of a Job, or that it is gone, into the book.
func (j *judge) entered(uid types.UID, next *batchv1.Job) []ledger.Problem {
	if next == nil {
		j.book.JobGone(uid)
		return nil
	}
	return j.book.Job(next)
}

func newJobRecord(w apiserver.Write, job *batchv1.Job) *jobRecord {
	r := &jobRecord{
		terminationDeadline: time.Duration(optionsOf(job).TerminationDeadlineSeconds) * time.Second,
		uid:                 w.UID, key: w.Key, job: job, created: w.Time, createdBy: w.By, lastStimulus: w.Time,
		live: map[types.UID]*podRecord{}, entries: map[types.UID]*entry{}, done: map[int32]mark{},
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil || job.Spec.Selector == nil {
		selector = labels.Nothing()
	}
	r.selector = selector
	r.valid.had(job.Annotations)
	return r
}

// adoptKnownPods finds the pods that named the Job before it existed.
func (j *judge) adoptKnownPods(w apiserver.Write, r *jobRecord) {
	for _, uid := range sortedUIDs(j.pods) {
		p := j.pods[uid]
		if p.gone || controllerUID(p.pod) != r.uid {
			continue
		}
		p.job, p.claimedAt, p.claimedBy = r, w.Time, w.By
		r.live[uid] = p
		r.observePod(w, p)
	}
}

// observeAgain re-reads the pods, because they may count differently now.
func (r *jobRecord) observeAgain(w apiserver.Write) {
	for _, uid := range sortedUIDs(r.live) {
		r.observePod(w, r.live[uid])
	}
}

// observeStatus records the content of a status; judgeStatus checks it. known is the
// time up to which every view was complete.
func (r *jobRecord) observeStatus(w apiserver.Write, ours, second bool, next *batchv1.Job, known time.Time) {
	if !ours && !second && !sameBooks(&r.job.Status, &next.Status) {
		r.tampered = true
	}
	listed := uncounted(&next.Status)
	for uid := range uncounted(&r.job.Status) {
		if e := r.entries[uid]; e != nil && listed[uid] == "" {
			e.counted++
		}
	}
	for uid, as := range listed {
		if r.entries[uid] == nil {
			r.entries[uid] = &entry{as: as, mark: mark{w.By, w.Time}}
		}
	}
	r.completed, r.failed = completedIndexes(&next.Status), failedIndexes(&next.Status)
	r.markDone(w)
	if r.decidedAt.IsZero() && decided(next) != "" {
		r.decidedAt, r.decidedBy, r.decidedOn = w.Time, w.By, known
	}
	if r.finishedAt.IsZero() && finished(next) != "" {
		r.finishedAt, r.finishedBy = w.Time, w.By
	}
}

// markDone marks the indexes that a status lists as done, and removes the marks of the
// others.
func (r *jobRecord) markDone(w apiserver.Write) {
	done := map[int32]mark{}
	for ix := range r.completed.Union(r.failed).All {
		if m, known := r.done[ix]; known {
			done[ix] = m
		} else {
			done[ix] = mark{w.By, w.Time}
		}
	}
	r.done = done
}

func sameBooks(a, b *batchv1.JobStatus) bool {
	return a.Succeeded == b.Succeeded && a.Failed == b.Failed && a.CompletedIndexes == b.CompletedIndexes &&
		len(uncounted(a)) == len(uncounted(b))
}

// uncounted maps the UIDs in a status's lists to the list that they stand in.
func uncounted(s *batchv1.JobStatus) map[types.UID]outcome {
	if s.UncountedTerminatedPods == nil {
		return nil
	}
	all := map[types.UID]outcome{}
	for _, uid := range s.UncountedTerminatedPods.Succeeded {
		all[uid] = asSucceeded
	}
	for _, uid := range s.UncountedTerminatedPods.Failed {
		all[uid] = asFailed
	}
	return all
}

// recent are the versions whose spec an executor may use: the newest, and those that
// were the newest not long ago.
func (j *judge) recent(r *jobRecord) []*batchv1.Job {
	versions := []*batchv1.Job{r.job}
	for i := len(r.earlier) - 1; i >= 0 && !j.old(r.earlier[i].until); i-- {
		versions = append(versions, r.earlier[i].job)
	}
	return versions
}

// always reports whether is holds for all recent versions of the Job.
func (j *judge) always(r *jobRecord, so func(*batchv1.Job) bool) bool {
	return !slices.ContainsFunc(j.recent(r), func(job *batchv1.Job) bool { return !so(job) })
}

// lately reports whether is holds for a recent version of the Job.
func (j *judge) lately(r *jobRecord, so func(*batchv1.Job) bool) bool {
	return !j.always(r, func(job *batchv1.Job) bool { return !so(job) })
}
