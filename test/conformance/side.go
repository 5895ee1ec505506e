package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/deploy/local/cluster"
)

// A side is one of the two control planes, with all that was seen of it.
type side struct {
	name   string
	plane  *cluster.Cluster
	client kubernetes.Interface
	audit  *audit
	outage *outage

	mu     sync.Mutex
	scenes map[string]*scene // by namespace
}

// A scene is what was seen in one namespace. Pods stay after they are gone.
type scene struct {
	changed time.Time
	job     *batchv1.Job
	// wrote is the newest generation of it that a step has made.
	wrote int64
	jobs  []types.UID // of the Job, and of those recreated under its name
	pods  map[types.UID]*seenPod
	// said is what events on the Job ever said; told counts how often.
	said map[said]bool
	told int
	// names of all pods that ever were, with what stands for them in messages.
	names map[string]string
}

// A said is one thing that an event says.
type said struct{ kind, reason, message string }

// A seenPod is a pod as last seen.
type seenPod struct {
	*corev1.Pod
	// first is the pod as it was created.
	first *corev1.Pod
	gone  bool
	// ended is set once the node has done its part of the pod's deletion.
	ended bool
}

func newSide(name string, plane *cluster.Cluster, audit *audit, controller ...string) (*side, error) {
	client, err := kubernetes.NewForConfig(plane.RESTConfig())
	if err != nil {
		return nil, err
	}
	return &side{
		name: name, client: client, audit: audit, plane: plane,
		outage: newOutage(plane, controller...), scenes: map[string]*scene{},
	}, nil
}

// watch follows all Jobs, pods and events until ctx ends.
func (s *side) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(s.client, 0)
	watched := []cache.SharedIndexInformer{
		factory.Batch().V1().Jobs().Informer(),
		factory.Core().V1().Pods().Informer(),
		factory.Core().V1().Events().Informer(),
	}
	for _, informer := range watched {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { s.see(obj, false) },
			UpdateFunc: func(_, obj any) { s.see(obj, false) },
			DeleteFunc: func(obj any) {
				if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = last.Obj
				}
				s.see(obj, true)
			},
		})
		if err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("%s: no view of %s", s.name, kind)
		}
	}
	return nil
}

func (s *side) see(obj any, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	sc := s.scene(object.GetNamespace())
	sc.changed = time.Now()
	switch o := obj.(type) {
	case *batchv1.Job:
		if !slices.Contains(sc.jobs, o.UID) {
			sc.jobs = append(sc.jobs, o.UID)
		}
		sc.job = o
		if gone {
			sc.job = nil
		}
	case *corev1.Event:
		sc.hear(o, gone)
	case *corev1.Pod:
		sc.seePod(o, gone)
	}
}

// wrote takes in what a step made of the Job: rest begins only when it is seen.
func (s *side) wrote(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scene(job.Namespace).wrote = job.Generation
}

// hear takes in what an event says. Of similar events the recorder makes one
// whose message changes, so all its states count.
func (sc *scene) hear(e *corev1.Event, gone bool) {
	if gone || e.InvolvedObject.Kind != "Job" {
		return
	}
	sc.told++
	message := strings.TrimPrefix(e.Message, "(combined from similar events): ")
	sc.said[said{e.Type, e.Reason, message}] = true
}

func (sc *scene) seePod(pod *corev1.Pod, gone bool) {
	seen, ok := sc.pods[pod.UID]
	if !ok {
		seen = &seenPod{first: pod}
		sc.pods[pod.UID] = seen
		sc.names[pod.Name] = "<pod" + indexSuffix(pod) + ">"
	}
	seen.Pod, seen.gone = pod, gone
}

// scene returns a namespace's scene; s.mu must be held.
func (s *side) scene(namespace string) *scene {
	sc, ok := s.scenes[namespace]
	if !ok {
		sc = &scene{
			pods:  map[types.UID]*seenPod{},
			said:  map[said]bool{},
			names: map[string]string{},
		}
		s.scenes[namespace] = sc
	}
	return sc
}
