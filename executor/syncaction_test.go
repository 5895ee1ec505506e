package executor

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// seen makes a request about a Job with active pods, rows of pods that have succeeded or
// failed, and what change says.
func seen(t *testing.T, job *batchv1.Job, active int32, change ...func(*jobpolicyv1.DecideJobRequest)) snapshot {
	t.Helper()
	req, err := wire.JobRequest(job)
	if err != nil {
		t.Fatal(err)
	}
	req.Pods = &jobpolicyv1.PodSummary{Active: active}
	for _, f := range change {
		f(req)
	}
	return snapshot{job: job, req: req}
}

// row adds the row of a pod that has ended.
func row(uid string, phase jobpolicyv1.PodPhase, index ...int32) func(*jobpolicyv1.DecideJobRequest) {
	return func(req *jobpolicyv1.DecideJobRequest) {
		pod := &jobpolicyv1.UnaccountedPod{Uid: []byte(uid), Phase: phase}
		if len(index) > 0 {
			pod.Index = &index[0]
		}
		req.UnaccountedPods = append(req.UnaccountedPods, pod)
	}
}

// wants is a Job with parallelism and completions; -1: no completions.
func wants(parallelism, completions int32, change ...func(*batchv1.Job)) *batchv1.Job {
	return testJob(append([]func(*batchv1.Job){func(j *batchv1.Job) {
		j.Spec.Parallelism = &parallelism
		if completions >= 0 {
			j.Spec.Completions = &completions
		}
	}}, change...)...)
}

func indexed(j *batchv1.Job) { j.Spec.CompletionMode = new(batchv1.IndexedCompletion) }

func suspended(j *batchv1.Job) { j.Spec.Suspend = new(true) }

func replacesFailed(j *batchv1.Job) { j.Spec.PodReplacementPolicy = new(batchv1.Failed) }

func endsBy(rule jobpolicyv1.Rule) *jobpolicyv1.DecideJobResponse {
	return &jobpolicyv1.DecideJobResponse{Verdict: &jobpolicyv1.Verdict{Rule: rule}}
}

func terminating(n int32) func(*jobpolicyv1.DecideJobRequest) {
	return func(req *jobpolicyv1.DecideJobRequest) { req.Pods.Terminating = n }
}

const (
	won  = jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
	lost = jobpolicyv1.PodPhase_POD_PHASE_FAILED
)

func TestTheActionOfASyncWithAStep(t *testing.T) {
	creates := &jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}}
	deletes := func(rule jobpolicyv1.Rule) *jobpolicyv1.DecideJobResponse {
		d := &jobpolicyv1.DecideJobResponse{Delete: []*jobpolicyv1.DeletePod{{}}}
		if rule != 0 {
			d.Verdict = endsBy(rule).Verdict
		}
		return d
	}
	for name, tc := range map[string]struct {
		snap     snapshot
		decision *jobpolicyv1.DecideJobResponse
		want     string
	}{
		"pods are created":       {seen(t, wants(1, 1), 0), creates, actionCreated},
		"too many are deleted":   {seen(t, wants(1, 3), 2), deletes(0), actionDeleted},
		"a suspended Job's":      {seen(t, wants(1, 3, suspended), 2), deletes(0), actionDeleted},
		"those of a failed Job":  {seen(t, wants(1, 3), 1), deletes(jobpolicyv1.Rule_RULE_FAILURE_ALREADY_DECLARED), actionReconciling},
		"of a successful one":    {seen(t, wants(1, 3), 1), deletes(jobpolicyv1.Rule_RULE_SUCCESS_ALREADY_DECLARED), actionReconciling},
		"the deadline passes":    {seen(t, wants(1, 3), 1), endsBy(jobpolicyv1.Rule_RULE_DEADLINE_PASSED), actionReconciling},
		"too many failures":      {seen(t, wants(1, 3, suspended), 1), endsBy(jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED), actionReconciling},
		"the success policy":     {seen(t, wants(1, 3, indexed), 1), endsBy(jobpolicyv1.Rule_RULE_SUCCESS_POLICY_MET), actionReconciling},
		"completions reached":    {seen(t, wants(1, 1), 0, row("a", won)), endsBy(jobpolicyv1.Rule_RULE_COMPLETIONS_REACHED), actionTracking},
		"reached when suspended": {seen(t, wants(1, 0, suspended), 0), endsBy(jobpolicyv1.Rule_RULE_COMPLETIONS_REACHED), actionDeleted},
		"the Job is deleted":     {seen(t, beingDeleted(wants(1, 1)), 0), &jobpolicyv1.DecideJobResponse{}, actionReconciling},
	} {
		if got := syncAction(tc.snap, tc.decision); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestTheActionOfASyncThatNeitherCreatesNorDeletes(t *testing.T) {
	recorded := func(req *jobpolicyv1.DecideJobRequest) {
		req.Status = &jobpolicyv1.JobStatus{
			Succeeded: 1, CompletedIndexes: answer.Indexes(0),
			Uncounted: &jobpolicyv1.UncountedTerminatedPods{Succeeded: [][]byte{[]byte("a")}, Failed: [][]byte{[]byte("b")}},
		}
	}
	unlisted := func(req *jobpolicyv1.DecideJobRequest) {
		req.UnlistedPods = &jobpolicyv1.UnlistedPods{Succeeded: 2, SucceededIndexes: answer.Indexes(1, 2)}
	}
	inFlight := func(req *jobpolicyv1.DecideJobRequest) { req.InFlight = &jobpolicyv1.InFlight{Creates: 1} }
	for name, tc := range map[string]struct {
		snap snapshot
		want string
	}{
		"all pods run":       {seen(t, wants(2, 5), 2), actionTracking},
		"a retry delay runs": {seen(t, wants(2, 5), 1, row("a", lost)), actionCreated},
		"the last pods run":  {seen(t, wants(2, 5), 1, row("a", won), row("b", won), row("c", won), row("d", won)), actionTracking},

		"a failed pod is to be replaced at the end":      {seen(t, wants(2, 5), 0, row("a", won), row("b", won), row("c", won), row("d", lost)), actionCreated},
		"recorded pods count once":                       {seen(t, wants(5, 5), 2, recorded, row("a", won), row("c", won)), actionTracking},
		"a recorded failure stays one":                   {seen(t, wants(5, 5), 2, recorded, row("b", won)), actionCreated},
		"unlisted pods":                                  {seen(t, wants(5, 5), 3, unlisted), actionTracking},
		"unlisted pods, and one is missing":              {seen(t, wants(5, 5), 2, unlisted), actionCreated},
		"indexes count once":                             {seen(t, wants(4, 4, indexed), 1, recorded, unlisted, row("x", won, 0), row("y", won, 2)), actionTracking},
		"an index is missing":                            {seen(t, wants(4, 4, indexed), 1, recorded, row("y", won, 0), row("z", won, 2)), actionCreated},
		"an index out of range":                          {seen(t, wants(4, 4, indexed), 2, recorded, row("y", won, 7)), actionCreated},
		"a work queue starts":                            {seen(t, wants(2, -1), 0), actionCreated},
		"a work queue with a success":                    {seen(t, wants(2, -1), 1, row("a", won)), actionTracking},
		"too many run, and their deletion backs off":     {seen(t, wants(1, 5), 2), actionDeleted},
		"the last pod of the old one is being deleted":   {seen(t, wants(1, 1), 0, terminating(1)), actionCreated},
		"only failed pods are replaced":                  {seen(t, wants(1, 1, replacesFailed), 0, terminating(1)), actionTracking},
		"the outcome of a creation is not known":         {seen(t, wants(2, 5), 1, inFlight), actionReconciling},
		"suspended, and no pod is left":                  {seen(t, wants(2, 5, suspended), 0), actionDeleted},
		"suspended, and a creation's outcome is unknown": {seen(t, wants(2, 5, suspended), 0, inFlight), actionReconciling},
		"paused by parallelism 0":                        {seen(t, wants(0, 5), 0), actionTracking},
	} {
		if got := syncAction(tc.snap, &jobpolicyv1.DecideJobResponse{}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
