package ledger

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
)

// A jobPast is what was ever stored of a Job and allows a controller to end its pods, or to let them go uncounted.
// A controller may act on any of it, because what it knows may be old. Nobody can know what was never stored.
type jobPast struct {
	suspended, declared, deleting, gone, indexed bool
	// shrunk: it asked for fewer pods than before. crowded: more pods were active than some version asked for.
	shrunk, crowded bool
	// endsUnstarted, prunes and givesUp: a version had the option never_started, keep_finished_pods, or
	// termination_deadline_seconds.
	endsUnstarted, prunes, givesUp bool
	// policy is the annotation with the options of the newest version.
	policy string

	parallelism int32  // The least that it ever asked for.
	completions *int32 // As well; nil: it never had a number.
	recorded    map[types.UID]bool
	active      map[types.UID]*corev1.Pod
	succeeded   map[types.UID]*corev1.Pod
	// shared are the indexes that two active pods had.
	shared map[string]bool
}

// A podPast is what was ever stored of a pod and of those that controlled it.
type podPast struct {
	jobs []*jobPast
	// putBack: its finalizer came back. astray: a Job controlled it, and did not select it.
	putBack, astray bool
	// loose: nothing controlled it. ofJob: its owner reference named a Job, which need not have existed.
	loose, ofJob bool
}

func (b *Book) jobPastOf(uid types.UID) *jobPast {
	past := b.jobPasts[uid]
	if past == nil {
		past = &jobPast{
			parallelism: -1, recorded: map[types.UID]bool{}, shared: map[string]bool{},
			active: map[types.UID]*corev1.Pod{}, succeeded: map[types.UID]*corev1.Pod{},
		}
		b.jobPasts[uid] = past
	}
	return past
}

// remember adds a version of the Job.
func (p *jobPast) remember(job *batchv1.Job) {
	p.suspended = p.suspended || ptr.Deref(job.Spec.Suspend, false) || IsTrue(job, batchv1.JobSuspended)
	p.declared = p.declared || IsFinished(job) || IsTrue(job, batchv1.JobSuccessCriteriaMet) || IsTrue(job, batchv1.JobFailureTarget)
	p.indexed = IsIndexed(job)
	p.deleting = p.deleting || job.DeletionTimestamp != nil
	for uid := range uncounted(job) {
		p.recorded[uid] = true
	}
	if text := job.Annotations[wire.Policy]; text != p.policy {
		p.policy = text
		policy, _ := wire.PolicySpec(job.Annotations)
		_, named := wire.PolicyName(job.Annotations) // Such a policy may say anything.
		p.endsUnstarted = p.endsUnstarted || named || len(policy.GetJob().GetNeverStarted()) > 0
		p.prunes = p.prunes || named || policy.GetJob().GetKeepFinishedPods() != nil
		p.givesUp = p.givesUp || named || policy.GetJob().GetTerminationDeadlineSeconds() > 0
	}
	parallelism := ptr.Deref(job.Spec.Parallelism, 1)
	if p.parallelism >= 0 && parallelism < p.parallelism {
		p.shrunk = true
	}
	if p.parallelism < 0 || parallelism < p.parallelism {
		p.parallelism = parallelism
	}
	if most := job.Spec.Completions; most != nil && (p.completions == nil || *most < *p.completions) {
		p.shrunk = p.shrunk || p.completions != nil
		p.completions = most
	}
	p.count(job)
}

// count looks whether more pods are active, or have succeeded, than the Job ever asked for.
func (p *jobPast) count(job *batchv1.Job) {
	done := len(p.succeeded)
	switch lists := job.Status.UncountedTerminatedPods; {
	case IsIndexed(job):
		all := Indexes(job.Status.CompletedIndexes)
		for _, pod := range p.succeeded {
			all = all.Union(Indexes(indexOf(pod)))
		}
		done = int(all.Len())
	case lists != nil:
		done = max(done, int(job.Status.Succeeded)+len(lists.Succeeded))
	default:
		done = max(done, int(job.Status.Succeeded))
	}
	n := len(p.active)
	p.crowded = p.crowded || n > int(p.parallelism) || n > 0 && p.completions != nil && n+done > int(*p.completions)
}

func (b *Book) podPastOf(uid types.UID) *podPast {
	past := b.podPasts[uid]
	if past == nil {
		past = &podPast{}
		b.podPasts[uid] = past
	}
	return past
}

// rememberPod adds a version of a pod; nil: it is gone.
func (b *Book) rememberPod(uid types.UID, was, pod *corev1.Pod) {
	past := b.podPastOf(uid)
	for _, job := range past.jobs {
		if !b.rivals {
			delete(job.active, uid)
		}
	}
	if pod == nil {
		return
	}
	past.putBack = past.putBack || was != nil && !Held(was) && Held(pod)
	past.loose = past.loose || controllerOf(pod) == ""
	past.ofJob = past.ofJob || b.ever[controllerOf(pod)] || slices.ContainsFunc(pod.OwnerReferences, isJobReference)
	if b.ever[controllerOf(pod)] {
		b.rememberOwned(past, was != nil, pod)
	}
}

// rememberOwned adds a version of a pod that a Job controls. known: the pod was there before.
func (b *Book) rememberOwned(past *podPast, known bool, pod *corev1.Pod) {
	uid, owner := pod.UID, controllerOf(pod)
	job := b.jobPastOf(owner)
	if !slices.Contains(past.jobs, job) {
		past.jobs = append(past.jobs, job)
		// Whoever adopts a pod may not know yet that another one has ended.
		job.crowded = job.crowded || known
	}
	job.crowded = job.crowded || past.putBack // A pod whose finalizer came back may count once more.
	switch index := indexOf(pod); {
	case pod.Status.Phase == corev1.PodSucceeded:
		job.succeeded[uid] = pod
	case !Ended(pod) && pod.DeletionTimestamp == nil:
		for _, other := range job.active {
			job.shared[index] = job.shared[index] || indexOf(other) == index
		}
		job.active[uid] = pod
	}
	if a := b.jobs[owner]; a != nil {
		past.astray = past.astray || !selects(a.job, pod)
		job.count(a.job)
	}
}

// selects reports whether a Job's selector matches a pod. A Job without one, which the API server does not store, selects all.
func selects(job *batchv1.Job, pod *corev1.Pod) bool {
	if job.Spec.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// mayEnd reports whether a version of the Job wanted the pod to end, or to be let go.
func (p *jobPast) mayEnd(pod *corev1.Pod) bool {
	index := indexOf(pod)
	n, err := parseIndex(index)
	outside := err != nil || n < 0 || p.completions != nil && n >= *p.completions
	return p.suspended || p.declared || p.deleting || p.gone || p.shrunk || p.crowded || p.indexed && (outside || p.shared[index])
}

// failedIndex reports whether a status lists the index of a pod as failed. It stays failed, whatever becomes of its pods.
func failedIndex(job *batchv1.Job, pod *corev1.Pod) bool {
	return !Indexes(ptr.Deref(job.Status.FailedIndexes, "")).Intersect(Indexes(indexOf(pod))).Empty()
}
