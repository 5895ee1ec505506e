package engine_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Of more than 1,000 finished pods only 1,000 are listed, those that succeeded
// first. The Job ends as it would if all were listed.
func TestUnlistedFailuresDecide(t *testing.T) {
	const failJob = "\nfailureRule action=FailJob in=42"
	cases := map[string]struct {
		job                 string
		succeeded, failed   int
		wantType, wantCause string
	}{
		"enough succeeded, and one matches FailJob": {
			job: "job completions=1100 parallelism=10 backoffLimit=1000" + failJob, succeeded: 1100, failed: 100,
			wantType: failed, wantCause: "PodFailurePolicy",
		},
		"a work queue in which one matches FailJob": {
			job: "job parallelism=10 backoffLimit=1000" + failJob, succeeded: 1100, failed: 1,
			wantType: failed, wantCause: "PodFailurePolicy",
		},
		"a work queue that waits for deleted pods to end": {
			job: "job parallelism=10 backoffLimit=99 podReplacementPolicy=Failed", succeeded: 1100, failed: 100,
			wantType: failed, wantCause: "BackoffLimitExceeded",
		},
		"no more failed than allowed": {
			job: "job parallelism=10 backoffLimit=100 podReplacementPolicy=Failed", succeeded: 1100, failed: 100,
			wantType: complete, wantCause: "CompletionsReached",
		},
		"no failure matches": {
			job: "job completions=1100 parallelism=10 backoffLimit=100\nfailureRule action=FailJob in=41", succeeded: 1100,
			failed:   100,
			wantType: complete, wantCause: "CompletionsReached",
		},
		"a success policy is met, and too many failed": {
			job: "job mode=Indexed completions=2000 parallelism=10 backoffLimit=99\nsuccessRule count=1000", succeeded: 1100,
			failed:   100,
			wantType: failed, wantCause: "BackoffLimitExceeded",
		},
		"a success policy is met, and too many indexes failed": {
			job:       "job mode=Indexed completions=2000 parallelism=0 backoffLimit=1000 backoffLimitPerIndex=0 maxFailedIndexes=99\nsuccessRule count=1000",
			succeeded: 1100, failed: 100,
			wantType: failed, wantCause: "MaxFailedIndexesExceeded",
		},
		"a success policy is met, and few indexes failed": {
			job:       "job mode=Indexed completions=2000 parallelism=0 backoffLimit=1000 backoffLimitPerIndex=0 maxFailedIndexes=100\nsuccessRule count=1000",
			succeeded: 1100, failed: 100,
			wantType: complete, wantCause: "SuccessPolicy",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.mustTell(t, tc.job+"\nstatus start=0s")
			c := &crowd{req: s.req, limit: 1000}
			c.end(tc.succeeded, jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED)
			c.end(tc.failed, jobpolicyv1.PodPhase_POD_PHASE_FAILED)
			conditionType, cause := c.decideToTheEnd(t)
			if conditionType != tc.wantType || cause != tc.wantCause {
				t.Errorf("the Job is %s (%s), want %s (%s)", conditionType, cause, tc.wantType, tc.wantCause)
			}
		})
	}
}

// A crowd is a Job whose finished pods are more than a request lists.
type crowd struct {
	req   *request
	rows  []*jobpolicyv1.UnaccountedPod
	limit int
	pods  int
}

// end adds pods that have ended, one for each next index.
func (c *crowd) end(n int, phase jobpolicyv1.PodPhase) {
	for range n {
		row := &jobpolicyv1.UnaccountedPod{Uid: numberedUID(c.pods), Phase: phase, FinishedTime: at(0)}
		if c.req.GetSpec().GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
			row.Index = proto.Int32(int32(c.pods))
		}
		if phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED {
			row.Failure = &jobpolicyv1.PodFailure{ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "main", ExitCode: 42}}}
		}
		c.rows = append(c.rows, row)
		c.pods++
	}
}

// decideToTheEnd carries decisions out until the Job is finished, and returns
// its last condition and the reason.
func (c *crowd) decideToTheEnd(t *testing.T) (conditionType, reason string) {
	for range 20 {
		c.list()
		resp := decide(t, c.req)
		if resp.GetCreate() != nil {
			t.Fatalf("pods are created:\n%s", render(resp))
		}
		if resp.GetStatus() != nil {
			c.req.Status = resp.GetStatus()
		}
		released := map[string]bool{}
		for _, uid := range resp.GetRelease() {
			released[string(uid)] = true
		}
		var left []*jobpolicyv1.UnaccountedPod
		for _, row := range c.rows {
			if !released[string(row.GetUid())] {
				left = append(left, row)
			}
		}
		c.rows = left
		c.req.ConfirmedReleases = resp.GetRelease()
		if isFinished(c.req.GetStatus()) {
			conditions := c.req.GetStatus().GetConditions()
			last := conditions[len(conditions)-1]
			return last.GetType(), last.GetReason()
		}
	}
	t.Fatalf("the Job does not end; status:\n%s", render(c.req.GetStatus()))
	return "", ""
}

// list cuts the rows to what may be listed.
func (c *crowd) list() {
	listed := min(len(c.rows), c.limit)
	c.req.UnaccountedPods, c.req.UnlistedPods = c.rows[:listed], nil
	if listed < len(c.rows) {
		c.req.UnlistedPods = unlisted(c.rows[listed:])
	}
}

// unlisted sums up the rows that a request leaves out.
func unlisted(rows []*jobpolicyv1.UnaccountedPod) *jobpolicyv1.UnlistedPods {
	u := &jobpolicyv1.UnlistedPods{}
	var succeeded, others []int32
	for _, row := range rows {
		if row.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED {
			u.Succeeded++
			succeeded = appendIndex(succeeded, &modelPod{index: row.Index})
			continue
		}
		u.Failed++
		others = appendIndex(others, &modelPod{index: row.Index})
	}
	u.SucceededIndexes, u.FailedIndexes = indexset.Of(succeeded...).Message(), indexset.Of(others...).Message()
	return u
}

func decide(t *testing.T, req *request) *jobpolicyv1.DecideJobResponse {
	t.Helper()
	resp, err := engine.DecideJob(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
