package answer

import (
	"context"
	"crypto/rand"
	"errors"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// An Ask asks an engine about a Job. jobpolicyv1grpc.Asker makes one of a gRPC client.
type Ask func(context.Context, *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)

// Decide asks an engine about a Job, and returns a checked decision to carry out.
//
// request makes the request. If the engine has to know which pods are active, request
// is called once more, with activePods. Decide sets request_id; it sets now if request
// does not.
//
// The request must include the caller's own writes (DecideJobRequest).
func Decide(ctx context.Context, ask Ask, request func(activePods bool) (*jobpolicyv1.DecideJobRequest, error)) (*jobpolicyv1.DecideJobResponse, error) {
	return Complete(func(activePods bool) (*jobpolicyv1.DecideJobResponse, error) {
		req, err := request(activePods)
		if err != nil {
			return nil, err
		}
		req.RequestId = rand.Text()
		if req.Now == nil {
			req.Now = timestamppb.Now()
		}
		decision, err := ask(ctx, req)
		if err != nil {
			return nil, err
		}
		return decision, Check(req, decision)
	})
}

// ErrIncomplete says that the engine asks again for the active pods, although they were
// listed.
var ErrIncomplete = errors.New("active pods were listed and are asked for again")

// Complete calls ask(false). If the answer is INCOMPLETE, it calls ask(true), whose
// request must list the active pods. It returns the first answer that is not INCOMPLETE,
// or ErrIncomplete if both are. ask must check its answer, as Check does.
func Complete(ask func(activePods bool) (*jobpolicyv1.DecideJobResponse, error)) (*jobpolicyv1.DecideJobResponse, error) {
	for _, activePods := range []bool{false, true} {
		decision, err := ask(activePods)
		if err != nil {
			return nil, err
		}
		if decision.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
			return decision, nil
		}
	}
	return nil, ErrIncomplete
}

// A NewPod is a pod to create.
type NewPod struct {
	// Index is the pod's completion index; nil unless the Job is INDEXED.
	Index *int32
	// Failures and IgnoredFailures are what the pod inherits from the one before it:
	// the next requests have them as index_failure_count and
	// index_ignored_failure_count.
	Failures, IgnoredFailures int32
	// Raised says what the pod gets more of than the template says; nil: nothing.
	Raised *jobpolicyv1.RaisedPods
}

// NewPods lists the pods that a decision creates, those of an INDEXED Job in ascending
// order.
func NewPods(create *jobpolicyv1.CreatePods) []NewPod {
	if create.GetIndexes() == nil {
		return alike(create)
	}
	raised := raisedIndexes(create)
	counts := map[int32]*jobpolicyv1.IndexFailureCount{}
	for _, c := range create.GetFailureCounts() {
		counts[c.GetIndex()] = c
	}
	var pods []NewPod
	for _, r := range create.GetIndexes().GetRanges() {
		for i := int64(r.GetFirst()); i <= int64(r.GetLast()); i++ { // The last index may be the largest int32.
			index := int32(i)
			pods = append(pods, NewPod{
				Index: &index, Raised: raised[index], Failures: counts[index].GetFailures(), IgnoredFailures: counts[index].GetIgnoredFailures(),
			})
		}
	}
	return pods
}

// Finished returns the condition Complete or Failed of a Job that is over, and nil
// before.
func Finished(status *jobpolicyv1.JobStatus) *jobpolicyv1.JobCondition {
	for _, c := range status.GetConditions() {
		if (c.GetType() == "Complete" || c.GetType() == "Failed") && c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE {
			return c
		}
	}
	return nil
}

// Indexes is a set of indexes that ascend; without one, the empty set. podfacts.IndexSet takes them in
// any order.
func Indexes(ascending ...int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for i, index := range ascending {
		if i > 0 && index == ascending[i-1]+1 {
			set.Ranges[len(set.Ranges)-1].Last = index
			continue
		}
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: index, Last: index})
	}
	return set
}
