package world

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A standing is what the order in which pods are deleted looks at, as the API server stores it.
type standing struct {
	scheduled bool
	phase     corev1.PodPhase
	ready     bool
	// readySince has whole seconds, as created has. It is zero unless the pod is ready.
	readySince, created time.Time
	// restarts is the highest count of one container, sidecar that of a sidecar.
	restarts, sidecar int32
}

func standingOf(pod *corev1.Pod) standing {
	s := standing{scheduled: pod.Spec.NodeName != "", phase: pod.Status.Phase, ready: podReady(pod), created: pod.CreationTimestamp.Time}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && s.ready {
			s.readySince = c.LastTransitionTime.Time
		}
	}
	for i := range pod.Status.ContainerStatuses {
		s.restarts = max(s.restarts, pod.Status.ContainerStatuses[i].RestartCount)
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
			return c.Name == status.Name && valueOr(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		}) {
			s.sidecar = max(s.sidecar, status.RestartCount)
		}
	}
	return s
}

// phaseOrder are the phases of pods that have not ended, in the order of their deletion.
var phaseOrder = []corev1.PodPhase{corev1.PodPending, corev1.PodUnknown, corev1.PodRunning}

// goesBefore reports whether one pod is deleted before another: the one without a node; the earlier
// phase; the one that is not ready; ready for a shorter time; restarted more often; newer. This is the order of
// the built-in controller (ActivePods in k8s.io/kubernetes/pkg/controller, v1.37). Pods that are equal in
// all of that may go in any order.
func (s standing) goesBefore(other standing) bool {
	yes := func(is bool) int { return map[bool]int{true: 1}[is] }
	ready := 0
	if s.ready && other.ready {
		ready = other.readySince.Compare(s.readySince)
	}
	return cmp.Or(
		cmp.Compare(yes(s.scheduled), yes(other.scheduled)),
		cmp.Compare(slices.Index(phaseOrder, s.phase), slices.Index(phaseOrder, other.phase)),
		cmp.Compare(yes(s.ready), yes(other.ready)),
		ready,
		cmp.Compare(other.restarts, s.restarts),
		cmp.Compare(other.sidecar, s.sidecar),
		other.created.Compare(s.created),
	) < 0
}

// A place is a standing, and since when the pod has it.
type place struct {
	standing
	since time.Time
}

// observeStanding notes that the pod changes its place in the order of deletion.
func (p *podRecord) observeStanding(w apiserver.Write) {
	if now := standingOf(p.pod); len(p.places) == 0 || p.places[len(p.places)-1].standing != now {
		p.places = append(p.places, place{now, w.Time})
	}
}

// surelyBefore reports whether one pod goes before another in all views that executors may have of them.
func (j *judge) surelyBefore(q, p *podRecord) bool {
	for i := len(q.places) - 1; i >= 0; i-- {
		for k := len(p.places) - 1; k >= 0; k-- {
			if !q.places[i].goesBefore(p.places[k].standing) {
				return false
			}
			if j.old(p.places[k].since) {
				break
			}
		}
		if j.old(q.places[i].since) {
			break
		}
	}
	return true
}

// A passingOver is the deletion of a pod while another one, which goes before it, was active.
type passingOver struct {
	by              string
	at              time.Time
	deleted, spared *podRecord
}

// judgeOrder: of the pods of a Job that has too many, those go first whose end loses the least work, and of
// the pods that share an index, the one stays that would go last. Deletions are under way together, so
// the one that was passed over may still follow (judgePassedOver).
func (j *judge) judgeOrder(w apiserver.Write, r *jobRecord, p *podRecord) {
	if !p.active() || !r.decidedAt.IsZero() || r.gone || r.job.DeletionTimestamp != nil || j.namespaceGoes(r) || j.lately(r, suspended) || j.endsUnstarted(r, p, w.By) {
		return
	}
	if j.lately(r, func(job *batchv1.Job) bool { return !inRange(job, p.pod) }) {
		return
	}
	shares := j.shared(r, p, w.By)
	for _, uid := range sortedUIDs(r.live) {
		q := r.live[uid]
		if q == p || !q.active() || shares && podIndex(q.pod) != podIndex(p.pod) || !j.shownOf(r, q, w.By) && !(shares && j.impliedBy(r, q)) {
			continue
		}
		if j.surelyBefore(q, p) {
			j.passings = append(j.passings, passingOver{w.By, w.Time, p, q})
		}
	}
}

// impliedBy reports whether an executor that deletes another pod of the same index must have seen this one: without it, the Job
// has no pod too many.
func (j *judge) impliedBy(r *jobRecord, q *podRecord) bool {
	var others int64
	for _, p := range j.inSight(r) {
		if p != q && (p.active() || !j.old(latest(p.endedAt, p.deletedAt))) {
			others++
		}
	}
	return len(j.recent(r)) == 1 && r.selects(q.pod) && q.strayAt.IsZero() && others <= j.wanted(r, r.succeeded(r.all()))
}

// judgePassedOver: a pod that was passed over is deleted in the same reconcile, unless something fails.
func (j *judge) judgePassedOver() {
	var open []passingOver
	for _, o := range j.passings {
		r := o.deleted.job
		switch {
		case r == nil || o.spared.job != r || !o.spared.active() || j.troubledAt.After(o.at) || j.hinderedTo(r).After(o.at):
		case !j.old(o.at):
			open = append(open, o)
		default:
			j.breach("deletion", o.deleted.key, o.deleted.uid, "%s deleted a pod of Job %s (%s) and kept pod %s (%s), and that one goes before it",
				o.by, r.key.Name, o.deleted.places[len(o.deleted.places)-1], o.spared.key.Name, o.spared.places[len(o.spared.places)-1])
		}
	}
	j.passings = open
}

func (s standing) String() string {
	return sprint("scheduled %t, %s, ready %t since %s, restarts %d and %d, created %s", s.scheduled, s.phase, s.ready, s.readySince.UTC().Format(time.TimeOnly),
		s.restarts, s.sidecar, s.created.UTC().Format(time.TimeOnly))
}

// hinderedTo is until when something keeps executors from acting on a Job.
func (j *judge) hinderedTo(r *jobRecord) time.Time {
	return latest(j.hindrances[""], j.hindrances[r.key.Namespace])
}
