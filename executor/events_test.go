package executor

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/events"
)

// TestPodEvents compares the events that reach the API server with those of a pipeline that
// gets all of them.
func TestPodEvents(t *testing.T) {
	const burst = 25 // of events.LimitByReason
	type send func(a *events.Allowance, job *batchv1.Job, kind, reason, format string, arg any)
	collect := func(pipeline func(record.EventRecorder) send) map[string]int {
		sink := &sink{events: map[string]int{}}
		b, err := events.New(events.Config{Client: sink, Component: eventComponent, Limits: events.LimitByReason()})
		if err != nil {
			t.Fatal(err)
		}
		b.Start(t.Context())
		send := pipeline(b)
		one, other := testJob(), testJob(func(j *batchv1.Job) { j.UID, j.Name = testUID(2), "other" })
		s, t2 := &events.Allowance{}, &events.Allowance{}
		for i := range 3 * burst {
			send(s, one, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", fmt.Sprint("pod-", i))
			send(s, one, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", fmt.Sprint("pod-", i))
			if i < 5 {
				send(t2, other, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", fmt.Sprint("pod-", i))
			}
		}
		send(s, one, corev1.EventTypeNormal, "Completed", "Job completed %v", "")
		b.Drain(t.Context())
		b.Shutdown()
		return sink.events
	}
	all := collect(func(r record.EventRecorder) send {
		return func(_ *events.Allowance, job *batchv1.Job, kind, reason, format string, arg any) {
			r.Eventf(job, kind, reason, format, arg)
		}
	})
	built := &counting{}
	allowed := collect(func(r record.EventRecorder) send {
		built.EventRecorder = r
		return func(a *events.Allowance, job *batchv1.Job, kind, reason, format string, arg any) {
			a.Recorder(built).Eventf(job, kind, reason, format, arg)
		}
	})
	if diff := cmp.Diff(all, allowed); diff != "" {
		t.Errorf("events at the API server (-all are built +allowed ones are built):\n%s", diff)
	}
	if want := 2*burst + 5 + 1; built.n != want {
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
	typedcorev1.EventInterface
	mu     sync.Mutex
	events map[string]int
	stored map[string]*corev1.Event
}

func (s *sink) Events(string) typedcorev1.EventInterface { return s }

func (s *sink) Create(_ context.Context, ev *corev1.Event, _ metav1.CreateOptions) (*corev1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored == nil {
		s.stored = map[string]*corev1.Event{}
	}
	s.stored[ev.Name] = ev.DeepCopy()
	s.events[ev.Reason+" "+ev.InvolvedObject.Name]++
	return ev, nil
}

func (s *sink) Patch(_ context.Context, name string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ev := s.stored[name]
	s.events[ev.Reason+" "+ev.InvolvedObject.Name]++
	again := ev.DeepCopy()
	again.Count++
	return again, nil
}
