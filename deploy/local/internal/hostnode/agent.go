package hostnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// agent watches the pods bound to the node and gives each its worker.
type agent struct {
	podDeps
	informer cache.SharedIndexInformer

	// running counts the workers.
	running sync.WaitGroup

	mu      sync.Mutex
	workers map[types.UID]*podWorker
	// closed means that no worker is started any more.
	closed bool
}

func newAgent(client kubernetes.Interface, node string, deps podDeps) *agent {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTransform(dropManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		}))
	return &agent{
		podDeps:  deps,
		informer: factory.Core().V1().Pods().Informer(),
		workers:  make(map[types.UID]*podWorker),
	}
}

func dropManagedFields(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return object, nil
}

// run works until ctx ends and all processes are dead.
func (a *agent) run(ctx context.Context) error {
	registration, err := a.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { a.see(ctx, object.(*corev1.Pod)) },
		UpdateFunc: func(old, object any) { a.replace(ctx, old.(*corev1.Pod), object.(*corev1.Pod)) },
		DeleteFunc: a.lose,
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	go a.informer.Run(ctx.Done())
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		a.removeStrays()
	}
	<-ctx.Done()
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	// A process that left its group may hold the output of its container open, which would keep a worker waiting.
	err = sweep(a.runner.layout)
	a.running.Wait()
	return err
}

// see gives a pod's latest version to its worker, which is started if the pod is new.
func (a *agent) see(ctx context.Context, pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w, ok := a.workers[pod.UID]; ok {
		w.news.put(pod, false)
		return
	}
	if a.closed {
		return
	}
	w := newPodWorker(a.podDeps, pod, time.Now())
	a.workers[pod.UID] = w
	a.running.Go(func() {
		w.serve(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.workers, pod.UID)
	})
}

// replace tells a new version of a pod from another pod that took its name unseen.
func (a *agent) replace(ctx context.Context, old, pod *corev1.Pod) {
	if old.UID != pod.UID {
		a.lose(old)
	}
	a.see(ctx, pod)
}

func (a *agent) lose(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if w, ok := a.workers[pod.UID]; ok {
		w.news.put(pod, true)
	}
}

// worker finds the pod that bears a name now.
func (a *agent) worker(namespace, name string) (*podWorker, bool) {
	object, ok, err := a.informer.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w, ok := a.workers[object.(*corev1.Pod).UID]
	return w, ok
}

func (a *agent) pods() *corev1.PodList {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{}}
	for _, object := range a.informer.GetStore().List() {
		list.Items = append(list.Items, *object.(*corev1.Pod))
	}
	return list
}

// removeStrays removes the directories of pods that went away while no node ran.
func (a *agent) removeStrays() {
	entries, err := os.ReadDir(a.runner.layout.pods())
	if err != nil {
		a.logger.Warn("pod directories were not listed", "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range entries {
		if _, ok := a.workers[types.UID(e.Name())]; ok {
			continue
		}
		if err := os.RemoveAll(filepath.Join(a.runner.layout.pods(), e.Name())); err != nil {
			a.logger.Warn("pod directory was not removed", "uid", e.Name(), "error", err)
		}
	}
}
