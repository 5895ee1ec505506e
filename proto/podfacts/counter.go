package podfacts

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Policy is the part of a Job's spec on which it depends how pods count.
type Policy struct {
	// Indexed: pods have a completion index.
	Indexed bool
	// Completions is how many indexes an Indexed Job has. Pods of higher indexes do not
	// count for the retry delay.
	Completions int32
	// LimitedPerIndex: failures are limited per index.
	LimitedPerIndex bool
	// ReplaceFailedOnly: a pod that is being deleted counts as failed only when it has
	// ended. A pod failure policy implies this, because it looks at how a pod ended.
	ReplaceFailedOnly bool
	// Starts: requests say what keeps pods from starting (options.never_started).
	Starts bool
	// Failures is the Job's pod failure policy; nil if it has none.
	Failures *jobpolicyv1.PodFailurePolicy
}

// PolicyOf returns what a spec says about how pods count.
func PolicyOf(spec *jobpolicyv1.JobSpec) Policy {
	return Policy{
		Indexed:         spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED,
		Completions:     spec.GetCompletions(),
		LimitedPerIndex: spec != nil && spec.BackoffLimitPerIndex != nil,
		ReplaceFailedOnly: spec.GetPodReplacementPolicy() == jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_FAILED ||
			spec.GetPodFailurePolicy() != nil,
		Starts:   len(spec.GetOptions().GetNeverStarted()) > 0,
		Failures: spec.GetPodFailurePolicy(),
	}
}

// Same reports whether pods count in the same way by another policy.
func (p Policy) Same(other Policy) bool {
	same := proto.Equal(p.Failures, other.Failures)
	p.Failures, other.Failures = nil, nil
	return same && p == other
}

// Counted is a pod of a Counter. Its owner takes it out of the Counter, changes its exported fields
// and adds it again.
type Counted[P any] struct {
	// Pod is the pod, in the owner's form. Its UID never changes.
	Pod P
	// EndSeen is when the owner saw first that the pod has ended or is being deleted. The pod
	// ended no later, whatever the clocks of nodes say. Zero: not known.
	EndSeen time.Time
	// Share is what the pod adds to the counts.
	Share Share
	// Deleted: the pod's deletion was accepted, although Pod does not show it yet. From then on
	// the pod is not active. It is accounted for only once Pod shows its state at that time: it
	// may have succeeded before.
	Deleted bool
	// Stray: the pod counts nowhere, because the Job does not select it.
	Stray bool
	// Missing: the pod counts nowhere for now, because it may be gone. If it failed, the retry
	// delay still depends on that.
	Missing bool

	// What the sums over unaccounted pods need to know when the pod is removed.
	ended, succeeded bool
	uid              string // Its key in unaccounted.pods.
	// listed: it is in unaccounted.pods. queued: it is in unaccounted.queue.
	listed, queued bool
	// releasedFirst: it had no tracking finalizer before its deletion, so it never counts as failed.
	releasedFirst bool
}

// Share is what one pod adds to a Job's counts.
type Share struct {
	Active, Ready, Terminating, TrackedActive bool
	// Unaccounted: finished or being deleted, and still tracked.
	Unaccounted bool
	// Stray is Counted.Stray.
	Stray bool
	// HasRun: the pod has run, and is active or unaccounted.
	HasRun bool
	// Problem keeps an active pod from starting. Only with Policy.Starts.
	Problem jobpolicyv1.PodStartProblem

	index    int32
	restarts int64
}

// SameButReadiness reports whether the share differs from the one before at most in readiness, and in
// whether the pod has run.
// For an unaccounted pod it is false, because every detail of such a pod matters.
func (s Share) SameButReadiness(before Share) bool {
	before.Ready, before.HasRun = s.Ready, s.HasRun
	return s == before && !s.Unaccounted
}

// A Counter counts the pods of one Job. It is made by New.
type Counter[P any] struct {
	// Totals are the sums over all pods.
	Totals      Totals
	policy      Policy
	facts       func(P) Pod
	unaccounted unaccounted[P]
	terminating map[*Counted[P]]bool     // nil until there is one.
	unstarted   map[*Counted[P]]struct{} // Those with Share.Problem.
	retry       retryFacts
	tries       tries        // nil until KeepTries.
	finished    *finished[P] // nil until KeepFinished.
}

// New returns a Counter without pods. facts says what is known of a pod. Its Exits and
// Conditions are read only if it has ended or is being deleted.
func New[P any](policy Policy, facts func(P) Pod) *Counter[P] {
	return &Counter[P]{
		policy: policy, facts: facts,
		unaccounted: unaccounted[P]{pods: map[string]*Counted[P]{}}, unstarted: map[*Counted[P]]struct{}{},
	}
}

// SetPolicy sets how pods count that are added from now on. The caller removes all pods and adds
// them again. What KeepFinished kept is forgotten: the next call of it builds that anew, which costs less than
// to take out and put back each pod.
func (c *Counter[P]) SetPolicy(policy Policy) { c.policy, c.finished = policy, nil }

// ForgetRetry forgets the facts for the retry delay, and what KeepTries kept.
func (c *Counter[P]) ForgetRetry() { c.retry, c.tries = retryFacts{}, nil }

// Add adds a pod. first: nothing was learned from an earlier state of it, or all
// pods are counted again by a new policy.
func (c *Counter[P]) Add(e *Counted[P], first bool) {
	pod := c.facts(e.Pod)
	e.ended, e.succeeded = pod.ended(), pod.succeeded()
	e.Share = c.policy.share(&pod, e.Deleted, e.Stray, e.Missing)
	c.Totals.add(&e.Share, 1)
	if e.Stray {
		return
	}
	e.releasedFirst = e.releasedFirst || e.Share.Active && !pod.Tracked
	if e.Share.Terminating {
		c.terminates(e)
	}
	if e.Share.Unaccounted {
		c.unaccounted.add(string(pod.UID), e)
	}
	if e.Share.Problem != 0 {
		c.unstarted[e] = struct{}{}
	}
	if c.tries != nil {
		c.tries.learn(&pod, &c.policy)
	}
	if c.finished != nil {
		c.finished.add(e, &pod, &c.policy)
	}
	c.retry.learn(&pod, &c.policy, seen{first: first, deleted: e.Deleted, end: e.EndSeen})
}

// Remove removes a pod, which must be there, from all counts. The facts for the retry delay stay.
func (c *Counter[P]) Remove(e *Counted[P]) {
	c.Totals.add(&e.Share, -1)
	delete(c.terminating, e)
	if e.listed {
		c.unaccounted.remove(e)
	}
	delete(c.unstarted, e)
	if c.finished != nil {
		c.finished.remove(e)
	}
}

// Tidy forgets the places of removed pods among those that wait for a row. The caller calls it after
// it has removed a pod for good. A pod that is added again before that has its old place.
func (c *Counter[P]) Tidy() { c.unaccounted.tidy() }

func (p *Policy) share(pod *Pod, deleted, stray, missing bool) Share {
	if stray || missing {
		return Share{Stray: stray, index: noIndex}
	}
	deleted = deleted || pod.Deleting
	s := Share{
		Active:      !pod.ended() && !deleted,
		Terminating: !pod.ended() && deleted,
		Unaccounted: pod.Tracked && (pod.ended() || pod.Deleting),
		index:       p.index(pod),
		restarts:    pod.restarts(),
	}
	s.Ready = s.Active && pod.Ready
	s.TrackedActive = s.Active && pod.Tracked
	s.HasRun = pod.HasRun && (s.Active || s.Unaccounted)
	if p.Starts && s.Active {
		s.Problem = pod.Start.GetProblem()
	}
	return s
}

// index is the completion index of a pod; noIndex if it has none or the Job is not Indexed.
func (p *Policy) index(pod *Pod) int32 {
	if !p.Indexed || pod.Index == nil || *pod.Index < 0 || *pod.Index > maxIndex {
		return noIndex
	}
	return *pod.Index
}

// Totals are the sums over the pods of a Job.
type Totals struct {
	Active, Ready, Terminating, TrackedActive int32

	haveRun                           int32
	restarts                          int64
	activeIndexes, terminatingIndexes indexes
}

// add adds a share to the sums, sign times: 1 or -1.
func (t *Totals) add(s *Share, sign int32) {
	t.restarts += int64(sign) * s.restarts
	countIf(&t.Active, s.Active, sign)
	countIf(&t.Ready, s.Ready, sign)
	countIf(&t.Terminating, s.Terminating, sign)
	countIf(&t.TrackedActive, s.TrackedActive, sign)
	countIf(&t.haveRun, s.HasRun, sign)
	if s.index == noIndex {
		return
	}
	if s.Active {
		t.activeIndexes.change(s.index, sign)
	}
	if s.Terminating {
		t.terminatingIndexes.change(s.index, sign)
	}
}

func countIf(n *int32, condition bool, sign int32) {
	if condition {
		*n += sign
	}
}

// ConditionStarted is the condition of a Job that says whether a pod has run.
const ConditionStarted = "jobpolicy.dev/Started"

// TellHasRun puts into a request about a Job that pods of it have run, if that matters: the Job has a
// deadline to start, or had one and still has the condition. The request has the Job's options already.
func TellHasRun(req *jobpolicyv1.DecideJobRequest) {
	options := req.GetSpec().GetOptions()
	if options != nil && options.StartDeadlineSeconds != nil ||
		slices.ContainsFunc(req.GetStatus().GetConditions(), func(c *jobpolicyv1.JobCondition) bool { return c.GetType() == ConditionStarted }) {
		req.Pods.HasRun = true
	}
}

// HasRun reports whether a pod has run that is active, or unaccounted.
func (t *Totals) HasRun() bool { return t.haveRun > 0 }

// AllReady reports whether every active pod is ready.
func (t *Totals) AllReady() bool { return t.Ready == t.Active }

// Summary is the request's summary of the pods. It leaves out whether pods have run (TellHasRun).
func (t *Totals) Summary() *jobpolicyv1.PodSummary {
	return &jobpolicyv1.PodSummary{
		Active: t.Active, Ready: t.Ready, Terminating: t.Terminating,
		TrackedActive: t.TrackedActive, Restarts: t.restarts,
		ActiveIndexes: t.activeIndexes.set(), TerminatingIndexes: t.terminatingIndexes.set(),
	}
}
