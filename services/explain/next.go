package explain

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Next is what the controller does next if no pod changes and nobody changes the Job
// before.
type Next struct {
	// At is when. Absent: now.
	At *time.Time `json:"at,omitempty"`
	// OrLater: it may happen later. Failed pods are gone, or may be, and a controller that has
	// seen them waits longer before it tries again: up to longestDelay, unless its flags say more.
	OrLater bool `json:"orLater,omitempty"`
	// OrEarlier: it may happen earlier. A pod that succeeded is gone, and a controller that
	// has seen it counts only the failures after it. Or the delay after more failures may be shorter.
	OrEarlier bool `json:"orEarlier,omitempty"`
	// Refused: the API server refuses it, or what has to come before it. It happens when that ends, and at At
	// at the earliest.
	Refused bool   `json:"refused,omitempty"`
	Steps   []Step `json:"steps"`
}

// A Step is one part of what the controller does.
type Step struct {
	// Kind is create, delete or end (pods), condition (of the Job), status (its other fields)
	// or remove (the Job itself).
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// longestDelay is the default of --max-pod-failure-backoff, and what the built-in controller has:
// the longest delay between a failure and the next try.
const longestDelay = 10 * time.Minute

// maxLooks is how many times an engine is asked what comes next.
const maxLooks = 5

// next asks what the engine would decide about the same facts at its requeue time. Nil:
// nothing happens by itself. It returns a step that only updates the status if no other
// step follows.
func next(f Facts, resp *jobpolicyv1.DecideJobResponse, decide Decide) (*Next, error) {
	var at *time.Time
	var routine *Next
	for range maxLooks {
		s := steps(f.Job, resp)
		switch {
		case len(s) > 0 && s[0].Kind != "status":
			return &Next{At: at, Steps: s}, nil
		case len(s) > 0 && routine == nil:
			routine = &Next{At: at, Steps: s}
		}
		if resp.GetRequeueTime() == nil {
			return routine, nil
		}
		due := wire.Time(resp.GetRequeueTime().AsTime())
		f.Now, at = due, &due
		var err error
		if resp, err = ask(f, decide); err != nil {
			return nil, err
		}
	}
	return routine, nil
}

// steps says what a decision does.
func steps(job *batchv1.Job, resp *jobpolicyv1.DecideJobResponse) []Step {
	var out []Step
	add := func(kind, format string, args ...any) { out = append(out, Step{kind, fmt.Sprintf(format, args...)}) }
	if n := int(resp.GetCreate().GetCount()); n > 0 {
		add("create", "%s created", pods(n))
	}
	if n := len(resp.GetDelete()); n > 0 {
		add("delete", "%s deleted", pods(n))
	}
	if n := len(resp.GetEnd()); n > 0 {
		stay := "stay"
		if n == 1 {
			stay = "stays"
		}
		add("end", "%s ended, and %s", pods(n), stay)
	}
	if n := len(resp.GetDeleteFinished()); n > 0 {
		add("delete", "%s deleted that had finished, because the Job keeps no more", pods(n))
	}
	for _, c := range resp.GetStatus().GetConditions() {
		if text, changed := conditionText(job, c); changed {
			add("condition", "%s", text)
		}
	}
	if resp.GetDeleteJob() != nil {
		then := ""
		if len(job.Finalizers) > 0 {
			then = ". " + kept(job.Finalizers)
		}
		add("remove", "the Job is deleted with its pods, because its time to live is over%s", then)
	}
	switch n := len(resp.GetRelease()); {
	case len(out) > 0:
	case resp.GetStatus() != nil:
		add("status", "the status is brought up to date")
	case n > 0:
		add("status", "the finalizer of %s removed", pods(n))
	}
	return out
}

func pods(n int) string {
	if n == 1 {
		return "1 pod is"
	}
	return fmt.Sprintf("%d pods are", n)
}

// conditionText says how a condition differs from that of the Job.
func conditionText(job *batchv1.Job, c *jobpolicyv1.JobCondition) (text string, changed bool) {
	isTrue := c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE
	was := jobCondition(job, batchv1.JobConditionType(c.GetType())) != nil
	switch {
	case isTrue && !was:
		return fmt.Sprintf("the Job gets the condition %s (%s)", c.GetType(), c.GetReason()), true
	case !isTrue && was:
		return fmt.Sprintf("the condition %s becomes %s", c.GetType(), corev1.ConditionFalse), true
	}
	return "", false
}

// failuresGone counts the failed pods in the status that no longer exist, or that are being deleted and were released:
// such a pod may have been released before its deletion, and then it has not failed. One whose index the Job no
// longer has, because its completions were lowered, counts as gone. A controller that has seen them
// fail counts them for the retry delay.
func (w *work) failuresGone() int {
	req, err := wire.JobRequest(w.Job)
	if err != nil {
		return 0 // cannot happen: the engine has accepted the same request
	}
	policy := req.GetSpec().GetPodFailurePolicy()
	n := int(w.Counts.Failed)
	for i := range w.Facts.Pods {
		p := &w.Facts.Pods[i]
		if (p.Status.Phase == corev1.PodFailed && !releasedAndDeleted(p) || w.failsByDeletion(p)) && !ignored(policy, p) && w.hasIndexOf(p) {
			n--
		}
	}
	return max(n, 0)
}

// hasIndexOf reports whether the Job has the pod's index, if it has indexes.
func (w *work) hasIndexOf(p *corev1.Pod) bool {
	if !wire.Indexed(w.Job) || w.Job.Spec.Completions == nil {
		return true
	}
	pod, err := wire.Pod(p)
	return err == nil && pod.Index != nil && *pod.Index < *w.Job.Spec.Completions
}

// failsByDeletion reports whether the pod counts as failed already, because it is being deleted.
func (w *work) failsByDeletion(p *corev1.Pod) bool {
	if p.DeletionTimestamp == nil || ended(p) {
		return false
	}
	if wire.PodPolicy(w.Job).ReplaceFailedOnly {
		return w.overdue(p)
	}
	return !releasedAndDeleted(p)
}

// releasedAndDeleted reports whether a pod is being deleted and has no tracking finalizer: nothing says which came first.
func releasedAndDeleted(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && !holdsFinalizer(p) }

// ignored reports whether the pod failure policy leaves a failed pod out of the count.
func ignored(policy *jobpolicyv1.PodFailurePolicy, p *corev1.Pod) bool {
	pod, err := wire.Pod(p)
	if policy == nil || err != nil {
		return false
	}
	resp, err := engine.MatchPodFailurePolicy(&jobpolicyv1.MatchPodFailurePolicyRequest{
		Policy: policy, Namespace: p.Namespace, Failures: []*jobpolicyv1.PodFailure{{PodName: p.Name, ContainerExits: pod.Exits, Conditions: pod.Conditions}},
	})
	return err == nil && resp.GetMatches()[0].GetAction() == jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE
}

// successesGone reports whether some pods that the status counts as succeeded no longer
// exist, or are being deleted and were released.
func (w *work) successesGone() bool {
	n := int(w.Counts.Succeeded)
	for i := range w.Facts.Pods {
		if p := &w.Facts.Pods[i]; p.Status.Phase == corev1.PodSucceeded && !releasedAndDeleted(p) {
			n--
		}
	}
	return n > 0
}

// ignoresFailures reports whether there may be failures that the pod failure policy does not
// count, but that add to the retry delay. Nothing shows such a failure after its pod is gone.
func (w *work) ignoresFailures() bool {
	policy := w.Job.Spec.PodFailurePolicy
	return policy != nil && slices.ContainsFunc(policy.Rules, func(r batchv1.PodFailurePolicyRule) bool {
		return r.Action == batchv1.PodFailurePolicyActionIgnore && r.OnExitCodes != nil
	})
}

// doubt marks a creation that may come later or earlier.
func (w *work) doubt() {
	w.gone = w.failuresGone()
	if w.Next == nil || w.Job.Spec.BackoffLimitPerIndex != nil || !slices.ContainsFunc(w.Next.Steps, func(s Step) bool { return s.Kind == "create" }) {
		w.gone = 0
		return
	}
	failures := w.resp.GetExplanation().GetFacts().GetConsecutiveFailures()
	w.Next.OrLater = w.gone > 0 || (failures > 0 && w.ignoresFailures())
	w.Next.OrEarlier = failures > 1 && w.successesGone() || w.gone > 0 && w.unevenDelays()
}

// unevenDelays reports whether the delay after more failures may be shorter than that after fewer.
func (w *work) unevenDelays() bool {
	policy, _ := wire.PolicySpec(w.Job.Annotations)
	delay := policy.GetJob().GetRetryDelay()
	return delay.GetJitterPercent() > 0 || len(delay.GetDelaysSeconds()) > 0
}
