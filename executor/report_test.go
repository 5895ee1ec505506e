package executor

import (
	"testing"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestTheActionOfASync(t *testing.T) {
	endsBy := func(rule jobpolicyv1.Rule) *jobpolicyv1.Verdict { return &jobpolicyv1.Verdict{Rule: rule} }
	runs, suspended, deleting := &jobpolicyv1.JobSpec{}, &jobpolicyv1.JobSpec{Suspend: true}, &jobpolicyv1.JobSpec{Deleting: true}
	create, remove := &jobpolicyv1.CreatePods{Count: 1}, []*jobpolicyv1.DeletePod{{}}
	for name, tc := range map[string]struct {
		spec     *jobpolicyv1.JobSpec
		inFlight int32
		decision *jobpolicyv1.DecideJobResponse
		want     string
	}{
		"pods are created":      {runs, 0, &jobpolicyv1.DecideJobResponse{Create: create}, actionCreated},
		"too many are deleted":  {runs, 0, &jobpolicyv1.DecideJobResponse{Delete: remove}, actionDeleted},
		"a suspended Job's":     {suspended, 0, &jobpolicyv1.DecideJobResponse{Delete: remove}, actionDeleted},
		"suspended, and no pod": {suspended, 0, &jobpolicyv1.DecideJobResponse{}, actionDeleted},
		"those of a failed Job": {runs, 0, &jobpolicyv1.DecideJobResponse{
			Delete: remove, Verdict: endsBy(jobpolicyv1.Rule_RULE_FAILURE_ALREADY_DECLARED),
		}, actionReconciling},
		"the deadline passes":           {runs, 0, &jobpolicyv1.DecideJobResponse{Verdict: endsBy(jobpolicyv1.Rule_RULE_DEADLINE_PASSED)}, actionReconciling},
		"too many failures":             {suspended, 0, &jobpolicyv1.DecideJobResponse{Verdict: endsBy(jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED)}, actionReconciling},
		"completions reached":           {runs, 0, &jobpolicyv1.DecideJobResponse{Verdict: endsBy(jobpolicyv1.Rule_RULE_COMPLETIONS_REACHED)}, actionTracking},
		"reached when suspended":        {suspended, 0, &jobpolicyv1.DecideJobResponse{Verdict: endsBy(jobpolicyv1.Rule_RULE_COMPLETIONS_REACHED)}, actionDeleted},
		"the Job is deleted":            {deleting, 0, &jobpolicyv1.DecideJobResponse{}, actionReconciling},
		"a creation is unanswered":      {runs, 1, &jobpolicyv1.DecideJobResponse{}, actionReconciling},
		"suspended, and one unanswered": {suspended, 1, &jobpolicyv1.DecideJobResponse{}, actionReconciling},
		"nothing is to be done now":     {runs, 0, &jobpolicyv1.DecideJobResponse{}, actionTracking},
	} {
		req := &jobpolicyv1.DecideJobRequest{Spec: tc.spec, InFlight: &jobpolicyv1.InFlight{Creates: tc.inFlight}}
		if got := syncAction(req, tc.decision); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
