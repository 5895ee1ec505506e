package executor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	uidSize = 16
	// highestIndex is the contract's limit on completion indexes.
	highestIndex = math.MaxInt32 - 1
)

// wrong names a field of the decision, its value, and the value that was expected.
func wrong(field, format string, args ...any) error {
	return fmt.Errorf("%s %s: %w", field, fmt.Sprintf(format, args...), controller.ErrBadAnswer)
}

// check rejects decisions that could do harm: contradictions, more changes than the limits
// allow, and values that the contract does not allow. A decision that passes it, and
// answer.Check before, can be carried out. It may still be wrong as policy.
func (d *decider) check(req *jobpolicyv1.DecideJobRequest, decision *jobpolicyv1.DecideJobResponse) error {
	return cmp.Or(
		checkFrame(decision), d.checkCreate(req.GetSpec(), decision), d.checkDelete(decision), checkStatus(decision),
		checkRelease(decision), d.checkGang(decision), checkReports(decision))
}

func checkFrame(decision *jobpolicyv1.DecideJobResponse) error {
	if decision.GetDeleteJob() != nil {
		return wrong("delete_job", "is set, want none for a Job that has not finished")
	}
	return checkTime("requeue_time", decision.GetRequeueTime())
}

func (d *decider) checkCreate(spec *jobpolicyv1.JobSpec, decision *jobpolicyv1.DecideJobResponse) error {
	create := decision.GetCreate()
	switch most := d.cfg.maxChanges(); {
	case create == nil:
		return nil
	case len(decision.GetDelete()) > 0:
		return wrong("create", "is set together with delete, want one or the other")
	case create.GetCount() < 1 || int(create.GetCount()) > most:
		return wrong("create.count", "is %d, want 1 to %d", create.GetCount(), most)
	}
	return checkIndexes(spec, create)
}

// checkIndexes checks which pods are to be created. It checks the ranges of the set
// first, because only then is its size known to be within the limit.
func checkIndexes(spec *jobpolicyv1.JobSpec, create *jobpolicyv1.CreatePods) error {
	if spec.GetCompletionMode() != jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		if create.GetIndexes() != nil || len(create.GetFailureCounts()) > 0 {
			return wrong("create.indexes", "or failure_counts are set, want none for a Job that is not INDEXED")
		}
		return nil
	}
	if err := checkSet("create.indexes", create.GetIndexes(), spec.GetCompletions()-1); err != nil {
		return err
	}
	if n := setSize(create.GetIndexes()); n != int64(create.GetCount()) {
		return wrong("create.indexes", "has %d indexes, want create.count, which is %d", n, create.GetCount())
	}
	if spec.BackoffLimitPerIndex == nil && len(create.GetFailureCounts()) > 0 {
		return wrong("create.failure_counts", "is set, want none without backoff_limit_per_index")
	}
	wanted := map[int32]bool{}
	wire.EachIndex(create.GetIndexes(), func(ix int32) { wanted[ix] = true })
	for i, f := range create.GetFailureCounts() {
		field := fmt.Sprintf("create.failure_counts[%d]", i)
		switch {
		case !wanted[f.GetIndex()]:
			return wrong(field+".index", "is %d, want each of create.indexes once at most", f.GetIndex())
		case f.GetFailures() < 0 || f.GetIgnoredFailures() < 0:
			return wrong(field, "has %d failures and %d ignored ones, want 0 or more", f.GetFailures(), f.GetIgnoredFailures())
		}
		delete(wanted, f.GetIndex())
	}
	return nil
}

func (d *decider) checkDelete(decision *jobpolicyv1.DecideJobResponse) error {
	deletes, most := decision.GetDelete(), d.cfg.maxChanges()
	if len(deletes) > most {
		return wrong("delete", "has %d pods, want at most %d", len(deletes), most)
	}
	seen := map[string]bool{}
	for i, pod := range deletes {
		if err := checkUID(fmt.Sprintf("delete[%d].uid", i), pod.GetUid(), seen); err != nil {
			return err
		}
	}
	return nil
}

func checkRelease(decision *jobpolicyv1.DecideJobResponse) error {
	seen := map[string]bool{}
	for i, uid := range decision.GetRelease() {
		if err := checkUID(fmt.Sprintf("release[%d]", i), uid, seen); err != nil {
			return err
		}
	}
	return nil
}

func (d *decider) checkGang(decision *jobpolicyv1.DecideJobResponse) error {
	switch {
	case decision.GetGang() == nil:
		return nil
	case !d.cfg.Settings.GetGangScheduling():
		return wrong("gang", "is set, want none: gangs were not asked for")
	case decision.GetGang().GetMinCount() < 2:
		return wrong("gang.min_count", "is %d, want 2 or more", decision.GetGang().GetMinCount())
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
		if !text(event.GetReason(), wire.MaxReasonBytes) || !text(event.GetMessage(), wire.MaxMessageBytes) {
			return wrong(field, "has texts of %d and %d bytes, want UTF-8 of at most %d and %d",
				len(event.GetReason()), len(event.GetMessage()), wire.MaxReasonBytes, wire.MaxMessageBytes)
		}
	}
	for i, actions := range decision.GetPodFailureActions() {
		field := fmt.Sprintf("pod_failure_actions[%d]", i)
		if wire.ActionName(actions.GetAction()) == "" {
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
	seen := map[string]bool{} // I3: each UID is in one of the lists, once.
	for i, uid := range slices.Concat(st.GetUncounted().GetSucceeded(), st.GetUncounted().GetFailed()) {
		if err := checkUID(fmt.Sprintf("status.uncounted[%d]", i), uid, seen); err != nil {
			return err
		}
	}
	if err := cmp.Or(checkTime("status.start_time", st.GetStartTime()), checkTime("status.completion_time", st.GetCompletionTime())); err != nil {
		return err
	}
	if err := checkSet("status.completed_indexes", st.GetCompletedIndexes(), highestIndex); err != nil {
		return err
	}
	if err := checkSet("status.failed_indexes", st.GetFailedIndexes(), highestIndex); err != nil {
		return err
	}
	return checkConditions(st.GetConditions())
}

// checkConditions rejects conditions that the engine does not decide on: other
// controllers write those.
func checkConditions(conditions []*jobpolicyv1.JobCondition) error {
	seen := map[string]bool{}
	for i, c := range conditions {
		field := fmt.Sprintf("status.conditions[%d]", i)
		switch {
		case !wire.DecidedByEngine(batchv1.JobConditionType(c.GetType())) || seen[c.GetType()]:
			return wrong(field+".type", "is %q, want each of those that the engine decides on once at most", c.GetType())
		case c.GetStatus() == 0:
			return wrong(field+".status", "is %v, want one of the contract", c.GetStatus())
		case !text(c.GetReason(), wire.MaxReasonBytes) || !text(c.GetMessage(), wire.MaxMessageBytes):
			return wrong(field, "has texts of %d and %d bytes, want UTF-8 of at most %d and %d",
				len(c.GetReason()), len(c.GetMessage()), wire.MaxReasonBytes, wire.MaxMessageBytes)
		}
		seen[c.GetType()] = true
		if err := cmp.Or(checkTime(field+".last_probe_time", c.GetLastProbeTime()),
			checkTime(field+".last_transition_time", c.GetLastTransitionTime())); err != nil {
			return err
		}
	}
	return nil
}

// checkSet checks that the ranges of a set ascend, do not overlap and do not go beyond
// the highest index.
func checkSet(field string, set *jobpolicyv1.IndexSet, highest int32) error {
	next := int64(0)
	for i, r := range set.GetRanges() {
		if int64(r.GetFirst()) < next || r.GetLast() < r.GetFirst() || r.GetLast() > highest {
			return wrong(fmt.Sprintf("%s.ranges[%d]", field, i), "is %d to %d, want a range in ascending order that begins at %d at least and ends at %d at most",
				r.GetFirst(), r.GetLast(), next, highest)
		}
		next = int64(r.GetLast()) + 1
	}
	return nil
}

// setSize is the number of indexes of a set. The set must have passed checkSet.
func setSize(set *jobpolicyv1.IndexSet) int64 {
	var n int64
	for _, r := range set.GetRanges() {
		n += int64(r.GetLast()) - int64(r.GetFirst()) + 1
	}
	return n
}

// checkUID checks that a UID has the right size and is not in seen, and adds it to seen.
func checkUID(field string, uid []byte, seen map[string]bool) error {
	if len(uid) != uidSize {
		return wrong(field, "has %d bytes, want %d", len(uid), uidSize)
	}
	if seen[string(uid)] {
		return wrong(field, "is %x once more, want it once at most", uid)
	}
	seen[string(uid)] = true
	return nil
}

func checkTime(field string, at *timestamppb.Timestamp) error {
	if at != nil && !at.IsValid() {
		return wrong(field, "is no time between the years 1 and 9999")
	}
	return nil
}

// text reports whether s is UTF-8 and has at most that many bytes.
func text(s string, most int) bool { return len(s) <= most && utf8.ValidString(s) }
