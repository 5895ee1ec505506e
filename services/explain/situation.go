package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// reactionTime is how long a controller may take to act before a report mentions it.
const reactionTime = 30 * time.Second

// queueLabel names the queue of Kueue in which a Job waits.
const queueLabel = "kueue.x-k8s.io/queue-name"

// situation finds the state and writes the headline. The cases are in order of their
// importance to the reader.
func (w *work) situation() {
	for _, look := range []func() bool{
		w.deleting, w.finished, w.ending, w.unmanaged, w.suspended, w.invalidPolicy, w.paused, w.decided, w.blocked, w.backingOff, w.stuck, w.replacing, w.starting,
	} {
		if look() {
			return
		}
	}
	w.running()
}

func (w *work) say(s State, format string, args ...any) bool {
	w.State, w.Headline = s, fmt.Sprintf(format, args...)
	return true
}

func (w *work) advise(format string, args ...any) {
	w.Change = append(w.Change, fmt.Sprintf(format, args...))
}

func (w *work) finished() bool {
	c := wire.FinishedCondition(w.Job)
	if c == nil {
		return false
	}
	took := ""
	if start := w.Job.Status.StartTime; start != nil {
		took = ", " + simulate.Clock(c.LastTransitionTime.Sub(start.Time)) + " after it started"
	}
	w.adviseOnOverdueTTL(c.LastTransitionTime.Time)
	if c.Type == batchv1.JobComplete {
		return w.say(Complete, "The Job completed %s%s: %s.", w.ago(c.LastTransitionTime.Time), took, sentence(c.Reason, c.Message))
	}
	w.advise("A finished Job never runs again. To try again, create it anew, under another name or after deleting this one.")
	w.adviseOnReason(c.Reason)
	w.adviseOnFailures(c.Reason)
	w.adviseOnMemory()
	return w.say(Failed, "The Job failed %s%s: %s.%s", w.ago(c.LastTransitionTime.Time), took, sentence(c.Reason, c.Message), w.whyPodsFailed(c.Reason))
}

// adviseOnReason says which setting led to a failure.
func (w *work) adviseOnReason(reason string) {
	switch reason {
	case batchv1.JobReasonBackoffLimitExceeded:
		w.adviseOnBackoffLimit()
	case batchv1.JobReasonDeadlineExceeded:
		w.advise("spec.activeDeadlineSeconds (%d) is how long it may be active, from status.startTime on: also while its pods wait for a node or an image.", ptr.Deref(w.Job.Spec.ActiveDeadlineSeconds, 0))
	case "StartDeadlineExceeded":
		w.advise("job.startDeadlineSeconds is how soon one of its pods must run.")
	case "PodNeverStarted":
		w.advise("job.neverStarted says how long a pod may take to start, by what keeps it.")
	case batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded:
		w.advise("Indexes that failed: %s (status.failedIndexes). spec.backoffLimitPerIndex (%d) is how many more times each of them was tried, unless a rule of spec.podFailurePolicy failed it.",
			failedIndexes(w.Job), ptr.Deref(w.Job.Spec.BackoffLimitPerIndex, 0))
	case batchv1.JobReasonPodFailurePolicy:
		w.advise("A rule of spec.podFailurePolicy with the action FailJob matched; no retry follows one, whatever backoffLimit says.")
	}
}

// failedIndexes are the failed indexes of a Job, the first ones if there are many: the status may list thousands.
func failedIndexes(job *batchv1.Job) string {
	list := ptr.Deref(job.Status.FailedIndexes, "not told")
	if len(list) <= maxMessage {
		return list
	}
	return list[:strings.LastIndex(list[:maxMessage], ",")+1] + "…"
}

func sentence(reason, message string) string {
	message = strings.TrimSuffix(message, ".")
	if message == "" {
		return reason
	}
	return fmt.Sprintf("%s (%s)", message, reason)
}

// ending: the verdict is in the status, and the terminal condition follows when the pods
// have ended.
func (w *work) ending() bool {
	if c := jobCondition(w.Job, batchv1.JobFailureTarget); c != nil {
		w.adviseOnReason(c.Reason)
		w.adviseOnFailures(c.Reason)
		w.adviseOnLateEnds()
		w.adviseOnNoReaction(c.LastTransitionTime.Time)
		return w.say(Failing, "The Job has failed: %s. %s.%s", sentence(c.Reason, c.Message), w.remaining(Failed), w.whyPodsFailed(c.Reason))
	}
	if c := jobCondition(w.Job, batchv1.JobSuccessCriteriaMet); c != nil {
		w.adviseOnLateEnds()
		w.adviseOnNoReaction(c.LastTransitionTime.Time)
		return w.say(Completing, "The Job has succeeded: %s. %s.", sentence(c.Reason, c.Message), w.remaining(Complete))
	}
	return false
}

// adviseOnNoReaction says where to look if a verdict was written long ago, and nothing is left that its end waits for.
func (w *work) adviseOnNoReaction(verdict time.Time) {
	if !w.recorded && len(w.refusals) == 0 && w.Counts.Active+w.Counts.Terminating == 0 && w.kept() == 0 && w.Now.Sub(verdict) > SlowStart {
		w.advise("See whether %s runs, and what it logs.", manager(w.Job))
	}
}

// adviseOnOverdueTTL says where to look if the Job should have been deleted long ago.
func (w *work) adviseOnOverdueTTL(ended time.Time) {
	due := w.Next != nil && w.Next.At == nil && slices.ContainsFunc(w.Next.Steps, func(s Step) bool { return s.Kind == "remove" })
	if ttl := w.Job.Spec.TTLSecondsAfterFinished; ttl != nil && due && !w.recorded && len(w.refusals) == 0 && w.Now.Sub(ended.Add(time.Duration(*ttl)*time.Second)) > SlowStart {
		w.advise("Its time to live is over, and it is still there: see whether the controller of finished Jobs runs (ttl-after-finished-controller of kube-controller-manager), and what it logs.")
	}
}

// remaining says what the last condition waits for.
func (w *work) remaining(last State) string {
	left := w.Counts.Active + w.Counts.Terminating
	switch kept := w.kept(); {
	case left == 0 && w.refuses(writes.ReleasePod, writes.UpdateStatus):
		return "It waits for the API server"
	case left == 0 && kept > 0:
		return fmt.Sprintf("It is %s when %s has removed the finalizer of its pods: %d left", last, manager(w.Job), kept)
	case left == 0:
		return fmt.Sprintf("No pod is left: it is %s when %s has written that", last, manager(w.Job))
	}
	return fmt.Sprintf("It is %s when its pods have ended: %d left", last, left)
}

// unmanaged: the status was never written, so nobody acts on the Job.
func (w *work) unmanaged() bool {
	age := w.Now.Sub(w.Job.CreationTimestamp.Time)
	if w.Job.Status.StartTime != nil || len(w.Job.Status.Conditions) > 0 || len(w.Facts.Pods) > 0 || age < reactionTime {
		return false
	}
	if len(w.Events) > 0 || w.recorded { // somebody tried
		return false
	}
	w.advise("spec.managedBy cannot be changed. If it is wrong, create the Job anew with another value.")
	if builtin(w.Job) {
		w.Change = nil
		w.advise("See whether kube-controller-manager runs, and whether its Job controller is switched on (--controllers).")
		return w.say(Unmanaged, "Nobody has acted on the Job since it was created %s.", w.ago(w.Job.CreationTimestamp.Time))
	}
	w.advise("Install or start the controller that acts on managedBy %q.", *w.Job.Spec.ManagedBy)
	return w.say(Unmanaged, "Nobody has acted on the Job since it was created %s: it asks for the controller %q (spec.managedBy), which is not there, or does not act.",
		w.ago(w.Job.CreationTimestamp.Time), *w.Job.Spec.ManagedBy)
}

func (w *work) suspended() bool {
	if !ptr.Deref(w.Job.Spec.Suspend, false) {
		return false
	}
	suspended := "is suspended"
	if c := jobCondition(w.Job, batchv1.JobSuspended); c != nil {
		suspended = "has been suspended since " + w.when(c.LastTransitionTime.Time)
	}
	if queue := w.Job.Labels[queueLabel]; queue != "" {
		w.advise("It is resumed when its Workload is admitted by the queue %q (Kueue). The Workload says what it waits for: kubectl describe workloads -n %s -l kueue.x-k8s.io/job-uid=%s", queue, w.Namespace, w.Job.UID)
		return w.say(Suspended, "The Job %s: it waits for a place in the queue %q.", suspended, queue)
	}
	w.advise("Set spec.suspend to false: kubectl patch job/%s -n %s -p '{\"spec\":{\"suspend\":false}}'", w.Name, w.Namespace)
	return w.say(Suspended, "The Job %s: it gets no pods until spec.suspend is false.", suspended)
}

// invalidPolicy: the Job does not start, or gets no more pods, because its options cannot be read.
func (w *work) invalidPolicy() bool {
	for _, wait := range w.resp.GetExplanation().GetWaits() {
		if wait.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_INVALID_POLICY {
			w.advise("Correct the policy, or the annotation %s; the Job goes on then.", wire.Policy)
			if w.Job.Status.StartTime != nil {
				return w.say(Invalid, "The Job gets no more pods, because it has no last valid policy (annotation %s): it waits for %s.", wire.LastValidPolicy, wait.GetDetail())
			}
			return w.say(Invalid, "The Job does not start: it waits for %s.", wait.GetDetail())
		}
	}
	return false
}

func (w *work) paused() bool {
	if ptr.Deref(w.Job.Spec.Parallelism, 1) != 0 {
		return false
	}
	w.advise("Set spec.parallelism above 0.")
	return w.say(Paused, "The Job runs no pods, because spec.parallelism is 0.")
}

// decided: the engine has a verdict that the status does not show yet.
func (w *work) decided() bool {
	e := w.resp.GetExplanation()
	if e.GetDecidingRule() == jobpolicyv1.Rule_RULE_UNSPECIFIED {
		return false
	}
	state, word := Completing, "succeeds"
	for _, c := range w.resp.GetStatus().GetConditions() {
		if c.GetType() == string(batchv1.JobFailureTarget) || c.GetType() == string(batchv1.JobFailed) {
			state, word = Failing, "fails"
		}
	}
	return w.say(state, "The Job %s; its status does not show it yet. The rule %s decides: %s.", word, e.GetDecidingRule().Name(), ruleAnswer(e))
}

func ruleAnswer(e *jobpolicyv1.Explanation) string {
	for _, r := range e.GetRules() {
		if r.GetRule() == e.GetDecidingRule() {
			return r.GetDetail()
		}
	}
	return ""
}

// blocked: pods are to be created, and the API server refuses them.
func (w *work) blocked() bool {
	if w.resp.GetCreate() == nil {
		return false
	}
	r := w.refusal(writes.CreatePod, writes.CreateWorkload, writes.CreatePodGroup, writes.UseWorkload)
	stands := latest(w.Events, "RunawayCreation")
	if stands != nil && (r == nil || !Seen(stands).Before(r.Last)) && !w.createdAfter(Seen(stands)) {
		w.Cause = stands.Message
		w.advise("Stop what changes the pods, and delete those that are left; the Job goes on by itself.")
		return w.say(Blocked, "The Job stands still with %s of %d wanted pods: %s.", number(w.Counts.Active), ptr.Deref(w.Counts.Wanted, 0), stands.Message)
	}
	switch {
	case r == nil:
		return false
	case r.Kind == writes.UseWorkload:
		w.Cause = r.Why
		w.advise("Let whoever makes the Workload make it as the message says; the Job goes on by itself when the Workload changes.")
		return w.say(Blocked, "The Job has %s of %d wanted pods, and creates none before there is a Workload that they can use: %s.",
			number(w.Counts.Active), ptr.Deref(w.Counts.Wanted, 0), r.Why)
	}
	why, change := whyNotCreated(r.Why, false)
	w.Cause = why
	w.advise("%s", change)
	if r.Kind == writes.CreatePod && writes.ExceedsQuota(r.Why) {
		w.adviseOnQuota()
	}
	return w.say(Blocked, "The Job has %s of %d wanted pods, because the API server refuses to create more: %s. %s.",
		number(w.Counts.Active), ptr.Deref(w.Counts.Wanted, 0), why, w.lastTry(r))
}

// createdAfter reports whether a pod of the Job was created after a time.
func (w *work) createdAfter(at time.Time) bool {
	return slices.ContainsFunc(w.Facts.Pods, func(p corev1.Pod) bool { return p.CreationTimestamp.After(at) })
}

func (w *work) backingOff() bool {
	for _, wait := range w.resp.GetExplanation().GetWaits() {
		if wait.GetReason() != jobpolicyv1.WaitReason_WAIT_REASON_POD_FAILURE_BACKOFF {
			continue
		}
		if w.Counts.Active > 0 && wire.Indexed(w.Job) && w.Job.Spec.BackoffLimitPerIndex != nil {
			return false // other indexes run
		}
		delays := " By default, the delay starts at 10 s and doubles with each failure in a row, up to 10 min."
		if w.ownRetryDelay() {
			delays = ""
		}
		w.advise("No action needed: the Job tries again by itself.%s You can fix the cause of the failures in the meantime.", delays)
		w.adviseOnMemory()
		return w.say(BackingOff, "The Job waits before it tries again, until %s: failures in a row: %d.%s", w.when(wait.GetUntil().AsTime()),
			max(w.resp.GetExplanation().GetFacts().GetConsecutiveFailures(), 1), w.lastFailure("The last one, %s,")+w.orLater()+w.orEarlier())
	}
	return false
}

// orEarlier says why pods may be created earlier than the existing pods suggest.
func (w *work) orEarlier() string {
	switch {
	case w.Next == nil || !w.Next.OrEarlier:
		return ""
	case w.gone > 0 && w.unevenDelays():
		return " By job.retryDelay (jitterPercent, delaysSeconds), it may try again earlier, too."
	}
	return " Pods that succeeded are gone. A controller that has seen one succeed counts only the failures after it, and may try again earlier."
}

// orLater says why pods may be created later than the existing pods suggest.
func (w *work) orLater() string {
	switch {
	case w.gone == 0 && (w.Next == nil || !w.Next.OrLater):
		return ""
	case w.gone == 0:
		return fmt.Sprintf(" Failures that the pod failure policy ignores add to the delay, too, and nothing shows those whose pods are gone: the controller may wait longer, by default at most %s after the last failure.",
			simulate.Clock(longestDelay))
	}
	which := "are gone, or are being deleted"
	if w.countPods(func(p *corev1.Pod) bool { return !w.hasIndexOf(p) }) > 0 {
		which = "are gone, are being deleted, or have an index that the Job no longer has"
	}
	return fmt.Sprintf(" Failed pods that %s: %d. A controller that has seen them fail counts them, too, and may wait longer before it tries again, by default at most %s after the last failure.",
		which, w.gone, simulate.Clock(longestDelay))
}

func (w *work) stuck() bool {
	n := w.notStarted
	if n == 0 || int32(n) < w.Counts.Active-w.Counts.Ready && w.Counts.Ready > 0 {
		return false
	}
	w.Cause = strings.Join(w.reasons(), "; ")
	w.advise("%s", w.Report.Pods[0].Change)
	return w.say(Stuck, "%s of %d active pods cannot start: %s.", number(int32(n)), w.Counts.Active, w.Cause)
}

// adviseOnLateEnds says what helps pods that should have ended, if the Job has to wait for some.
func (w *work) adviseOnLateEnds() {
	if slices.ContainsFunc(w.Report.Pods, func(p PodProblem) bool { return p.Kind == "terminating" }) {
		w.adviseOnPodsThatEnd()
	}
}

func (w *work) adviseOnPodsThatEnd() {
	w.advise("Wait until they have ended. If their node is gone, the pods end when it comes back or is deleted, or with the taint node.kubernetes.io/out-of-service.")
	if w.terminationDeadline() == 0 {
		w.advise("job.terminationDeadlineSeconds of a JobPolicy is how long the Job waits for such pods.")
	}
}

func (w *work) replacing() bool {
	for _, wait := range w.resp.GetExplanation().GetWaits() {
		if wait.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_REPLACEMENT_POLICY {
			w.adviseOnPodsThatEnd()
			return w.say(Waiting, "The Job waits for pods that are being deleted: %d. They are replaced only when they have ended (podReplacementPolicy).", w.Counts.Terminating)
		}
	}
	return false
}

// starting: pods are to be created, and no event says why they are not.
func (w *work) starting() bool {
	if w.resp.GetCreate() == nil {
		return false
	}
	n := w.resp.GetCreate().GetCount()
	if w.gone > 0 {
		return w.say(BackingOff, "The Job lacks pods: %d.%s", n, w.orLater())
	}
	if age := w.Now.Sub(w.Job.CreationTimestamp.Time); age < reactionTime || w.recorded || w.recentChange() {
		if w.Counts.Active+w.Counts.Succeeded+w.Counts.Failed > 0 {
			return w.say(Running, "The Job goes on: %s to be created.%s", pods(int(n)), w.orRefused())
		}
		return w.say(Starting, "The Job starts: %s to be created.", pods(int(n)))
	}
	w.advise("See whether %s runs, and what it logs.", manager(w.Job))
	return w.say(Waiting, "The Job lacks %d pods, and %s has not created them.%s", n, manager(w.Job), w.orRefused())
}

// recentChange reports whether something has changed to which a controller may not have
// reacted yet.
func (w *work) recentChange() bool {
	for i := range w.Facts.Pods {
		p := &w.Facts.Pods[i]
		if w.Now.Sub(p.CreationTimestamp.Time) < reactionTime || (ended(p) && w.Now.Sub(failedAt(p)) < reactionTime) {
			return true
		}
	}
	return false
}

func (w *work) running() {
	wanted := ptr.Deref(w.Counts.Wanted, w.Counts.Active)
	text := fmt.Sprintf("The Job runs: %d of %d wanted pods are active, %d of them ready", w.Counts.Active, wanted, w.Counts.Ready)
	if n := w.Counts.Completions; n != nil {
		text += fmt.Sprintf("; %d of %d completions", w.Counts.Succeeded, *n)
	}
	w.say(Running, "%s.", text)
	if w.notStarted > 0 {
		w.Headline += fmt.Sprintf(" %s cannot start: %s.", number(int32(w.notStarted)), strings.Join(w.reasons(), "; "))
	}
	w.tellKeptOpen()
}

// tellKeptOpen says what the Job waits for, if each of its pods runs only because of an init container
// or of a container that the others have outlived. While another pod works, that is no news.
func (w *work) tellKeptOpen() {
	i := slices.IndexFunc(w.Report.Pods, func(p PodProblem) bool { return p.Kind == "init" || p.Kind == "sidecar" })
	if i < 0 || int32(w.keptOpen) < w.Counts.Active {
		return
	}
	p := w.Report.Pods[i]
	w.Headline += fmt.Sprintf(" In pod %s, %s.", p.Pod, p.Why)
	w.advise("%s", p.Change)
}

func number(n int32) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func latest(events []corev1.Event, reason string) *corev1.Event {
	var last *corev1.Event
	for i := range events {
		if e := &events[i]; e.Reason == reason && (last == nil || Seen(e).After(Seen(last))) {
			last = e
		}
	}
	return last
}

// Seen is when an event happened last, within the bounds of wire.Time.
func Seen(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time} {
		if !t.IsZero() {
			return wire.Time(t)
		}
	}
	return e.CreationTimestamp.Time
}
