package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func (w *work) onFailure() bool {
	return w.Job.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

// restarts counts the restarts that backoffLimit counts, and names their containers: those of all
// containers of pods that have not ended, init containers and sidecars among them, if the pods'
// restartPolicy is OnFailure. With all, pods that have ended are counted, too.
func (w *work) restarts(all bool) (n int32, of string) {
	if !w.onFailure() {
		return 0, ""
	}
	var names []string
	counts := map[string]int32{}
	for i := range w.Facts.Pods {
		p := &w.Facts.Pods[i]
		if ended(p) && !all {
			continue
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if s.RestartCount == 0 {
				continue
			}
			if counts[s.Name] == 0 && s.Name != "" { // The executor's page does not know the names.
				names = append(names, s.Name)
			}
			counts[s.Name] += s.RestartCount
			n += s.RestartCount
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	if len(names) > 0 {
		of = " (" + strings.Join(names, ", ") + ")"
	}
	return n, of
}

// restartsOf counts the restarts of all containers of a pod.
func restartsOf(p *corev1.Pod) (n int32) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		n += s.RestartCount
	}
	return n
}

// adviseOnBackoffLimit says what was counted against backoffLimit. With OnFailure, too many failed
// pods and too many restarts are two ways to exceed it, and pods that restarts have ended count as failed.
func (w *work) adviseOnBackoffLimit() {
	limit := ptr.Deref(w.Job.Spec.BackoffLimit, 6)
	pods := fmt.Sprintf("spec.backoffLimit (%d) is how many pods may fail, and %d have failed", limit, w.Counts.Failed)
	if !w.onFailure() {
		w.advise("%s.", pods)
		return
	}
	known := fmt.Sprintf("%d at least", max(limit, 1))
	switch n, of := w.restarts(true); {
	case w.recorded: // Its facts lack pods.
	case n > 0:
		known = fmt.Sprintf("%d in the pods that exist%s", n, of)
	default:
		known += "; the pods are gone, and the exact number with them"
	}
	restarts := fmt.Sprintf("restarts of all containers of unfinished pods count, those of init containers and sidecars among them, and the one that makes %d fails the Job. There were %s", max(limit, 1), known)
	if w.Counts.Failed > limit {
		w.advise("%s. With restartPolicy OnFailure, %s.", pods, restarts)
		return
	}
	w.advise("Restarts used up spec.backoffLimit (%d), not failed pods: with restartPolicy OnFailure, %s.", limit, restarts)
}
