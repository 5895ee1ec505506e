package executor

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A quota that lets one pod at a time through must not slow a Job down more and
// more: only attempts in a row that create nothing lengthen the delay.
func TestCreationIsHeldBackLongerOnlyWhileNothingIsCreated(t *testing.T) {
	cfg := Config{APIBackoff: time.Second, MaxAPIBackoff: time.Minute}
	e := &Executor{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	s := &jobState{}
	hold := func() time.Duration {
		before := time.Now()
		e.holdCreation(t.Context(), s, &batchv1.Job{}, errors.New("exceeded quota"))
		return s.createNotBefore.Sub(before).Round(time.Second)
	}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := hold(); got != want {
			t.Errorf("held back for %v, want %v", got, want)
		}
	}
	s.mayCreate()
	if !s.createNotBefore.IsZero() {
		t.Error("creation is still held back after a pod was created or has ended")
	}
	if got := hold(); got != time.Second {
		t.Errorf("held back for %v after progress, want %v", got, time.Second)
	}
}

// One release of a round fails, the other succeeds: the Job is not held up longer
// with each round. Where nothing succeeds, it is.
func TestARoundThatMadeProgressIsTriedAgainSoon(t *testing.T) {
	const rounds = 4
	refused := apierrors.NewTooManyRequests("later", 1)
	release := func(k int) *jobpolicyv1.DecideJobResponse {
		return &jobpolicyv1.DecideJobResponse{Release: uidsOf(t, 2*k+2, 2*k+3)}
	}
	cases := map[string]struct {
		decision func(k int) *jobpolicyv1.DecideJobResponse
		write    string
		every    int // of so many tries, one succeeds
		want     []int
	}{
		"one of two releases fails": {release, "patch pods", 2, []int{0, 1, 1, 1}},
		"one of two deletions fails": {
			func(k int) *jobpolicyv1.DecideJobResponse {
				uids := uidsOf(t, 2*k+2, 2*k+3)
				return &jobpolicyv1.DecideJobResponse{Delete: []*jobpolicyv1.DeletePod{{Uid: uids[0]}, {Uid: uids[1]}}}
			},
			"delete pods", 2,
			[]int{0, 1, 1, 1},
		},
		"the status is written, and every release fails": {
			func(k int) *jobpolicyv1.DecideJobResponse {
				d := release(k)
				d.Status = recorded(t, k+2)
				return d
			},
			"patch pods", 100,
			[]int{0, 1, 1, 1},
		},
		"a pod is created, and every release fails": {
			func(k int) *jobpolicyv1.DecideJobResponse {
				d := release(k)
				d.Create = &jobpolicyv1.CreatePods{Count: 1}
				return d
			},
			"patch pods", 100,
			[]int{0, 1, 1, 1},
		},
		"every release fails": {release, "patch pods", 100, []int{0, 1, 2, 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{testJob()}
			for n := range 2 * rounds {
				objects = append(objects, testPod(n+2))
			}
			s := newServer(objects...)
			s.failures[tc.write] = func(n int) error {
				if n%tc.every == 0 {
					return nil
				}
				return refused
			}
			decider := &script{}
			e, err := New(testConfig(s, decider))
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for k := range rounds {
				decider.answers = append(decider.answers, func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
					state, _ := e.jobs.find(testUID(1))
					state.mu.Lock()
					got = append(got, state.failures)
					state.mu.Unlock()
					return applying(tc.decision(k))(req)
				})
			}
			run(t, e)
			eventually(t, "all rounds", func() bool { return len(decider.requests()) > rounds })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("failed rounds in a row, as each round found them (-want +got):\n%s", diff)
			}
		})
	}
}
