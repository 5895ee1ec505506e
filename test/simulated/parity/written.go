package parity

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

// A change is one field of a Job's spec.
type change func(*batchv1.JobSpec)

func indexed(n int32) change {
	return func(s *batchv1.JobSpec) {
		s.CompletionMode, s.Completions, s.Parallelism = new(batchv1.IndexedCompletion), new(n), new(n)
	}
}

func completions(n int32) change  { return func(s *batchv1.JobSpec) { s.Completions = new(n) } }
func parallelism(n int32) change  { return func(s *batchv1.JobSpec) { s.Parallelism = new(n) } }
func backoffLimit(n int32) change { return func(s *batchv1.JobSpec) { s.BackoffLimit = new(n) } }
func deadline(n int64) change     { return func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = new(n) } }

func perIndex(n int32) change { return func(s *batchv1.JobSpec) { s.BackoffLimitPerIndex = new(n) } }

func maxFailed(n int32) change     { return func(s *batchv1.JobSpec) { s.MaxFailedIndexes = new(n) } }
func suspended(s *batchv1.JobSpec) { s.Suspend = new(true) }
func onFailure(s *batchv1.JobSpec) { s.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }

func replaceFailed(s *batchv1.JobSpec) { s.PodReplacementPolicy = new(batchv1.Failed) }

func failurePolicy(rules ...batchv1.PodFailurePolicyRule) change {
	return func(s *batchv1.JobSpec) { s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules} }
}

func onExit(action batchv1.PodFailurePolicyAction, codes ...int32) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: codes,
	}}
}

func onDisruption(action batchv1.PodFailurePolicyAction) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
	}}
}

func successPolicy(rules ...batchv1.SuccessPolicyRule) change {
	return func(s *batchv1.JobSpec) { s.SuccessPolicy = &batchv1.SuccessPolicy{Rules: rules} }
}

func newSpec(changes ...change) batchv1.JobSpec {
	spec := jobspec.New()
	spec.Template.Spec.Containers = append(spec.Template.Spec.Containers, corev1.Container{Name: jobspec.Second, Image: "none"})
	for _, c := range changes {
		c(&spec)
	}
	return spec
}

// Written returns the hand-written cases: one for each feature, and those that once
// showed a difference.
func Written() []*Case {
	var cases []*Case
	add := func(name string, spec batchv1.JobSpec, steps ...string) *Case {
		c := &Case{Name: name, Spec: spec, Steps: steps}
		cases = append(cases, c)
		return c
	}
	writeRuns(add)
	writeFailures(add)
	writeOperations(add)
	writeReplacements(add)
	writeShapes(add)
	writeFound(add)
	writeManaged(add)
	writeContainers(add)
	writeOwners(add)
	writeEdits(add)
	writeDeletions(add)
	writeBursts(add)
	writeRestarts(add)
	slices.SortStableFunc(cases, func(a, b *Case) int { return len(b.Steps) - len(a.Steps) })
	return cases
}

type adder func(name string, spec batchv1.JobSpec, steps ...string) *Case

func writeRuns(add adder) {
	add("single", newSpec(), "succeed 1")
	add("three-by-two", newSpec(completions(3), parallelism(2)), "succeed 1", "succeed 2")
	add("wide", newSpec(completions(2), parallelism(5)), "succeed 2")
	add("work-queue", newSpec(parallelism(3)), "succeed 1", "succeed 2")
	add("work-queue-fails", newSpec(parallelism(3)), "succeed 1", "fail 1", "succeed 1")
	add("zero-completions", newSpec(completions(0)))
	add("zero-indexed", newSpec(indexed(0)))
	add("zero-parallelism", newSpec(completions(2), parallelism(0)), "parallelism 2", "succeed 2")
	add("indexed", newSpec(indexed(4)), "succeed #1,3", "succeed #0", "succeed #2")
	add("indexed-two-at-once", newSpec(indexed(4), parallelism(2)), "succeed #1", "succeed *", "succeed *")
	add("indexed-retry", newSpec(indexed(3)), "fail #1 exit=3", "succeed *")
	add("pending", newSpec(parallelism(3), completions(3)), "run 1", "succeed 1", "run *", "succeed 2").Manual = true
	add("success-count", newSpec(indexed(4), successPolicy(batchv1.SuccessPolicyRule{SucceededCount: new(int32(2))})), "succeed #3", "succeed #1")
	add("success-indexes", newSpec(indexed(4), successPolicy(batchv1.SuccessPolicyRule{SucceededIndexes: new("0,2")})), "succeed #1", "succeed #2", "succeed #0")
	add("success-both", newSpec(indexed(5), successPolicy(
		batchv1.SuccessPolicyRule{SucceededIndexes: new("0-3"), SucceededCount: new(int32(2))},
		batchv1.SuccessPolicyRule{SucceededIndexes: new("4")})), "succeed #1", "succeed #4")
	add("success-held", newSpec(indexed(3), successPolicy(batchv1.SuccessPolicyRule{SucceededCount: new(int32(1))})),
		"hold", "succeed #1", "end #0 succeeded", "end * failed")
	add("success-policy-fails", newSpec(indexed(3), backoffLimit(0), successPolicy(batchv1.SuccessPolicyRule{SucceededCount: new(int32(2))})), "fail #1")
	add("success-policy-and-limit-at-once", newSpec(indexed(3), successPolicy(batchv1.SuccessPolicyRule{SucceededCount: new(int32(3))})), "succeed *")
}

func writeFailures(add adder) {
	add("limit-zero", newSpec(backoffLimit(0)), "fail 1")
	add("limit-one", newSpec(backoffLimit(1)), "fail 1", "fail 1")
	add("limit-with-others-running", newSpec(backoffLimit(1), parallelism(4), completions(4)), "succeed 1", "fail 2")
	add("limit-with-held-pods", newSpec(backoffLimit(0), parallelism(3), completions(3)), "hold", "fail 1", "end 1 succeeded", "end 1 failed")
	add("limit-indexed", newSpec(backoffLimit(0), indexed(3)), "succeed #0", "fail #1")
	add("restarts", newSpec(backoffLimit(3), onFailure, parallelism(2), completions(2)), "restart 1 count=2", "restart 1 count=1")
	add("restarts-one-of-two", newSpec(backoffLimit(4), onFailure, parallelism(2), completions(2)), "restart * count=1", "succeed *")
	add("restarts-limit-zero", newSpec(backoffLimit(0), onFailure), "restart 1 count=1")
	add("restarts-then-success", newSpec(backoffLimit(3), onFailure), "restart 1 count=1", "succeed 1")
	// Whether pods start before the deadline is a race, unless none start or the
	// deadline comes later.
	add("deadline", newSpec(deadline(3), parallelism(2), completions(3)), "wait").Manual = true
	add("deadline-held", newSpec(parallelism(2)), "hold", "activeDeadlineSeconds 1", "end * failed")
	add("per-index", newSpec(indexed(3), perIndex(0)), "fail #1", "succeed *")
	add("per-index-one", newSpec(indexed(3), perIndex(1)), "fail #1", "fail #1", "succeed *")
	add("per-index-all-fail", newSpec(indexed(2), perIndex(0)), "fail #1", "fail #0")
	add("max-failed", newSpec(indexed(4), perIndex(0), maxFailed(1)), "fail #1", "fail #3")
	add("max-failed-zero", newSpec(indexed(3), perIndex(1), maxFailed(0)), "succeed #2", "fail #1", "fail #1")
	add("per-index-two-at-once", newSpec(indexed(4), parallelism(2), perIndex(0)), "fail #0", "succeed #1", "fail #2", "succeed #3")
	add("policy-fail-job", newSpec(parallelism(2), completions(3), failurePolicy(onExit("FailJob", 42))), "fail 1 exit=42")
	add("policy-second-container", newSpec(failurePolicy(onExit("FailJob", 42))), "fail 1 exit=42 container=second")
	add("policy-ignore", newSpec(backoffLimit(0), failurePolicy(onDisruption("Ignore"))), "fail 1 condition=DisruptionTarget", "succeed 1")
	add("policy-count", newSpec(backoffLimit(0), failurePolicy(onExit("Count", 7), onExit("FailJob", 7, 8))), "fail 1 exit=7")
	add("policy-no-match", newSpec(backoffLimit(1), failurePolicy(onExit("FailJob", 42))), "fail 1 exit=1", "succeed 1")
	add("policy-condition-fail-job", newSpec(failurePolicy(onDisruption("FailJob"))), "fail 1 condition=DisruptionTarget")
	add("policy-fail-index", newSpec(indexed(3), perIndex(2), failurePolicy(onExit("FailIndex", 9))), "fail #1 exit=9", "succeed *")
	add("policy-ignore-per-index", newSpec(indexed(2), perIndex(0), failurePolicy(onDisruption("Ignore"))),
		"fail #1 condition=DisruptionTarget", "fail #1", "succeed #0")
	add("policy-fail-job-indexed-held", newSpec(indexed(3), failurePolicy(onExit("FailJob", 42))), "hold", "succeed #2", "fail #0 exit=42", "end #1 succeeded")
}

func writeOperations(add adder) {
	add("suspended-from-birth", newSpec(suspended, parallelism(2), completions(2)), "resume", "succeed 2")
	add("suspend-resume", newSpec(parallelism(2), completions(3)), "succeed 1", "suspend", "resume", "succeed 2")
	add("suspend-held", newSpec(parallelism(2), completions(2)), "hold", "suspend", "resume", "end * failed", "succeed *")
	add("suspend-held-succeeds", newSpec(indexed(2)), "hold", "suspend", "end * succeeded", "resume", "succeed *")
	add("suspend-deadline", newSpec(suspended, deadline(2)), "resume", "wait").Manual = true
	add("suspend-with-failures", newSpec(parallelism(2), completions(2)), "fail 1", "suspend", "resume", "succeed *")
	add("scale-down", newSpec(parallelism(4), completions(4)), "parallelism 2", "succeed 2", "succeed *")
	add("scale-down-indexed", newSpec(indexed(4)), "parallelism 2", "succeed *", "succeed *")
	add("scale-to-zero", newSpec(indexed(3)), "parallelism 0", "parallelism 3", "succeed *")
	add("scale-up", newSpec(parallelism(1), completions(4)), "parallelism 3", "succeed 2", "succeed *")
	add("scale-work-queue", newSpec(parallelism(3)), "parallelism 1", "parallelism 2", "succeed 1", "parallelism 4", "succeed *")
	add("resize-down", newSpec(indexed(4)), "succeed #0,3", "resize 2", "succeed #1")
	add("resize-up", newSpec(indexed(2)), "succeed #0", "resize 4", "succeed *")
	add("resize-down-up", newSpec(indexed(4)), "succeed #3", "resize 2", "resize 4", "succeed *")
	add("resize-held", newSpec(indexed(3)), "hold", "resize 1", "resize 3", "end * failed", "succeed *")
	add("resize-failed-index", newSpec(indexed(3), perIndex(0)), "fail #2", "resize 2", "succeed *")
	add("resize-to-done", newSpec(indexed(3)), "succeed #0", "resize 1")
	for _, mode := range []string{"Background", "Foreground", "Orphan"} {
		add("delete-running-"+mode, newSpec(parallelism(2), completions(3)), "succeed 1", "delete "+mode)
		add("delete-held-"+mode, newSpec(indexed(3)), "hold", "succeed #1", "delete "+mode)
		add("delete-finished-"+mode, newSpec(), "succeed 1", "delete "+mode)
		add("delete-suspended-"+mode, newSpec(parallelism(2)), "suspend", "delete "+mode)
	}
	add("recreate", newSpec(parallelism(2), completions(2)), "succeed 1", "delete Background", "recreate", "succeed 2")
	add("raise-limit", newSpec(backoffLimit(1)), "fail 1", "backoffLimit 0")
	add("deadline-added", newSpec(parallelism(2)), "activeDeadlineSeconds 1", "wait")
}

func writeReplacements(add adder) {
	add("remove", newSpec(parallelism(2), completions(2)), "remove 1", "succeed *")
	add("remove-held", newSpec(parallelism(2), completions(2)), "hold", "remove 1", "end * succeeded", "succeed *")
	add("remove-held-failed-only", newSpec(replaceFailed, parallelism(2), completions(2)), "hold", "remove 1", "end * failed", "succeed *")
	add("remove-held-failed-only-succeeds", newSpec(replaceFailed, parallelism(2), completions(2)), "hold", "remove 1", "end * succeeded", "succeed *")
	add("remove-indexed-held", newSpec(indexed(2)), "hold", "remove #1", "end * succeeded", "succeed *")
	add("remove-indexed-failed-only", newSpec(replaceFailed, indexed(2)), "hold", "remove #1", "end * failed", "succeed *")
	add("remove-per-index", newSpec(indexed(2), perIndex(1)), "hold", "remove #1", "end * failed", "succeed *")
	add("remove-per-index-zero", newSpec(indexed(2), perIndex(0)), "remove #1", "succeed *")
	add("remove-policy", newSpec(indexed(2), failurePolicy(onExit("FailJob", 143))), "hold", "remove #1", "end * failed")
	add("remove-limit-zero", newSpec(backoffLimit(0), parallelism(2), completions(2)), "hold", "remove 1", "end * succeeded")
	add("remove-pending", newSpec(parallelism(2), completions(2)), "remove 1", "run *", "succeed 2").Manual = true
	add("suspend-pending", newSpec(parallelism(2), completions(2)), "suspend", "resume", "run *", "succeed 2").Manual = true
	add("scale-down-failed-only-held", newSpec(replaceFailed, parallelism(3), completions(3)), "hold", "parallelism 1", "parallelism 3", "end * failed", "succeed *")
	add("work-queue-remove", newSpec(parallelism(2)), "succeed 1", "remove 1")
}

// writeFound: cases in which the generator once found a difference.
func writeFound(add adder) {
	add("suspended-when-done", newSpec(parallelism(5), backoffLimit(0), onFailure), "succeed 4", "suspend")
	add("suspended-when-done-indexed", newSpec(indexed(4)), "succeed #0,1", "suspend", "resize 2")
	add("limit-and-per-index", newSpec(indexed(3), backoffLimit(0), perIndex(0)), "fail #1 exit=42")
	add("success-policy-and-per-index", newSpec(indexed(2), perIndex(0), successPolicy(batchv1.SuccessPolicyRule{SucceededIndexes: new("1")})), "succeed #1")
	add("born-suspended-orphans", newSpec(indexed(3), suspended, perIndex(1)), "resume", "delete Orphan")
}

// writeShapes: what the pods look like.
func writeShapes(add adder) {
	plain := func(s *batchv1.JobSpec) {
		s.Template.Spec.Subdomain = "sub"
		s.Template.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "none"}}
		s.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "JOB_COMPLETION_INDEX", Value: "own"}, {Name: "OTHER", Value: "x"}}
	}
	long := "a-name-of-sixty-characters-which-is-as-long-as-names-may-get"
	add("shape", newSpec(plain), "fail 1", "succeed 1")
	add("shape-indexed", newSpec(indexed(12), parallelism(3), plain), "fail #1", "succeed #0")
	add("shape-per-index", newSpec(indexed(2), perIndex(2), plain), "fail #1", "fail #1", "succeed *")
	add("shape-long-name", newSpec(indexed(3)), "succeed *").Job = long
	add("shape-long-name-plain", newSpec(), "succeed *").Job = long
	add("shape-template-labels", newSpec(indexed(2), func(s *batchv1.JobSpec) {
		s.Template.Labels = map[string]string{"color": "red"}
		s.Template.Annotations = map[string]string{"note": "kept", batchv1.JobCompletionIndexAnnotation: "7"}
	}), "succeed *")
	add("shape-own-finalizer", newSpec(func(s *batchv1.JobSpec) { s.Template.Finalizers = []string{"example.com/mine"} }), "succeed 1")
	add("shape-own-selector", newSpec(func(s *batchv1.JobSpec) {
		s.ManualSelector = new(true)
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "mine"}}
		s.Template.Labels = map[string]string{"queue": "mine"}
	}), "succeed 1")
	add("template-of-suspended", newSpec(suspended, parallelism(2)), "template color=blue", "resume", "succeed 2")
	add("template-after-suspend", newSpec(indexed(2)), "suspend", "template color=blue", "resume", "succeed *")
}
