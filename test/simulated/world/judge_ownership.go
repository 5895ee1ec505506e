package world

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/podjob"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// replacesBuiltin reports whether the executors replace the built-in controllers.
func (j *judge) replacesBuiltin() bool { return j.managed(&batchv1.Job{}) }

// judgeOwnership checks I8 and I9: an executor writes only pods of Jobs that it
// manages. It also adopts pods that such a Job selects and nothing controls, and
// removes the finalizer from pods of a deleted Job.
func (j *judge) judgeOwnership(w apiserver.Write, old, next *corev1.Pod) {
	if old == nil {
		j.judgeOwnCreation(w, next)
		return
	}
	ref := metav1.GetControllerOfNoCopy(old)
	switch {
	case ref == nil:
		j.judgeLoose(w, old, next)
	case ref.Kind != "Job":
		j.breach("I9", w.Key, w.UID, "%s wrote a pod that %s %s controls, and must leave it alone", w.By, ref.Kind, ref.Name)
	default:
		j.judgeOwned(w, j.jobs[controllerUID(old)], old, next)
	}
}

func (j *judge) judgeOwnCreation(w apiserver.Write, pod *corev1.Pod) {
	if r := j.jobs[controllerUID(pod)]; r != nil && !j.managed(r.job) {
		j.breach("I9", w.Key, w.UID, "%s created a pod for Job %s, which somebody else manages", w.By, r.key.Name)
	}
}

func (j *judge) judgeOwned(w apiserver.Write, r *jobRecord, old, next *corev1.Pod) {
	switch {
	case r != nil && j.managed(r.job):
	case (r == nil || r.gone) && j.replacesBuiltin() && onlyReleases(w, old, next):
	case r == nil && j.podjob && old.Annotations[podjob.GroupAnnotation] != "":
	case r != nil && !r.gone:
		j.breach("I9", w.Key, w.UID, "%s wrote a pod of Job %s, which somebody else manages, and must leave it alone", w.By, r.key.Name)
	default:
		j.breach("I9", w.Key, w.UID, "%s wrote a pod that a Job of somebody else left behind, and that is for whoever stands in for the built-in controller: to take its finalizer, and no more", w.By)
	}
}

// judgeLoose checks the write of a pod that nothing controls.
func (j *judge) judgeLoose(w apiserver.Write, old, next *corev1.Pod) {
	p := j.pods[w.UID]
	if p != nil && p.former != nil && !j.old(p.left) {
		return // In the writer's view the Job may still have controlled it.
	}
	if next == nil || controllerUID(next) == "" {
		mine := p != nil && (p.claimedBy != "" || j.selected(old))
		if !onlyReleases(w, old, next) || !(mine || j.replacesBuiltin()) {
			j.breach("I9", w.Key, w.UID, "%s wrote a pod that no Job controls or selects, and must leave it alone", w.By)
		}
		return
	}
	r := j.jobs[controllerUID(next)]
	switch {
	case r == nil || !j.managed(r.job):
		j.breach("I9", w.Key, w.UID, "%s gave a pod to a Job (UID %s) that it does not manage", w.By, controllerUID(next))
	case !r.selects(old) && (p == nil || j.old(p.strayAt)):
		j.breach("I8", w.Key, w.UID, "%s adopted a pod for Job %s, which does not select it", w.By, r.key.Name)
	case r.gone && j.old(r.goneAt), !r.deletedAt.IsZero() && j.old(r.deletedAt):
		j.breach("I8", w.Key, w.UID, "%s adopted a pod for Job %s, which is deleted", w.By, r.key.Name)
	}
}

// selected reports whether a managed Job selects the pod, or one that is gone did.
func (j *judge) selected(pod *corev1.Pod) bool {
	for _, r := range j.jobs {
		if r.key.Namespace == pod.Namespace && r.selects(pod) && j.managed(r.job) {
			return true
		}
	}
	return false
}

// onlyReleases reports whether a write only removes the tracking finalizer from a pod.
func onlyReleases(w apiserver.Write, old, next *corev1.Pod) bool {
	if !holds(old) || holds(next) || w.Verb == "delete" {
		return false
	}
	return next == nil || slices.EqualFunc(old.OwnerReferences, next.OwnerReferences, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
}
