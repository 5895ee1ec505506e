package podfacts

import (
	"iter"
	"maps"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract on DecideJobRequest.retry.failed_tries.
const (
	maxTries   = 100_000
	maxEndings = 64
	// MaxResourceStep is the highest FailedTry.resource_step.
	MaxResourceStep = 64
)

// tries are what the engine has to know for options.next_try_resources: by index, or noIndex for a
// Job that is not Indexed. They outlive the pods. Which pods come first does not matter, so they are the
// same after a restart, as far as the pods are left.
type tries map[int32]*try

// A try has the highest resource step of pods, and how pods with that step failed.
type try struct {
	step    int32
	endings [][]*jobpolicyv1.ContainerExit
}

// KeepTries makes the counter keep what FailedTries returns. pods are all that it counts. It does so
// once; from then on, Add does.
func (c *Counter[P]) KeepTries(pods iter.Seq[*Counted[P]]) {
	if c.tries != nil {
		return
	}
	c.tries = tries{}
	for e := range pods {
		if pod := c.facts(e.Pod); !e.Stray {
			c.tries.learn(&pod, &c.policy)
		}
	}
}

// learn adds a pod. One that is deleted before its end has not failed by itself: its exit code tells
// how it was stopped.
func (t tries) learn(pod *Pod, policy *Policy) {
	ix := policy.index(pod)
	if policy.Indexed && (ix == noIndex || ix >= policy.Completions) {
		return
	}
	if policy.Indexed && pod.succeeded() && !pod.deletedBeforeEnd() { // Else it may have counted as failed before.
		delete(t, ix)
		return
	}
	failed := pod.Phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED && !pod.deletedBeforeEnd()
	step := max(0, min(pod.ResourceStep, MaxResourceStep))
	if !failed && step == 0 {
		return
	}
	known := t[ix]
	if known == nil || known.step < step {
		known = &try{step: step}
		t[ix] = known
	}
	if failed && known.step == step {
		known.add(pod.Exits)
	}
}

// add adds how a pod failed, unless another failed in the same way.
func (t *try) add(exits []*jobpolicyv1.ContainerExit) {
	exits = exits[:min(len(exits), maxContainerExits)]
	if len(exits) == 0 || len(t.endings) >= maxEndings || slices.ContainsFunc(t.endings, func(known []*jobpolicyv1.ContainerExit) bool {
		return slices.EqualFunc(known, exits, sameExit)
	}) {
		return
	}
	t.endings = append(t.endings, withoutMessages(exits)) // They decide nothing, and there may be a try of each index.
}

func sameExit(a, b *jobpolicyv1.ContainerExit) bool {
	return a.GetContainerName() == b.GetContainerName() && a.GetExitCode() == b.GetExitCode() && a.GetReason() == b.GetReason()
}

// FailedTries returns what matters for the resources of the next pods, in the order of their indexes.
// The pods that are to come are those of indexes without an active pod.
func (c *Counter[P]) FailedTries() []*jobpolicyv1.FailedTry {
	var out []*jobpolicyv1.FailedTry
	for _, ix := range slices.Sorted(maps.Keys(c.tries)) {
		t := c.tries[ix]
		if c.Totals.activeIndexes.has(ix) {
			continue
		}
		if len(out)+max(1, len(t.endings)) > maxTries {
			break
		}
		for _, exits := range t.endings {
			out = append(out, &jobpolicyv1.FailedTry{Index: indexField(ix), ResourceStep: t.step, ContainerExits: exits})
		}
		if len(t.endings) == 0 {
			out = append(out, &jobpolicyv1.FailedTry{Index: indexField(ix), ResourceStep: t.step})
		}
	}
	return out
}
