package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// deleting: finalizers keep the Job, whether it has finished or not. Its conditions say no more
// what becomes of it.
func (w *work) deleting() bool {
	if w.Job.DeletionTimestamp == nil {
		return false
	}
	ended := ""
	if c := wire.FinishedCondition(w.Job); c != nil {
		ended = fmt.Sprintf(" Before that it was %s: %s.", c.Type, sentence(c.Reason, c.Message))
	}
	w.Change = append(w.Change, whoRemoves(w.Job.Finalizers, "pods", len(w.Facts.Pods) == 0 && !w.recorded, w.Now.Sub(w.Job.DeletionTimestamp.Time) > reactionTime)...)
	return w.say(Deleting, "Deletion of the Job was requested at %s. %s%s", w.when(w.Job.DeletionTimestamp.Time), kept(w.Job.Finalizers), ended)
}

// kept says which finalizers keep an object that is being deleted.
func kept(finalizers []string) string {
	switch len(finalizers) {
	case 0:
		return "Nothing keeps it."
	case 1:
		return fmt.Sprintf("The finalizer %s keeps it.", finalizers[0])
	}
	return fmt.Sprintf("The finalizers %s keep it.", strings.Join(finalizers, ", "))
}

// whoRemoves says of each finalizer who removes it, and when. dependents are the objects that the
// object owns. gone: there are none any more. late: the deletion was requested long enough ago that somebody should have
// reacted.
func whoRemoves(finalizers []string, dependents string, gone, late bool) []string {
	var lines []string
	for _, f := range finalizers {
		switch f {
		case metav1.FinalizerDeleteDependents:
			line := fmt.Sprintf("%s: the garbage collector removes it when the %s are gone, which it deletes first (--cascade=foreground).", f, dependents)
			if gone && late {
				line += " They are gone: see whether something else that it owns stays, what the garbage collector of kube-controller-manager logs, and whether a webhook or an admission policy denies it the update."
			}
			lines = append(lines, line)
		case metav1.FinalizerOrphanDependents:
			line := fmt.Sprintf("%s: the garbage collector removes it when it has taken the owner references off the %s, which stay (--cascade=orphan).", f, dependents)
			if late {
				line += " That waits for nothing else: see what the garbage collector of kube-controller-manager logs, and whether a webhook or an admission policy denies it these updates."
			}
			lines = append(lines, line)
		default:
			lines = append(lines, f+": the tool that has set it has to remove it. If the tool is gone, remove it by hand; then what it was to do is not done.")
		}
	}
	return lines
}

// tellWrongOwner says that the garbage collector deletes the Job, because it finds its owner in no namespace that counts.
// A tool that then creates it anew makes this go on for ever.
func (w *work) tellWrongOwner() {
	e := latest(w.Events, "OwnerRefInvalidNamespace")
	if e == nil || w.Job.DeletionTimestamp != nil {
		return
	}
	w.Headline += fmt.Sprintf(" The garbage collector deletes it with its pods if it has no other owner: %s.", strings.TrimSuffix(e.Message, "."))
	w.advise("An owner has to be in the namespace of what it owns, or in none. Let the tool that created the Job set no such owner, or create the Job in the namespace of its owner.")
}

// lateEnd finds a pod that should be gone. Its node may be gone, or a finalizer keeps it.
func (w *work) lateEnd(p *corev1.Pod) (PodProblem, bool) {
	late := w.Now.Sub(p.DeletionTimestamp.Time)
	if late < reactionTime {
		return PodProblem{}, false
	}
	since, reason := simulate.Clock(late.Round(accuracy)), ""
	if itself := ofItself(p); itself != "" {
		reason = " (" + itself + ")"
	}
	if !ended(p) && p.Spec.NodeName != "" {
		return PodProblem{
			Kind: "terminating", Why: fmt.Sprintf("should have ended %s ago, and still runs on node %s%s%s", since, p.Spec.NodeName, reason, w.takenAsFailed(p)),
			Change: "See whether the node is there (kubectl get nodes) and what finalizers the pod has.",
		}, true
	}
	if len(p.Finalizers) == 0 {
		return PodProblem{}, false
	}
	change := "The tools that have set them have to remove them."
	if slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
		change = fmt.Sprintf("%s removes %s when the status of the Job counts the pod", manager(w.Job), batchv1.JobTrackingFinalizer)
		if len(p.Finalizers) > 1 {
			change += "; the others have their own tools"
		}
		change += "."
	}
	return PodProblem{
		Kind: "terminating", Why: fmt.Sprintf("should be gone since %s%s. %s", since, reason, kept(p.Finalizers)), Change: change,
	}, true
}

// takenAsFailed says when a pod that does not end counts as failed, or as gone if the Job has accounted for it already;
// empty if it never does.
func (w *work) takenAsFailed(p *corev1.Pod) string {
	at, taken := p.DeletionTimestamp.Add(w.terminationDeadline()), "taken as failed"
	if w.accountedFor(p) {
		taken = "taken as gone"
	}
	switch reads := ReadsNodes(w.Job); {
	case w.terminationDeadline() == 0:
		return ""
	case at.After(w.Now) && reads:
		return fmt.Sprintf("; by terminationDeadlineSeconds it is %s at %s, if its node is not Ready then", taken, w.when(at))
	case at.After(w.Now):
		return fmt.Sprintf("; by terminationDeadlineSeconds it is %s at %s", taken, w.when(at))
	case !reads:
		return fmt.Sprintf("; by terminationDeadlineSeconds it has been taken as failed since %s, and may do its work all the same", w.when(at))
	case w.overdue(p):
		return "; by terminationDeadlineSeconds it is taken as failed, because its node is not Ready (if the executor may read nodes), and may do its work all the same"
	case w.node(p) == jobpolicyv1.NodeState_NODE_STATE_READY:
		return fmt.Sprintf("; by terminationDeadlineNode it is not %s, because its node is Ready", taken)
	}
	return fmt.Sprintf("; by terminationDeadlineNode it is %s if its node is not Ready, which is not known here", taken)
}

// accountedFor reports whether the Job has counted or recorded a pod that has not ended: it was released when its deletion was
// requested, or given up while its node was not Ready.
func (w *work) accountedFor(p *corev1.Pod) bool {
	recorded := w.Job.Status.UncountedTerminatedPods
	return !holdsFinalizer(p) || recorded != nil && slices.Contains(recorded.Failed, p.UID)
}

// overdue reports whether a pod that is being deleted is taken as failed although it has not ended.
func (w *work) overdue(p *corev1.Pod) bool {
	policy, _ := wire.PolicySpec(w.Job.Annotations)
	deadline := w.terminationDeadline()
	return deadline > 0 && !p.DeletionTimestamp.Add(deadline).After(w.Now) && podfacts.NodeLost(policy.GetJob(), w.node(p))
}

// terminationDeadline is how long after the time of its deletion a pod is taken as failed; 0: never.
func (w *work) terminationDeadline() time.Duration {
	policy, _ := wire.PolicySpec(w.Job.Annotations)
	return time.Duration(policy.GetJob().GetTerminationDeadlineSeconds()) * time.Second
}
