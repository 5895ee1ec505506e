package parity

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
)

// writeDeletions: the Job is deleted at each moment in the life of its pods.
func writeDeletions(add adder) {
	for _, mode := range []string{"Background", "Foreground", "Orphan"} {
		add("delete-just-succeeded-"+mode, newSpec(parallelism(2), completions(2)), "succeed 1 & delete "+mode)
		add("delete-all-succeeded-"+mode, newSpec(indexed(3)), "succeed * & delete "+mode)
		add("delete-just-failed-"+mode, newSpec(indexed(3), perIndex(1)), "fail #1 & delete "+mode)
		add("delete-just-failing-"+mode, newSpec(parallelism(3), completions(3), failurePolicy(onExit("FailJob", 42))), "fail 1 exit=42 & delete "+mode)
		add("delete-just-suspended-"+mode, newSpec(parallelism(3)), "suspend & delete "+mode)
		add("delete-just-resumed-"+mode, newSpec(parallelism(3), suspended), "resume & delete "+mode)
		add("delete-just-scaled-"+mode, newSpec(indexed(4)), "parallelism 1 & delete "+mode)
		add("delete-terminating-"+mode, newSpec(parallelism(2), completions(2)), "hold", "remove 1", "delete "+mode, "end * failed")
		add("delete-failing-"+mode, newSpec(parallelism(3), completions(3), failurePolicy(onExit("FailJob", 42))),
			"hold", "fail 1 exit=42", "delete "+mode, "end * succeeded")
		add("delete-criteria-met-"+mode, newSpec(indexed(3), successPolicy(batchv1.SuccessPolicyRule{SucceededCount: new(int32(1))})),
			"hold", "succeed #0", "delete "+mode, "end * failed")
		add("delete-suspending-"+mode, newSpec(indexed(2)), "hold", "suspend", "delete "+mode, "end * failed")
		add("delete-pending-"+mode, newSpec(parallelism(2)), "delete "+mode).Manual = true
		add("delete-delayed-"+mode, newSpec(indexed(2), backoffLimit(5)), "fail #0", "fail #0", "fail #0 & delete "+mode)
		add("delete-kept-"+mode, newSpec(parallelism(2), completions(3)), "finalizer example.com/mine", "delete "+mode, "succeed *", "unfinalizer example.com/mine")
		add("delete-kept-held-"+mode, newSpec(indexed(3)), "hold", "finalizer example.com/mine", "delete "+mode, "try parallelism 1", "unfinalizer example.com/mine")
		add("recreate-"+mode, newSpec(parallelism(2), completions(2)), "succeed 1", "delete "+mode+" & recreate", "succeed *")
		add("recreate-indexed-"+mode, newSpec(indexed(3), perIndex(1)), "succeed #0", "fail #1", "succeed #2 & delete "+mode+" & recreate", "succeed *")
		add("recreate-suspended-"+mode, newSpec(suspended, indexed(2)), "resume", "delete "+mode+" & recreate", "resume", "succeed *")
		add("recreate-finished-"+mode, newSpec(), "succeed 1", "delete "+mode+" & recreate", "succeed 1")
	}
}

// writeBursts: several things happen at once, with one possible end. Pods that succeed
// at the moment in which they become too many do not belong here: the built-in
// controller deletes some of them unseen.
func writeBursts(add adder) {
	add("recreate-twice", newSpec(parallelism(3), completions(3)), "delete Background & recreate & delete Background & recreate", "succeed *")
	add("burst-succeed-and-fail", newSpec(completions(4), parallelism(3)), "succeed 1 & fail 1", "succeed *", "succeed *")
	add("burst-succeed-and-remove", newSpec(indexed(4)), "succeed #0 & remove #1", "succeed *")
	add("burst-remove-and-succeed", newSpec(replaceFailed, indexed(2)), "hold", "remove #1 & succeed #1", "succeed *")
	add("burst-remove-and-fail", newSpec(replaceFailed, indexed(2), perIndex(0)), "hold", "remove #1 & fail #1", "succeed *")
	add("burst-fail-indexes", newSpec(indexed(4), perIndex(0)), "fail #0 & fail #2 & succeed #1", "succeed #3")
	add("burst-fail-past-max", newSpec(indexed(4), perIndex(0), maxFailed(2)), "fail #0,1,2")
	add("burst-restarts", newSpec(onFailure, backoffLimit(5), parallelism(3), completions(3)), "restart 1 count=1 & restart 1 count=2", "succeed *")
	add("burst-succeed-suspend", newSpec(indexed(3)), "succeed #0", "suspend & parallelism 2", "resume", "succeed *")
	add("burst-edits", newSpec(indexed(3), suspended), "template a=b & nodeSelector zone=a & parallelism 2 & backoffLimit 1 & resume", "succeed *", "succeed *")
	add("burst-resume-suspend", newSpec(parallelism(2), completions(2)), "suspend", "activeDeadlineSeconds 90000 & label a=b", "resume", "succeed *")
	add("burst-succeed-resize", newSpec(indexed(4)), "succeed #3 & resize 3", "succeed *")
	add("burst-succeed-scale", newSpec(parallelism(3), completions(5)), "succeed *", "parallelism 2 & label a=b", "succeed *", "succeed *")
	add("burst-complete-edit", newSpec(indexed(2)), "succeed * & label a=b & parallelism 1")
	// If our side sees the failure after the new parallelism, it creates one more pod
	// before the Job fails. So does the built-in controller.
	for seed := range uint64(4) {
		add(fmt.Sprint("burst-fail-and-scale-", seed), newSpec(backoffLimit(1), parallelism(2)), "fail 1 condition=DisruptionTarget", "fail 1 & parallelism 3").seed = seed
	}
	add("burst-success-policy", newSpec(indexed(4), successPolicy(batchv1.SuccessPolicyRule{SucceededIndexes: new("0-2"), SucceededCount: new(int32(2))})),
		"hold", "succeed #0,1 & label a=b", "end * failed")
}

// writeRestarts: the controllers die at the moments that matter.
func writeRestarts(add adder) {
	add("restart-after-success", newSpec(parallelism(2), completions(4)), "succeed 1 & crash", "succeed * & crash engine", "succeed *")
	add("restart-after-failure", newSpec(indexed(3), perIndex(1)), "fail #1 & crash", "fail #1 & crash engine", "succeed *")
	add("restart-before-success", newSpec(indexed(3)), "crash & succeed *")
	add("restart-before-success-of-engine", newSpec(indexed(3)), "crash engine & succeed *")
	add("restart-when-suspended", newSpec(indexed(3)), "hold", "suspend & crash", "crash engine & end #0 succeeded", "crash & resume", "end * failed", "succeed *")
	add("restart-when-deleted", newSpec(indexed(3)), "succeed #1 & delete Background & crash")
	add("restart-when-deleted-of-engine", newSpec(indexed(3)), "succeed #1 & delete Background & crash engine")
	add("restart-when-orphaned", newSpec(indexed(3)), "crash & succeed #1 & delete Orphan")
	add("restart-when-recreated", newSpec(indexed(3)), "crash & succeed #1 & delete Background & recreate", "succeed *")
	add("restart-when-recreated-of-engine", newSpec(indexed(3)), "crash engine & succeed #1 & delete Background & recreate", "succeed *")
	add("restart-created", newSpec(parallelism(4), completions(8)), "parallelism 8 & crash", "succeed * & crash engine")
	add("restart-ignored-count", newSpec(indexed(2), perIndex(1), failurePolicy(onDisruption("Ignore"))),
		"fail #0 condition=DisruptionTarget & crash", "fail #0 & crash", "fail #0 & crash", "succeed *")
	// The Job fails as its policy says, although the pod is deleted while no controller
	// runs.
	add("restart-policy-pod-removed", newSpec(parallelism(2), completions(3), failurePolicy(onExit("FailJob", 42))), "hold", "crash & fail 1 exit=42 & remove *", "end * failed")
	add("restart-policy-removed-first", newSpec(indexed(2), failurePolicy(onExit("FailJob", 42))), "hold", "crash & remove #1 & fail #1 exit=42")
	add("restart-policy-between", newSpec(indexed(3), failurePolicy(onExit("FailJob", 42))), "hold", "fail #1 exit=42 & crash", "crash & end #0 failed", "end * succeeded")
	add("restart-criteria-met", newSpec(indexed(3), successPolicy(batchv1.SuccessPolicyRule{SucceededCount: new(int32(1))})),
		"hold", "succeed #1 & crash", "crash & end #0 failed", "end * succeeded")
	add("restart-past-limit", newSpec(backoffLimit(0), parallelism(3), completions(3)), "hold", "fail 1 & crash", "crash & end 1 failed", "end * failed")
	add("restart-counts-of-containers", newSpec(onFailure, backoffLimit(2), parallelism(2), completions(2)), "hold", "crash & restart 1 count=3", "end * failed")
	add("restart-deadline", newSpec(parallelism(2)), "hold", "activeDeadlineSeconds 1 & crash", "end * failed")
	add("restart-resize", newSpec(indexed(4)), "succeed #3", "crash & resize 2", "crash & resize 4", "succeed *")
	add("restart-adoption", newSpec(ownSelector, completions(3), parallelism(2)), "crash & pod phase=Succeeded & pod phase=Running", "succeed *")
	add("restart-release", newSpec(indexed(2)), "crash & relabel #1", "succeed *")
	add("restart-managed", newSpec(managedBy("example.com/other")), "crash & pod owner=job tracked=true phase=Succeeded & delete Orphan")
}
