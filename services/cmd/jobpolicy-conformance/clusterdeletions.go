package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// deletionBegun checks that a deletion which the last answer decided begins at the right
// time.
func (c *clusterWatcher) deletionBegun(w *clusterWrite, uid types.UID, pod *clusterPod) {
	job := c.watched(pod.job)
	releaseFirst, decided := pod.job.toDelete[uidBytes(uid)]
	if job == nil || !decided {
		return
	}
	w.deleted = pod
	c.note(checkWrites, !pod.job.written, job, "the status was written, and then a deletion of the same decision began")
	if releaseFirst {
		c.note(checkReleaseFirst, pod.released > 0, job, fmt.Sprintf("the deletion of the pod %s began, and its finalizer was not removed", pod.name))
	}
}

// deletionEnded records a pod that the caller deleted. It ignores a pod that is released
// already, because the Job no longer depends on it.
func (c *clusterWatcher) deletionEnded(job *watchedJob, uid types.UID, name string) {
	if job.deletable[uidBytes(uid)] {
		c.note(checkDelete, true, job, "")
		return
	}
	if pod := c.pods[uid]; pod != nil && pod.released > 0 {
		return
	}
	job.writes.undecided = append(job.writes.undecided, name)
}

// allDeleted records the pods that one request has deleted.
func (c *clusterWatcher) allDeleted(body []byte) {
	var list struct{ Items []object }
	if json.Unmarshal(body, &list) != nil {
		return
	}
	for i := range list.Items {
		if job := c.jobOf(&list.Items[i].ObjectMeta); job != nil {
			c.deletionEnded(job, list.Items[i].UID, list.Items[i].Name)
		}
	}
}

// checkDeletions reports the deletions that no answer decided. It is called only when the
// caller asks about the Job again: a caller with rules of its own may give up a Job and
// then delete any of its pods.
func (c *clusterWatcher) checkDeletions(job *watchedJob) {
	for _, name := range job.writes.undecided {
		c.note(checkDelete, false, job, fmt.Sprintf("the pod %s was deleted, and no answer decided it", name))
	}
	job.writes.undecided = nil
}
