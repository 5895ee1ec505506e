package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// waits lists the engine's waits.
func (w *work) waits() {
	for _, wait := range w.resp.GetExplanation().GetWaits() {
		out := Wait{For: wait.GetDetail()}
		if until := wait.GetUntil(); until != nil {
			out.Until = new(wire.Time(until.AsTime()))
		}
		switch wait.GetReason() {
		case jobpolicyv1.WaitReason_WAIT_REASON_POD_FAILURE_BACKOFF:
			out.For = "the retry delay: " + out.For
		case jobpolicyv1.WaitReason_WAIT_REASON_DEADLINE:
			out.For = "the deadline: " + out.For
		case jobpolicyv1.WaitReason_WAIT_REASON_START_DEADLINE:
			out.For = "the deadline to start: " + out.For
		case jobpolicyv1.WaitReason_WAIT_REASON_NEVER_STARTED:
			out.For = "job.neverStarted: " + out.For
		case jobpolicyv1.WaitReason_WAIT_REASON_ENDING_PODS:
			out.For = "job.whenJobFails: " + out.For
		case jobpolicyv1.WaitReason_WAIT_REASON_TTL:
			out.For = "its deletion: " + out.For
		case jobpolicyv1.WaitReason_WAIT_REASON_PODS_REMAINING:
			out.For = "pods that have to end: " + out.For
		}
		w.Report.Waits = append(w.Report.Waits, out)
	}
	if w.State == Running && w.Counts.Active > 0 {
		w.Report.Waits = append(w.Report.Waits, Wait{For: fmt.Sprintf("its pods to end: %d", w.Counts.Active)})
	}
}

// over reports whether the Job starts no pods any more.
func (w *work) over() bool {
	return slices.Contains([]State{Complete, Failed, Failing, Completing, Deleting}, w.State)
}

// unlimited is the API server's default of backoffLimit for a Job with a limit per index.
const unlimited = math.MaxInt32

// retries says how many failures are left.
func (w *work) retries() {
	if w.over() {
		return
	}
	limit := ptr.Deref(w.Job.Spec.BackoffLimit, 6)
	facts := w.resp.GetExplanation().GetFacts()
	if per := w.Job.Spec.BackoffLimitPerIndex; per != nil {
		w.Retries = fmt.Sprintf("%d for each index; failed indexes %d", *per, facts.GetFailedIndexes())
		if most := w.Job.Spec.MaxFailedIndexes; most != nil {
			w.Retries += fmt.Sprintf(" of at most %d", *most)
		}
	}
	if limit == unlimited {
		return
	}
	left := facts.GetRetriesLeft()
	if facts == nil {
		left = max(limit-w.Job.Status.Failed, 0)
	}
	text := fmt.Sprintf("%d of %d left", left, limit)
	if n, of := w.restarts(false); n > 0 {
		text += fmt.Sprintf("; container restarts count, too: %d so far%s, and the one that makes %d fails the Job", n, of, max(limit, 1))
	}
	w.Retries = strings.TrimPrefix(w.Retries+"; "+text, "; ")
}

// An ending is one way in which the Job may end, and how far away it is: 0 is now.
type ending struct {
	near float64
	text string
}

// endings lists what would end the Job, the nearest first.
func (w *work) endings() {
	if w.over() {
		return
	}
	var all []ending
	all = append(all, w.successEnding()...)
	all = append(all, w.backoffEnding()...)
	all = append(all, w.deadlineEnding()...)
	all = append(all, w.startDeadlineEnding()...)
	all = append(all, w.policyEndings()...)
	slices.SortStableFunc(all, func(a, b ending) int { return cmp.Compare(a.near, b.near) })
	for _, e := range all {
		w.Ends = append(w.Ends, e.text)
	}
}

func (w *work) successEnding() []ending {
	n := w.Job.Spec.Completions
	if n == nil {
		return []ending{{0.5, "Complete when one pod has succeeded and no other is left (a work queue: completions is not set)"}}
	}
	left := max(*n-w.Counts.Succeeded, 0)
	one, many := "pod has", "pods have"
	if wire.Indexed(w.Job) {
		one, many = "index has", "indexes have"
	}
	out := []ending{{share(left, *n), fmt.Sprintf("Complete when %s succeeded", more(left, one, many))}}
	if failed := w.resp.GetExplanation().GetFacts().GetFailedIndexes(); failed > 0 {
		left = max(left-failed, 0)
		out = []ending{{share(left, *n), fmt.Sprintf("Failed (FailedIndexes) when the indexes that are left have ended: %d", left)}}
	}
	if w.Job.Spec.SuccessPolicy != nil {
		out = append(out, ending{0.5, "Complete when a rule of successPolicy is met"})
	}
	return out
}

// more writes a number of further things: one more failure, 2 more failures.
func more(n int32, one, many string) string {
	if n == 1 {
		return "one more " + one
	}
	return fmt.Sprintf("%d more %s", n, many)
}

// times writes how often something happened.
func times(n int32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// share is the part of all that is left, from 0 to 1.
func share(left, all int32) float64 { return float64(left) / float64(max(all, 1)) }

func (w *work) backoffEnding() []ending {
	limit := ptr.Deref(w.Job.Spec.BackoffLimit, 6)
	if limit == unlimited {
		if most := w.Job.Spec.MaxFailedIndexes; most != nil {
			left := max(*most-w.resp.GetExplanation().GetFacts().GetFailedIndexes(), 0)
			return []ending{{share(left+1, *most+1), "Failed (MaxFailedIndexesExceeded) when " + more(left+1, "index fails", "indexes fail")}}
		}
		return nil
	}
	left := w.resp.GetExplanation().GetFacts().GetRetriesLeft()
	near, text := share(left+1, limit+1), "Failed (BackoffLimitExceeded) when "+more(left+1, "pod fails", "pods fail")
	if w.onFailure() {
		most := max(limit, 1)
		n, _ := w.restarts(false)
		near = min(near, share(max(most-n, 0), most))
		text += ", or containers have been restarted " + times(most)
		if most > 1 {
			text += " in all"
		}
	}
	return []ending{{near, text}}
}

// longestDuration is the longest time.Duration, in seconds: 292 years.
const longestDuration = int64(math.MaxInt64 / time.Second)

func (w *work) deadlineEnding() []ending {
	seconds, start := w.Job.Spec.ActiveDeadlineSeconds, w.Job.Status.StartTime
	if seconds == nil {
		return nil
	}
	undated := fmt.Sprintf("Failed (DeadlineExceeded) when it has been active for %ds", *seconds)
	switch {
	case *seconds > longestDuration:
		return []ending{{math.Inf(1), undated}}
	case start == nil:
		return []ending{{1, undated}}
	}
	at := start.Add(time.Duration(*seconds) * time.Second)
	near := at.Sub(w.Now).Seconds() / float64(max(*seconds, 1))
	return []ending{{near, "Failed (DeadlineExceeded) at " + w.when(at)}}
}

// startDeadlineEnding is the end of a Job of which a pod must run before a deadline.
func (w *work) startDeadlineEnding() []ending {
	for _, wait := range w.resp.GetExplanation().GetWaits() {
		if wait.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_START_DEADLINE && wait.GetUntil() != nil {
			at := wait.GetUntil().AsTime()
			return []ending{{0, "Failed (StartDeadlineExceeded) at " + w.when(at) + ", unless a pod has run by then"}}
		}
	}
	return nil
}

func (w *work) policyEndings() []ending {
	if w.Job.Spec.PodFailurePolicy == nil {
		return nil
	}
	var out []ending
	for i, rule := range w.Job.Spec.PodFailurePolicy.Rules {
		if rule.Action == batchv1.PodFailurePolicyActionFailJob {
			out = append(out, ending{1.5, fmt.Sprintf("Failed (PodFailurePolicy) at once when %s (rule %d)", ruleText(rule), i)})
		}
	}
	return out
}

func ruleText(rule batchv1.PodFailurePolicyRule) string {
	if on := rule.OnExitCodes; on != nil {
		container := "a container"
		if on.ContainerName != nil {
			container = "container " + *on.ContainerName
		}
		codes := strings.Trim(strings.ReplaceAll(fmt.Sprint(on.Values), " ", ", "), "[]")
		if on.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn {
			return fmt.Sprintf("%s fails with another exit code than %s", container, codes)
		}
		return fmt.Sprintf("%s fails with exit code %s", container, codes)
	}
	var patterns []string
	for _, p := range rule.OnPodConditions {
		patterns = append(patterns, fmt.Sprintf("%s=%s", p.Type, p.Status))
	}
	return "a pod fails with the condition " + strings.Join(patterns, " or ")
}
