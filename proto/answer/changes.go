package answer

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxChangesDefault is the contract's default of max_pod_changes.
const maxChangesDefault = 500

// checkChanges bounds what a decision may create, delete and end, by the request: no more pods than
// its settings allow, and only indexes that its Job has. So NewPods lists a few pods at most,
// whatever engine has answered.
func checkChanges(request *jobpolicyv1.DecideJobRequest, decision *jobpolicyv1.DecideJobResponse) error {
	most := cmp.Or(int(request.GetSettings().GetMaxPodChanges()), maxChangesDefault)
	create, deletes := decision.GetCreate(), len(decision.GetDelete())
	if err := checkFinished(request.GetFinishedPods(), decision.GetDeleteFinished(), most); err != nil {
		return err
	}
	switch {
	case deletes > most:
		return fmt.Errorf("delete has %d pods, want at most %d", deletes, most)
	case deletes+len(decision.GetEnd()) > most:
		return fmt.Errorf("delete and end have %d pods, want at most %d", deletes+len(decision.GetEnd()), most)
	}
	for i, pod := range decision.GetEnd() {
		if n := pod.GetActiveDeadlineSeconds(); n < 1 || n > math.MaxInt32 {
			return fmt.Errorf("end[%d].active_deadline_seconds is %d, want 1 to %d", i, n, math.MaxInt32)
		}
	}
	switch {
	case create == nil:
		return nil
	case deletes > 0:
		return errors.New("create is set together with delete, want one or the other")
	case len(decision.GetEnd()) > 0:
		return errors.New("create is set together with end, want one or the other")
	case create.GetCount() < 1 || int(create.GetCount()) > most:
		return fmt.Errorf("create.count is %d, want 1 to %d", create.GetCount(), most)
	case create.ActiveDeadlineSeconds != nil && create.GetActiveDeadlineSeconds() < 1:
		return fmt.Errorf("create.active_deadline_seconds is %d, want 1 or more", create.GetActiveDeadlineSeconds())
	}
	if err := checkIndexes(request.GetSpec(), create); err != nil {
		return err
	}
	return checkRaised(create)
}

// checkFinished checks that the finished pods to delete are some of those that the request lists, each once.
func checkFinished(pods *jobpolicyv1.FinishedPods, chosen [][]byte, most int) error {
	if len(chosen) > most {
		return fmt.Errorf("delete_finished has %d pods, want at most %d", len(chosen), most)
	}
	if len(chosen) == 0 {
		return nil
	}
	listed := map[string]bool{}
	for _, pod := range pods.GetFirst() {
		listed[string(pod.GetUid())] = true
	}
	for i, uid := range chosen {
		if !listed[string(uid)] {
			return fmt.Errorf("delete_finished[%d] is %x, want each of finished_pods.first once at most", i, uid)
		}
		delete(listed, string(uid))
	}
	return nil
}

// checkIndexes checks which pods are to be created. It checks the ranges of the set
// first, because only then is its size known to be within the limit.
func checkIndexes(spec *jobpolicyv1.JobSpec, create *jobpolicyv1.CreatePods) error {
	if spec.GetCompletionMode() != jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		if create.GetIndexes() != nil || len(create.GetFailureCounts()) > 0 {
			return errors.New("create.indexes or failure_counts are set, want none for a Job that is not INDEXED")
		}
		return nil
	}
	if err := CheckSet("create.indexes", create.GetIndexes(), spec.GetCompletions()-1); err != nil {
		return err
	}
	var n int64
	for _, r := range create.GetIndexes().GetRanges() {
		n += int64(r.GetLast()) - int64(r.GetFirst()) + 1
	}
	if n != int64(create.GetCount()) {
		return fmt.Errorf("create.indexes has %d indexes, want create.count, which is %d", n, create.GetCount())
	}
	if spec.BackoffLimitPerIndex == nil && len(create.GetFailureCounts()) > 0 {
		return errors.New("create.failure_counts is set, want none without backoff_limit_per_index")
	}
	return checkFailureCounts(create)
}

// checkFailureCounts checks that the counts belong to indexes that are created.
func checkFailureCounts(create *jobpolicyv1.CreatePods) error {
	wanted := map[int32]bool{}
	for _, pod := range NewPods(&jobpolicyv1.CreatePods{Indexes: create.GetIndexes()}) {
		wanted[*pod.Index] = true
	}
	for i, f := range create.GetFailureCounts() {
		switch {
		case !wanted[f.GetIndex()]:
			return fmt.Errorf("create.failure_counts[%d].index is %d, want each of create.indexes once at most", i, f.GetIndex())
		case f.GetFailures() < 0 || f.GetIgnoredFailures() < 0:
			return fmt.Errorf("create.failure_counts[%d] has %d failures and %d ignored ones, want 0 or more", i, f.GetFailures(), f.GetIgnoredFailures())
		}
		delete(wanted, f.GetIndex())
	}
	return nil
}

// CheckSet checks that the ranges of a set ascend, do not overlap and do not go beyond
// the highest index. Its error begins with the name of the field.
func CheckSet(field string, set *jobpolicyv1.IndexSet, highest int32) error {
	next := int64(0)
	for i, r := range set.GetRanges() {
		if int64(r.GetFirst()) < next || r.GetLast() < r.GetFirst() || r.GetLast() > highest {
			return fmt.Errorf("%s.ranges[%d] is %d to %d, want a range in ascending order that begins at %d at least and ends at %d at most",
				field, i, r.GetFirst(), r.GetLast(), next, highest)
		}
		next = int64(r.GetLast()) + 1
	}
	return nil
}
