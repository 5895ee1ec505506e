package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/statusrules"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A statusChange is a status update as the API server sees it.
type statusChange struct {
	spec     *jobpolicyv1.JobSpec
	old, new *jobpolicyv1.JobStatus
}

// apiServers are those that must accept what the engine writes (invariant I5):
// every known version with its default gates, but v1.30. See
// TestAPIServersThatRefuseAnswers for the others.
func apiServers() []statusrules.APIServer {
	var servers []statusrules.APIServer
	for minor := int32(statusrules.OldestMinor); minor <= statusrules.NewestMinor; minor++ {
		if minor != 30 {
			servers = append(servers, statusrules.Default(minor))
		}
	}
	return servers
}

// violations lists the rules of API servers that the update breaks.
func (c statusChange) violations() []string {
	var broken []string
	for _, server := range apiServers() {
		for _, v := range server.Check(statusrules.Transition{Spec: c.spec, Before: c.old, After: c.new}) {
			broken = append(broken, fmt.Sprintf("v1.%d: %s", server.Minor, v))
		}
	}
	if !c.conditionsOnce() {
		broken = append(broken, "a condition type stands twice")
	}
	return broken
}

const (
	complete      = "Complete"
	failed        = "Failed"
	failureTarget = "FailureTarget"
	started       = "jobpolicy.dev/Started"
	criteriaMet   = "SuccessCriteriaMet"
	suspended     = "Suspended"
)

func hasCondition(s *jobpolicyv1.JobStatus, conditionType string, status jobpolicyv1.ConditionStatus) bool {
	return slices.ContainsFunc(s.GetConditions(), func(c *jobpolicyv1.JobCondition) bool {
		return c.GetType() == conditionType && c.GetStatus() == status
	})
}

// is reports whether the condition is true.
func is(s *jobpolicyv1.JobStatus, conditionType string) bool {
	return hasCondition(s, conditionType, jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE)
}

func isFinished(s *jobpolicyv1.JobStatus) bool { return is(s, complete) || is(s, failed) }

func uncountedPods(s *jobpolicyv1.JobStatus) int {
	return len(s.GetUncounted().GetSucceeded()) + len(s.GetUncounted().GetFailed())
}

func (c statusChange) uncountedOnce() bool {
	seen := map[string]bool{}
	for _, list := range [][][]byte{c.new.GetUncounted().GetSucceeded(), c.new.GetUncounted().GetFailed()} {
		for _, uid := range list {
			if len(uid) == 0 || seen[string(uid)] {
				return false
			}
			seen[string(uid)] = true
		}
	}
	return true
}

// conditionsOnce reports condition types that occur twice. The API server accepts them;
// the engine must not write them.
func (c statusChange) conditionsOnce() bool {
	seen := map[string]bool{}
	for _, condition := range c.new.GetConditions() {
		if seen[condition.GetType()] {
			return false
		}
		seen[condition.GetType()] = true
	}
	return true
}

// TestAPIServersAcceptAnswers decides on any status that the contract allows, even one
// that no API server would have accepted. What is wrong in such a status may stay wrong,
// but a decision must not break anything else.
func TestAPIServersAcceptAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		resp, err := engine.DecideJob(req)
		if err != nil || resp.GetStatus() == nil {
			return
		}
		if neverWritten(req.GetStatus()) {
			return
		}
		for _, server := range apiServers() {
			wrong := map[string]bool{}
			for _, v := range server.Check(statusrules.Transition{Spec: req.GetSpec(), After: req.GetStatus()}) {
				wrong[v.Rule] = true
			}
			for _, v := range server.Check(statusrules.Transition{Spec: req.GetSpec(), Before: req.GetStatus(), After: resp.GetStatus()}) {
				if !wrong[v.Rule] {
					t.Fatalf("I5: v1.%d would refuse the status: %s\nrequest:\n%s\nresponse:\n%s", server.Minor, v, render(req), render(resp))
				}
			}
		}
	})
}

// neverWritten reports statuses that contradict themselves. An API server with these
// rules never stores one and accepts no update of one, so there is no right answer.
func neverWritten(s *jobpolicyv1.JobStatus) bool {
	return is(s, criteriaMet) && is(s, failureTarget)
}

// These versions refuse updates that every Job or some Jobs need. v1.30 accepts
// SuccessCriteriaMet only on Jobs with a success policy. v1.31 with the gate JobManagedBy
// (alpha in that version) does not let a Job finish that never started, and does not let
// a resumption change the start time. The engine writes what v1.32 and later expect.
func TestAPIServersThatRefuseAnswers(t *testing.T) {
	cases := map[string]struct {
		server statusrules.APIServer
		scene  string
		want   []string
	}{
		"any Job that completes, by v1.30": {
			server: statusrules.Default(30), scene: "job completions=1\nstatus start=0s succeeded=1",
			want: []string{"SuccessCriteriaMetNonIndexed", "SuccessCriteriaMetWithoutSuccessPolicy"},
		},
		"any Job that completes, by v1.31": {server: statusrules.Default(31), scene: "job completions=1\nstatus start=0s succeeded=1"},
		"nothing to do and suspended, by v1.32": {
			server: statusrules.Default(32),
			scene:  "job completions=0 suspend\nstatus\ncondition SuccessCriteriaMet",
		},
		"nothing to do and suspended, by v1.31 with the gate": {
			server: statusrules.APIServer{Minor: 31, JobManagedBy: true},
			scene:  "job completions=0 suspend\nstatus\ncondition SuccessCriteriaMet",
			want:   []string{"FinishedWithoutStartTime"},
		},
		"a start time that is kept while suspended, and a resume, by v1.31 with the gate": {
			server: statusrules.APIServer{Minor: 31, JobManagedBy: true},
			scene:  "job completions=1\nstatus start=-60s\ncondition Suspended",
			want:   []string{"StartTimeChanged"},
		},
		"a start time that is kept while suspended, and a resume, by v1.32": {
			server: statusrules.Default(32),
			scene:  "job completions=1\nstatus start=-60s\ncondition Suspended",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.mustTell(t, tc.scene)
			resp, err := engine.DecideJob(s.req)
			if err != nil || resp.GetStatus() == nil {
				t.Fatalf("DecideJob = %v, %v, want a status", resp, err)
			}
			var got []string
			for _, v := range tc.server.Check(statusrules.Transition{Spec: s.req.GetSpec(), Before: s.req.GetStatus(), After: resp.GetStatus()}) {
				got = append(got, v.Rule)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s\nstatus:\n%s", diff, render(resp.GetStatus()))
			}
		})
	}
}

// conditionsRemoved names a condition that the new status has lost. The API server
// accepts the loss of some types; the engine must remove none.
func conditionsRemoved(old, next *jobpolicyv1.JobStatus) error {
	for _, c := range old.GetConditions() {
		if !hasCondition(next, c.GetType(), jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE) &&
			!hasCondition(next, c.GetType(), jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE) &&
			!hasCondition(next, c.GetType(), jobpolicyv1.ConditionStatus_CONDITION_STATUS_UNKNOWN) {
			return fmt.Errorf("condition %s was removed", c.GetType())
		}
	}
	return nil
}
