package engine

import (
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Reasons of the cluster that classes depend on. The kubelet writes the first one as reason
// of a pod, the others as reasons of containers (kubelet v1.37 and the runtimes' CRI).
const (
	podDeadlineExceeded = "DeadlineExceeded"
	containerOOMKilled  = "OOMKilled"
	containerStartError = "StartError"
	containerCannotRun  = "ContainerCannotRun"
)

// classify says what kind of failure it was. The order of the cases is the specification:
// see EndClass. An exit code alone never means that memory ran out, because whoever kills a
// container leaves the same one.
func classify(f *jobpolicyv1.PodFailure, m policyMatch) jobpolicyv1.EndClass {
	switch exits := f.GetContainerExits(); {
	case cannotStart(decisiveExit(f, m)), f.GetNeverRan() && f.GetReason() == podDeadlineExceeded, deletedUnstarted(f):
		return jobpolicyv1.EndClass_END_CLASS_NEVER_STARTED
	case f.GetReason() == podDeadlineExceeded:
		return jobpolicyv1.EndClass_END_CLASS_DEADLINE
	case slices.ContainsFunc(exits, outOfMemory):
		return jobpolicyv1.EndClass_END_CLASS_OUT_OF_MEMORY
	case f.GetDeletedBeforeEnd(), disrupted(f), f.GetReason() != "" && len(exits) == 0:
		return jobpolicyv1.EndClass_END_CLASS_INFRASTRUCTURE
	case m.failsJob(), m.failsIndex():
		return jobpolicyv1.EndClass_END_CLASS_POLICY
	case len(exits) > 0:
		return jobpolicyv1.EndClass_END_CLASS_APPLICATION
	}
	return jobpolicyv1.EndClass_END_CLASS_UNKNOWN
}

// deletedUnstarted reports whether a pod that never started has no other reason to have failed than that it
// was deleted.
func deletedUnstarted(f *jobpolicyv1.PodFailure) bool {
	return f.GetStart() != nil && f.GetReason() == "" && !disrupted(f)
}

func outOfMemory(exit *jobpolicyv1.ContainerExit) bool { return exit.GetReason() == containerOOMKilled }

func cannotStart(exit *jobpolicyv1.ContainerExit) bool {
	return exit.GetReason() == containerStartError || exit.GetReason() == containerCannotRun
}
