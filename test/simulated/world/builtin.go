package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// builtinName is the built-in controller, which our executors do not replace. It
// releases pods that they do not know as their own.
const builtinName = "job-controller"

// leave does the part of the built-in controller's work that matters to our Jobs: the
// pods of a Job that is gone lose the tracking finalizer in the end, whoever managed
// the Job.
func (w *world) leave(job types.UID) {
	d := w.drawer("left by " + string(job))
	w.after(d.within(time.Second, 10*time.Minute), func() {
		for _, obj := range w.server.List("pods", "") {
			pod, ok := obj.(*corev1.Pod)
			if !ok || !holds(pod) || controllerUID(pod) != job {
				continue
			}
			w.server.Update(builtinName, "pods", "", types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, func(obj runtime.Object) {
				if p, ok := obj.(metav1.Object); ok && p.GetUID() == pod.UID {
					p.SetFinalizers(without(p.GetFinalizers(), batchv1.JobTrackingFinalizer))
				}
			})
		}
	})
}
