package podjob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The strangers' pods.
const (
	noOwner      = "a stranger's pod has no owner"
	otherOwner   = "a stranger's pod has another owner"
	plainOwner   = "a stranger's pod names the owner, which does not control it"
	otherKind    = "a stranger's pod names the owner's UID with another kind"
	restarts     = "the controller starts again"
	ownerDeleted = "the owner is deleted"
)

var strange = []string{noOwner, otherOwner, plainOwner, otherKind, restarts, ownerDeleted}

// meddle plans what users and strangers do.
func (w *world) meddle() {
	for _, g := range w.owner.groups {
		for _, e := range g.plan.edits {
			w.after(e.at, func() {
				w.notef("user: %s %s %d", e.change, g.name, e.to)
				w.owner.edit(g, e.apply)
			})
		}
	}
	for range w.plan.strangers {
		g := pick(w.drawer, w.owner.groups...)
		name := fmt.Sprintf("%s-%d", g.name, w.IntN(4))
		if isIndexed(&g.plan.spec) {
			name = fmt.Sprintf("%s-%d-%d", g.name, w.IntN(int(*g.plan.spec.Completions)), w.IntN(2))
		}
		at := time.Duration(w.Int64N(int64(w.plan.trouble)))
		if w.chance(50) {
			at = 0
		}
		w.after(at, func() { w.takeName(name, g.name) })
	}
	for range pick(w.drawer, 0, 0, 1, 2) {
		w.after(time.Duration(w.Int64N(int64(w.plan.trouble))), func() {
			w.came(restarts)
			w.restart()
		})
	}
	if w.plan.ownerGoes {
		w.after(time.Duration(w.Int64N(int64(w.plan.trouble))), w.owner.delete)
	}
	w.after(w.plan.trouble, func() { w.notef("the faults have ended") })
}

// takeName creates a stranger's pod. Somebody else may have the name.
func (w *world) takeName(name, group string) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{groupAnnotation: group}, Finalizers: []string{"example.dev/stays"}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	ref := w.owner.reference()
	what := pick(w.drawer, strange[:4]...)
	switch what {
	case otherOwner:
		ref.UID = "22222222-2222-4222-8222-222222222222"
	case plainOwner:
		ref.Controller, ref.BlockOwnerDeletion = nil, nil
	case otherKind:
		ref.APIVersion, ref.Kind = "v1", "ConfigMap"
	}
	if what != noOwner {
		pod.OwnerReferences = []metav1.OwnerReference{ref}
	}
	if _, err := w.strangers.Pods(namespace).Create(context.Background(), pod, metav1.CreateOptions{}); err == nil {
		w.came(what)
	}
}
