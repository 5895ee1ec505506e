// Package podinformer watches the pods of a cluster, and keeps of each what package
// podcache keeps. It is apart from that package, so that programs which only convert
// pods link no client of Kubernetes.
package podinformer

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/podcache"
)

// uncontrolledIndex finds pods that nothing controls by namespace.
const uncontrolledIndex = "uncontrolled"

// Informer is an informer of all pods of the cluster. Its objects are *podcache.Pod.
type Informer struct{ cache.SharedIndexInformer }

// New returns an Informer. tweak changes the options of its lists and watches.
func New(client kubernetes.Interface, tweak func(*metav1.ListOptions)) (Informer, error) {
	informer := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{uncontrolledIndex: indexUncontrolled}, tweak)
	if err := informer.SetTransform(transform); err != nil {
		return Informer{}, fmt.Errorf("pod transform: %w", err)
	}
	return Informer{informer}, nil
}

// transform keeps of a pod what is kept. What is no API object (a tombstone, what was
// transformed before) passes unchanged.
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
func (i Informer) Pod(namespace, name string) (*podcache.Pod, bool) {
	obj, ok, err := i.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil, false
	}
	pod, ok := obj.(*podcache.Pod)
	return pod, ok
}

// Uncontrolled returns the pods of the namespace that nothing controls, as far as the
// cache shows them.
func (i Informer) Uncontrolled(namespace string) []*podcache.Pod {
	found, err := i.GetIndexer().ByIndex(uncontrolledIndex, namespace)
	if err != nil {
		panic(fmt.Sprintf("the informer lacks the index it was made with: %v", err))
	}
	pods := make([]*podcache.Pod, 0, len(found))
	for _, obj := range found {
		if pod, ok := obj.(*podcache.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}
