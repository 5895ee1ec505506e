package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/podcache"
)

// uncontrolledIndex finds, by namespace, the pods that nothing controls.
const uncontrolledIndex = "uncontrolled"

// PodInformers watch the pods of the cluster, or of some namespaces. Its objects are *podcache.Pod.
type PodInformers struct{ *Informers }

// NewPodInformers returns PodInformers of the namespaces, or of all if none is named. tweak changes the
// options of its lists and watches.
func NewPodInformers(client kubernetes.Interface, namespaces []string, tweak func(*metav1.ListOptions)) (PodInformers, error) {
	pods := NewInformers(namespaces, func(namespace string) cache.SharedIndexInformer {
		return coreinformers.NewFilteredPodInformer(client, namespace, 0, cache.Indexers{uncontrolledIndex: indexUncontrolled}, tweak)
	})
	if err := pods.SetTransform(transform); err != nil {
		return PodInformers{}, fmt.Errorf("pod transform: %w", err)
	}
	return PodInformers{pods}, nil
}

// transform converts a pod to a podcache.Pod. Anything else (a tombstone, or a pod that was
// converted before) passes unchanged.
func transform(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		return podcache.From(pod), nil
	}
	return obj, nil
}

func indexUncontrolled(obj any) ([]string, error) {
	pod, ok := obj.(*podcache.Pod)
	if !ok || pod.Controlled() {
		return nil, nil
	}
	return []string{pod.Namespace()}, nil
}

// Pod returns a pod by its name, as far as the cache shows it.
func (p PodInformers) Pod(namespace, name string) (*podcache.Pod, bool) {
	obj, ok, err := p.Get(namespace, name)
	if err != nil || !ok {
		return nil, false
	}
	pod, ok := obj.(*podcache.Pod)
	return pod, ok
}

// Uncontrolled returns the pods of the namespace that nothing controls, as far as the
// cache shows them, ordered by name.
func (p PodInformers) Uncontrolled(namespace string) []*podcache.Pod {
	found, err := p.In(namespace).GetIndexer().ByIndex(uncontrolledIndex, namespace)
	if err != nil {
		panic(fmt.Sprintf("the informer lacks the index it was made with: %v", err))
	}
	pods := make([]*podcache.Pod, 0, len(found))
	for _, obj := range found {
		if pod, ok := obj.(*podcache.Pod); ok {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *podcache.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}
