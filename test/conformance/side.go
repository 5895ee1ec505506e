package conformance

import (
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/test/world/apiserver"
)

// A side is one cluster on which a case is played, with all that was seen of it.
type side struct {
	client kubernetes.Interface
	server *apiserver.Server
	// outage lets the controller be down.
	outage outage
	// slow is how long events may be on their way.
	slow time.Duration
	// stirred has something in it when there is something new to see.
	stirred chan struct{}

	mu sync.Mutex
	scene
}

// An outage is how a side's controller goes down, or part of it, and comes back.
type outage interface {
	begin(what string)
	end()
}

// A scene is what was seen. Pods stay after they are gone.
type scene struct {
	changed time.Time
	job     *batchv1.Job
	jobs    []types.UID // of the Job, and of those recreated under its name
	pods    map[types.UID]*seenPod
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

func newScene() scene {
	return scene{changed: time.Now(), pods: map[types.UID]*seenPod{}, said: map[said]bool{}, names: map[string]string{}}
}

// see takes in an object as it is now, or as it was last.
func (s *side) see(object any, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := object.(type) {
	case *batchv1.Job:
		s.seeJob(o, gone)
	case *corev1.Event:
		s.hear(o, gone)
	case *corev1.Pod:
		s.seePod(o, gone)
	default:
		return
	}
	s.changed = time.Now()
	select {
	case s.stirred <- struct{}{}:
	default:
	}
}

func (sc *scene) seeJob(job *batchv1.Job, gone bool) {
	if !slices.Contains(sc.jobs, job.UID) {
		sc.jobs = append(sc.jobs, job.UID)
	}
	sc.job = job
	if gone {
		sc.job = nil
	}
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
