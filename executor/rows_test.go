package executor

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// narrow is a Decider that refuses a number of messages, or all above a size. It decides
// that there is nothing to do.
type narrow struct {
	Decider
	most, refusals int
	rows           []int // Of each message that was not refused.
	unlisted       bool  // The last one did not list all.
}

func (n *narrow) DecideJob(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	if proto.Size(req) > n.most && n.refusals > 0 {
		n.refusals--
		return nil, status.Error(codes.ResourceExhausted, "message too large, or too many calls")
	}
	n.rows, n.unlisted = append(n.rows, len(req.GetUnaccountedPods())), req.GetUnlistedPods() != nil
	return &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
}

// waitingFailures adds an Indexed Job with limits per index. It has n failed pods that wait
// for a replacement.
func waitingFailures(e *Executor, n int) {
	mode := batchv1.IndexedCompletion
	job := testJob(func(j *batchv1.Job) {
		j.ResourceVersion = "1"
		j.Spec.CompletionMode, j.Spec.BackoffLimitPerIndex, j.Spec.Completions = &mode, new(int32(5)), new(int32(n))
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: batchv1.PodFailurePolicyActionCount, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Values: []int32{1}},
		}}}
	})
	s := e.jobs.With(testKey, func(s *tracker.Job) { s.Observe(job, tracker.Watch) })
	for i := range n {
		s.ObservePod(cachedPod(i+2, failedPhase, func(p *corev1.Pod) {
			p.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(i)}
		}), tracker.Watch)
	}
}

// The engine may refuse one request because it is overloaded. That must not shorten the
// list of a Job's pods for ever: a failed pod that is not listed is not replaced. If the
// engine always refuses messages above a size, the executor must not try longer ones all
// the time.
func TestAListThatWasCutGrowsAgain(t *testing.T) {
	const pods = 32000
	cases := map[string]struct {
		refusals, maxRows int
		most              int
		wantRows          int
		wantAll           bool
	}{
		"refused once":                    {refusals: 1, wantRows: pods, wantAll: true},
		"refused three times":             {refusals: 3, wantRows: pods, wantAll: true},
		"the configuration allows fewer":  {refusals: 0, maxRows: 1500, wantRows: 1500},
		"it allows less than is needed":   {refusals: 0, maxRows: 500, wantRows: 1000},
		"refused, and so few are allowed": {refusals: 1, maxRows: 31000, wantRows: 31000},
		"messages are limited to 1 MiB":   {refusals: 1 << 30, most: 1 << 20, wantRows: pods / 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			engine := &narrow{most: tc.most, refusals: tc.refusals}
			cfg := testConfig(newServer(), engine)
			cfg.Rows.Max, cfg.APIBackoff, cfg.MaxAPIBackoff = tc.maxRows, time.Second, time.Minute
			inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
				synctest.Wait()
				waitingFailures(e, pods)
				s, _ := e.jobs.Find(testKey)
				e.queue.enqueue(s, causeJob, controller.PriorityHigh)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
			})
			most, asked := 0, len(engine.rows)
			for _, n := range engine.rows {
				most = max(most, n)
			}
			if most != tc.wantRows || engine.unlisted == tc.wantAll {
				t.Errorf("lists of %v pods, want one of %d; the last one leaves some out: %t", engine.rows, tc.wantRows, engine.unlisted)
			}
			if refused := 1<<30 - engine.refusals; tc.most > 0 && refused > 12 {
				t.Errorf("asked in vain %d times within 5 minutes", refused)
			}
			if asked > 25 {
				t.Errorf("asked %d times within 5 minutes", asked)
			}
		})
	}
}
