package wire

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	uidSize = 16 // In bytes.
	// highestIndex is the contract's limit on completion indexes.
	highestIndex = math.MaxInt32 - 1
)

// wrong names a field of the decision, its value, and the value that was expected.
func wrong(field, format string, args ...any) error {
	return fmt.Errorf("%s %s", field, fmt.Sprintf(format, args...))
}

// CheckDecision rejects decisions on a Job that has not finished which could do harm: contradictions, and
// values that the contract does not allow. A decision that passes answer.Check and then this check
// can be carried out. It may still be the wrong decision about the Job.
func CheckDecision(req *jobpolicyv1.DecideJobRequest, decision *jobpolicyv1.DecideJobResponse) error {
	return cmp.Or(
		checkFrame(decision), checkDelete(decision), checkStatus(decision), checkUIDs("release[%d]", decision.GetRelease()),
		checkGang(req.GetSettings().GetPodGroups(), decision.GetGang()), checkReports(decision))
}

func checkFrame(decision *jobpolicyv1.DecideJobResponse) error {
	if decision.GetDeleteJob() != nil {
		return wrong("delete_job", "is set, want none for a Job that has not finished")
	}
	return checkTime("requeue_time", decision.GetRequeueTime())
}

func checkDelete(decision *jobpolicyv1.DecideJobResponse) error {
	var uids [][]byte
	for _, pod := range decision.GetDelete() {
		uids = append(uids, pod.GetUid())
	}
	var ends [][]byte
	for _, pod := range decision.GetEnd() {
		ends = append(ends, pod.GetUid())
	}
	return cmp.Or(checkUIDs("delete[%d].uid", uids), checkUIDs("end[%d].uid", ends), checkUIDs("delete and end[%d].uid", slices.Concat(uids, ends)))
}

func checkGang(asked jobpolicyv1.PodGroups, gang *jobpolicyv1.Gang) error {
	switch {
	case gang == nil:
		return nil
	case asked == jobpolicyv1.PodGroups_POD_GROUPS_UNSPECIFIED:
		return wrong("gang", "is set, want none: groups were not asked for")
	case gang.GetMinCount() < 0 || gang.GetMaxCount() < gang.GetMinCount():
		return wrong("gang.min_count", "is %d, and max_count %d, want 0 or more, and max_count no less", gang.GetMinCount(), gang.GetMaxCount())
	case gang.TemplateName != nil && gang.GetMinCount() == 0:
		return wrong("gang.min_count", "is 0, want 1 or more with template_name")
	}
	return nil
}

// checkReports checks the parts of the decision that become events and metrics.
func checkReports(decision *jobpolicyv1.DecideJobResponse) error {
	for i, event := range decision.GetEvents() {
		field := fmt.Sprintf("events[%d]", i)
		if event.GetType() == 0 {
			return wrong(field+".type", "is %v, want Normal or Warning", event.GetType())
		}
		if err := checkTexts(field, event.GetReason(), event.GetMessage()); err != nil {
			return err
		}
	}
	for i, actions := range decision.GetPodFailureActions() {
		field := fmt.Sprintf("pod_failure_actions[%d]", i)
		if ActionName(actions.GetAction()) == "" {
			return wrong(field+".action", "is %v, want one of the pod failure policy's", actions.GetAction())
		}
		if actions.GetCount() < 1 {
			return wrong(field+".count", "is %d, want 1 or more", actions.GetCount())
		}
	}
	return nil
}

// checkStatus checks the status to write. The API server validates the rest.
func checkStatus(decision *jobpolicyv1.DecideJobResponse) error {
	st := decision.GetStatus()
	if st == nil {
		return nil
	}
	for _, count := range []struct {
		field string
		n     int32
	}{
		{"active", st.GetActive()},
		{"ready", st.GetReady()},
		{"terminating", st.GetTerminating()},
		{"succeeded", st.GetSucceeded()},
		{"failed", st.GetFailed()},
	} {
		if count.n < 0 {
			return wrong("status."+count.field, "is %d, want 0 or more", count.n)
		}
	}
	// I3: each UID is in one of the lists, once.
	uncounted := slices.Concat(st.GetUncounted().GetSucceeded(), st.GetUncounted().GetFailed())
	return cmp.Or(
		checkUIDs("status.uncounted[%d]", uncounted),
		checkTime("status.start_time", st.GetStartTime()),
		checkTime("status.completion_time", st.GetCompletionTime()),
		answer.CheckSet("status.completed_indexes", st.GetCompletedIndexes(), highestIndex),
		answer.CheckSet("status.failed_indexes", st.GetFailedIndexes(), highestIndex),
		checkConditions(st.GetConditions()))
}

// checkConditions rejects conditions that the engine does not decide on: other
// controllers write those.
func checkConditions(conditions []*jobpolicyv1.JobCondition) error {
	seen := map[string]bool{}
	for i, c := range conditions {
		field := fmt.Sprintf("status.conditions[%d]", i)
		switch {
		case !DecidedByEngine(batchv1.JobConditionType(c.GetType())) || seen[c.GetType()]:
			return wrong(field+".type", "is %q, want each of those that the engine decides on once at most", c.GetType())
		case c.GetStatus() == 0:
			return wrong(field+".status", "is %v, want one of the contract", c.GetStatus())
		}
		seen[c.GetType()] = true
		if err := cmp.Or(checkTexts(field, c.GetReason(), c.GetMessage()), checkTime(field+".last_probe_time", c.GetLastProbeTime()),
			checkTime(field+".last_transition_time", c.GetLastTransitionTime())); err != nil {
			return err
		}
	}
	return nil
}

// checkUIDs checks that all UIDs have the right size, and that none occurs twice. format makes
// the name of the field from the position of a UID in the list, such as release[3].
func checkUIDs(format string, uids [][]byte) error {
	seen := map[string]bool{}
	for i, uid := range uids {
		if len(uid) != uidSize {
			return wrong(fmt.Sprintf(format, i), "has %d bytes, want %d", len(uid), uidSize)
		}
		if seen[string(uid)] {
			return wrong(fmt.Sprintf(format, i), "is %x once more, want it once at most", uid)
		}
		seen[string(uid)] = true
	}
	return nil
}

func checkTime(field string, at *timestamppb.Timestamp) error {
	if at != nil && !at.IsValid() {
		return wrong(field, "is no time between the years 1 and 9999")
	}
	return nil
}

// checkTexts checks that a reason and a message are UTF-8 and not too long.
func checkTexts(field, reason, message string) error {
	if len(reason) <= MaxReasonBytes && len(message) <= MaxMessageBytes && utf8.ValidString(reason) && utf8.ValidString(message) {
		return nil
	}
	return wrong(field, "has texts of %d and %d bytes, want UTF-8 of at most %d and %d",
		len(reason), len(message), MaxReasonBytes, MaxMessageBytes)
}
