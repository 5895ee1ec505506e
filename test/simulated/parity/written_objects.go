package parity

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func managedBy(name string) change {
	return func(s *batchv1.JobSpec) { s.ManagedBy = new(name) }
}

// withSidecar: an init container, "first", and one that keeps running, "side".
func withSidecar(s *batchv1.JobSpec) {
	s.Template.Spec.InitContainers = []corev1.Container{
		{Name: "first", Image: "none"},
		{Name: "side", Image: "none", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
	}
}

// ownSelector: the Job selects pods by a label that other pods may have too.
func ownSelector(s *batchv1.JobSpec) {
	s.ManualSelector = new(true)
	s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "mine"}}
	s.Template.Labels = map[string]string{"queue": "mine"}
}

func onExitOf(container string, rule batchv1.PodFailurePolicyRule) batchv1.PodFailurePolicyRule {
	rule.OnExitCodes.ContainerName = new(container)
	return rule
}

// writeManaged: Jobs of another controller, ours by name, and the built-in
// controller's by name.
func writeManaged(add adder) {
	foreign := managedBy("example.com/other")
	for _, mode := range []string{"Background", "Foreground", "Orphan"} {
		add("managed-foreign-"+mode, newSpec(foreign, parallelism(2), completions(3)),
			"pod owner=job tracked=true phase=Running", "pod owner=job tracked=true phase=Succeeded", "parallelism 1", "delete "+mode)
	}
	add("managed-foreign-stray-pods", newSpec(foreign, ownSelector),
		"pod tracked=true phase=Running", "pod phase=Failed", "pod tracked=true phase=Succeeded owner=other", "suspend", "resume")
	add("managed-foreign-deadline", newSpec(foreign, deadline(1)), "pod owner=job tracked=true phase=Running", "remove 1")
	for name, manager := range map[string]string{"own": ownManager, "reserved": "kubernetes.io/job-controller"} {
		by := managedBy(manager)
		add("managed-"+name+"-completes", newSpec(by, completions(3), parallelism(2)), "succeed 1", "fail 1", "succeed *", "succeed *")
		add("managed-"+name+"-suspends", newSpec(by, indexed(3)), "succeed #0", "suspend", "resume", "succeed *")
		add("managed-"+name+"-born-suspended", newSpec(by, indexed(2), suspended), "resume", "succeed *")
		add("managed-"+name+"-fails", newSpec(by, indexed(3), perIndex(0), maxFailed(1)), "hold", "succeed #2", "fail #0", "fail #1")
		add("managed-"+name+"-policies", newSpec(by, indexed(3), failurePolicy(onExit("FailJob", 42))), "hold", "fail #1 exit=42", "end * failed")
		add("managed-"+name+"-succeeds-early", newSpec(by, indexed(3), successPolicy(batchv1.SuccessPolicyRule{SucceededCount: new(int32(1))})),
			"hold", "succeed #1", "end * failed")
		add("managed-"+name+"-deadline", newSpec(by, parallelism(2)), "hold", "activeDeadlineSeconds 1", "end * failed")
		add("managed-"+name+"-resized", newSpec(by, indexed(4)), "succeed #0,3", "resize 2", "resize 4", "succeed *")
		add("managed-"+name+"-deleted", newSpec(by, parallelism(2), completions(3)), "succeed 1", "delete Foreground & recreate", "succeed *")
	}
}

// writeContainers: init containers, sidecars, and rules of the failure policy
// that name them.
func writeContainers(add adder) {
	add("sidecar", newSpec(withSidecar, completions(2), parallelism(2)), "succeed 1", "halfway 1", "succeed 1 container=side exit=137")
	add("sidecar-ends-last", newSpec(withSidecar, failurePolicy(onExitOf("side", onExit("FailJob", 3)))),
		"halfway 1", "succeed 1 container=side exit=3")
	add("sidecar-fails", newSpec(withSidecar, backoffLimit(1)), "halfway 1", "fail 1 container=side exit=3", "fail 1 container=side exit=3")
	add("sidecar-rule", newSpec(withSidecar, failurePolicy(onExitOf("side", onExit("FailJob", 3)))), "fail 1 exit=3", "fail 1 container=side exit=3")
	add("sidecar-any-rule", newSpec(withSidecar, failurePolicy(onExit("FailJob", 3))), "fail 1 container=side exit=3")
	add("sidecar-not-in", newSpec(withSidecar, failurePolicy(func() batchv1.PodFailurePolicyRule {
		rule := onExitOf("side", onExit("FailJob", 3))
		rule.OnExitCodes.Operator = batchv1.PodFailurePolicyOnExitCodesOpNotIn
		return rule
	}())), "fail 1 exit=3", "fail 1 container=side exit=4")
	add("sidecar-restarts", newSpec(withSidecar, onFailure, backoffLimit(3)), "restart 1 container=side count=2", "restart 1 container=first count=1")
	add("sidecar-restarts-alone", newSpec(withSidecar, onFailure, backoffLimit(0)), "restart 1 container=side count=1")
	add("sidecar-restarts-never", newSpec(withSidecar, backoffLimit(0)), "restart 1 container=side count=4", "succeed 1")
	add("sidecar-halfway-held", newSpec(withSidecar, indexed(2), backoffLimit(0)), "hold", "halfway #0 exit=1", "remove #0", "end * failed")
	add("sidecar-halfway-suspended", newSpec(withSidecar, indexed(2)), "hold", "halfway #0", "suspend", "end * succeeded", "resume", "succeed *")
	add("init-fails", newSpec(withSidecar, backoffLimit(1)), "fail 1 container=first exit=5", "fail 1 container=first exit=5")
	add("init-rule", newSpec(withSidecar, failurePolicy(onExitOf("first", onExit("FailJob", 5)))), "fail 1 exit=5", "fail 1 container=first exit=5")
	add("init-ignored", newSpec(withSidecar, backoffLimit(0), failurePolicy(onExitOf("first", onExit("Ignore", 5)))),
		"fail 1 container=first exit=5", "fail 1 container=first exit=6")
	add("init-fail-index", newSpec(withSidecar, indexed(2), perIndex(3), failurePolicy(onExitOf("first", onExit("FailIndex", 5)))),
		"fail #0 container=first exit=5", "succeed #1")
	add("second-of-two-rules", newSpec(failurePolicy(onExitOf("main", onExit("Ignore", 7)), onExitOf("second", onExit("FailJob", 7)))),
		"fail 1 exit=7", "fail 1 container=second exit=7")
	add("condition-before-exit", newSpec(failurePolicy(onDisruption("Ignore"), onExit("FailJob", 7)), backoffLimit(0)),
		"fail 1 exit=7 condition=DisruptionTarget", "fail 1 exit=7 condition=Other")
}

// writeOwners: pods that join a Job, or leave it.
func writeOwners(add adder) {
	add("adopt-running", newSpec(ownSelector, parallelism(2), completions(2)), "succeed *").Before = "pod phase=Running"
	add("adopt-succeeded", newSpec(ownSelector, parallelism(2), completions(3)), "succeed *").Before = "pod phase=Succeeded"
	add("adopt-failed", newSpec(ownSelector, backoffLimit(0)), "delete Background").Before = "pod phase=Failed"
	add("adopt-tracked", newSpec(ownSelector, parallelism(2), completions(3)), "succeed *").Before = "pod phase=Succeeded tracked=true"
	add("adopt-more-than-wanted", newSpec(ownSelector, completions(3)), "succeed *").Before = "pod phase=Running & pod phase=Running"
	add("adopt-not-foreign", newSpec(ownSelector, completions(2)), "succeed 1", "delete Background").Before = "pod owner=other phase=Running"
	add("adopt-index", newSpec(ownSelector, indexed(3)), "succeed *").Before = "pod index=1 phase=Running"
	add("adopt-second-of-index", newSpec(indexed(2)), "pod owner=job index=1 tracked=true phase=Running", "succeed *")
	add("adopt-index-outside", newSpec(ownSelector, indexed(2)), "succeed *").Before = "pod index=7 phase=Running"
	add("adopt-without-index", newSpec(ownSelector, indexed(2)), "succeed *").Before = "pod phase=Running"
	add("adopt-later", newSpec(ownSelector, parallelism(2), completions(4)), "pod phase=Succeeded", "pod tracked=true phase=Failed", "succeed *", "succeed *")
	add("adopt-while-suspended", newSpec(ownSelector, suspended, completions(2)), "pod phase=Running", "resume", "succeed *", "succeed *")
	add("adopt-orphans-of-before", newSpec(ownSelector, parallelism(2), completions(2)), "succeed 1", "delete Orphan & recreate", "succeed *")
	add("adopt-nothing-when-finished", newSpec(ownSelector), "succeed 1", "pod phase=Running", "pod tracked=true phase=Running")
	add("owned-untracked", newSpec(completions(2)), "pod owner=job phase=Running", "succeed *")
	add("owned-untracked-finished", newSpec(completions(2)), "pod owner=job phase=Succeeded", "succeed 1")
	add("owned-unlabeled", newSpec(completions(2)), "pod owner=job labels=none tracked=true phase=Running", "succeed 1")
	add("release", newSpec(parallelism(2), completions(2)), "relabel 1", "parallelism 2", "delete Background")
	add("release-indexed", newSpec(indexed(3)), "relabel #1", "succeed #0,2")
	add("release-own-selector", newSpec(ownSelector, parallelism(2)), "relabel 1", "succeed 1")
	add("stray-tracked", newSpec(), "pod tracked=true labels=none phase=Running", "succeed 1")
	add("stray-tracked-foreign", newSpec(), "pod tracked=true owner=other phase=Failed", "succeed 1", "delete Background")
}

// writeEdits: each field that the API server allows users to change, and some that it does
// not.
func writeEdits(add adder) {
	add("edit-backoff-limit-down", newSpec(completions(3), parallelism(2)), "fail 1", "backoffLimit 0", "delete Background")
	add("edit-backoff-limit-up", newSpec(backoffLimit(1)), "fail 1", "backoffLimit 3", "fail 1", "succeed 1")
	add("edit-backoff-limit-restarts", newSpec(onFailure, backoffLimit(3)), "restart 1 count=2", "backoffLimit 2")
	add("edit-deadline-removed", newSpec(deadline(90000)), "edit activeDeadlineSeconds null", "succeed 1")
	add("edit-deadline-suspended", newSpec(parallelism(2)), "suspend", "activeDeadlineSeconds 1", "activeDeadlineSeconds 90000", "resume", "succeed *")
	add("edit-max-failed-down", newSpec(indexed(4), perIndex(0), maxFailed(2)), "fail #0", "edit maxFailedIndexes 0")
	add("edit-max-failed-up", newSpec(indexed(3), perIndex(0), maxFailed(1)), "fail #0", "edit maxFailedIndexes 3", "fail #1", "succeed #2")
	add("edit-max-failed-removed", newSpec(indexed(3), perIndex(0), maxFailed(1)), "fail #0", "try edit maxFailedIndexes null", "fail #1", "succeed *")
	add("edit-replacement-policy", newSpec(parallelism(2), completions(2)), "hold", "remove 1", "edit podReplacementPolicy Failed", "end * failed", "succeed *")
	add("edit-replacement-policy-back", newSpec(replaceFailed, parallelism(2), completions(2)),
		"hold", "remove 1", "edit podReplacementPolicy TerminatingOrFailed", "end * failed", "succeed *")
	add("edit-ttl", newSpec(), "edit ttlSecondsAfterFinished 1000", "succeed 1", "edit ttlSecondsAfterFinished 5000")
	add("edit-selector-manual", newSpec(completions(2)), "try edit manualSelector true", "succeed 1", "succeed 1")
	add("edit-completions-work-queue", newSpec(parallelism(2)), "try edit completions 3", "succeed *")
	add("edit-completions-plain", newSpec(completions(3)), "try edit completions 4", "succeed 1", "succeed 1", "succeed 1")
	add("edit-completions-alone", newSpec(indexed(4)), "try edit completions 2", "succeed *")
	add("edit-immutable", newSpec(indexed(2)), "try edit completionMode NonIndexed", "try edit backoffLimitPerIndex 1",
		"try edit managedBy example.com/other", "try edit managedBy "+ownManager, "try image other", "try template color=red", "succeed *")
	add("edit-finished", newSpec(completions(2)), "succeed 1", "succeed 1", "parallelism 5", "backoffLimit 0", "suspend", "label a=b")
	add("edit-failed", newSpec(backoffLimit(0)), "fail 1", "backoffLimit 5", "suspend", "resume")
	add("edit-suspended-placement", newSpec(indexed(2), suspended), "nodeSelector zone=a", "toleration spot", "affinity disk", "annotate note=new", "resume", "succeed *")
	add("edit-suspended-later", newSpec(indexed(2)), "suspend", "nodeSelector zone=a & toleration spot", "cpu 100m", "annotate note=new", "resume", "succeed *")
	add("edit-suspended-held", newSpec(indexed(2)), "hold", "suspend", "try nodeSelector zone=a", "try cpu 100m", "end * failed", "resume", "succeed *")
	add("edit-resources", newSpec(parallelism(2), completions(2), suspended), "cpu 100m", "resume", "succeed 1", "try cpu 200m", "succeed 1")
	add("edit-image-of-suspended", newSpec(suspended), "try image other", "resume", "succeed 1")
	add("edit-gates", newSpec(completions(2), parallelism(2), suspended), "gate example.com/wait", "resume", "run 1", "succeed 1", "run 1", "succeed 1")
	add("edit-gated-suspended", newSpec(indexed(2), func(s *batchv1.JobSpec) {
		s.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	}), "suspend", "resume", "run #0", "succeed #0", "parallelism 0")
	add("edit-label", newSpec(completions(2)), "label team=a", "succeed 1", "label team=b", "succeed 1")
}
