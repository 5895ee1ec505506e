package parity

import (
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A side is a cluster on which a case is played, and all that was seen of it.
type side struct {
	client kubernetes.Interface
	server *apiserver.Server
	// outage stops the controller.
	outage outage
	// slow is how long events may take.
	slow time.Duration
	// stirred contains an element when there is something new to see.
	stirred chan struct{}

	mu sync.Mutex
	scene
}

// An outage is how a side's controller, or part of it, stops and starts again.
type outage interface {
	begin(what string)
	end()
}

// A scene is what was seen of a side. It keeps pods that are gone.
type scene struct {
	changed time.Time
	job     *batchv1.Job
	jobs    []types.UID // of the Job, and of those recreated under its name
	pods    map[types.UID]*seenPod
	// said holds the different events on the Job; told counts all events on it.
	said map[said]bool
	told int
	// names maps the names of all pods that ever existed to their placeholders in
	// messages.
	names map[string]string
}

// A said is the content of an event.
type said struct{ kind, reason, message string }

// A seenPod is a pod as last seen.
type seenPod struct {
	*corev1.Pod
	// first is the pod as it was created.
	first *corev1.Pod
	gone  bool
	// ended is set after the node has done its part of the pod's deletion.
	ended bool
}

func newScene() scene {
	return scene{changed: time.Now(), pods: map[types.UID]*seenPod{}, said: map[said]bool{}, names: map[string]string{}}
}

// see handles the current or last version of an object.
func (s *side) see(object any, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := object.(type) {
	case *batchv1.Job:
		s.seeJob(o, gone)
	case *corev1.Event:
		s.recordEvent(o, gone)
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

// recordEvent records an event. The recorder merges similar events into one whose message
// changes, so all its versions count.
func (sc *scene) recordEvent(e *corev1.Event, gone bool) {
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
