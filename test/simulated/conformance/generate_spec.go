package conformance

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
)

// exits are the exit codes of containers and of failure policy rules.
var exits = []int32{1, 42, 137}

// newSpec makes a spec. In four of ten cases it is an Indexed Job with fields that only
// such Jobs may have. The rest is distributed so that every pair of fields occurs
// together.
func (g *generator) newSpec() batchv1.JobSpec {
	spec := newSpec()
	n := g.between(1, 4)
	if g.chance(4) {
		n = 0
	}
	kind := g.IntN(100)
	if kind < 85 {
		spec.Completions = new(n)
	}
	if kind < 60 {
		spec.CompletionMode = new(batchv1.IndexedCompletion)
	}
	spec.Parallelism = new(pick(g, max(n, 1), max(n, 1), g.between(1, 5)))
	if g.chance(4) {
		spec.Parallelism = new(int32(0))
	}
	if g.chance(50) {
		spec.BackoffLimit = new(g.between(0, 2))
	}
	g.addOrigin(&spec)
	switch {
	case !g.foreign && g.chance(8):
		g.expire = true
	case g.chance(8):
		spec.ActiveDeadlineSeconds = new(int64(90000))
	}
	if g.chance(12) {
		spec.Suspend = new(true)
	}
	g.addContainers(&spec)
	if kind < 60 {
		g.addIndexFields(&spec, n)
	}
	g.addPolicies(&spec)
	return spec
}

// addOrigin sets who manages the Job, and how it selects its pods.
func (g *generator) addOrigin(spec *batchv1.JobSpec) {
	switch k := g.IntN(100); {
	case k < 8:
		managedBy(ownManager)(spec)
	case k < 12:
		managedBy("kubernetes.io/job-controller")(spec)
	case k < 16:
		managedBy("example.com/other")(spec)
		g.foreign = true
	}
	if g.chance(12) {
		ownSelector(spec)
	}
	if g.chance(5) {
		spec.TTLSecondsAfterFinished = new(int32(5000))
	}
}

func (g *generator) addContainers(spec *batchv1.JobSpec) {
	pod := &spec.Template.Spec
	if g.chance(30) {
		pod.Containers = pod.Containers[:1]
	}
	if g.chance(25) {
		withSidecar(spec)
	}
	for _, c := range pod.Containers {
		g.containers = append(g.containers, c.Name)
	}
	for _, c := range pod.InitContainers {
		g.containers = append(g.containers, c.Name)
	}
}

func (g *generator) addIndexFields(spec *batchv1.JobSpec, n int32) {
	if g.chance(40) {
		spec.BackoffLimitPerIndex = new(g.between(0, 1))
		if g.chance(50) && n > 0 {
			spec.MaxFailedIndexes = new(g.between(0, min(n, 2)))
		}
	}
	if g.chance(35) && n > 0 {
		rules := []batchv1.SuccessPolicyRule{g.successRule(n)}
		if g.chance(30) {
			rules = append(rules, g.successRule(n))
		}
		spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: rules}
	}
}

func (g *generator) successRule(n int32) batchv1.SuccessPolicyRule {
	rule := batchv1.SuccessPolicyRule{}
	most := n
	if g.chance(60) {
		first := g.between(0, n-1)
		last := g.between(first, n-1)
		rule.SucceededIndexes = new(fmt.Sprintf("%d-%d", first, last))
		if first == last {
			rule.SucceededIndexes = new(fmt.Sprint(first))
		}
		most = last - first + 1
	}
	if rule.SucceededIndexes == nil || g.chance(40) {
		rule.SucceededCount = new(g.between(1, most))
	}
	return rule
}

func (g *generator) addPolicies(spec *batchv1.JobSpec) {
	switch {
	case g.chance(35):
		var rules []batchv1.PodFailurePolicyRule
		for range g.between(1, 3) {
			rules = append(rules, g.failureRule(spec.BackoffLimitPerIndex != nil))
		}
		failurePolicy(rules...)(spec)
		if g.chance(30) {
			replaceFailed(spec)
		}
		return
	case g.chance(25):
		onFailure(spec)
	}
	if g.chance(30) {
		spec.PodReplacementPolicy = new(pick(g, batchv1.Failed, batchv1.TerminatingOrFailed))
	}
}

func (g *generator) failureRule(perIndex bool) batchv1.PodFailurePolicyRule {
	actions := []batchv1.PodFailurePolicyAction{"FailJob", "Ignore", "Count"}
	if perIndex {
		actions = append(actions, "FailIndex")
	}
	action := pick(g, actions...)
	if g.chance(35) {
		return onDisruption(action)
	}
	rule := onExit(action, pick(g, exits...))
	if g.chance(30) {
		rule.OnExitCodes.Operator = batchv1.PodFailurePolicyOnExitCodesOpNotIn
	}
	if g.chance(40) {
		rule = onExitOf(pick(g, g.containers...), rule)
	}
	return rule
}
