package shadow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/fakes"
)

var quiet = controller.Telemetry{Logger: slog.New(slog.DiscardHandler), TracerProvider: noop.NewTracerProvider()}

// A stand has a Comparer whose queue runs, and an engine that says what the test sets.
type stand struct {
	report   *Report
	comparer *Comparer
	queue    *controller.Queue[types.UID]

	mu     sync.Mutex
	asked  []float64 // When the engine was asked, in seconds.
	answer Answer
	err    error
}

// says sets what the engine answers from now on.
func (s *stand) says(answer Answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.err = answer, err
}

func (s *stand) askedAt() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func newStand(t *testing.T) *stand {
	t.Helper()
	report, err := NewReport(Config{Rest: 10 * time.Second, Registerer: prometheus.NewRegistry(), Logger: quiet.Logger})
	if err != nil {
		t.Fatal(err)
	}
	base, err := controller.New(controller.Config{Decider: struct{ controller.Decider }{}, Client: fake.NewClientset(), ManagedBy: "test", Telemetry: quiet}, controller.Identity{Component: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{report: report, comparer: report.OnlyCompare(base, TypeJob)}
	began := time.Now()
	s.queue = controller.NewQueue(base, controller.Options[types.UID]{
		Namespace: func(types.UID) string { return "ns" },
		Reconcile: func(ctx context.Context, uid types.UID) (controller.Result, error) {
			return s.comparer.Compare(ctx, Object{Namespace: "ns", Name: "job", UID: uid}, func(context.Context) (Answer, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.asked = append(s.asked, time.Since(began).Seconds())
				return s.answer, s.err
			})
		},
	})
	fakes.Run(t, base.Run)
	synctest.Wait()
	return s
}

func (s *stand) event() { s.queue.Enqueue("1", "event", controller.PriorityNormal) }

// entries are the differences: kind, and how long they lasted.
func (s *stand) entries() []string {
	var list []string
	for _, e := range s.report.Entries() {
		lasted := "lasts"
		if !e.Until.IsZero() {
			lasted = e.Until.Sub(e.Since).String()
		}
		list = append(list, fmt.Sprintf("%s %s", e.Kind, lasted))
	}
	return list
}

func (s *stand) want(t *testing.T, asked []float64, entries ...string) {
	t.Helper()
	if diff := cmp.Diff(asked, s.askedAt()); diff != "" {
		t.Errorf("asked at (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(entries, s.entries()); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

var onePod = Answer{Differences: []Difference{{Kind: CreatePods, Rule: noRule}}}

func TestOnlyAnObjectAtRestIsAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t)
		for range 5 {
			s.event()
			time.Sleep(9 * time.Second)
		}
		time.Sleep(time.Hour)
		s.want(t, []float64{46}) // The last event came at 36.
	})
}

func TestADifferenceIsReportedAfterASecondRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t)
		s.says(onePod, nil)
		s.event()
		time.Sleep(19 * time.Second)
		s.want(t, []float64{10})
		time.Sleep(2 * time.Second)
		s.want(t, []float64{10, 20}, "create_pods lasts")
		s.says(Answer{}, nil)
		time.Sleep(60 * time.Second)
		s.want(t, []float64{10, 20, 80}, "create_pods 1m0s")
	})
}

// The other controller may be a little later than the engine.
func TestAStepThatIsTakenLateIsNoDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t)
		s.says(Answer{Next: time.Minute}, nil) // A retry delay, for example.
		s.event()
		time.Sleep(69 * time.Second)
		s.says(onePod, nil)
		time.Sleep(5 * time.Second)
		s.event() // The other controller creates the pod.
		s.says(Answer{}, nil)
		time.Sleep(time.Hour)
		s.want(t, []float64{10, 70, 84})
	})
}

func TestADifferenceThatChangesIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t)
		s.says(onePod, nil)
		s.event()
		time.Sleep(15 * time.Second)
		s.says(Answer{Differences: []Difference{{Kind: WriteStatus, Rule: noRule}}}, nil)
		time.Sleep(10 * time.Second)
		s.want(t, []float64{10, 20})
		time.Sleep(10 * time.Second)
		s.want(t, []float64{10, 20, 30}, "write_status lasts")
	})
}

func TestTheDifferencesOfAnObjectEndWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t)
		s.says(onePod, nil)
		s.event()
		time.Sleep(25 * time.Second)
		s.comparer.Gone("1")
		s.want(t, []float64{10, 20}, "create_pods 5s")
		if n := len(s.comparer.rests) + len(s.report.current); n != 0 {
			t.Errorf("%d things are remembered of an object that is gone", n)
		}
	})
}

func TestAnEngineThatIsAwayIsNoDifferenceAndARejectionIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t)
		s.says(Answer{}, fmt.Errorf("%w: %w", controller.ErrEngine, errors.New("away")))
		s.event()
		time.Sleep(time.Hour)
		if got := s.entries(); got != nil || len(s.askedAt()) < 10 {
			t.Errorf("asked %d times, differences %v; want many and none", len(s.askedAt()), got)
		}
		s.says(Answer{}, fmt.Errorf("%w: %w", controller.ErrRejected, status.Error(codes.InvalidArgument, "spec.completions must not be negative")))
		time.Sleep(time.Hour)
		got := s.report.Entries()
		if len(got) != 1 || got[0].Kind != Rejected || !strings.Contains(got[0].Why, "spec.completions") {
			t.Errorf("differences %v, want one rejection with its reason", got)
		}
	})
}
