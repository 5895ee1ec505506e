package executor

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/internal/policy"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const writeStatus = "update jobs/status"

func started(job *batchv1.Job) {
	job.Status.StartTime = new(metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second)))
}

// lastValid is the annotation of the server's Job; absent: it has none.
func (s *server) lastValid(t *testing.T) (text string) {
	t.Helper()
	text, has := s.job(t).Annotations[wire.LastValidPolicy]
	if !has {
		return "absent"
	}
	return text
}

func (s *server) job(t *testing.T) *batchv1.Job {
	t.Helper()
	job, err := s.BatchV1().Jobs("ns").Get(context.Background(), "job", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// A started Job goes on with its last valid options, also in another process, which has them from the Job's annotation: it is
// written once, before the first decision with them, and again if others count.
func TestTheLastValidOptionsOutliveARestart(t *testing.T) {
	policies, d := testPolicies(testPolicy(1, 1)), &script{}
	resource := policies.Resource(policy.Resource).Namespace("ns")
	put := func(generation, ttl int64) {
		if _, err := resource.Update(t.Context(), testPolicy(generation, ttl), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(testJob(withPolicy, started))
	cfg := testConfig(s, d)
	cfg.JobPolicies = policies
	start(t, cfg)
	awaitOptions(t, d, "the policy's options", 1, false)
	put(2, 2)
	awaitOptions(t, d, "options of the changed policy", 2, false)
	if got := s.lastValid(t); got != "absent" {
		t.Errorf("the annotation is %s before a status is written or the policy is invalid", got)
	}
	put(3, -1)
	eventually(t, "the annotation has the last valid options", func() bool { return s.lastValid(t) == `{"job":{"ttlSecondsAfterFailed":2}}` })
	awaitOptions(t, d, "the last valid options", 2, true)
	put(4, -2)
	put(5, 5)
	awaitOptions(t, d, "a valid policy", 5, false)
	put(6, -1)
	eventually(t, "the annotation has newer options", func() bool { return s.lastValid(t) == `{"job":{"ttlSecondsAfterFailed":5}}` })
	awaitOptions(t, d, "the last valid options", 5, true)
	if n := s.Tries(writeStatus); n != 2 {
		t.Errorf("%d writes of the Job, want one each time that other options became the last valid ones", n)
	}

	restarted, other := newServer(s.job(t)), &script{}
	cfg = testConfig(restarted, other)
	cfg.JobPolicies = testPolicies()
	start(t, cfg)
	awaitOptions(t, other, "the last valid options after a restart", 5, true)
	if n := restarted.Tries(writeStatus); n != 0 {
		t.Errorf("%d writes of the Job after the restart, want none", n)
	}
}

// The options go with each status of a started Job that asks for some.
func TestAStatusHasTheLastValidOptions(t *testing.T) {
	stale := func(job *batchv1.Job) {
		metav1.SetMetaDataAnnotation(&job.ObjectMeta, wire.LastValidPolicy, `{"job":{"ttlSecondsAfterFailed":9}}`)
	}
	inline := func(text string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { metav1.SetMetaDataAnnotation(&job.ObjectMeta, wire.Policy, text) }
	}
	starts := timestamppb.New(time.Now().Truncate(time.Second))
	cases := map[string]struct {
		job     []func(*batchv1.Job)
		started *timestamppb.Timestamp
		want    string
	}{
		"of a policy":                  {job: []func(*batchv1.Job){withPolicy}, started: starts, want: `{"job":{"ttlSecondsAfterFailed":1}}`},
		"of the Job itself":            {job: []func(*batchv1.Job){inline("{job: {ttlSecondsAfterFailed: 3}}"), stale}, started: starts, want: `{"job":{"ttlSecondsAfterFailed":3}}`},
		"none in the policy":           {job: []func(*batchv1.Job){inline("{}")}, started: starts, want: `{"job":{}}`},
		"nobody asks":                  {started: starts, want: "absent"},
		"nobody asks any more":         {job: []func(*batchv1.Job){stale}, started: starts, want: "absent"},
		"invalid, and known":           {job: []func(*batchv1.Job){inline("{job: 3}"), stale}, started: starts, want: `{"job":{"ttlSecondsAfterFailed":9}}`},
		"invalid, and nothing else":    {job: []func(*batchv1.Job){inline("{job: 3}")}, started: starts, want: "absent"},
		"not started":                  {job: []func(*batchv1.Job){withPolicy}, want: "absent"},
		"not started, but was earlier": {job: []func(*batchv1.Job){withPolicy, stale}, want: `{"job":{"ttlSecondsAfterFailed":9}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(testJob(tc.job...))
			cfg := testConfig(s, &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{Status: &jobpolicyv1.JobStatus{Active: 1, StartTime: tc.started}})}})
			cfg.JobPolicies = testPolicies(testPolicy(1, 1))
			start(t, cfg)
			eventually(t, "the status is written", func() bool { return s.job(t).Status.Active == 1 })
			if got := s.lastValid(t); got != tc.want {
				t.Errorf("the annotation is %s, want %s", got, tc.want)
			}
			if n := s.Tries(writeStatus); n != 1 {
				t.Errorf("%d writes of the Job, want 1", n)
			}
		})
	}
}

// breakPolicy makes the policy of a Job invalid while an executor knows the last valid options.
func breakPolicy(t *testing.T, s *server, d *script) {
	t.Helper()
	policies := testPolicies(testPolicy(1, 1))
	cfg := testConfig(s, d)
	cfg.JobPolicies = policies
	start(t, cfg)
	awaitOptions(t, d, "the policy's options", 1, false)
	if _, err := policies.Resource(policy.Resource).Namespace("ns").Update(t.Context(), testPolicy(2, -1), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Nothing is decided with the last valid options before the annotation has them.
func TestTheLastValidOptionsAreWrittenFirst(t *testing.T) {
	create := func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if len(req.GetSpec().GetOptionProblems()) == 0 || req.GetStatus().GetActive() == 1 {
			return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
		}
		return &jobpolicyv1.DecideJobResponse{
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Status: &jobpolicyv1.JobStatus{Active: 1, StartTime: req.GetStatus().GetStartTime()},
		}, nil
	}
	s := newServer(testJob(withPolicy, started))
	s.Failures[writeStatus] = func(n int) error {
		if n <= 2 {
			return errors.New("away")
		}
		return nil
	}
	breakPolicy(t, s, &script{Otherwise: create})
	eventually(t, "the status is written", func() bool { return s.job(t).Status.Active == 1 })
	if got, n := s.lastValid(t), s.Tries(writeStatus); got != `{"job":{"ttlSecondsAfterFailed":1}}` || n != 4 {
		t.Errorf("the annotation is %s after %d tries, want two that fail, one of the annotation, and one of the status", got, n)
	}
}

// An admission webhook that takes the annotation out keeps the Job from nothing, and causes no hot loop.
func TestAnAnnotationThatDoesNotStay(t *testing.T) {
	s, d := newServer(testJob(withPolicy, started)), &script{}
	s.PrependReactor("update", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		delete(action.(clienttesting.UpdateAction).GetObject().(*batchv1.Job).Annotations, wire.LastValidPolicy)
		return false, nil, nil
	})
	breakPolicy(t, s, d)
	awaitOptions(t, d, "the last valid options", 1, true)
	for n := range int32(2) { // The second pod comes to a reconcile that follows the one of the first.
		if _, err := s.CoreV1().Pods("ns").Create(t.Context(), testPod(7+int(n)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a decision about the pod", func() bool {
			requests := d.Requests()
			return requests[len(requests)-1].GetPods().GetActive() == n+1
		})
	}
	if got, n := s.lastValid(t), s.Tries(writeStatus); got != "absent" || n != 1 {
		t.Errorf("the annotation is %s after %d tries, want none after one", got, n)
	}
}

// Options that become the last valid ones again are written again if a status has brought others meanwhile.
func TestTheSameOptionsBecomeTheLastValidOnesAgain(t *testing.T) {
	const first = `{"job":{"ttlSecondsAfterFailed":1}}`
	s, d, policies := newServer(testJob(withPolicy, started)), &script{}, testPolicies(testPolicy(1, 1))
	d.Otherwise = func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if req.GetSpec().GetOptions().GetTtlSecondsAfterFailed() != 5 || req.GetStatus().GetActive() == 1 {
			return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
		}
		return &jobpolicyv1.DecideJobResponse{
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Status: &jobpolicyv1.JobStatus{Active: 1, StartTime: req.GetStatus().GetStartTime()},
		}, nil
	}
	put := func(generation, ttl int64) {
		t.Helper()
		if _, err := policies.Resource(policy.Resource).Namespace("ns").Update(t.Context(), testPolicy(generation, ttl), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := testConfig(s, d)
	cfg.JobPolicies = policies
	start(t, cfg)
	awaitOptions(t, d, "the policy's options", 1, false)
	put(2, -1)
	eventually(t, "the annotation has the last valid options", func() bool { return s.lastValid(t) == first })
	put(3, 5)
	eventually(t, "a status brings others", func() bool { return s.lastValid(t) == `{"job":{"ttlSecondsAfterFailed":5}}` })
	put(4, 1)
	awaitOptions(t, d, "the first options again", 1, false)
	put(5, -1)
	eventually(t, "the annotation has the first options again", func() bool { return s.lastValid(t) == first })
}
