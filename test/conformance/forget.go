package conformance

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How long a controller has to let go of what is left of a case.
const (
	forgetPolls  = 20
	forgetPeriod = 500 * time.Millisecond
)

// forget removes a namespace with all that is in it, and its scene. There is no
// namespace controller: with thousands of cases it would keep the machine busy.
// Errors do not matter: what stays behind is in nobody's way.
func (s *side) forget(ctx context.Context, namespace string) {
	s.deleteAll(ctx, namespace)
	for i := 0; i < forgetPolls && !s.empty(namespace); i++ {
		time.Sleep(forgetPeriod)
		if i == forgetPolls/2 {
			s.strip(ctx, namespace)
		}
	}
	if !s.empty(namespace) {
		return
	}
	namespaces := s.client.CoreV1().Namespaces()
	_ = namespaces.Delete(ctx, namespace, metav1.DeleteOptions{})
	_, _ = namespaces.Finalize(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.UpdateOptions{})
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.scenes, namespace)
}

func (s *side) deleteAll(ctx context.Context, namespace string) {
	now, background := int64(0), metav1.DeletePropagationBackground
	core, every := s.client.CoreV1(), metav1.ListOptions{}
	_ = s.client.BatchV1().Jobs(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, every)
	_ = core.Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, every)
	_ = core.Events(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, every)
	_ = core.ServiceAccounts(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, every)
	_ = core.ConfigMaps(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, every)
}

// empty reports whether neither the Job nor a pod is left.
func (s *side) empty(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.scene(namespace)
	for _, p := range sc.pods {
		if !p.gone {
			return false
		}
	}
	return sc.job == nil
}

// strip takes away the finalizers that nobody else will: those of users, and of
// pods that no controller cares for.
func (s *side) strip(ctx context.Context, namespace string) {
	s.mu.Lock()
	sc := s.scene(namespace)
	job, names := sc.job, []string(nil)
	for _, p := range sc.pods {
		if !p.gone {
			names = append(names, p.Name)
		}
	}
	s.mu.Unlock()
	none := []byte(`{"metadata":{"finalizers":null}}`)
	for _, name := range names {
		_, _ = s.client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, none, metav1.PatchOptions{})
	}
	if job != nil {
		_, _ = s.client.BatchV1().Jobs(namespace).Patch(ctx, job.Name, types.MergePatchType, none, metav1.PatchOptions{})
	}
}
