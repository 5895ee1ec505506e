// Package answer is what every caller of the engine needs around an answer.
//
// Decide asks about a Job, with the active pods if need be, and checks the answer.
// Complete and Check are its two halves. NewPods lists the pods to create. Next says
// when to ask again. FollowUp says whether to ask again at once: that depends on what the
// caller has changed. Finished says whether a Job is over. Only takes the answer to a partial
// question about one item. ParseIndexes reads a set of indexes.
package answer

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/unknown"
)

// A Request is a DecideJobRequest or a DecideCronJobRequest.
type Request interface {
	GetRequestId() string
	GetNow() *timestamppb.Timestamp
	GetDeferrals() []*jobpolicyv1.Deferral
}

// A Decision is a DecideJobResponse or a DecideCronJobResponse.
type Decision interface {
	proto.Message
	GetRequestId() string
	GetDisposition() jobpolicyv1.Disposition
}

// decisions finds fields and values of a newer contract in a decision. They could be a
// step that comes before others. It skips what a caller may ignore: the explanation, an
// unknown follow_up, which means none, and the reasons and rules that are only reported.
var decisions = unknown.NewFinder(
	[]protoreflect.FullName{
		"jobpolicy.v1.DecideJobResponse.explanation",
		"jobpolicy.v1.DecideJobResponse.follow_up",
		"jobpolicy.v1.DecideCronJobResponse.explanation",
		"jobpolicy.v1.DecideCronJobResponse.follow_up",
		"jobpolicy.v1.DeletePod.reason",
		"jobpolicy.v1.DeleteJob.reason",
		"jobpolicy.v1.Verdict.rule",
	},
	&jobpolicyv1.DecideJobResponse{}, &jobpolicyv1.DecideCronJobResponse{},
)

// Check returns an error for a decision of which nothing may be carried out: it belongs
// to another request, has something that this version of the contract does not know,
// creates, deletes or ends other or more pods than the request allows, or takes a step that the
// request leaves for later: it creates, deletes or ends pods, or creates the Job of a run.
func Check(request Request, decision Decision) error {
	disposition := decision.GetDisposition()
	switch {
	case decision.GetRequestId() != request.GetRequestId():
		return fmt.Errorf("asked %q, got the answer to %q", request.GetRequestId(), decision.GetRequestId())
	case disposition == jobpolicyv1.Disposition_DISPOSITION_UNSPECIFIED || jobpolicyv1.Disposition_name[int32(disposition)] == "":
		return fmt.Errorf("disposition %v is unknown", disposition)
	}
	if found := decisions.Find(decision); found != nil {
		return fmt.Errorf("%s %s", found.Path, found.What)
	}
	switch d := any(decision).(type) {
	case *jobpolicyv1.DecideJobResponse:
		if asked, ok := any(request).(*jobpolicyv1.DecideJobRequest); ok {
			if err := checkChanges(asked, d); err != nil {
				return err
			}
		}
		switch {
		case d.GetCreate() != nil && deferred(request, jobpolicyv1.Step_STEP_CREATE_PODS):
			return errors.New("create is set, but the request defers STEP_CREATE_PODS")
		case len(d.GetDelete()) > 0 && deferred(request, jobpolicyv1.Step_STEP_DELETE_PODS):
			return errors.New("delete is set, but the request defers STEP_DELETE_PODS")
		case len(d.GetEnd()) > 0 && deferred(request, jobpolicyv1.Step_STEP_DELETE_PODS):
			return errors.New("end is set, but the request defers STEP_DELETE_PODS")
		case len(d.GetDeleteFinished()) > 0 && deferred(request, jobpolicyv1.Step_STEP_DELETE_FINISHED_PODS):
			return errors.New("delete_finished is set, but the request defers STEP_DELETE_FINISHED_PODS")
		}
	case *jobpolicyv1.DecideCronJobResponse:
		switch create := d.GetCreate(); {
		case create != nil && deferred(request, jobpolicyv1.Step_STEP_CREATE_JOB):
			return errors.New("create is set, but the request defers STEP_CREATE_JOB")
		case create != nil && create.GetScheduledTime() == nil && deferred(request, jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB):
			return errors.New("create is set, but the request defers STEP_CREATE_MANUAL_JOB")
		}
	}
	return nil
}

// deferred reports whether a request leaves a step for later. An engine that is older
// than the step ignores that.
func deferred(req Request, step jobpolicyv1.Step) bool {
	for _, d := range req.GetDeferrals() {
		if d.GetStep() == step && d.GetUntil().AsTime().After(req.GetNow().AsTime()) {
			return true
		}
	}
	return false
}

// FollowUp returns what the follow_up of a decision asks for, after the decision was
// carried out in full: AT_ONCE, WHEN_CONFIRMED or NONE. changed says whether the caller
// changed anything. If it did not, the next decision would be the same, so there is no
// follow-up (invariant I11). An unknown value stands for none.
func FollowUp(decision interface{ GetFollowUp() jobpolicyv1.FollowUp }, changed bool) jobpolicyv1.FollowUp {
	switch asked := decision.GetFollowUp(); asked {
	case jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE, jobpolicyv1.FollowUp_FOLLOW_UP_WHEN_CONFIRMED:
		if changed {
			return asked
		}
	}
	return jobpolicyv1.FollowUp_FOLLOW_UP_NONE
}

// Next returns when to ask again if nothing changes, after a decision of DecideJob was
// carried out in full and has changed something. The zero time: only after a change. It
// is for callers that see their own releases at once: for FOLLOW_UP_WHEN_CONFIRMED it
// returns now.
func Next(decision *jobpolicyv1.DecideJobResponse, now time.Time) time.Time {
	if FollowUp(decision, true) != jobpolicyv1.FollowUp_FOLLOW_UP_NONE {
		return now
	}
	if decision.GetRequeueTime() == nil {
		return time.Time{}
	}
	return decision.GetRequeueTime().AsTime()
}

// Earlier returns the earlier of two times of Next.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
