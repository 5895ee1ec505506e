package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// Whoever deletes a Job, or its namespace, often deletes the pods, too: the garbage
// collector does so milliseconds after a deletion in the foreground. These pods then
// fail, or succeed because they exit with 0 when they are told to stop. Neither says
// how the Job's work went. So no new verdict comes from them: until a verdict is
// declared, a pod that is being deleted is released, and counts neither as failed nor
// as succeeded. This also holds for one that has ended, because nothing tells for
// certain whether it ended before its deletion. The rules, while a Job is being deleted:
//
//   - A verdict that was declared before goes on as if the Job were not being deleted.
//   - Failed and succeeded pods and indexes: what the status has counted and pods that
//     ended and are not being deleted count as always. A finalizer may keep the Job, and
//     somebody may wait for its end.
//   - Container restarts: their sum includes pods that are being deleted, so it decides
//     nothing while there are such pods.
//   - The deadline looks at no pod, so it passes as always.
//   - A work queue is complete when a pod has succeeded and no other is active. Deletion
//     causes the latter, so a work queue does not become complete.
//   - Pods without a row may be being deleted, so they decide nothing before they have one.
//
// Upstream's controller declares a Job Failed or Complete because of such pods (syncJob,
// v1.37).

// undecidedDeletion reports whether the Job or its namespace is being deleted and no
// verdict was declared before.
func (s *snapshot) undecidedDeletion() bool { return s.deleting() && !s.declared() }

// leavesWithJob reports whether a pod is deleted together with its Job, so that its end
// says nothing.
func (s *snapshot) leavesWithJob(pod *jobpolicyv1.UnaccountedPod) bool {
	return s.undecidedDeletion() && pod.GetDeleting()
}

// unlisted are the pods without a row, as far as they count.
func (s *snapshot) unlisted() *jobpolicyv1.UnlistedPods {
	if s.undecidedDeletion() {
		return nil
	}
	return s.req.GetUnlistedPods()
}
