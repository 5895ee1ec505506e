package engine_test

import (
	"cmp"
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Invariant I12 in the model: failed pods are replaced no faster than the retry
// delay allows, whatever the failure policy says. The delay is worked out anew
// from what is in the cluster (I10).

func (c *cluster) checkRetryDelays(create *jobpolicyv1.CreatePods) {
	if c.spec.BackoffLimitPerIndex == nil {
		c.checkRetryDelay()
		return
	}
	for _, ix := range createdIndexes(create) {
		c.checkRetryDelayOf(*ix)
	}
}

// checkRetryDelay checks that the retry delay after a Job's failures since its last
// success has passed.
func (c *cluster) checkRetryDelay() {
	if len(c.podsThat(func(p *modelPod) bool { return p.flipped })) > 0 {
		return
	}
	var lastSuccess, lastFailure time.Time
	visible := c.podsThat(func(p *modelPod) bool { return p.seen && (!p.gone || p.pruned) && (p.terminal() || c.takenAsFailed(p)) })
	for _, p := range visible {
		if p.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED && p.finished.After(lastSuccess) {
			lastSuccess = p.finished
		}
	}
	failures := 0
	for _, p := range visible {
		if c.delays(p) && p.finished.After(lastSuccess) {
			failures++
			if p.finished.After(lastFailure) {
				lastFailure = p.finished
			}
		}
	}
	c.checkDelay(failures, lastFailure)
}

// checkRetryDelayOf checks that the retry delay after the last failure of an index
// has passed. Its pod is kept until it is replaced, and carries how many there were
// before it.
func (c *cluster) checkRetryDelayOf(ix int32) {
	kept := c.podsThat(func(p *modelPod) bool {
		return p.seen && !p.gone && p.tracked && p.phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED && p.index != nil && *p.index == ix
	})
	if len(kept) == 0 {
		return
	}
	last := slices.MaxFunc(kept, func(a, b *modelPod) int {
		return cmp.Or(cmp.Compare(a.failures+a.ignored, b.failures+b.ignored), a.finished.Compare(b.finished))
	})
	if c.delays(last) {
		c.checkDelay(int(last.failures+last.ignored)+1, last.finished)
	}
}

// checkDelay checks that pods are not created before the delay after this many
// failures has passed.
func (c *cluster) checkDelay(failures int, last time.Time) {
	if failures == 0 {
		return
	}
	if due := last.Add(c.leastDelay(failures)); c.now.Before(due) {
		c.t.Fatalf("I12: creates pods %s early, after %d failures", due.Sub(c.now), failures)
	}
}

// leastDelay is the retry delay after this many failures, without jitter.
func (c *cluster) leastDelay(failures int) time.Duration {
	own := c.spec.GetOptions().GetRetryDelay()
	if list := own.GetDelaysSeconds(); len(list) > 0 {
		return time.Duration(list[min(failures, len(list))-1]) * time.Second
	}
	delay, longest, factor := 10*time.Second, 10*time.Minute, 2.0
	if d := c.settings.GetPodFailureBackoff(); d != nil {
		delay = d.AsDuration()
	}
	if s := own.GetInitialSeconds(); s > 0 {
		delay = time.Duration(s) * time.Second
	}
	if s := own.GetMaxSeconds(); s > 0 {
		longest = time.Duration(s) * time.Second
	}
	if f := own.GetFactor(); f > 0 {
		factor = f
	}
	for range min(failures, 40) - 1 {
		delay = time.Duration(float64(delay) * factor)
	}
	return min(delay, longest)
}

// delays reports whether this pod's failure delays the next pod. A disruption that the
// failure policy ignores does not.
func (c *cluster) delays(p *modelPod) bool {
	failed := p.phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED || c.takenAsFailed(p)
	return failed && !(p.disrupted && c.ignored(p))
}

// ignored reports whether the failure policy of the model ignores the failure.
func (c *cluster) ignored(p *modelPod) bool {
	for _, rule := range c.spec.GetPodFailurePolicy().GetRules() {
		matches := len(rule.GetOnPodConditions()) > 0 && p.disrupted
		if codes := rule.GetOnExitCodes(); codes != nil {
			matches = p.exitCode != 0 && slices.Contains(codes.GetValues(), p.exitCode)
		}
		if matches {
			return rule.GetAction() == jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE
		}
	}
	return false
}
