package world

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// noIndex is the index of a pod without a usable completion index.
const noIndex int32 = -1

// A podRecord is what happened to one pod.
type podRecord struct {
	uid types.UID
	key types.NamespacedName
	// pod is the newest version, or the last one if the pod is gone; running is the last
	// version that had not ended.
	pod     *corev1.Pod
	running *corev1.Pod
	created time.Time
	gone    bool
	goneAt  time.Time

	// job is the Job that controls the pod, nil if none does; claimed says when and by
	// whom that began.
	job       *jobRecord
	claimedAt time.Time
	claimedBy string
	// former is the Job that controlled the pod before; left is when that ended.
	former *jobRecord
	left   time.Time

	// due is when the pod first had to be counted: it had the finalizer, its Job
	// selected it, and it had ended or its deletion counted as an end.
	due      bool
	dueAt    time.Time
	dueOrder uint64
	// dueBefore: it had not ended at that time.
	dueBefore bool
	// ranAt is when the pod first showed that one of its containers has run.
	ranAt time.Time
	// takenAt is when the pod first showed that a node has taken it.
	takenAt time.Time
	// problem is what kept it from starting.
	problem startProblem
	// finished is the earliest end time that the pod has reported since it was due;
	// saidToEnd is the latest end time that it ever reported.
	finished, saidToEnd time.Time
	// first is the first version that showed how the pod ended; flipped: a later
	// version showed another end.
	first   *corev1.Pod
	endedAt time.Time
	flipped bool

	deletedAt time.Time
	deletedBy string
	// overdueSince is when the pod was found to be overdue (judge_overdue.go).
	overdueSince time.Time
	// strayAt is when the Job's selector last did not match the pod, or when the Job
	// lost the pod.
	strayAt time.Time
	// released is when the finalizer was removed, and by whom; excuse is why the pod
	// was released without being counted. accounted: an executor released it after a
	// status had accounted for it.
	released  mark
	excuse    string
	accounted bool
	// pruned: an executor has deleted it because its Job keeps few finished pods (judge_finished.go).
	pruned bool

	// revivals is how often somebody else has changed the pod's owner or put its
	// finalizer back; revivedAt is when that last happened. After that, nothing in the
	// cluster shows that the pod was counted.
	revivals  int32
	revivedAt time.Time

	// places are those that it had in the order of deletion, and last the one that it has.
	places []place

	restarts           int64
	restartedAt        time.Time
	ourWrites, foreign int
}

func (j *judge) podWritten(w apiserver.Write, ours bool) {
	old, _ := w.Old.(*corev1.Pod)
	next, _ := w.New.(*corev1.Pod)
	if pod, _ := podOf(w); pod.Annotations[annotationAltered] != "" {
		j.altered(w, pod)
		return
	}
	problems := j.enterPod(w, ours, next)
	if ours {
		before := len(j.found)
		j.judgeOwnership(w, old, next)
		j.judgePodWrite(w, old, next)
		if len(j.found) == before { // What two judges say of one write is said once.
			j.judgeSteps(w, problems)
		}
		if pod, _ := podOf(w); j.jobs[controllerUID(pod)] != nil {
			j.judgeStandDown(w, j.jobs[controllerUID(pod)])
		}
	}
	j.observePod(w, ours, old, next)
}

// enterPod enters a version of a pod, or that it is gone, into the book.
func (j *judge) enterPod(w apiserver.Write, ours bool, next *corev1.Pod) (problems []ledger.Problem) {
	if !ours {
		if next != nil {
			return j.book.Pod(next)
		}
		return j.book.PodGone(w.UID)
	}
	before := j.book.Taken()
	problems = j.book.ControllerPod(w.UID, next)
	j.steps.add(before, j.book.Taken())
	return problems
}

// judgeSteps reports what an executor did that is no step of a pod. Of the release of a pod that has ended, judgeRelease knows more.
func (j *judge) judgeSteps(w apiserver.Write, problems []ledger.Problem) {
	for _, problem := range problems {
		if problem.Kind != ledger.ReleasedTooSoon {
			j.report(said{problem.Rule(), string(problem.Kind), w.UID}, w.Key, w.By+" wrote a pod: "+problem.String())
		}
	}
}

// judgePodWrite checks an executor's write of a pod.
func (j *judge) judgePodWrite(w apiserver.Write, old, next *corev1.Pod) {
	switch {
	case old == nil:
		j.judgeCreation(w, next)
		return
	case holds(old) && !holds(next):
		j.judgeRelease(w, j.pods[w.UID])
	}
	j.judgeTold(w, j.pods[w.UID], old, next)
	if w.Verb == "delete" || w.Verb == "deletecollection" {
		j.judgeDeletion(w, j.pods[w.UID])
		if r := j.pods[w.UID].job; r != nil {
			j.judgeOrder(w, r, j.pods[w.UID])
		}
	}
}

func (j *judge) observePod(w apiserver.Write, ours bool, old, next *corev1.Pod) {
	p, known := j.pods[w.UID]
	if !known {
		p = &podRecord{uid: w.UID, key: w.Key, created: w.Time}
		j.pods[w.UID] = p
	}
	if p.flipped = p.flipped || flips(p.first, next); next != nil {
		if p.ranAt.IsZero() && hasRun(next) {
			p.ranAt = w.Time
		}
		if p.takenAt.IsZero() && next.Status.StartTime != nil {
			p.takenAt = w.Time
		}
		if p.pod = next; !ledger.Ended(next) {
			p.running = next
		}
		p.observeStart(w)
		p.observeStanding(w)
	} else {
		p.gone, p.goneAt = true, w.Time
	}
	if !ours && old != nil && next != nil && p.revives(old, next) {
		p.revivals++
		p.revivedAt = w.Time
	}
	before := p.job
	j.observeOwner(w, p, next)
	if !ours {
		j.touch(w, before, p)
	}
	p.observeEnd(w, ours, old, next)
	if p.job != nil {
		p.job.observePod(w, p)
	}
	j.countWrite(w, ours, p)
}

// revives reports whether somebody changes the pod's owner (also by its labels), or
// puts the finalizer back.
func (p *podRecord) revives(old, next *corev1.Pod) bool {
	relabelled := p.job != nil && p.job.selects(old) != p.job.selects(next)
	return (!holds(old) && holds(next)) || controllerUID(old) != controllerUID(next) || relabelled
}

func (j *judge) observeOwner(w apiserver.Write, p *podRecord, next *corev1.Pod) {
	if next == nil {
		if p.job != nil {
			p.job.depart(p)
		}
		return
	}
	owner := j.jobs[controllerUID(next)]
	if owner == p.job {
		return
	}
	if p.job != nil {
		p.job.depart(p)
		p.former, p.left, p.strayAt = p.job, w.Time, w.Time
	}
	if p.job = owner; owner != nil {
		owner.live[p.uid] = p
		p.claimedAt, p.claimedBy = w.Time, w.By
	}
}

func (r *jobRecord) depart(p *podRecord) {
	delete(r.live, p.uid)
	r.departed = append(r.departed, p)
}

// inSight are the pods that an executor may take for the Job's: the live ones, and those
// that left a moment ago.
func (j *judge) inSight(r *jobRecord) []*podRecord {
	var pods []*podRecord
	for _, uid := range sortedUIDs(r.live) {
		pods = append(pods, r.live[uid])
	}
	for _, p := range slices.Backward(r.departed) {
		if j.old(latest(p.goneAt, p.left)) {
			break
		}
		if r.live[p.uid] == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// taken reports whether somebody else took a pod away, so that this executor may still
// count on it.
func (r *jobRecord) taken(p *podRecord, by string) bool {
	return r.live[p.uid] == nil && p.deletedBy != by && p.released.by != by
}

func (p *podRecord) observeEnd(w apiserver.Write, ours bool, old, next *corev1.Pod) {
	switch {
	case old == nil:
	case holds(old) && !holds(next):
		p.released = mark{w.By, w.Time}
		if !ours {
			p.excuse = "somebody else took its finalizer"
		}
	case !holds(old) && holds(next):
		p.excuse = ""
	}
	if next == nil {
		return
	}
	if n := restarts(next); n > p.restarts {
		p.restarts, p.restartedAt = n, w.Time
	}
	if p.first == nil && ledger.Ended(next) {
		p.first, p.endedAt = next, w.Time
	}
	if ledger.Ended(next) {
		p.saidToEnd = latest(p.saidToEnd, finishTime(next))
	}
	if p.deletedAt.IsZero() && next.DeletionTimestamp != nil {
		p.deletedAt, p.deletedBy = w.Time, w.By
	}
}

// observePod records what a version of a pod means for its Job.
func (r *jobRecord) observePod(w apiserver.Write, p *podRecord) {
	if p.gone {
		return
	}
	if old, ok := w.Old.(*corev1.Pod); !r.selects(p.pod) || (ok && !r.selects(old)) {
		p.strayAt = w.Time
	}
	if !r.selects(p.pod) {
		return
	}
	as := ledger.Ended(p.pod) || (p.pod.DeletionTimestamp != nil && !replacesFailedOnly(r.job))
	if p.pod.Status.Phase == corev1.PodSucceeded && !holds(p.pod) && p.pod.DeletionTimestamp == nil && !r.had(p) && !slices.Contains(r.loose, p) {
		r.loose = append(r.loose, p)
	}
	if as && holds(p.pod) && !r.had(p) {
		p.due, p.dueAt, p.dueOrder, p.dueBefore = true, w.Time, w.ResourceVersion, !ledger.Ended(p.pod)
		r.ends = append(r.ends, p)
		p.finished = w.Time
	}
	if at := finishTime(p.pod); p.due && at.Before(p.finished) {
		p.finished = at
	}
}

// succeeded and failed say how the pod ended first, which is final. Both are false
// before it ends.
func (p *podRecord) succeeded() bool {
	return p.first != nil && p.first.Status.Phase == corev1.PodSucceeded
}

func (p *podRecord) failed() bool { return p.first != nil && p.first.Status.Phase == corev1.PodFailed }

// version is the pod as it ended, or as it is.
func (p *podRecord) version() *corev1.Pod {
	if p.first != nil {
		return p.first
	}
	return p.pod
}

// active reports whether the pod runs or will run.
func (p *podRecord) active() bool {
	return !p.gone && !ledger.Ended(p.pod) && p.pod.DeletionTimestamp == nil
}

// terminating reports whether the pod is being deleted and has not ended.
func (p *podRecord) terminating() bool {
	return !p.gone && !ledger.Ended(p.pod) && p.pod.DeletionTimestamp != nil
}

func (r *jobRecord) selects(pod *corev1.Pod) bool { return r.selector.Matches(labels.Set(pod.Labels)) }
