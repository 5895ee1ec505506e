package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

type request = jobpolicyv1.DecideJobRequest

// validRequest is a request with something in every field.
func validRequest(t testing.TB) *request {
	s := newScene()
	s.mustTell(t, `job completions=9 parallelism=3 mode=Indexed backoffLimitPerIndex=1 maxFailedIndexes=2 activeDeadlineSeconds=600 ttlSecondsAfterFinished=60
failureRule action=FailJob in=42 container=main
failureRule action=Ignore condition=DisruptionTarget
successRule indexes=0-3,7 count=4
now 100s
status start=0s active=2 ready=1 terminating=1 succeeded=2 failed=1 completed=0-1 failedIndexes=5 uncountedSucceeded= uncountedFailed=gone
condition Suspended status=False reason=JobResumed
pods active=2 ready=1 terminating=1 indexes=3-4 terminatingIndexes=2
finished d phase=Running deleting index=2
finished f phase=Failed index=6 exit=main:1 condition=DisruptionTarget=False failures=1 ignored=1
row a index=3 ready since=50s created=1s
row b index=4 phase=Pending unscheduled
confirm gone
unlisted succeeded=1 failed=1 indexes=8
inflight creates=1 indexes=7
retry success=10s failures=(20s,30s)
defercreations 90s
settings backoff=1s maxBackoff=60s maxUncounted=100 maxChanges=100`)
	s.req.RequestId = "id"
	return s.req
}

func TestAValidRequestIsAccepted(t *testing.T) {
	resp, err := engine.DecideJob(validRequest(t))
	if err != nil {
		t.Fatal(err)
	}
	if broken := brokenPromises(validRequest(t), resp); len(broken) > 0 {
		t.Error(broken)
	}
}

func TestInvalidRequests(t *testing.T) {
	cases := slices.Concat(invalidJobs, invalidSpecs, invalidOptions, invalidPolicies, invalidStatuses, invalidCounts, invalidRows, invalidSettings)
	slices.SortFunc(cases, func(a, b invalidRequest) int { return strings.Compare(a.name, b.name) })
	var refused caseFile
	defer func() { refused.check(t, "invalid_requests.txt") }()
	for i, tc := range cases {
		if i > 0 && cases[i-1].name == tc.name {
			t.Errorf("two cases are named %q", tc.name)
		}
		t.Run(tc.name, func(t *testing.T) {
			req := validRequest(t)
			tc.change(req)
			resp, err := engine.DecideJob(req)
			refused.refuse(req, tc.field)
			var invalid *engine.InvalidRequestError
			if !errors.As(err, &invalid) || resp != nil {
				t.Fatalf("DecideJob = %v, %v; want an InvalidRequestError", resp, err)
			}
			for _, v := range invalid.Violations {
				if v.Field == tc.field && strings.Contains(v.Description, tc.says) {
					return
				}
			}
			t.Errorf("no violation of %s that says %q in:\n%s", tc.field, tc.says, renderError(err))
		})
	}
}

func TestAllViolationsAreListedAtOnce(t *testing.T) {
	_, err := engine.DecideJob(&request{})
	want := "invalid request: now: is required; job: is required; spec: is required"
	if err == nil || err.Error() != want {
		t.Errorf("DecideJob of nothing:\n got %v\nwant %s", err, want)
	}
	if _, err = engine.DecideJob(nil); err == nil || err.Error() != want {
		t.Errorf("DecideJob of nil:\n got %v\nwant %s", err, want)
	}
}

func TestViolationsAreBounded(t *testing.T) {
	req := validRequest(t)
	req.UnaccountedPods = make([]*jobpolicyv1.UnaccountedPod, 50_000)
	_, err := engine.DecideJob(req)
	var invalid *engine.InvalidRequestError
	if !errors.As(err, &invalid) || len(invalid.Violations) != 100 {
		t.Fatalf("%d violations, want 100", len(invalid.Violations))
	}
}

// A request may hold whatever the API server accepts, and above all a status that the
// engine wrote.
func TestValidRequestsAtTheLimits(t *testing.T) {
	cases := map[string]func(*request){
		"a deadline of 0":      func(r *request) { r.Spec.ActiveDeadlineSeconds = proto.Int64(0) },
		"a success count of 0": func(r *request) { r.Spec.SuccessPolicy.Rules[0].SucceededCount = proto.Int32(0) },
		"a success rule for no index": func(r *request) {
			r.Spec.SuccessPolicy.Rules[0].SucceededIndexes = &jobpolicyv1.IndexSet{}
		},
		"the longest condition type, a domain of 253 bytes and a name of 63": func(r *request) {
			r.Spec.PodFailurePolicy.Rules[1].OnPodConditions[0].Type = strings.Repeat("x", 253) + "/" + strings.Repeat("y", 63)
		},
		"100 foreign conditions and all own ones": func(r *request) {
			r.Status.Conditions = nil
			for _, conditionType := range []string{suspended, criteriaMet, failureTarget, complete, failed} {
				addCondition(r, conditionType)
			}
			for i := range 100 {
				addCondition(r, fmt.Sprintf("example.com/%d", i))
			}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			req := validRequest(t)
			change(req)
			if _, err := engine.DecideJob(req); err != nil {
				t.Error(err)
			}
		})
	}
}

func addCondition(r *request, conditionType string) {
	r.Status.Conditions = append(r.Status.Conditions, &jobpolicyv1.JobCondition{
		Type: conditionType, Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE,
	})
}
