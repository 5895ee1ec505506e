package executor

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/telemetry"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Another controller creates a pod for a managed Job. Standing down, the executor asks and
// writes nothing about this Job until no other controller was seen for a while.
func TestStandsDownForAJobOfAnotherController(t *testing.T) {
	cases := map[string]struct {
		standDown bool
		maker     string
		listed    bool // The pod is there before the executor.
		quiet     bool // The executor leaves the Job alone.
	}{
		"another's pod":                  {standDown: true, maker: "kube-controller-manager", quiet: true},
		"another's pod, and only report": {maker: "kube-controller-manager"},
		"our own pod":                    {standDown: true, maker: "us"},
		"another's pod from before":      {standDown: true, maker: "kube-controller-manager", listed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(testJob())
				// The fake server records the maker as the API server does.
				made := func() {
					must(s.Tracker().Create(podResource, testPod(2), "ns", metav1.CreateOptions{FieldManager: tc.maker}))
				}
				if tc.listed {
					made()
				}
				status := &jobpolicyv1.DecideJobResponse{Status: recorded(t, 2)}
				decider := &script{Answers: []reply{
					func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
						return settled(req, 0), nil
					},
					applying(status),
				}}
				cfg := testConfig(s, decider)
				cfg.FieldManager, cfg.StandDown = "us", tc.standDown
				e := start(t, cfg)
				time.Sleep(time.Second)
				if tc.listed {
					s.replace(podResource, testPod(2, failedPhase))
				} else {
					made()
				}
				time.Sleep(9 * time.Minute)
				if wrote := len(s.Done()) > 0; wrote == tc.quiet {
					t.Errorf("after 9 minutes: wrote %v; want a write: %v", s.Done(), !tc.quiet)
				}
				if warned := strings.HasPrefix(e.SecondController(), "WARNING"); warned != (!tc.listed && name != "our own pod") {
					t.Errorf("says of a second controller: %s", e.SecondController())
				}
				time.Sleep(2 * time.Minute)
				if diff := cmp.Diff([]string{"update jobs/status"}, s.Done()); diff != "" {
					t.Errorf("writes after the other was quiet (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The executor learns of another controller's pod before the Job is enqueued for that pod.
// Otherwise a worker may act on the Job in between, although the executor stands down for it.
func TestTellsTheDetectorBeforeItEnqueuesTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(testJob())
		cfg := testConfig(s, &script{Otherwise: resting(0)})
		cfg.FieldManager, cfg.StandDown = "us", true
		var e *Executor
		told := 0
		cfg.Logger = slog.New(onMessage(func(message string) {
			if message != telemetry.LogSecondController {
				return
			}
			told++
			if at := e.queue.State(testKey); at.Pending || at.Running {
				t.Errorf("the Job is queued already: %+v", at)
			}
		}))
		e = build(t, cfg)
		run(t, e)
		time.Sleep(time.Second)
		must(s.Tracker().Create(podResource, testPod(2), "ns", metav1.CreateOptions{FieldManager: "kube-controller-manager"}))
		synctest.Wait()
		if told != 1 {
			t.Errorf("the log mentions the other controller %d times, want 1", told)
		}
	})
}

// onMessage is a log handler that calls the function with each message.
type onMessage func(message string)

func (f onMessage) Enabled(context.Context, slog.Level) bool { return true }
func (f onMessage) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f onMessage) WithGroup(string) slog.Handler            { return f }
func (f onMessage) Handle(_ context.Context, r slog.Record) error {
	f(r.Message)
	return nil
}

// The watch of pods may show the other controller's pod before the watch of Jobs shows the Job.
func TestNoticesAPodOfAnotherControllerThatIsShownBeforeItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		cfg := testConfig(s, &script{Otherwise: resting(0)})
		cfg.FieldManager = "us"
		e := start(t, cfg)
		time.Sleep(time.Second)
		pod := testPod(2)
		pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
		must(s.Tracker().Create(podResource, pod, "ns", metav1.CreateOptions{FieldManager: "kube-controller-manager"}))
		time.Sleep(time.Second)
		must(s.Tracker().Create(jobResource, testJob(), "ns"))
		time.Sleep(time.Second)
		if said := e.SecondController(); !strings.HasPrefix(said, "WARNING") {
			t.Errorf("says of a second controller: %s", said)
		}
	})
}
