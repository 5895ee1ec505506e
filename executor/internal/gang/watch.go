package gang

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/wire"
)

const (
	// ownerIndex finds Workloads by the object that they name as their controller.
	ownerIndex = "owner"
	// jobIndex finds PodGroups by the UID of the Job that controls them.
	jobIndex = "job"
)

// New returns Gangs. Their informers need an API server that serves
// scheduling.k8s.io/v1beta1, and permission to read it.
func New(cfg Config) (*Gangs, error) {
	g := &Gangs{
		cfg: cfg,
		workloads: controller.NewInformers(cfg.Namespaces, func(namespace string) cache.SharedIndexInformer {
			return schedulinginformers.NewFilteredWorkloadInformer(cfg.API.Kubernetes, namespace, 0,
				cache.Indexers{ownerIndex: workloadsByOwner}, api.ConsistentList)
		}),
		podGroups: controller.NewInformers(cfg.Namespaces, func(namespace string) cache.SharedIndexInformer {
			return schedulinginformers.NewFilteredPodGroupInformer(cfg.API.Kubernetes, namespace, 0,
				cache.Indexers{jobIndex: podGroupsByJob}, api.ConsistentList)
		}),
	}
	for _, set := range g.Informers() {
		if err := set.SetTransform(controller.WithoutManagedFields); err != nil {
			return nil, fmt.Errorf("gang transform: %w", err)
		}
	}
	return g, nil
}

// Informers are the informers to run.
func (g *Gangs) Informers() []*controller.Informers {
	if g == nil {
		return nil
	}
	return []*controller.Informers{g.workloads, g.podGroups}
}

// DelegatingIndex indexes Jobs by the object that delegates the group of their pods to them.
const DelegatingIndex = "delegating"

// ByDelegating is the index function of DelegatingIndex.
func ByDelegating(obj any) (keys []string, err error) {
	job, ok := obj.(*batchv1.Job)
	if !ok {
		return nil, nil
	}
	ref := metav1.GetControllerOfNoCopy(job)
	if wire.GroupTemplateName(job) == nil || ref == nil {
		return nil, nil
	}
	return []string{ownerKey(job.Namespace, wire.KindOf(ref), ref.Name)}, nil
}

// OnWorkload calls f at each change of a Workload that names a controller: with the controller's key in
// DelegatingIndex and its namespace, and with its name if it is a Job.
func (g *Gangs) OnWorkload(f func(delegating, namespace, job string)) error {
	changed := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		w, ok := obj.(*schedulingv1beta1.Workload)
		if !ok || w.Spec.ControllerRef == nil {
			return
		}
		job := ""
		if kindOf(w.Spec.ControllerRef) == wire.JobKind.GroupKind() {
			job = w.Spec.ControllerRef.Name
		}
		f(ownerKey(w.Namespace, kindOf(w.Spec.ControllerRef), w.Spec.ControllerRef.Name), w.Namespace, job)
	}
	err := g.workloads.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, obj any) { changed(obj) }, DeleteFunc: changed,
	})
	if err != nil {
		return fmt.Errorf("workload handler: %w", err)
	}
	return nil
}

func kindOf(ref *schedulingv1beta1.TypedLocalObjectReference) schema.GroupKind {
	return schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
}

// ownerKey is <namespace>/<group>/<kind>/<name>.
func ownerKey(namespace string, kind schema.GroupKind, name string) string {
	return namespace + "/" + kind.Group + "/" + kind.Kind + "/" + name
}

func workloadsByOwner(obj any) ([]string, error) {
	w, ok := obj.(*schedulingv1beta1.Workload)
	if !ok || w.Spec.ControllerRef == nil {
		return nil, nil
	}
	return []string{ownerKey(w.Namespace, kindOf(w.Spec.ControllerRef), w.Spec.ControllerRef.Name)}, nil
}

func podGroupsByJob(obj any) ([]string, error) {
	g, ok := obj.(*schedulingv1beta1.PodGroup)
	if !ok || g.Spec.WorkloadRef == nil {
		return nil, nil
	}
	ref := wire.ControllerOf(g, wire.JobKind.GroupKind())
	if ref == nil {
		return nil, nil
	}
	return []string{string(ref.UID)}, nil
}

// byOwner lists the Workloads in the cache that name an object as their controller.
func (r *request) byOwner(key string) (found []*schedulingv1beta1.Workload, err error) {
	objects, err := r.workloads.In(r.job.Namespace).GetIndexer().ByIndex(ownerIndex, key)
	for _, obj := range objects {
		found = append(found, obj.(*schedulingv1beta1.Workload))
	}
	return found, err
}
