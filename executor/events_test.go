package executor

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// TestPodEvents holds the events that reach the API server against those of a
// pipeline that is given all of them.
func TestPodEvents(t *testing.T) {
	type send func(s *jobState, job *batchv1.Job, kind, reason, format string, arg any)
	collect := func(pipeline func(record.EventRecorder) send) map[string]int {
		b := newBroadcaster()
		sink := &sink{events: map[string]int{}}
		b.StartRecordingToSink(sink)
		send := pipeline(b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: eventComponent}))
		one, other := testJob(), testJob(func(j *batchv1.Job) { j.UID, j.Name = testUID(2), "other" })
		s, t2 := &jobState{}, &jobState{}
		for i := range 3 * eventBurst {
			send(s, one, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", fmt.Sprint("pod-", i))
			send(s, one, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", fmt.Sprint("pod-", i))
			if i < 5 {
				send(t2, other, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", fmt.Sprint("pod-", i))
			}
		}
		send(s, one, corev1.EventTypeNormal, "Completed", "Job completed %v", "")
		eventually(t, "the last event", func() bool { return sink.have("Completed job") })
		b.Shutdown()
		return sink.events
	}
	all := collect(func(r record.EventRecorder) send {
		return func(_ *jobState, job *batchv1.Job, kind, reason, format string, arg any) {
			r.Eventf(job, kind, reason, format, arg)
		}
	})
	built := &counting{}
	allowed := collect(func(r record.EventRecorder) send {
		built.EventRecorder = r
		return (&Executor{recorder: built}).podEvent
	})
	if diff := cmp.Diff(all, allowed); diff != "" {
		t.Errorf("events at the API server (-all are built +allowed ones are built):\n%s", diff)
	}
	if want := 2*eventBurst + 5 + 1; built.n != want {
		t.Errorf("%d events were built, want %d", built.n, want)
	}
}

// counting counts the events that are built.
type counting struct {
	record.EventRecorder
	n int
}

func (c *counting) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	c.n++
	c.EventRecorder.Eventf(object, kind, reason, format, args...)
}

// sink counts the writes that an API server would get, by what they say.
type sink struct {
	mu     sync.Mutex
	events map[string]int
}

func (s *sink) Create(ev *corev1.Event) (*corev1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[ev.Reason+" "+ev.InvolvedObject.Name]++
	return ev, nil
}

func (s *sink) Update(ev *corev1.Event) (*corev1.Event, error) { return s.Create(ev) }

func (s *sink) Patch(ev *corev1.Event, _ []byte) (*corev1.Event, error) { return s.Create(ev) }

func (s *sink) have(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Keys(s.events)), key)
}
